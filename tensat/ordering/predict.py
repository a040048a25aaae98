"""What the cost source says that a model takes: its kernels and what they need besides.

The same sum as that of ``tensat profile``, without running the model for time.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

from tensat.costs.cpu import CpuCosts, near_cache
from tensat.costs.source import Signature
from tensat.costs.store import CostStore
from tensat.errors import ExecutionError
from tensat.ordering.result import KernelCost, Prediction
from tensat.profiling.as_is import AsIs
from tensat.profiling.question import AS_IS, question
from tensat.profiling.running_graph import running_graph
from tensat.runtime import Failure, Feeds, Program, Runtime


def predict(
    runtime: Runtime,
    store: CostStore,
    program: Program,
    feeds: Feeds,
    folder: Path,
    seconds: float = 4.0,
) -> Prediction:
    """Return the predicted time of a model, kernel by kernel.

    Args:
        runtime: Tells the graph that runs, and times kernels that are not known.
        store: Where their costs are kept.
        program: The model, and how it is loaded.
        feeds: Its inputs.
        folder: Where the graph that runs is written.
        seconds: Time for measuring kernels; later ones are estimated.

    Raises:
        ExecutionError: The runtime cannot run the model.
    """
    graph = running_graph(runtime, program, feeds, folder / "running.onnx")
    asked = [question(graph, node) for node in graph.nodes]
    signatures = [each for each in asked if each is not None]
    own = {
        signature: node
        for node, signature in zip(graph.nodes, asked, strict=True)
        if signature is not None and signature.op.startswith(AS_IS)
    }
    resident = graph.weight_bytes <= near_cache()
    given = AsIs(graph, own, {}, runtime, feeds, program.threads, resident)
    source = CpuCosts(store, runtime, threads=program.threads, resident=resident)
    costs = source.costs(signatures, time.monotonic() + seconds, None, given)
    overhead = runtime.overhead(program.threads)
    if isinstance(overhead, Failure):
        raise ExecutionError(f"the runtime cannot run a model: {overhead}")
    dispatch = len(graph.nodes) * source.dispatch()
    kernels = tuple(
        KernelCost(_name(signature), signature.text(), cost.seconds, str(cost.origin))
        for signature, cost in zip(signatures, costs, strict=True)
    )
    whole = math.fsum([overhead, dispatch, *(each.seconds for each in kernels)])
    return Prediction(whole, kernels)


def _name(signature: Signature) -> str:
    return signature.op.removeprefix(AS_IS).removeprefix("com.microsoft.")

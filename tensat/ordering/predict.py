"""What the cost source says that models take: their kernels and what they need besides.

The same sums as those of ``tensat profile``, without running the models for time. Models
that are to be compared are asked for at once, so that a kernel of both has one cost.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tensat.costs.cost import Cost
from tensat.costs.cpu import CpuCosts, near_cache
from tensat.costs.source import Signature
from tensat.costs.store import CostStore
from tensat.errors import ExecutionError
from tensat.ordering.result import KernelCost, Prediction
from tensat.profiling.as_is import AsIs
from tensat.profiling.question import AS_IS, question
from tensat.profiling.running_graph import RunningGraph, running_graph
from tensat.runtime import Failure, Feeds, Kernel, Program, Runtime


def predict(
    runtime: Runtime,
    store: CostStore,
    programs: Sequence[Program],
    feeds: Feeds,
    folder: Path,
    seconds: float = 8.0,
) -> list[Prediction]:
    """Return the predicted time of each model, kernel by kernel.

    Args:
        runtime: Tells the graphs that run, and times kernels that are not known.
        store: Where their costs are kept.
        programs: The models, and how they are loaded; all with the same threads.
        feeds: The inputs of all of them.
        folder: Where the graphs that run are written.
        seconds: Time for measuring kernels; later ones are estimated.

    Raises:
        ExecutionError: The runtime cannot run a model.
    """
    threads = programs[0].threads
    graphs = [
        running_graph(runtime, program, feeds, folder / f"running{place}.onnx")
        for place, program in enumerate(programs)
    ]
    # They run in turn, so it is the weights of all that a cache would have to hold.
    resident = sum(graph.weight_bytes for graph in graphs) <= near_cache()
    asked = [[question(graph, node) for node in graph.nodes] for graph in graphs]
    given: dict[Signature, Kernel] = {}
    for graph, row in zip(graphs, asked, strict=True):
        given |= _as_they_are(graph, row, runtime, feeds, threads, resident)
    known = [[each for each in row if each is not None] for row in asked]
    distinct = list(dict.fromkeys(each for row in known for each in row))
    source = CpuCosts(store, runtime, threads=threads, resident=resident)
    found = source.costs(distinct, time.monotonic() + seconds, None, given)
    costs = dict(zip(distinct, found, strict=True))
    overhead = runtime.overhead(threads)
    if isinstance(overhead, Failure):
        raise ExecutionError(f"the runtime cannot run a model: {overhead}")
    return [
        _prediction(row, costs, overhead + len(graph.nodes) * source.dispatch())
        for graph, row in zip(graphs, known, strict=True)
    ]


def _as_they_are(
    graph: RunningGraph,
    asked: Sequence[Signature | None],
    runtime: Runtime,
    feeds: Feeds,
    threads: int,
    resident: bool,
) -> dict[Signature, Kernel]:
    """Return what to time for the nodes whose signature does not tell it."""
    nodes = {
        signature: node
        for node, signature in zip(graph.nodes, asked, strict=True)
        if signature is not None and signature.op.startswith(AS_IS)
    }
    return dict(AsIs(graph, nodes, {}, runtime, feeds, threads, resident))


def _prediction(
    row: Sequence[Signature], costs: dict[Signature, Cost], besides: float
) -> Prediction:
    kernels = tuple(_kernels(row, costs))
    seconds = math.fsum([besides, *(kernel.seconds for kernel in kernels)])
    return Prediction(seconds, kernels)


def _kernels(
    row: Sequence[Signature], costs: dict[Signature, Cost]
) -> Iterator[KernelCost]:
    for signature in row:
        name = signature.op.removeprefix(AS_IS).removeprefix("com.microsoft.")
        cost = costs[signature]
        yield KernelCost(name, signature.text(), cost.seconds, str(cost.origin))

"""What the cost source says that models take: their kernels and what they need besides.

The same sums as those of ``tensat profile``, without running the models for time. Models
that are to be compared are asked for at once, so that a kernel of both has one cost. Where
the sums are close, the kernels that only some of them have are measured again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tensat.costs.cost import Cost
from tensat.costs.cpu import CpuCosts, near_cache
from tensat.costs.source import Signature
from tensat.costs.store import CostStore
from tensat.ordering.result import KernelCost, Prediction
from tensat.profiling.prediction import (
    Predicted,
    Questions,
    paces_of,
    predicted,
    questions,
)
from tensat.profiling.question import AS_IS
from tensat.profiling.running_graph import running_graph
from tensat.runtime import Feeds, Kernel, Program, Runtime
from tensat.runtime.pace import middle

_CLOSE = 0.15  # relative difference up to which kernels are measured again
_TIMES = 2


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
    weights = sum(graph.weight_bytes for graph in graphs)
    resident = weights <= near_cache()
    asked = [
        questions(graph, runtime, feeds, threads, profiled={}, resident=resident)
        for graph in graphs
    ]
    given: dict[Signature, Kernel] = {}
    for each in asked:
        given |= each.kernels
    distinct = list(dict.fromkeys(s for each in asked for s in each.signatures))
    source = CpuCosts(store, runtime, threads=threads, resident=resident, careful=True)
    found = source.costs(distinct, time.monotonic() + seconds, None, given)
    costs = dict(zip(distinct, found, strict=True))
    pace = middle(paces_of(runtime, threads, weights))
    sums = [predicted(each, costs, source, runtime, pace) for each in asked]
    totals = [each.seconds for each in sums]
    if max(totals) < (1 + _CLOSE) * min(totals):
        apart = _apart(asked)
        costs |= zip(apart, source.refine(apart, _TIMES, given), strict=True)
        sums = [predicted(each, costs, source, runtime, pace) for each in asked]
    return [_prediction(each, costs, of) for each, of in zip(asked, sums, strict=True)]


def _apart(asked: Sequence[Questions]) -> list[Signature]:
    """Return what the graphs do not have in common, equally often."""
    counts = [Counter(each.signatures) for each in asked]
    distinct = dict.fromkeys(s for each in asked for s in each.signatures)
    return [s for s in distinct if len({count[s] for count in counts}) > 1]


def _prediction(
    asked: Questions, costs: Mapping[Signature, Cost], sums: Predicted
) -> Prediction:
    kernels = tuple(
        KernelCost(
            signature.op.removeprefix(AS_IS).removeprefix("com.microsoft."),
            signature.text(),
            seconds,
            str(costs[signature].origin),
        )
        for signature, seconds in zip(asked.by_node, sums.kernels, strict=True)
        if signature is not None
    )
    return Prediction(sums.seconds, kernels)

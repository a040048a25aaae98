"""What a model is predicted to take: its kernels, and what nodes and a run need besides.

Costs hold for the usual pace of the machine (`tensat.costs.cpu`); a prediction is made for
the pace of a certain time, such as that at which the model itself runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnx import NodeProto

from tensat.costs.cost import Cost
from tensat.costs.cpu import CpuCosts
from tensat.costs.kernel_model import FOOTPRINT
from tensat.costs.source import Signature
from tensat.errors import ExecutionError
from tensat.profiling.as_is import AsIs
from tensat.profiling.question import AS_IS, question
from tensat.profiling.running_graph import RunningGraph
from tensat.runtime import Failure, Feeds, Kernel, Pace, Runtime
from tensat.runtime.pace import Demand, moved


@dataclass(frozen=True, slots=True)
class Questions:
    """What is asked of a cost source about a graph.

    Attributes:
        graph: The graph that runs.
        by_node: What is asked about each node; None if it handles something else than
            tensors of numbers.
        kernels: What to time where a signature does not tell it.
    """

    graph: RunningGraph
    by_node: tuple[Signature | None, ...]
    kernels: Mapping[Signature, Kernel]

    @property
    def signatures(self) -> list[Signature]:
        """All that is asked, in the order of the nodes."""
        return [each for each in self.by_node if each is not None]


@dataclass(frozen=True, slots=True)
class Predicted:
    """Predicted seconds of one run of a model.

    Attributes:
        kernels: Of each node; 0 where nothing could be asked.
        dispatch: What all nodes take besides their kernels.
        overhead: What a run takes that computes nothing.
    """

    kernels: tuple[float, ...]
    dispatch: float
    overhead: float

    @property
    def seconds(self) -> float:
        """All of it."""
        return math.fsum([self.overhead, self.dispatch, *self.kernels])


def questions(
    graph: RunningGraph,
    runtime: Runtime,
    feeds: Feeds,
    threads: int,
    *,
    profiled: Mapping[str, float],
    resident: bool,
) -> Questions:
    """Return what to ask about a graph.

    Args:
        graph: The graph that runs.
        runtime: Gives the values that some nodes are timed with.
        feeds: The inputs that it is run with.
        threads: Threads that compute.
        profiled: About how many seconds nodes take, by name, as far as that is known.
        resident: Whether the weights of the model stay in a core's own cache.
    """
    asked = tuple(question(graph, node) for node in graph.nodes)
    own = _own(graph.nodes, asked)
    kernels = AsIs(graph, own, profiled, runtime, feeds, threads, resident)
    return Questions(graph, asked, kernels)


def predicted(
    asked: Questions,
    costs: Mapping[Signature, Cost],
    source: CpuCosts,
    runtime: Runtime,
    pace: Pace,
) -> Predicted:
    """Return what a model is predicted to take.

    Args:
        asked: What was asked about its nodes.
        costs: The answers.
        source: Who gave them.
        runtime: Where it is to run.
        pace: The pace of the machine that it is predicted for.

    Raises:
        ExecutionError: The runtime does not start.
    """
    kernels = tuple(
        0.0 if each is None else source.restated(each, costs[each].seconds, pace)
        for each in asked.by_node
    )
    node = source.dispatch()
    if node:
        node = moved(node, Demand(), source.usual(), pace)
    overhead = runtime.overhead(source.setting.threads)
    if isinstance(overhead, Failure):
        raise ExecutionError(f"the runtime cannot run a model: {overhead}")
    return Predicted(kernels, len(asked.by_node) * node, overhead)


def paces_of(runtime: Runtime, threads: int, weights: int) -> list[Pace]:
    """Return what the yardsticks take just now, looked at some times.

    Args:
        runtime: Where they run.
        threads: Threads that compute.
        weights: Bytes of a model's weights: the fewer, the more of them a cache holds.

    Raises:
        ExecutionError: The runtime does not start.
    """
    found = runtime.paces(threads, 0.0, min(weights, FOOTPRINT))
    if isinstance(found, Failure):
        raise ExecutionError(f"the runtime cannot run a model: {found}")
    return found


def _own(
    nodes: Sequence[NodeProto], asked: Sequence[Signature | None]
) -> dict[Signature, NodeProto]:
    """Return the first node of each signature that does not tell what to time."""
    found: dict[Signature, NodeProto] = {}
    for node, signature in zip(nodes, asked, strict=True):
        if signature is not None and signature.op.startswith(AS_IS):
            found.setdefault(signature, node)
    return found

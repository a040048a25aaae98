"""What the nodes that an optimization keeps as they are take, out of one run of the model.

An estimate from sizes alone is far off for loops, branches and recurrent layers; profiling
times such nodes with the values that they see. So does this, for the nodes of a graph that
are opaque, as far as the runtime runs them at all: it may have folded or fused some.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from onnx import NodeProto

from tensat.costs.cost import Origin
from tensat.costs.cpu import CpuCosts
from tensat.costs.source import Signature
from tensat.errors import ExecutionError
from tensat.model.graph import OPAQUE, Graph, Ref
from tensat.profiling.prediction import questions
from tensat.profiling.running_graph import RunningGraph, running_graph
from tensat.runtime import Failure, Feeds, Level, Program, Runtime

_SECONDS = 0.5  # of a run under the runtime's profile
_SURE = frozenset({Origin.KNOWN, Origin.MEASURED, Origin.UNSTEADY})


def kept_seconds(
    graph: Graph,
    program: Program,
    feeds: Feeds,
    runtime: Runtime,
    source: CpuCosts,
    *,
    folder: Path,
    deadline: float,
    resident: bool,
) -> dict[int, float]:
    """Return the seconds of opaque nodes, by index; those that nothing is known of are not.

    Args:
        graph: The graph of the model.
        program: The model itself.
        feeds: Inputs to run it with.
        runtime: Where it runs.
        source: Times nodes, and keeps what they take.
        folder: For the graph that the runtime makes.
        deadline: Value of `time.monotonic` after which nothing new is timed.
        resident: Whether the weights of the model stay in a core's own cache.
    """
    opaque = [index for index, node in enumerate(graph.nodes) if node.op == OPAQUE]
    if not opaque:
        return {}
    try:
        running = running_graph(runtime, program, feeds, folder / "running.onnx")
    except ExecutionError:
        return {}
    found = _running(graph, running, opaque)
    part = replace(running, nodes=tuple(found.values()))
    asked = questions(part, runtime, feeds, program.threads, profiled={}, resident=resident)
    if None in source.known(asked.signatures):
        profiled = _profiled(runtime, running, feeds, program.threads)
        asked = questions(
            part, runtime, feeds, program.threads, profiled=profiled, resident=resident
        )
    costs = source.costs(asked.signatures, deadline, None, asked.kernels)
    seconds: dict[Signature, float] = {
        signature: cost.seconds
        for signature, cost in zip(asked.signatures, costs, strict=True)
        if cost.origin in _SURE and math.isfinite(cost.seconds)
    }
    each = source.dispatch()
    pairs = zip(found, asked.by_node, strict=True)
    timed = {i: seconds[s] + each for i, s in pairs if s is not None and s in seconds}
    return timed | dict.fromkeys(_folded(graph, running, opaque), 0.0)


def _running(
    graph: Graph, running: RunningGraph, opaque: Sequence[int]
) -> dict[int, NodeProto]:
    """Return the nodes that run for opaque nodes, told by what they make.

    The runtime may call results by other names, where it leaves out what only passes them
    on. Where as many of a type are left on both sides, they are the same in their order.
    """
    made = {name: node for node in running.nodes for name in node.output if name}
    found: dict[int, NodeProto] = {}
    left: dict[str, list[int]] = defaultdict(list)
    for index in opaque:
        op_type = graph.opaque[graph.nodes[index].key].node.op_type
        names = _names(graph, index)
        same = [made[n] for n in names if n in made and made[n].op_type == op_type]
        if same:
            found[index] = same[0]
        elif not any(name in running.constants for name in names):
            left[op_type].append(index)
    taken = {id(node) for node in found.values()}
    for op_type, indices in left.items():
        others = [n for n in running.nodes if n.op_type == op_type and id(n) not in taken]
        if len(others) == len(indices):
            found.update(zip(indices, others, strict=True))
    return dict(sorted(found.items()))


def _folded(graph: Graph, running: RunningGraph, opaque: Sequence[int]) -> list[int]:
    """Return the opaque nodes of which the runtime made constants."""
    return [
        index
        for index in opaque
        if any(name in running.constants for name in _names(graph, index))
    ]


def _names(graph: Graph, index: int) -> list[str]:
    refs = (Ref(index, place) for place in range(len(graph.nodes[index].outputs)))
    return [graph.names[ref] for ref in refs if ref in graph.names]


def _profiled(
    runtime: Runtime, running: RunningGraph, feeds: Feeds, threads: int
) -> dict[str, float]:
    """Return about what each node takes; nothing where the profile fails."""
    program = Program(str(running.path), Level.NONE, threads)
    found = runtime.node_seconds(program, feeds, _SECONDS)
    return {} if isinstance(found, Failure) else found

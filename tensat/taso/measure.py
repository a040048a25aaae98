"""What a graph costs: the sum of its operators' costs, and the time of a whole run.

Both are in seconds here; TASO's methods turn them into milliseconds.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import onnx_ir as ir

from rulesets.size import Poly
from tensat.aim import aim_of
from tensat.check.feeds import find_inputs
from tensat.cost_sources import cost_source
from tensat.costs.source import CostSource
from tensat.egraph.saturate import Limits
from tensat.errors import ExecutionError
from tensat.extension import own_operators
from tensat.improve import Aim, Budget, Plan, improve
from tensat.model.graph import CONSTANT, INPUT, Graph
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_write import write
from tensat.options import Options
from tensat.report import summarize
from tensat.runtime import Failure, Program, Runtime
from tensat.sizes import bind_sizes
from tensat.stages import Clock

SECONDS = 2.0
"""About how long `run_seconds` measures."""


def operator_seconds(model: ir.Model, options: Options) -> tuple[Graph, dict[int, float]]:
    """The predicted cost of each operator, as the optimizer sees it.

    Operators of equal sizes cost the same; what depends on constants only costs nothing. Of
    operators that the runtime computes as one, the last has all of the cost.

    Args:
        model: The model.
        options: Its cost source, threads, input shapes and own operators count.

    Returns:
        The model as a Graph, and seconds by the place of each node in it.
    """
    with own_operators(options.operators), Runtime() as runtime:
        graph = to_graph(model)
        sizes = _sizes(graph, model, options, runtime)
        with source_of(options, runtime, model) as source:
            aim = aim_of(options, source, runtime, sizes)
            plan = as_it_is(graph, source, aim, options)
            return graph, _node_seconds(graph, plan)


def source_of(
    options: Options, runtime: Runtime, model: ir.Model
) -> AbstractContextManager[CostSource]:
    """The cost source that options name, open for as long as the block lasts.

    Args:
        options: Their cost source, its files and threads count.
        runtime: Where operators are timed.
        model: What is to be priced; the size of its weights counts.
    """
    return cost_source(
        options.cost,
        runtime,
        database=options.cost_db,
        table=options.cost_table,
        threads=options.threads,
        weights=summarize(model).bytes,
    )


def as_it_is(graph: Graph, source: CostSource, aim: Aim, options: Options) -> Plan:
    """The plan of a graph that no rule changes: what it costs.

    Args:
        graph: The graph.
        source: What operators cost.
        aim: Sizes and machine.
        options: Limits.
    """
    half = options.seconds / 2
    budget = Budget(Limits(options.max_nodes, half, 1), half, half, options.seed)
    return improve(graph, (), source, aim, budget, Clock())


def _node_seconds(graph: Graph, plan: Plan) -> dict[int, float]:
    """The cost of each node of a graph that is no input and no constant, in seconds."""
    seconds, encoded = plan.seconds_before(), plan.encoded
    egraph = encoded.egraph
    found = {}
    for ref, handle in encoded.handle_of.items():
        node = graph.nodes[ref.node]
        if ref.output or node.op in {CONSTANT, INPUT}:
            continue
        first = egraph.key_of[handle].arguments[0] if len(node.outputs) > 1 else handle
        key = egraph.key_of[first]
        real = egraph.handle_of(key.operator, key.attributes, key.arguments)
        found[ref.node] = seconds.get(real, 0.0)
    return found


def run_seconds(model: ir.Model, options: Options) -> float:
    """The median time of one run in ONNX Runtime, all its optimizations on.

    Args:
        model: The model.
        options: Its input shapes, seed and threads count.

    Raises:
        ExecutionError: The model does not run.
    """
    with (
        tempfile.TemporaryDirectory(prefix="tensat-") as folder,
        Runtime() as runtime,
    ):
        path = str(Path(folder) / "model.onnx")
        write(model, path)
        inputs = find_inputs(runtime, path, options.input_shapes, (options.seed,))
        feeds = inputs.feeds(options.seed)
        program = Program(path, threads=options.threads)
        times = runtime.compare([program], feeds, SECONDS, 5)
    if isinstance(times, Failure):
        raise ExecutionError(f"the graph does not run: {times}")
    return statistics.median(times[0])


def _sizes(
    graph: Graph, model: ir.Model, options: Options, runtime: Runtime
) -> Mapping[str, int]:
    """A value for each symbolic dimension; the model runs only if there are any."""
    dims = [s for node in graph.nodes for t in node.outputs for s in t.shape or ()]
    if not any(isinstance(dim, Poly) for dim in dims):
        return {}
    with tempfile.TemporaryDirectory(prefix="tensat-") as folder:
        path = str(Path(folder) / "model.onnx")
        write(model, path)
        inputs = find_inputs(runtime, path, options.input_shapes, (options.seed,))
        feeds = inputs.feeds(options.seed)
        return bind_sizes(graph, inputs.shapes, path, feeds, runtime)

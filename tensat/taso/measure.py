"""What a graph costs: the sum of its operators' costs, and the time of a whole run.

Both are in seconds here; TASO's methods turn them into milliseconds.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import onnx_ir as ir

from rulesets.size import Poly
from tensat.check.feeds import find_inputs
from tensat.costs.cpu import CpuCosts
from tensat.costs.roofline import Roofline
from tensat.costs.source import CostSource
from tensat.costs.store import CostStore
from tensat.egraph.encode import encode
from tensat.egraph.price import price
from tensat.errors import ExecutionError
from tensat.model.graph import CONSTANT, INPUT, Graph
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_write import write
from tensat.options import Options
from tensat.runtime import Failure, Program, Runtime
from tensat.sizes import bind_sizes

SECONDS = 2.0
"""About how long `run_seconds` measures."""


def operator_seconds(model: ir.Model, options: Options) -> tuple[Graph, dict[int, float]]:
    """The predicted cost of each operator, as the optimizer sees it.

    Operators of equal sizes cost the same; what depends on constants only costs nothing.

    Args:
        model: The model.
        options: Its cost source, cost database, threads and input shapes count.

    Returns:
        The model as a Graph, and seconds by the place of each node in it.
    """
    graph = to_graph(model)
    with Runtime() as runtime, cost_source(options, runtime) as source:
        sizes = _sizes(graph, model, options, runtime)
        return graph, node_seconds(graph, source, sizes)


def node_seconds(
    graph: Graph, source: CostSource, sizes: Mapping[str, int]
) -> dict[int, float]:
    """The cost of each node of a graph that is no input and no constant, in seconds.

    Args:
        graph: The graph.
        source: What operators cost.
        sizes: Value of each symbolic dimension.
    """
    encoded = encode(graph, ())
    egraph = encoded.egraph
    priced = price(egraph, egraph.refresh(), source, sizes, graph.header.opset)
    seconds = {enode.handle: enode.seconds for enode in priced}
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


@contextmanager
def cost_source(options: Options, runtime: Runtime) -> Iterator[CostSource]:
    """The cost source that options name.

    Args:
        options: Their cost source, cost database and threads count.
        runtime: Where operators are timed.
    """
    if options.cost == "roofline":
        yield Roofline()
        return
    file = options.cost_db
    with CostStore.open_default() if file is None else CostStore.open(file) as store:
        yield CpuCosts(store, runtime, threads=options.threads)


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

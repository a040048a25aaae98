"""TASO's functions: make a graph, load one, optimize it, export it."""

from __future__ import annotations

import os
from typing import Any, overload

import onnx

from tensat.model.onnx_read import ModelLike, read
from tensat.model.onnx_write import to_proto
from tensat.optimize import Result
from tensat.optimize import optimize as optimize_model
from tensat.options import Options
from tensat.stages import Progress
from tensat.taso.graph import TasoGraph


def new_graph(print_measurements: bool = False, *, seed: int = 0) -> TasoGraph:
    """An empty graph.

    Args:
        print_measurements: Whether `cost` prints the cost of each operator.
        seed: For the values of weights that are given no data.
    """
    graph = TasoGraph(seed=seed)
    if print_measurements:
        graph.print_measurements()
    return graph


def load_onnx(filename: str | os.PathLike[str]) -> TasoGraph:
    """The graph of an ONNX file, everything in it kept: names, opset, unknown operators.

    Raises:
        ModelError: The file cannot be read or is invalid.
    """
    return TasoGraph(read(filename))


def export_onnx(graph: TasoGraph) -> onnx.ModelProto:
    """The graph as an ONNX model, to be saved with `onnx.save`.

    Raises:
        UsageError: The graph has no operator.
        WriteError: The model is larger than 2 GB.
    """
    return to_proto(graph.model())


@overload
def optimize(
    graph: TasoGraph,
    alpha: float | None = None,
    budget: int | None = None,
    print_subst: bool = False,
    *,
    options: Options | None = None,
    progress: Progress | None = None,
) -> TasoGraph: ...


@overload
def optimize(
    model: ModelLike, options: Options | None = None, *, progress: Progress | None = None
) -> Result: ...


def optimize(*arguments: Any, **keywords: Any) -> TasoGraph | Result:
    """Optimize a model, or a graph in TASO's way.

    `optimize(model, options=None, *, progress=None)` takes the path of an ONNX file, a
    ModelProto or an onnx_ir Model and returns a `Result`.

    `optimize(graph, alpha=None, budget=None, print_subst=False, *, options=None,
    progress=None)` takes what `new_graph` or `load_onnx` returned and returns another such
    graph. With `alpha` or `budget` TASO's backtracking search runs beside that over the
    e-graph, and the better graph is returned: `alpha` says how much dearer than the best a
    graph may be to be looked at, `budget` how many graphs are rewritten. Without them only
    the e-graph is searched, which needs neither.

    Returns:
        What computes the same and was measured faster, or the original.

    Raises:
        ModelError: The model cannot be read or is invalid.
        UsageError: An option makes no sense for this model.
    """
    if not arguments and "graph" in keywords:
        arguments = (keywords.pop("graph"),)
    is_graph = bool(arguments) and isinstance(arguments[0], TasoGraph)
    run: Any = TasoGraph.optimize if is_graph else optimize_model
    result: TasoGraph | Result = run(*arguments, **keywords)
    return result

"""TASO's functions: make a graph, load one, optimize it, export it."""

from __future__ import annotations

import os
from typing import Any, overload

import onnx

from tensat.errors import UsageError
from tensat.onnx_read import ModelLike, read
from tensat.onnx_write import to_proto
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


def optimize_graph(
    graph: TasoGraph,
    alpha: float = 1.0,
    budget: int = 1000,
    print_subst: bool = False,
    *,
    options: Options | None = None,
    progress: Progress | None = None,
) -> TasoGraph:
    """A graph that computes the same and was measured faster, or one equal to the given.

    Args:
        graph: Not changed.
        alpha: TASO's search keeps graphs that cost less than alpha times the best one.
            The search over the e-graph holds all of them at once, so alpha is checked
            and otherwise has no influence.
        budget: TASO's search looks at so many graphs. The search over the e-graph is
            bounded by `options.seconds` and `options.max_nodes`; the budget is checked and
            otherwise has no influence.
        print_subst: Whether to print the rules behind the result, with their numbers.
        options: Limits, cost source and all else; defaults if None.
        progress: Told what happens.

    Returns:
        A new graph; its `report` says what was done.

    Raises:
        UsageError: An argument makes no sense.
    """
    if not alpha > 0 or budget < 0:
        raise UsageError(
            f"alpha must be positive and budget not negative, not {alpha} and {budget}"
        )
    result = optimize_model(graph.model(), options, progress=progress)
    if print_subst:
        print(result.report.reason)
        for rule, count in result.report.rules.items():
            print(f"{count:6}  {rule}")
    return TasoGraph(result.ir_model, report=result.report)


@overload
def optimize(
    graph: TasoGraph,
    alpha: float = 1.0,
    budget: int = 1000,
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

    `optimize(graph, alpha=1.0, budget=1000, print_subst=False, *, options=None,
    progress=None)` takes what `new_graph` or `load_onnx` returned and returns another such
    graph. `alpha` and `budget` belong to TASO's backtracking search: how much worse than
    the best a graph may be to be looked at, and how many graphs are. The search over the
    e-graph needs neither; they are checked and have no influence.

    Returns:
        What computes the same and was measured faster, or the original.

    Raises:
        ModelError: The model cannot be read or is invalid.
        UsageError: An option makes no sense for this model.
    """
    first = arguments[0] if arguments else keywords.get("graph")
    run: Any = optimize_graph if isinstance(first, TasoGraph) else optimize_model
    result: TasoGraph | Result = run(*arguments, **keywords)
    return result

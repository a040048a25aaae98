"""TASO's graph object: operators are methods, and so are cost, run time and inspection."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from rulesets.size import Size
from tensat.backtrack import Backtracked, Bounds
from tensat.errors import UsageError
from tensat.model.onnx_import import to_graph
from tensat.optimize import optimize
from tensat.options import Options
from tensat.report import Report
from tensat.stages import Progress
from tensat.taso.adding import Adder
from tensat.taso.backtracking import Searched, also_backtrack
from tensat.taso.inspection import Edge, Inspection, Operator
from tensat.taso.measure import operator_seconds, run_seconds
from tensat.taso.model_builder import ModelBuilder
from tensat.taso.operators_compute import ComputingOperators
from tensat.taso.operators_move import MovingOperators


class TasoGraph(ComputingOperators, MovingOperators):
    """A graph that grows by method calls, with the interface of TASO's.

    Outputs are all results that nothing uses; a graph that was loaded keeps the outputs
    that it declares, in order, and new unused results follow.

    Attributes:
        report: How the graph was optimized; None if it was not.
        backtracked: What TASO's search found on the way; None if it did not run.
    """

    def __init__(
        self, model: ir.Model | None = None, *, seed: int = 0, report: Report | None = None
    ) -> None:
        """An empty graph, or that of a model.

        Args:
            model: Belongs to the graph from now on.
            seed: For the values of random weights.
            report: How the model came about.
        """
        builder = (
            ModelBuilder.empty() if model is None else ModelBuilder(model, to_graph(model))
        )
        self._adder = Adder(builder)
        self._random = np.random.default_rng(seed)
        self._inspection = Inspection(builder)
        self._printing = False
        self.report = report
        self.backtracked: Backtracked | None = None

    def model(self) -> ir.Model:
        """The graph as an onnx_ir Model of its own; weights are shared, not copied.

        Raises:
            UsageError: The graph has no operator.
        """
        return self._adder.builder.close().clone()

    # ----------------------------------------------------------------- optimization
    def optimize(
        self,
        alpha: float | None = None,
        budget: int | None = None,
        print_subst: bool = False,
        *,
        options: Options | None = None,
        progress: Progress | None = None,
    ) -> TasoGraph:
        """A graph that computes the same and was measured faster, or one equal to this.

        The e-graph holds all graphs that the rules reach at once and is searched always.
        TASO's backtracking search runs, too, if `alpha` or `budget` is given, for
        `options.seconds` at most; its graph is taken where it is predicted to be cheaper
        and was not measured slower.

        Args:
            alpha: Backtracking keeps graphs that cost less than alpha times the best one:
                with 1 only improvements are followed. 1 if only a budget is given.
            budget: Backtracking rewrites so many graphs at most. 1000 if only alpha is
                given.
            print_subst: Whether to print the rules behind the result, with their numbers.
            options: Limits, cost source and all else; defaults if None.
            progress: Told what happens.

        Returns:
            A new graph; its `report` and `backtracked` say what was done.

        Raises:
            UsageError: An argument makes no sense.
        """
        options = options or Options()
        bounds = _bounds(alpha, budget, options.seconds)
        model = self.model()
        result = optimize(model, options, progress=progress)
        found = Searched(result.ir_model, result.report, None)
        if bounds is not None:
            found = also_backtrack(model, result, bounds, options, progress)
        if print_subst:
            _print(found.report)
        graph = TasoGraph(found.model, report=found.report)
        graph.backtracked = found.backtracked
        return graph

    def cost(self, *, options: Options | None = None) -> float:
        """The sum of the operators' costs in milliseconds, as the optimizer predicts it.

        Args:
            options: Where costs come from; operators timed in ONNX Runtime if None.
        """
        graph, seconds = operator_seconds(self.model(), options or Options())
        if self._printing:
            for place, one in seconds.items():
                node = graph.nodes[place]
                types = ", ".join(map(str, node.outputs))
                print(f"{1e3 * one:10.4f} ms  {node.op:20} {types}")
        return 1e3 * sum(seconds.values())

    def run_time(self, *, options: Options | None = None) -> float:
        """The median time of a whole run in ONNX Runtime, in milliseconds.

        Args:
            options: Threads and sizes of open dimensions; one thread if None.

        Raises:
            ExecutionError: The runtime cannot run the graph.
        """
        return 1e3 * run_seconds(self.model(), options or Options())

    def print_measurements(self) -> None:
        """From now on `cost` prints the cost of each operator."""
        self._printing = True

    # --------------------------------------------------------------------- inspection
    def get_operator_list(self) -> list[Operator]:
        """All operators in an order in which they can run; not inputs and weights."""
        return self._inspection.operators()

    def get_input_edges(self, op: Operator) -> list[Edge]:
        """Where the inputs of an operator come from."""
        return self._inspection.edges(op)

    def get_input_dims(self, op: Operator, idx: int) -> list[Size]:
        """The sizes of an input; those that are open are symbols."""
        return self._inspection.input_dims(op, idx)

    def get_output_dims(self, op: Operator, idx: int) -> list[Size]:
        """The sizes of a result; those that are open are symbols."""
        return self._inspection.output_dims(op, idx)

    def get_num_outputs(self, op: Operator) -> int:
        """The number of results."""
        return self._inspection.outputs(op)

    def get_operator_type(self, op: Operator) -> str:
        """The ONNX type; "Input" and "Weight" for what edges come from."""
        return self._inspection.kind(op)

    def get_operator_attr(self, op: Operator, attrname: str) -> Any:
        """An attribute, such as "kernel_shape", "pads", "group", "axis", "split", "perm".

        Raises:
            UsageError: The operator has none of that name; the text lists those it has.
        """
        return self._inspection.attribute(op, attrname)

    def get_split_lens(self, op: Operator) -> list[int]:
        """The sizes of the parts of a Split."""
        kind = self._inspection.kind(op)
        if kind != "Split":
            raise UsageError(f"the parts of a Split are asked for; found {kind}")
        return list(self._inspection.attribute(op, "split"))

    def get_weight_value(self, op: Operator) -> np.ndarray:
        """The value of a weight, as an array of its own."""
        return self._inspection.weight(op)


def _bounds(alpha: float | None, budget: int | None, seconds: float) -> Bounds | None:
    """How far backtracking goes, TASO's defaults for what is not said; None: it does not.

    Raises:
        UsageError: One of them makes no sense.
    """
    if alpha is None and budget is None:
        return None
    defaults = Bounds()
    return Bounds(
        defaults.alpha if alpha is None else alpha,
        defaults.budget if budget is None else budget,
        seconds,
    )


def _print(report: Report) -> None:
    """What was done, and the rules behind the result with their numbers."""
    for line in (report.reason, *report.notes):
        print(line)
    for rule, count in report.rules.items():
        print(f"{count:6}  {rule}")

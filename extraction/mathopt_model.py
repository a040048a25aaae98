"""Write an integer program, or its relaxation, for MathOpt.

One bulk call per field of the protocol buffer instead of one per entry: building the model
takes a fraction of a second even for tens of thousands of e-nodes.
"""

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from extraction.deadline import Deadline
from extraction.model import Cut, Program

LARGEST_COST = 1e7
"""Objectives are scaled down to this; solvers work with absolute tolerances of 1e-6."""

LONGEST = 1e7
"""Seconds that stand for no deadline."""


@dataclass(frozen=True, slots=True)
class MathOptModel:
    """A MathOpt model and how its columns relate to the problem.

    Attributes:
        model: The `mathopt.Model`.
        variables: Its variables in column order.
        node_at: E-node -> column.
        class_at: Non-root e-class -> column.
        unit: Objective of the model / cost of the problem (constant left out).
    """

    model: Any
    variables: list[Any]
    node_at: Mapping[int, int]
    class_at: Mapping[int, int]
    unit: float

    def add(self, cuts: Sequence[Cut]) -> None:
        """Add cuts to the model."""
        variables = self.variables
        for cut in cuts:
            at = self.class_at.get(cut.number)
            row = self.model.add_linear_constraint(lb=1.0 if at is None else 0.0)
            for node in cut.supports:
                row.set_coefficient(variables[self.node_at[node]], 1.0)
            if at is not None:
                row.set_coefficient(variables[at], -1.0)

    def hint(self, chosen: Mapping[int, int]) -> Any:
        """Return a choice as a solution hint."""
        from ortools.math_opt.python import mathopt

        values = dict.fromkeys(self.variables, 0.0)
        for number, node in chosen.items():
            values[self.variables[self.node_at[node]]] = 1.0
            if number in self.class_at:
                values[self.variables[self.class_at[number]]] = 1.0
        return mathopt.SolutionHint(variable_values=values)


def write_model(
    program: Program, cuts: Sequence[Cut], upper: float, step: float, *, integer: bool
) -> MathOptModel:
    """Return the MathOpt model of a program.

    Args:
        program: The program.
        cuts: Cuts to start with.
        upper: A known cost, constant left out; sets the unit.
        step: Different costs differ by at least this much; 0.0 when unknown.
        integer: Whether e-node columns are binary or only between 0 and 1.
    """
    from ortools.math_opt import model_pb2
    from ortools.math_opt.python import mathopt

    unit = 1.0
    if upper > 0 and (upper > LARGEST_COST or not step):
        unit = LARGEST_COST / upper
    first = len(program.nodes)
    node_at = {node: at for at, node in enumerate(program.nodes)}
    class_at = {number: first + at for at, number in enumerate(program.classes)}
    proto = model_pb2.ModelProto()
    _write_columns(proto, program, unit, integer)
    _write_rows(proto, program, cuts, node_at, class_at)
    model = mathopt.Model.from_model_proto(proto)
    variables = [model.get_variable(at) for at in range(program.columns)]
    return MathOptModel(model, variables, node_at, class_at, unit)


def _write_columns(proto: Any, program: Program, unit: float, integer: bool) -> None:
    count = program.columns
    proto.variables.ids.extend(range(count))
    proto.variables.lower_bounds.extend([0.0] * count)
    proto.variables.upper_bounds.extend([1.0] * count)
    kinds = [integer] * len(program.nodes) + [False] * len(program.classes)
    proto.variables.integers.extend(kinds)
    cost = program.problem.cost
    priced = [at for at, node in enumerate(program.nodes) if cost[node]]
    values = [cost[program.nodes[at]] * unit for at in priced]
    proto.objective.linear_coefficients.ids.extend(priced)
    proto.objective.linear_coefficients.values.extend(values)


def _write_rows(
    proto: Any,
    program: Program,
    cuts: Sequence[Cut],
    node_at: Mapping[int, int],
    class_at: Mapping[int, int],
) -> None:
    rows = program.rows
    low = [row.most if row.equal else -math.inf for row in rows]
    low += [0.0 if cut.number in class_at else 1.0 for cut in cuts]
    proto.linear_constraints.ids.extend(range(len(low)))
    proto.linear_constraints.lower_bounds.extend(low)
    high = [row.most for row in rows] + [math.inf] * len(cuts)
    proto.linear_constraints.upper_bounds.extend(high)
    entries = [(row.nodes, row.minus) for row in rows]
    entries += [(cut.supports, cut.number) for cut in cuts]
    row_ids: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for number, (nodes, minus) in enumerate(entries):
        at = sorted([node_at[node] for node in nodes])
        columns.extend(at)
        values.extend([1.0] * len(at))
        if minus is not None and minus in class_at:
            columns.append(class_at[minus])
            values.append(-1.0)
        row_ids.extend([number] * (len(columns) - len(row_ids)))
    proto.linear_constraint_matrix.row_ids.extend(row_ids)
    proto.linear_constraint_matrix.column_ids.extend(columns)
    proto.linear_constraint_matrix.coefficients.extend(values)


def seconds_left(deadline: Deadline) -> datetime.timedelta:
    """Return a time limit for MathOpt."""
    return datetime.timedelta(seconds=min(max(deadline.left, 0.01), LONGEST))

"""HiGHS through MathOpt, cycles cut lazily by loop cuts.

HiGHS solves the program without regard for longer cycles; loops in its choice become cuts
and it solves again. Each round's bound is valid whether or not its choice is acyclic.
"""

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any

from extraction.deadline import Deadline
from extraction.model import LoopCut, Program, Row, loop_cut
from extraction.problem import Problem, cost_of, needed
from extraction.scc import strong_components
from extraction.solver import Answer, Task

LARGEST_COST = 1e7
"""Objectives are scaled down to this; HiGHS works with absolute tolerances of 1e-6."""

DISTRUST = 1e-6
"""A bound above a known cost by more than this is the solver's error, not a proof."""

ROWS_PER_CUT = 8
"""E-classes of a loop that get a row; more only make the program dense."""

LONGEST = 1e7
"""Seconds that stand for no deadline."""


def solve_highs(task: Task, most_rounds: int = 1000) -> Answer:
    """Solve lazily until the choice is acyclic, time is up or rounds run out."""
    from ortools.math_opt.python import mathopt

    program, problem = task.program, task.program.problem
    unit = _unit(task)
    model = mathopt.Model.from_model_proto(_proto(program, unit))
    variables = [model.get_variable(column) for column in range(program.columns)]
    column = _columns(program)
    cuts = list(task.cuts)
    _add_cuts(model, variables, column, cuts)
    chosen, cost, bound = dict(task.hint), task.hint_cost, 0.0
    candidates: list[Mapping[int, int]] = []
    rounds = 0
    proven = False
    while rounds < most_rounds and not task.deadline.passed:
        rounds += 1
        result = _solve(model, variables, column, task, chosen, unit)
        bound = max(bound, result.termination.objective_bounds.dual_bound / unit)
        finished = result.termination.reason == mathopt.TerminationReason.OPTIMAL
        if bound > cost + DISTRUST * cost + 0.5 * task.step:
            bound = 0.0
            break
        if not result.has_primal_feasible_solution():
            break
        values = result.variable_values(variables[: len(program.nodes)])
        picked = _picked(program, values)
        loops = find_loops(problem, picked)
        if not loops:
            value = cost_of(problem, picked)
            if value < cost:
                chosen, cost = needed(problem, picked), value
            proven = finished
        else:
            candidates.append(picked)
            new = [loop_cut(problem, loop) for loop in loops]
            cuts.extend(new)
            _add_cuts(model, variables, column, new)
        if proven or not finished:
            break
    if cost - bound <= 0.9 * task.step:
        proven = True
    return Answer(chosen, cost if proven else bound, proven, cuts, candidates[-3:], rounds)


def _unit(task: Task) -> float:
    if task.hint_cost <= 0:
        return 1.0
    if task.step and task.hint_cost <= LARGEST_COST:
        return 1.0
    return LARGEST_COST / task.hint_cost


def _columns(program: Program) -> dict[tuple[str, int], int]:
    columns = {("x", node): at for at, node in enumerate(program.nodes)}
    first = len(program.nodes)
    columns.update({("y", c): first + at for at, c in enumerate(program.classes)})
    return columns


def _proto(program: Program, unit: float) -> Any:
    """Write the model as a protocol buffer: one bulk call per field, not one per entry."""
    from ortools.math_opt import model_pb2

    proto = model_pb2.ModelProto()
    count = program.columns
    proto.variables.ids.extend(range(count))
    proto.variables.lower_bounds.extend([0.0] * count)
    proto.variables.upper_bounds.extend([1.0] * count)
    binary = [True] * len(program.nodes) + [False] * len(program.classes)
    proto.variables.integers.extend(binary)
    cost = program.problem.cost
    priced = [at for at, node in enumerate(program.nodes) if cost[node]]
    proto.objective.linear_coefficients.ids.extend(priced)
    proto.objective.linear_coefficients.values.extend(
        [cost[program.nodes[at]] * unit for at in priced]
    )
    rows = program.rows
    proto.linear_constraints.ids.extend(range(len(rows)))
    proto.linear_constraints.lower_bounds.extend(
        [row.most if row.equal else -math.inf for row in rows]
    )
    proto.linear_constraints.upper_bounds.extend([row.most for row in rows])
    _write_matrix(proto.linear_constraint_matrix, program, rows)
    return proto


def _write_matrix(matrix: Any, program: Program, rows: Sequence[Row]) -> None:
    at = {node: column for column, node in enumerate(program.nodes)}
    first = len(program.nodes)
    class_at = {c: first + column for column, c in enumerate(program.classes)}
    row_ids: list[int] = []
    column_ids: list[int] = []
    values: list[float] = []
    for number, row in enumerate(rows):
        columns = sorted([at[node] for node in row.nodes])
        column_ids.extend(columns)
        values.extend([1.0] * len(columns))
        if row.minus is not None:
            column_ids.append(class_at[row.minus])
            values.append(-1.0)
        row_ids.extend([number] * (len(column_ids) - len(row_ids)))
    matrix.row_ids.extend(row_ids)
    matrix.column_ids.extend(column_ids)
    matrix.coefficients.extend(values)


def _add_cuts(
    model: Any,
    variables: list[Any],
    column: Mapping[tuple[str, int], int],
    cuts: Sequence[LoopCut],
) -> None:
    for cut in cuts:
        for number in sorted(cut.loop)[:ROWS_PER_CUT]:
            row = model.add_linear_constraint(lb=0.0)
            for node in cut.supports:
                row.set_coefficient(variables[column["x", node]], 1.0)
            if ("y", number) in column:
                row.set_coefficient(variables[column["y", number]], -1.0)
            else:
                row.lower_bound = 1.0


def _solve(
    model: Any,
    variables: list[Any],
    column: Mapping[tuple[str, int], int],
    task: Task,
    chosen: Mapping[int, int],
    unit: float,
) -> Any:
    from ortools.math_opt.python import mathopt

    values = dict.fromkeys(variables, 0.0)
    for number, node in chosen.items():
        values[variables[column["x", node]]] = 1.0
        if ("y", number) in column:
            values[variables[column["y", number]]] = 1.0
    hint = mathopt.SolutionHint(variable_values=values)
    params = mathopt.SolveParameters(
        time_limit=_seconds(task.deadline),
        relative_gap_tolerance=0.0,
        absolute_gap_tolerance=0.9 * task.step * unit,
        random_seed=task.seed,
    )
    return mathopt.solve(
        model,
        mathopt.SolverType.HIGHS,
        params=params,
        model_params=mathopt.ModelSolveParameters(solution_hints=[hint]),
    )


def _seconds(deadline: Deadline) -> datetime.timedelta:
    return datetime.timedelta(seconds=min(max(deadline.left, 0.01), LONGEST))


def _picked(program: Program, values: Sequence[float]) -> dict[int, int]:
    on = {node for node, value in zip(program.nodes, values, strict=True) if value > 0.5}
    return {
        number: node
        for number, nodes in program.problem.members.items()
        for node in nodes
        if node in on
    }


def find_loops(problem: Problem, picked: Mapping[int, int]) -> list[frozenset[int]]:
    """Return the strongly connected sets of two or more e-classes in a selection."""
    reached = needed(problem, picked)
    below = {number: sorted(problem.children[node]) for number, node in reached.items()}
    groups: dict[int, list[int]] = {}
    for number, part in strong_components(below).items():
        groups.setdefault(part, []).append(number)
    return [frozenset(group) for _, group in sorted(groups.items()) if len(group) > 1]

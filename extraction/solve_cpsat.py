"""CP-SAT with level variables: acyclic by construction.

Every e-class that could lie on a cycle gets a level; a chosen e-node lifts its e-class
above its children's. Weak as a relaxation, strong in propagation: it wins where cycles
fight the optimum and lazy rounds never end, and on small combinatorial problems. It gets
no cuts: as clauses they slow its propagation tenfold and prove nothing sooner.
"""

import math
from collections import defaultdict
from typing import Any

from extraction.model import Program
from extraction.problem import cost_of, needed
from extraction.solver import Answer, Task

HEADROOM = 2.0**45
"""Scaled objectives stay below this."""


def solve_cpsat(task: Task) -> Answer:
    """Solve until optimal or the deadline."""
    from ortools.sat.python import cp_model

    program = task.program
    model = cp_model.CpModel()
    x = {node: model.new_bool_var("") for node in program.nodes}
    y = {number: model.new_bool_var("") for number in program.classes}
    _add_rows(model, program, x, y)
    level = _add_levels(model, program, x)
    factor = _factor(program, task.step)
    price = {node: round(program.problem.cost[node] * factor) for node in program.nodes}
    model.minimize(sum(price[node] * x[node] for node in program.nodes if price[node]))
    _add_hint(model, task, x, y, level)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = min(max(task.deadline.left, 0.01), 1e7)
    solver.parameters.num_workers = task.workers
    solver.parameters.random_seed = task.seed
    status = solver.solve(model)
    return _answer(task, factor, x, solver, status)


def _add_rows(model: Any, program: Program, x: dict[int, Any], y: dict[int, Any]) -> None:
    """Every row says "at most one of": x and the negation of y."""
    for row in program.rows:
        literals = [x[node] for node in row.nodes]
        if row.minus is not None:
            literals.append(~y[row.minus])
        if row.equal:
            model.add_exactly_one(literals)
        else:
            model.add_at_most_one(literals)


def _add_levels(model: Any, program: Program, x: dict[int, Any]) -> dict[int, Any]:
    problem, component = program.problem, program.component
    size: dict[int, int] = defaultdict(int)
    for number in program.tangled:
        size[component[number]] += 1
    level = {
        number: model.new_int_var(0, size[component[number]] - 1, "")
        for number in sorted(program.tangled)
    }
    for number in sorted(program.tangled):
        for node in problem.members[number]:
            for child in sorted(problem.children[node]):
                if component[child] == component[number]:
                    above = level[number] >= level[child] + 1
                    model.add(above).only_enforce_if(x[node])
    return level


def _factor(program: Program, step: float) -> float:
    if step:
        return 1.0 / step
    total = sum(
        max(program.problem.cost[node] for node in nodes)
        for nodes in program.problem.members.values()
    )
    if total <= 0:
        return 1.0
    return float(2.0 ** math.floor(math.log2(HEADROOM / total)))


def _add_hint(
    model: Any, task: Task, x: dict[int, Any], y: dict[int, Any], level: dict[int, Any]
) -> None:
    on = set(task.hint.values())
    for node, variable in x.items():
        model.add_hint(variable, node in on)
    for number, variable in y.items():
        model.add_hint(variable, number in task.hint)
    height = _heights(task)
    for number, variable in level.items():
        model.add_hint(variable, height.get(number, 0))


def _heights(task: Task) -> dict[int, int]:
    """Return the least levels of the hint within components."""
    problem, component = task.program.problem, task.program.component
    height: dict[int, int] = {}
    for number in _children_first(task):
        inside = [
            height[child] + 1
            for child in problem.children[task.hint[number]]
            if component[child] == component[number]
        ]
        height[number] = max(inside, default=0)
    return height


def _children_first(task: Task) -> list[int]:
    children = task.program.problem.children
    done: dict[int, None] = {}
    stack = list(task.hint)
    while stack:
        number = stack[-1]
        rest = [child for child in children[task.hint[number]] if child not in done]
        if rest and number not in done:
            stack.extend(rest)
        else:
            done[number] = None
            stack.pop()
    return list(done)


def _answer(
    task: Task, factor: float, x: dict[int, Any], solver: Any, status: Any
) -> Answer:
    from ortools.sat.python import cp_model

    problem = task.program.problem
    chosen, cost = dict(task.hint), cost_of(problem, task.hint)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        picked = {
            number: node
            for number, nodes in problem.members.items()
            for node in nodes
            if solver.boolean_value(x[node])
        }
        value = cost_of(problem, picked)
        if value < cost:
            chosen, cost = needed(problem, picked), value
    proven = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    rounding = 0.0 if task.step else 0.5 * len(problem.members) / factor
    bound = solver.best_objective_bound / factor - rounding + problem.constant
    bound = max(0.0, bound)
    return Answer(chosen, cost if proven else bound, proven, task.cuts)

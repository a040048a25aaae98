"""Tighten the linear relaxation by cuts, and fix e-nodes by their reduced costs.

Solve, separate (`landmarks`), add, solve again; each time also separate the running mean of
the solutions, which lies deeper inside and gives stronger cuts. HiGHS, cold but with
presolve, beats GLOP kept warm. The value is a lower bound; its fractional
choice guides greedy to better choices; and an e-node whose reduced cost lifts the bound
over the best known cost can go, which starts the structural reductions anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from extraction.deadline import Deadline
from extraction.incumbent import best, better_of_prices
from extraction.landmarks import Separator
from extraction.mathopt_model import MathOptModel, seconds_left, write_model
from extraction.model import Cut, Program
from extraction.problem import cost_of
from extraction.solver import Task
from extraction.upper_bound import worthwhile

WINDOW = 10
"""Rounds over which progress is judged."""

PROGRESS = 0.01
"""Share of the gap that a window must close to go on."""

ROUND_EVERY = 3
"""Rounds between two attempts to make a choice of a fractional one."""

SHRUNK = 0.8
"""Share of the e-nodes at which it pays to stop and reduce first."""

TRUST = 1e-6
"""Relative slack for a linear solver's tolerances."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """What the relaxation gave.

    Attributes:
        bound: A lower bound, the constant included.
        chosen: The best choice known now.
        cuts: The cuts in force.
        keep: E-nodes that a better choice may contain.
        rounds: Linear programs solved.
    """

    bound: float
    chosen: Mapping[int, int]
    cuts: tuple[Cut, ...]
    keep: frozenset[int]
    rounds: int


def relax(task: Task) -> Relaxed:
    """Tighten the relaxation until it is worth no more, proves the hint or time is up."""
    program, problem = task.program, task.program.problem
    chosen, cost = task.hint, task.upper
    writing = write_model(
        program, task.cuts, cost - problem.constant, task.step, integer=False
    )
    separator = Separator(problem)
    cuts = list(task.cuts)
    keep = frozenset(program.nodes)
    history: list[float] = []
    middle: dict[int, float] = {}
    while not task.deadline.passed:
        result = _solve(writing, program, task.deadline)
        if result is None:
            break
        value, x, price = result
        bound = value + problem.constant
        history.append(bound)
        if len(history) % ROUND_EVERY == 1:
            chosen = best(problem, [chosen, _round(task, x)])
            cost = min(cost, cost_of(problem, chosen))
        limit = worthwhile(cost, task.step) + TRUST * cost
        keep &= frozenset(node for node in program.nodes if bound + price[node] <= limit)
        if (
            bound > limit
            or _stalled(history, cost)
            or len(keep) < SHRUNK * len(program.nodes)
        ):
            break
        middle = {node: 0.5 * (at + middle.get(node, at)) for node, at in x.items()}
        found = separator.find(x, task.deadline) + separator.find(middle, task.deadline)
        new = list(dict.fromkeys(found))
        if not new:
            break
        cuts.extend(new)
        writing.add(new)
    return Relaxed(max(history, default=0.0), chosen, tuple(cuts), keep, len(history))


def _round(task: Task, x: Mapping[int, float]) -> dict[int, int]:
    problem = task.program.problem
    prices = {node: cost * (1.001 - x[node]) for node, cost in problem.cost.items()}
    return better_of_prices(problem, prices, task.deadline)


def _stalled(history: list[float], cost: float) -> bool:
    if len(history) <= WINDOW:
        return False
    before = history[-1 - WINDOW]
    return history[-1] - before < PROGRESS * (cost - before)


def _solve(
    writing: MathOptModel, program: Program, deadline: Deadline
) -> tuple[float, dict[int, float], dict[int, float]] | None:
    """Return value, x and reduced costs in the problem's unit, or None when out of time."""
    from ortools.math_opt.python import mathopt

    params = mathopt.SolveParameters(time_limit=seconds_left(deadline))
    result = mathopt.solve(writing.model, mathopt.SolverType.HIGHS, params=params)
    if result.termination.reason != mathopt.TerminationReason.OPTIMAL:
        return None
    columns = writing.variables[: len(program.nodes)]
    values = result.variable_values(columns)
    prices = [0.0] * len(columns)
    if result.has_dual_feasible_solution():
        prices = [price / writing.unit for price in result.reduced_costs(columns)]
    return (
        result.objective_value() / writing.unit,
        dict(zip(program.nodes, values, strict=True)),
        dict(zip(program.nodes, prices, strict=True)),
    )

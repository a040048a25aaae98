"""HiGHS through MathOpt, cycles cut lazily.

HiGHS solves the program without regard for longer cycles; loops in its choice become cuts
and it solves again. Each round's bound is valid whether or not its choice is acyclic.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from extraction.mathopt_model import MathOptModel, seconds_left, write_model
from extraction.model import Cut, Program, supports_of
from extraction.problem import Problem, cost_of, needed
from extraction.scc import strong_components
from extraction.solver import Answer, Task

DISTRUST = 1e-6
"""A bound above a known cost by more than this is the solver's error, not a proof."""

CUTS_PER_LOOP = 8
"""E-classes of a loop that get a row; more only make the program dense."""


def solve_highs(task: Task, most_rounds: int = 1000) -> Answer:
    """Solve lazily until the choice is acyclic, time is up or rounds run out."""
    problem = task.program.problem
    constant, cuts = problem.constant, list(task.cuts)
    chosen, cost, bound = dict(task.hint), cost_of(problem, task.hint), 0.0
    candidates: list[Mapping[int, int]] = []
    writing = write_model(task.program, cuts, cost - constant, task.step, integer=True)
    rounds = 0
    proven = False
    while not proven and rounds < most_rounds and not task.deadline.passed:
        rounds += 1
        result = _solve(writing, task, chosen)
        dual = result.termination.objective_bounds.dual_bound
        bound = max(bound, dual / writing.unit + constant)
        if bound > cost + DISTRUST * cost + 0.5 * task.step:
            bound = 0.0
            break
        if not result.has_primal_feasible_solution():
            break
        picked = _picked(task.program, result.variable_values(writing.variables))
        loops = find_loops(problem, picked)
        if loops:
            candidates.append(picked)
            new = [cut for loop in loops for cut in loop_cuts(problem, loop)]
            cuts.extend(new)
            writing.add(new)
        elif cost_of(problem, picked) < cost:
            chosen, cost = needed(problem, picked), cost_of(problem, picked)
        proven = _finished(result) and not loops
        if not _finished(result):
            break
    proven = proven or cost - bound <= 0.9 * task.step
    return Answer(chosen, cost if proven else bound, proven, cuts, candidates[-3:], rounds)


def _finished(result: Any) -> bool:
    from ortools.math_opt.python import mathopt

    return bool(result.termination.reason == mathopt.TerminationReason.OPTIMAL)


def _solve(writing: MathOptModel, task: Task, chosen: Mapping[int, int]) -> Any:
    from ortools.math_opt.python import mathopt

    params = mathopt.SolveParameters(
        time_limit=seconds_left(task.deadline),
        relative_gap_tolerance=0.0,
        absolute_gap_tolerance=0.9 * task.step * writing.unit,
        random_seed=task.seed,
    )
    hints = mathopt.ModelSolveParameters(solution_hints=[writing.hint(chosen)])
    highs = mathopt.SolverType.HIGHS
    return mathopt.solve(writing.model, highs, params=params, model_params=hints)


def _picked(program: Program, values: Sequence[float]) -> dict[int, int]:
    on = {node for node, value in zip(program.nodes, values, strict=False) if value > 0.5}
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


def loop_cuts(problem: Problem, loop: frozenset[int]) -> list[Cut]:
    """Return cuts that keep a set of e-classes from deriving itself."""
    supports = supports_of(problem, loop)
    return [Cut(number, supports) for number in sorted(loop)[:CUTS_PER_LOOP]]

"""Exact extraction by integer linear programming.

ESSAY
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from extraction.choice import Choice, close
from extraction.clean import clean
from extraction.components import split
from extraction.deadline import Deadline
from extraction.egraph import EGraph
from extraction.extractor import Limits, require_roots
from extraction.incumbent import better_greedy
from extraction.portfolio import solve_part
from extraction.problem import Problem, cost_of, from_egraph
from extraction.reduce import reduce, solvable
from extraction.scaling import find_scale

RESERVE = 0.3
"""Seconds kept back for lifting and checking."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A solved part: its choice lifted, cost and bound in scaled units."""

    chosen: Mapping[int, int]
    cost: float
    bound: float


def extract_ilp(graph: EGraph, limits: Limits) -> Choice:
    """Return an optimal choice, or the best known at the deadline with a proven gap."""
    scale = find_scale([node.cost for node in graph.nodes if node.cost < math.inf])
    problem = clean(from_egraph(graph, scale)).problem
    require_roots(graph, problem)
    deadline = Deadline(limits.deadline.at - RESERVE)
    statistics: dict[str, object] = {"e-nodes": len(graph.nodes)}
    part = _solve(problem, scale.step, deadline, limits, statistics)
    proven = part.cost <= part.bound
    bound = part.bound / scale.factor
    choice = close(graph, part.chosen, bound=bound, method="ilp", timed_out=not proven)
    if proven:
        choice = close(graph, part.chosen, bound=choice.cost, method="ilp")
    return choice


def _solve(
    problem: Problem,
    step: float,
    deadline: Deadline,
    limits: Limits,
    statistics: dict[str, object],
) -> _Part:
    greedy = better_greedy(problem, deadline.sooner(max(0.5, deadline.left / 4)))
    upper = cost_of(problem, greedy)
    reduced = reduce(problem, upper=upper, step=step, deadline=deadline)
    if not solvable(reduced.problem):
        return _Part(greedy, upper, upper)
    parts = split(reduced.problem)
    statistics["reduced"] = reduced.problem.size
    statistics["parts"] = len(parts)
    chosen: dict[int, int] = {}
    costs, bounds = [reduced.problem.constant], [reduced.problem.constant]
    parts.sort(key=lambda part: part.size)
    left = sum(part.size[0] for part in parts)
    for part in parts:
        share = deadline.left * min(1.0, 2.0 * part.size[0] / left)
        left -= part.size[0]
        solved = _solve_part(part, step, deadline.sooner(share), limits)
        chosen.update(solved.chosen)
        costs.append(solved.cost)
        bounds.append(solved.bound)
    lifted = reduced.lift(chosen)
    cost, bound = math.fsum(costs), math.fsum(bounds)
    if upper < cost:
        return _Part(greedy, upper, min(bound, upper))
    return _Part(lifted, cost, bound)


def _solve_part(part: Problem, step: float, deadline: Deadline, limits: Limits) -> _Part:
    if len(part.members) == 1:
        ((number, nodes),) = part.members.items()
        node = min(nodes, key=lambda node: (part.cost[node], node))
        return _Part({number: node}, part.cost[node], part.cost[node])
    hint = better_greedy(part, deadline)
    upper = cost_of(part, hint)
    reduced = reduce(part, upper=upper, step=step, deadline=deadline)
    if not solvable(reduced.problem):
        return _Part(hint, upper, upper)
    hint2 = better_greedy(reduced.problem, deadline)
    answer = solve_part(
        reduced.problem, hint2, step, deadline, limits.seed, limits.workers
    )
    lifted = reduced.lift(answer.chosen)
    cost = cost_of(part, lifted)
    if upper < cost:
        return _Part(hint, upper, min(answer.bound, upper))
    return _Part(lifted, cost, answer.bound)

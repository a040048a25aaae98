"""Exact extraction by integer linear programming.

Why cycles are cut the way they are
-----------------------------------
A choice must be acyclic: an e-class may not need itself. Without that demand the program is
small and easy, and its optimum is often a loop that pays for nothing; with it, the problem
is hard, and how the demand is written decides between seconds and never. What we found:

1. *Order variables everywhere* (a level for each e-class, big-M rows "the child is lower"):
   correct, and what the first tensor optimizers did. The relaxation sees almost nothing of
   it, since a level gap of one is bought with an epsilon of x. Solvers drown.
2. *Most cycles cannot happen.* A cycle runs inside a strongly connected component of the
   e-classes, and the reductions leave few: cyclic e-nodes that their own must set gives
   away are deleted, and edges to required e-classes across components dropped. So every
   statement about cycles is made about components only.
3. *Two-cycles up front, in the rows that are there anyway.* The need row of c and d takes a
   second sum: e-nodes of d that need c, however far below, cannot serve c (`model`). It
   costs no row and forbids every cycle that passes through two e-classes which must, by
   their e-nodes, need each other. On the largest tensor e-graph we know (nasrnn, 57,800
   e-nodes, not proven in ten hours by others) nothing else was needed: the optimum of this
   program was acyclic.
4. *The rest lazily, as closed sets, not as cycles.* Forbidding one cycle, Σ x < length,
   excludes one selection among exponentially many. We forbid the e-classes S of the loop to
   derive each other: who needs one of them chooses an e-node of S without a child in S. One
   such cut kills all loops within S, and needs no loop to be true: with a wide S it is a
   statement about acyclic e-graphs too, and raises the relaxation where local rows are weak
   (`landmarks`). That closed gaps of a third on graphs without a single cycle.
5. *Levels where cycles are the problem.* When every cheap selection is cyclic (vgg), lazy
   rounds climb for ever: the bound stays where loops live for free. CP-SAT with levels
   inside components propagates instead of relaxing, and proves such parts in a second.

So: must rows first, then closed-set cuts on the relaxation, then lazy HiGHS and levelled
CP-SAT in turn, each fed with what the others found (`portfolio`). What was refused: cutting
one cycle at a time (rounds without end), enumerating all short cycles up front (too many
rows for what 3 gives free), weighted MaxSAT (no bound at the deadline).

No solver is trusted. Costs are recomputed from the e-graph, choices checked, and a bound
above a known cost counts as the solver's error.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

from extraction.choice import Choice, close
from extraction.clean import clean
from extraction.components import split
from extraction.deadline import Deadline
from extraction.egraph import EGraph
from extraction.extractor import Limits, require_roots
from extraction.incumbent import best, better_greedy, repair
from extraction.portfolio import solve_part
from extraction.problem import Problem, cost_of, from_egraph
from extraction.reduce import REDUCTIONS, Reduction, reduce, solvable
from extraction.scaling import find_scale

RESERVE = 0.3
"""Seconds kept back for lifting and checking, or RESERVE_SHARE if that is more."""

RESERVE_SHARE = 3.0
"""Time kept back in times of the first cleaning: large e-graphs and busy machines."""

BUILDING = 30_000
"""E-nodes for which a model is built in a second; a part without that time is left."""

FLOOR = 1.0
"""Seconds that even the smallest part may take."""

GREEDY_SHARE = 0.25
"""Share of the time that the first greedy choice may take."""


@dataclass(frozen=True, slots=True)
class _Solved:
    """A choice of some problem, its cost and a lower bound, in scaled units."""

    chosen: Mapping[int, int]
    cost: float
    bound: float

    @property
    def proven(self) -> bool:
        return self.bound >= self.cost


@dataclass(frozen=True, slots=True)
class _Run:
    """What all stages of one extraction share."""

    step: float
    deadline: Deadline
    limits: Limits
    reductions: tuple[Reduction, ...]
    statistics: dict[str, object]


def extract_ilp(
    graph: EGraph, limits: Limits, reductions: tuple[Reduction, ...] = REDUCTIONS
) -> Choice:
    """Return an optimal choice, or the best known at the deadline with a proven gap.

    Args:
        graph: The e-graph.
        limits: Deadline, seed and workers.
        reductions: Which reductions to use.

    Raises:
        UnderivableRootError: A root has no finite derivation.
    """
    start = time.monotonic()
    scale = find_scale([node.cost for node in graph.nodes if node.cost < math.inf])
    problem = clean(from_egraph(graph, scale)).problem
    require_roots(graph, problem)
    statistics: dict[str, object] = {"nodes": len(graph.nodes), "classes": len(graph.ids)}
    reserve = max(RESERVE, RESERVE_SHARE * (time.monotonic() - start))
    deadline = Deadline(limits.deadline.at - reserve)
    run = _Run(scale.step, deadline, limits, reductions, statistics)
    solved = _solve(problem, run)
    bound = solved.bound / scale.factor
    if solved.proven:
        bound = cost_of(from_egraph(graph), solved.chosen)
    return close(
        graph,
        solved.chosen,
        bound=bound,
        method="ilp",
        timed_out=not solved.proven,
        statistics=statistics,
    )


def _solve(problem: Problem, run: _Run) -> _Solved:
    """Reduce, split, solve the parts, join."""
    share = max(RESERVE, run.deadline.left * GREEDY_SHARE)
    greedy = better_greedy(problem, run.deadline.sooner(share))
    upper = cost_of(problem, greedy)
    reduced = reduce(problem, run.reductions, upper, run.step, run.deadline)
    small = reduced.problem
    run.statistics["reduced nodes"], run.statistics["reduced classes"] = small.size
    if not solvable(small):
        return _Solved(greedy, upper, upper)
    if run.deadline.passed:
        return _Solved(greedy, upper, min(small.constant, upper))
    parts = sorted(split(small), key=lambda part: part.size)
    run.statistics["parts"] = len(parts)
    solved = _solve_parts(parts, run)
    run.statistics["unproven parts"] = sum(not part.proven for part in solved)
    chosen: dict[int, int] = {}
    for part in solved:
        chosen.update(part.chosen)
    cost = math.fsum([small.constant, *(part.cost for part in solved)])
    bound = math.fsum([small.constant, *(part.bound for part in solved)])
    if upper < cost:
        return _Solved(greedy, upper, min(bound, upper))
    return _Solved(reduced.lift(chosen), cost, bound)


def _solve_parts(parts: list[Problem], run: _Run) -> list[_Solved]:
    """Solve parts from small to large, then those unproven again with the time left."""
    solved: list[_Solved] = []
    left = sum(part.size[0] for part in parts)
    for part in parts:
        share = run.deadline.left * min(1.0, 2.0 * part.size[0] / left)
        left -= part.size[0]
        solved.append(_solve_part(part, run, run.deadline.sooner(max(share, FLOOR))))
    for at, part in enumerate(parts):
        if not solved[at].proven and not run.deadline.passed:
            again = _solve_part(part, run, run.deadline, solved[at].chosen)
            better = min((again, solved[at]), key=lambda one: one.cost)
            bound = max(again.bound, solved[at].bound)
            solved[at] = _Solved(better.chosen, better.cost, min(bound, better.cost))
    return solved


def _solve_part(
    part: Problem, run: _Run, deadline: Deadline, known: Mapping[int, int] | None = None
) -> _Solved:
    if len(part.members) == 1:
        ((number, nodes),) = part.members.items()
        node = min(nodes, key=lambda node: (part.cost[node], node))
        return _Solved({number: node}, part.cost[node], part.cost[node])
    hints = [better_greedy(part, deadline), *([known] if known else [])]
    hint = best(part, hints)
    upper = cost_of(part, hint)
    reduced = reduce(part, run.reductions, upper, run.step, deadline)
    small = reduced.problem
    if not solvable(small):
        return _Solved(hint, upper, upper)
    bound = part.constant
    if deadline.left > len(small.children) / BUILDING:
        inside = best(
            small, [better_greedy(small, deadline), repair(small, hint, deadline)]
        )
        seed, workers = run.limits.seed, run.limits.workers
        answer = solve_part(small, inside, upper, run.step, deadline, seed, workers)
        bound, lifted = answer.bound, reduced.lift(answer.chosen)
        if answer.proven or cost_of(part, lifted) < upper:
            hint = best(part, [hint, lifted])
        if answer.proven:
            bound = cost_of(part, hint)
    cost = cost_of(part, hint)
    return _Solved(hint, cost, min(bound, cost))

"""Anytime local search: greedy under disturbed prices, keeping what got better.

Each round makes the e-nodes of the best choice cheap, disturbs all prices at random and
lets greedy choose again; repair and search are the same move with different prices. Stops
after a number of rounds without gain, or at the deadline.
"""

import random
from collections.abc import Mapping

from extraction.choice import Choice, close
from extraction.clean import clean
from extraction.deadline import Deadline
from extraction.egraph import EGraph
from extraction.extractor import Limits, require_roots
from extraction.incumbent import better_greedy, better_of_prices
from extraction.problem import Problem, cost_of, from_egraph
from extraction.reduce import choose_reductions, reduce

PATIENCE = 30
"""Rounds without gain before giving up."""

KEEP = (0.0, 0.5, 0.9, 0.99)
"""Discounts for the best choice's e-nodes, in turn."""

CHEAP = ("free", "single", "dominated")
"""Reductions that pay for themselves even here."""


def improve(
    problem: Problem,
    chosen: Mapping[int, int],
    deadline: Deadline,
    seed: int = 0,
    patience: int = PATIENCE,
) -> dict[int, int]:
    """Return a choice at least as good as `chosen`, which must be complete and acyclic.

    Args:
        problem: A cleaned problem.
        chosen: Where to start.
        deadline: When to return.
        seed: Random seed.
        patience: Rounds without gain before giving up.
    """
    rng = random.Random(seed)
    nodes = sorted(problem.children)
    best, cost = dict(chosen), cost_of(problem, chosen)
    idle = turn = 0
    while idle < patience and not deadline.passed:
        on = set(best.values())
        keep = 1.0 - KEEP[turn % len(KEEP)]
        spread = rng.choice((0.1, 0.5, 1.0))
        prices = {
            node: problem.cost[node]
            * (keep if node in on else 1.0)
            * (1.0 + spread * rng.random())
            for node in nodes
        }
        new = better_of_prices(problem, prices, deadline)
        value = cost_of(problem, new)
        idle, turn = idle + 1, turn + 1
        if value < cost:
            best, cost, idle = new, value, 0
    return best


def extract_search(graph: EGraph, limits: Limits) -> Choice:
    """Return a choice at least as good as the better greedy one."""
    whole = clean(from_egraph(graph)).problem
    require_roots(graph, whole)
    start = better_greedy(whole, limits.deadline)
    reductions = choose_reductions(CHEAP)
    reduced = reduce(whole, reductions, deadline=limits.deadline)
    inside = better_greedy(reduced.problem, limits.deadline)
    found = reduced.lift(improve(reduced.problem, inside, limits.deadline, limits.seed))
    best = min((start, found), key=lambda chosen: cost_of(whole, chosen))
    return close(graph, best, bound=0.0, method="search", timed_out=limits.deadline.passed)

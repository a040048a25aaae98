"""Good choices fast: what the exact extractor starts from, and repair of cyclic ones."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from extraction.deadline import Deadline
from extraction.greedy_dag import cheapest_bills
from extraction.greedy_tree import cheapest_trees
from extraction.problem import Problem, cost_of, needed

DISCOUNT = 1e-3
"""What a wanted e-node costs a repair, relative to its cost."""


def better_greedy(problem: Problem, deadline: Deadline | None = None) -> dict[int, int]:
    """Return the better of the two greedy choices of a cleaned problem, roots first."""
    trees = cheapest_trees(problem)[0]
    bills = cheapest_bills(problem, deadline)[0]
    return best(problem, [trees, bills])


def repair(
    problem: Problem, wanted: Mapping[int, int], deadline: Deadline | None = None
) -> dict[int, int]:
    """Return an acyclic choice close to `wanted`, which may be cyclic or incomplete.

    Wanted e-nodes get a price of almost nothing, and greedy does the rest.
    """
    on = set(wanted.values())
    cost = {
        node: value * DISCOUNT if node in on else value
        for node, value in problem.cost.items()
    }
    return better_of_prices(problem, cost, deadline)


def better_of_prices(
    problem: Problem, cost: Mapping[int, float], deadline: Deadline | None = None
) -> dict[int, int]:
    """Return the better greedy choice under other prices, compared at the true ones."""
    priced = replace(problem, cost=cost)
    trees = cheapest_trees(priced)[0]
    bills = cheapest_bills(priced, deadline)[0]
    return best(problem, [trees, bills])


def best(problem: Problem, choices: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return the cheapest of some complete choices; the first among equals."""
    return needed(problem, min(choices, key=lambda chosen: cost_of(problem, chosen)))

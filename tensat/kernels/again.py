"""A plan once more, under other costs."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from extraction import Choice
from tensat.kernels.problem import Problem

type Key = tuple[Hashable, frozenset[Hashable]]
"""A class, and the classes that it is made of, constants aside."""


def again(old: Problem, choice: Choice, new: Problem) -> Choice:
    """Return the same plan in another problem of the same kernels.

    Of kernels of one class that need the same values, constants aside, a problem holds the
    cheapest only: that takes the place of the one that was planned.

    Args:
        old: The problem that the plan was made for.
        choice: The plan.
        new: The problem under other costs.
    """
    nodes = new.egraph.nodes
    at = {key: node for node, key in _keys(new)}
    chosen = set(choice.node_of.values())
    planned = {key[0]: at[key] for node, key in _keys(old) if node in chosen}
    constant = _constants(new)
    found: dict[Hashable, int] = {}
    stack = list(new.egraph.roots)
    while stack:
        eclass = stack.pop()
        if eclass not in found:
            found[eclass] = planned[eclass] if eclass in planned else constant[eclass]
            stack += nodes[found[eclass]].children
    same = replace(choice, node_of=found)
    return replace(same, cost=same.dag_cost(new.egraph))


def _constants(problem: Problem) -> dict[Hashable, int]:
    """Return each class that is a constant, with the e-node that says so."""
    behind = enumerate(zip(problem.egraph.nodes, problem.behind, strict=True))
    return {
        each.eclass: node
        for node, (each, kernel) in behind
        if each.op == "Constant" and kernel is None
    }


def _keys(problem: Problem) -> Iterator[tuple[int, Key]]:
    """Yield each e-node with what it is told apart by."""
    constants = _constants(problem)
    for node, each in enumerate(problem.egraph.nodes):
        needed = frozenset(each.children).difference(constants)
        yield node, (each.eclass, needed)

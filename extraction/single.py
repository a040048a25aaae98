"""Reduction: an e-class with one e-node is inlined into its parents.

Its parents take over its children. Its cost must still be paid exactly once, so one of
these must hold: it is zero; the e-class is a root (the cost moves to the constant); all
parents lie in one e-class (of which at most one e-node is chosen, so each takes the cost).
"""

import math
from dataclasses import dataclass

from extraction.facts import Facts
from extraction.problem import Problem, Reduced

MOST_EDGES = 64
"""Edges an inlining may add: (parents - 1) x (children - 1)."""


@dataclass(slots=True)
class _Work:
    """The tables being rewritten."""

    members: dict[int, tuple[int, ...]]
    children: dict[int, set[int] | frozenset[int]]
    cost: dict[int, float]
    owner: dict[int, int]
    parents: dict[int, set[int]]
    roots: set[int]
    paid: list[float]


def inline_single(facts: Facts) -> Reduced:
    """Inline e-classes with one e-node whose cost finds one payer, until none is left."""
    problem = facts.problem
    queue = sorted(c for c, nodes in problem.members.items() if len(nodes) == 1)
    if not queue:
        return Reduced(problem)
    work = _Work(
        dict(problem.members),
        dict(problem.children),
        dict(problem.cost),
        facts.owner,
        {number: set(nodes) for number, nodes in facts.parents.items()},
        set(problem.roots),
        [problem.constant],
    )
    forced: dict[int, int] = {}
    while queue:
        again: list[int] = []
        for number in queue:
            if number in forced:
                continue
            (node,) = work.members[number]
            if number not in work.children[node] and _payable(work, number, node):
                again.extend(_inline(work, number, node))
                forced[number] = node
        queue = sorted({c for c in again if c not in forced and len(work.members[c]) == 1})
    if not forced:
        return Reduced(problem)
    kept = [node for nodes in work.members.values() for node in nodes]
    reduced = Problem(
        members=work.members,
        children={node: frozenset(work.children[node]) for node in kept},
        cost={node: work.cost[node] for node in kept},
        roots=frozenset(work.roots),
        constant=math.fsum(work.paid),
    )
    return Reduced(reduced, forced)


def _payable(work: _Work, number: int, node: int) -> bool:
    parents = work.parents[number]
    if (len(parents) - 1) * (len(work.children[node]) - 1) > MOST_EDGES:
        return False
    if number in work.roots or not work.cost[node]:
        return True
    owners = {work.owner[parent] for parent in parents}
    return len(owners) == 1


def _inline(work: _Work, number: int, node: int) -> set[int]:
    """Rewrite the parents of `number`; return the e-classes whose parents changed."""
    below = work.children[node]
    price = work.cost[node]
    if number in work.roots:
        work.paid.append(price)
        work.roots.discard(number)
        work.roots |= below
        price = 0.0
    for child in below:
        work.parents[child].discard(node)
    for parent in work.parents[number]:
        work.children[parent] = (work.children[parent] - {number}) | below
        work.cost[parent] += price
        for child in below:
            work.parents[child].add(parent)
    del work.members[number]
    return set(below)

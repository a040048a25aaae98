"""Reduction: in an e-class, an e-node that asks for more and costs no less goes.

`a` dominates `b` when `cost(a) <= cost(b)` and every child of `a` is needed below `b`
anyway: it is a child of `b`, or in the must set of one. Replacing `b` by `a` then adds
neither cost nor a cycle.
"""

from collections.abc import Mapping

from extraction.facts import Facts
from extraction.problem import Problem, Reduced, restrict


def drop_dominated(facts: Facts) -> Reduced:
    """Drop e-nodes dominated through their child sets."""
    problem = facts.problem
    gone: set[int] = set()
    for nodes in problem.members.values():
        if len(nodes) > 1:
            bit: dict[int, int] = {}
            for node in nodes:
                for child in problem.children[node]:
                    bit.setdefault(child, 1 << len(bit))
            asks = {node: _bits(bit, problem.children[node]) for node in nodes}
            gone.update(_dominated(problem, nodes, asks, asks))
    return _without(problem, gone)


def drop_dominated_must(facts: Facts) -> Reduced:
    """Drop e-nodes dominated through must sets."""
    problem, must = facts.problem, facts.must
    gone: set[int] = set()
    for nodes in problem.members.values():
        if len(nodes) > 1:
            has = {node: must.below(problem.children[node]) for node in nodes}
            asks = {node: _bits(must.bit, problem.children[node]) for node in nodes}
            gone.update(_dominated(problem, nodes, asks, has))
    return _without(problem, gone)


def _bits(bit: Mapping[int, int], children: frozenset[int]) -> int:
    mask = 0
    for child in children:
        mask |= bit[child]
    return mask


def _dominated(
    problem: Problem, nodes: tuple[int, ...], asks: dict[int, int], has: dict[int, int]
) -> list[int]:
    """Return the e-nodes of one e-class whose `has` covers what a kept, cheaper one asks.

    Kept e-nodes are looked up by the lowest bit they ask for, so an e-node meets only those
    that share a bit with it; cheaper ones come first, and of equal ones that needing less.
    """
    cost = problem.cost
    ranked = sorted(nodes, key=lambda node: (cost[node], has[node].bit_count(), node))
    kept: dict[int, list[int]] = {}
    asked = 0
    gone: list[int] = []
    for node in ranked:
        if 0 in kept or _covered(has[node], asked, kept):
            gone.append(node)
        else:
            mask = asks[node]
            lowest = mask & -mask
            kept.setdefault(lowest, []).append(mask)
            asked |= lowest
    return gone


def _covered(has: int, asked: int, kept: dict[int, list[int]]) -> bool:
    rest = has & asked
    while rest:
        lowest = rest & -rest
        for mask in kept[lowest]:
            if mask & has == mask:
                return True
        rest ^= lowest
    return False


def _without(problem: Problem, gone: set[int]) -> Reduced:
    if not gone:
        return Reduced(problem)
    return Reduced(restrict(problem, problem.children.keys() - gone))

"""Reduction: free e-classes vanish.

An e-class with an e-node that costs nothing and needs nothing is never a reason for or
against anything: weights and constants, half of a tensor e-graph.
"""

from collections.abc import Collection

from extraction.facts import Facts
from extraction.problem import Problem, Reduced


def drop_free(facts: Facts) -> Reduced:
    """Remove e-classes that have a childless e-node of cost zero, until none is left."""
    problem = facts.problem
    forced: dict[int, int] = {}
    parents = facts.parents
    owner = facts.owner
    missing = {node: len(children) for node, children in problem.children.items()}
    ready = [
        node for node, count in missing.items() if not count and not problem.cost[node]
    ]
    for node in ready:
        number = owner[node]
        if number in forced:
            continue
        forced[number] = node
        for parent in parents[number]:
            missing[parent] -= 1
            if not missing[parent] and not problem.cost[parent]:
                ready.append(parent)
    if not forced:
        return Reduced(problem)
    return Reduced(without_classes(problem, forced.keys()), forced)


def without_classes(problem: Problem, gone: Collection[int]) -> Problem:
    """Return the problem without some e-classes, as children and as roots too."""
    members = {c: nodes for c, nodes in problem.members.items() if c not in gone}
    kept = [node for nodes in members.values() for node in nodes]
    children, cost, absent = problem.children, problem.cost, frozenset(gone)
    return Problem(
        members=members,
        children={
            node: children[node]
            if absent.isdisjoint(children[node])
            else children[node] - absent
            for node in kept
        },
        cost={node: cost[node] for node in kept},
        roots=problem.roots - absent,
        constant=problem.constant,
    )

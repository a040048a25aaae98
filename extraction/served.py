"""E-classes that are there for nothing as soon as something else is.

An e-class whose e-nodes cost nothing and need one e-class each is *served* by any of these.
Who asks for it and, besides, for one of these, or for what cannot be made without one of
these, need not ask. Such e-classes make relaxations tighter; elimination, which has no
relaxation, is only slowed down by them.
"""

from collections.abc import Mapping
from dataclasses import replace

from extraction.clean import clean
from extraction.problem import Problem, class_of, parents_of


def servants(problem: Problem) -> dict[int, frozenset[int]]:
    """Return each served e-class -> the e-classes that serve it."""
    return {
        number: frozenset(child for node in nodes for child in problem.children[node])
        for number, nodes in problem.members.items()
        if all(len(problem.children[n]) == 1 and not problem.cost[n] for n in nodes)
    }


def drop_served(problem: Problem) -> Problem:
    """Return the problem without demands that are served anyway."""
    serving = servants(problem)
    children = {
        node: _asked(problem, serving, below) for node, below in problem.children.items()
    }
    return clean(replace(problem, children=children)).problem


def _asked(
    problem: Problem, serving: Mapping[int, frozenset[int]], below: frozenset[int]
) -> frozenset[int]:
    kept = below
    for child in sorted(below & serving.keys()):
        others = kept - {child}
        if any(_brings(problem, other, serving[child]) for other in others):
            kept = others
    return kept


def _brings(problem: Problem, number: int, wanted: frozenset[int]) -> bool:
    """Whether there is no way to make an e-class without one of those wanted."""
    return number in wanted or all(
        not wanted.isdisjoint(problem.children[node]) for node in problem.members[number]
    )


def serve(problem: Problem, chosen: Mapping[int, int]) -> dict[int, int]:
    """Return a choice of a problem from one of the same without served demands.

    The e-nodes that cost something stay; who serves whom is decided anew, the first that
    is made, which closes no cycle.
    """
    free = servants(problem)
    allowed = {node for number, node in chosen.items() if number not in free}
    allowed.update(node for number in free for node in problem.members[number])
    owner, parents = class_of(problem), parents_of(problem)
    missing = {node: len(problem.children[node]) for node in allowed}
    ready = sorted(node for node, count in missing.items() if not count)
    found: dict[int, int] = {}
    for node in ready:
        number = owner[node]
        if number in found:
            continue
        found[number] = node
        for parent in parents[number]:
            if parent in missing:
                missing[parent] -= 1
                if not missing[parent]:
                    ready.append(parent)
    return found

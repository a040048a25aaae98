"""Reduction: drop what no acyclic choice can contain or need.

Self loops, e-nodes with an underivable child, e-classes the roots cannot reach.
"""

from collections import deque

from extraction.problem import Problem, Reduced, class_of, parents_of, restrict


def clean(problem: Problem) -> Reduced:
    """Keep derivable e-nodes without self loops in e-classes reachable from the roots.

    The roots may turn out underivable: then they are missing from the result's members.
    """
    good = derivable(problem)
    owner = class_of(problem)
    good = {node for node in good if owner[node] not in problem.children[node]}
    reached = set(problem.roots)
    stack = list(problem.roots)
    while stack:
        for node in problem.members.get(stack.pop(), ()):
            if node in good:
                for child in problem.children[node]:
                    if child not in reached:
                        reached.add(child)
                        stack.append(child)
    keep = {node for node in good if owner[node] in reached}
    if len(keep) == len(problem.children):
        return Reduced(problem)
    return Reduced(restrict(problem, keep))


def derivable(problem: Problem) -> set[int]:
    """Return the e-nodes all of whose child e-classes have an acyclic derivation."""
    owner, parents = class_of(problem), parents_of(problem)
    missing = {node: len(children) for node, children in problem.children.items()}
    ready = deque(node for node, count in missing.items() if count == 0)
    good: set[int] = set()
    derived: set[int] = set()
    while ready:
        node = ready.popleft()
        good.add(node)
        number = owner[node]
        if number in derived:
            continue
        derived.add(number)
        for parent in parents[number]:
            missing[parent] -= 1
            if missing[parent] == 0:
                ready.append(parent)
    return good

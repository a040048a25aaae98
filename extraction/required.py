"""Reductions that read the must sets: impossible e-nodes, implied children, required roots.

*Required* e-classes are those in the must set of a root. Making them roots says the same
problem in a form that falls apart: a child edge to a root asks for nothing, so unless it
can close a cycle it goes, and with it the only thread between many parts of the e-graph.
"""

from extraction.clean import clean
from extraction.facts import Facts
from extraction.problem import Problem, Reduced, restrict


def drop_impossible(facts: Facts) -> Reduced:
    """Drop e-nodes below which their own e-class is needed."""
    problem, must = facts.problem, facts.must
    gone = {
        node
        for number, nodes in problem.members.items()
        for node in nodes
        if must.below(problem.children[node]) & must.bit[number]
    }
    if not gone:
        return Reduced(problem)
    return clean(restrict(problem, problem.children.keys() - gone))


def drop_implied(facts: Facts) -> Reduced:
    """Drop a child that another child of the same e-node needs anyway."""
    problem, must = facts.problem, facts.must
    changed: dict[int, frozenset[int]] = {}
    for node, children in problem.children.items():
        if len(children) > 1:
            implied = 0
            for child in children:
                implied |= must.of_class[child] ^ must.bit[child]
            kept = [child for child in children if not implied & must.bit[child]]
            if len(kept) < len(children):
                changed[node] = frozenset(kept)
    return _with_children(problem, changed, problem.roots)


def root_required(facts: Facts) -> Reduced:
    """Make required e-classes roots and drop the edges that say nothing any more."""
    problem, must, component = facts.problem, facts.must, facts.component
    roots = frozenset(must.classes(must.below(problem.roots)))
    changed: dict[int, frozenset[int]] = {}
    for number, nodes in problem.members.items():
        for node in nodes:
            children = problem.children[node]
            if not roots.isdisjoint(children):
                kept = frozenset(
                    [
                        child
                        for child in children
                        if child not in roots or component[child] == component[number]
                    ]
                )
                if len(kept) < len(children):
                    changed[node] = kept
    return _with_children(problem, changed, roots)


def _with_children(
    problem: Problem, changed: dict[int, frozenset[int]], roots: frozenset[int]
) -> Reduced:
    if not changed and roots == problem.roots:
        return Reduced(problem)
    return Reduced(
        Problem(
            members=problem.members,
            children={**problem.children, **changed},
            cost=problem.cost,
            roots=roots,
            constant=problem.constant,
        )
    )

"""The numbers of an e-graph, in the form that reductions work on.

A *problem* keeps the e-node and e-class numbers of the `EGraph` it came from, so that a
choice for a reduced problem is, apart from e-nodes that were *forced* on the way, a choice
for the e-graph. Reductions never change a problem; they return another one (`Reduced`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from extraction.egraph import EGraph
from extraction.scaling import Scale


@dataclass(frozen=True, slots=True)
class Problem:
    """Pick an e-node for each needed e-class, acyclically, at least cost.

    Attributes:
        members: E-class -> its e-nodes, ascending; never empty for a needed e-class.
        children: E-node -> its child e-classes.
        cost: E-node -> its cost, finite and >= 0.
        roots: The e-classes to derive.
        constant: What every choice pays besides its e-nodes.
    """

    members: Mapping[int, tuple[int, ...]]
    children: Mapping[int, frozenset[int]]
    cost: Mapping[int, float]
    roots: frozenset[int]
    constant: float = 0.0

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of e-nodes and e-classes."""
        return len(self.children), len(self.members)


@dataclass(frozen=True, slots=True)
class Reduced:
    """A smaller problem and how to lift its choices.

    Attributes:
        problem: The smaller problem.
        forced: E-class -> e-node for e-classes that left the problem but may be needed.
    """

    problem: Problem
    forced: Mapping[int, int] = field(default_factory=dict)

    def lift(self, chosen: Mapping[int, int]) -> dict[int, int]:
        """Return a choice for the larger problem from one for the smaller."""
        return {**self.forced, **chosen}


def from_egraph(graph: EGraph, scale: Scale | None = None) -> Problem:
    """Return the problem an e-graph poses, nothing reduced yet.

    Args:
        graph: The e-graph.
        scale: How to turn its costs into the problem's; unchanged when left out.
    """
    usable = [node for members in graph.members for node in members]
    children_of, nodes = graph.children_of, graph.nodes
    cost = {node: float(nodes[node].cost) for node in usable}
    if scale:
        cost = {node: scale.scaled(value) for node, value in cost.items()}
    return Problem(
        members={
            number: members for number, members in enumerate(graph.members) if members
        },
        children={node: frozenset(children_of[node]) for node in usable},
        cost=cost,
        roots=frozenset(graph.root_numbers),
    )


def restrict(problem: Problem, keep: set[int] | frozenset[int]) -> Problem:
    """Return the problem with only the e-nodes in `keep`; empty e-classes go too."""
    members = {}
    for number, nodes in problem.members.items():
        kept = tuple([node for node in nodes if node in keep])
        if kept:
            members[number] = kept
    children, cost = problem.children, problem.cost
    order = [node for nodes in members.values() for node in nodes]
    return Problem(
        members=members,
        children={node: children[node] for node in order},
        cost={node: cost[node] for node in order},
        roots=problem.roots,
        constant=problem.constant,
    )


def parents_of(problem: Problem) -> dict[int, list[int]]:
    """Return e-class -> the e-nodes that have it as a child."""
    parents: dict[int, list[int]] = {number: [] for number in problem.members}
    for node, children in problem.children.items():
        for child in children:
            if child in parents:
                parents[child].append(node)
    return parents


def class_of(problem: Problem) -> dict[int, int]:
    """Return e-node -> its e-class."""
    return {node: number for number, nodes in problem.members.items() for node in nodes}


def needed(problem: Problem, chosen: Mapping[int, int]) -> dict[int, int]:
    """Return the part of `chosen` that the roots reach, roots first."""
    found: dict[int, int] = {}
    stack = sorted(problem.roots, reverse=True)
    while stack:
        number = stack.pop()
        if number not in found:
            found[number] = node = chosen[number]
            stack.extend(problem.children[node])
    return found


def cost_of(problem: Problem, chosen: Mapping[int, int]) -> float:
    """Return the DAG cost of a choice, the constant included."""
    paid = [problem.cost[node] for node in needed(problem, chosen).values()]
    return math.fsum([problem.constant, *paid])

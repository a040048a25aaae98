"""The numbers of an e-graph, in the form that reductions work on.

A *problem* keeps the e-node and e-class numbers of the `EGraph` it came from, so that a
choice for a reduced problem is, apart from e-nodes that were *forced* on the way, a choice
for the e-graph. Reductions never change a problem; they return another one (`Reduced`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from extraction.egraph import EGraph


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


def from_egraph(graph: EGraph) -> Problem:
    """Return the problem an e-graph poses, nothing reduced yet."""
    usable = [node for members in graph.members for node in members]
    children_of, nodes = graph.children_of, graph.nodes
    return Problem(
        members={number: members for number, members in enumerate(graph.members) if members},
        children={node: frozenset(children_of[node]) for node in usable},
        cost={node: float(nodes[node].cost) for node in usable},
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

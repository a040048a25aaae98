"""A choice: one e-node for each e-class that the roots need.

A choice never trusts the algorithm that made it. Its cost is recomputed from the e-graph
with `math.fsum`, and `check` walks it from the roots without recursion (choices tens of
thousands of e-classes deep are ordinary).

*DAG cost* counts a shared e-node once, *tree cost* once for each use.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from extraction.egraph import ClassId, EGraph
from extraction.errors import CyclicChoiceError, IncompleteChoiceError, WrongClassError

type Status = Literal["optimal", "feasible", "timed out"]
type Term = tuple[str, tuple["Term", ...]]

TOLERANCE = 1e-9
"""Two costs closer than this, relative to the larger, count as equal."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A derivation of the roots and what is known about its cost.

    Attributes:
        node_of: For every e-class reachable from the roots through the choice, the
            position of its e-node in `EGraph.nodes`.
        cost: The DAG cost, in the unit of the e-graph's costs.
        bound: No derivation costs less than this.
        status: `optimal` (cost equals bound), `timed out` (the deadline came first) or
            `feasible` (the method stopped by itself without a proof).
        method: The extractor's name.
        seconds: Wall time of the extraction.
        statistics: Counts and times, by name.
    """

    node_of: Mapping[ClassId, int]
    cost: float
    bound: float = 0.0
    status: Status = "feasible"
    method: str = ""
    seconds: float = 0.0
    statistics: Mapping[str, object] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """(cost - bound) / cost, 0.0 for an optimal choice."""
        if self.status == "optimal" or self.cost <= self.bound:
            return 0.0
        return (self.cost - self.bound) / self.cost

    def check(self, graph: EGraph) -> None:
        """Make sure that this choice derives the roots of `graph`.

        Raises:
            IncompleteChoiceError: A needed e-class has no e-node.
            WrongClassError: An e-node is of another e-class or of infinite cost.
            CyclicChoiceError: An e-class needs itself.
        """
        order(graph, self.node_of)

    def dag_cost(self, graph: EGraph) -> float:
        """Return the sum of the costs of the distinct chosen e-nodes."""
        return math.fsum(
            graph.nodes[node].cost for node in order(graph, self.node_of).values()
        )

    def tree_cost(self, graph: EGraph) -> float:
        """Return the cost of the roots with every use of an e-class paid again."""
        total: dict[int, float] = {}
        for number, node in order(graph, self.node_of).items():
            enode = graph.nodes[node]
            below = (total[graph.number_of[child]] for child in enode.children)
            total[number] = enode.cost + math.fsum(below)
        return math.fsum(total[root] for root in graph.root_numbers)

    def to_term(self, graph: EGraph, root: ClassId | None = None) -> Term:
        """Return the term below `root` (default: the first root) as nested pairs.

        Shared e-classes are one shared object, so the term is as small as the choice.
        """
        terms: dict[int, Term] = {}
        for number, node in order(graph, self.node_of).items():
            enode = graph.nodes[node]
            below = tuple(terms[graph.number_of[child]] for child in enode.children)
            terms[number] = (enode.op, below)
        return terms[graph.number_of[graph.roots[0] if root is None else root]]


def order(graph: EGraph, node_of: Mapping[ClassId, int]) -> dict[int, int]:
    """Return e-class number -> e-node of everything needed, children before parents.

    Raises:
        IncompleteChoiceError: A needed e-class has no e-node.
        WrongClassError: An e-node is of another e-class or of infinite cost.
        CyclicChoiceError: An e-class needs itself.
    """
    done: dict[int, int] = {}
    open_: set[int] = set()
    stack = list(reversed(graph.root_numbers))
    while stack:
        number = stack[-1]
        if number in done:
            stack.pop()
            continue
        node = _chosen(graph, node_of, number)
        below = [child for child in graph.children_of[node] if child not in done]
        if not below:
            done[number] = node
            open_.discard(number)
            stack.pop()
            continue
        open_.add(number)
        for child in below:
            if child in open_:
                raise CyclicChoiceError(
                    f"e-class {graph.ids[child]!r} needs itself through e-node {node} "
                    f"({graph.nodes[node].op!r} in e-class {graph.ids[number]!r}); "
                    "a choice must be acyclic"
                )
        stack.extend(reversed(below))
    return done


def _chosen(graph: EGraph, node_of: Mapping[ClassId, int], number: int) -> int:
    node = node_of.get(graph.ids[number])
    if node is None:
        raise IncompleteChoiceError(
            f"e-class {graph.ids[number]!r} is needed but has no e-node; its e-nodes are "
            f"{list(graph.members[number][:5])}"
        )
    if (
        not 0 <= node < len(graph.nodes)
        or graph.class_of[node] != number
        or graph.nodes[node].cost == math.inf
    ):
        raise WrongClassError(
            f"e-class {graph.ids[number]!r} was given e-node {node}; its e-nodes of finite "
            f"cost are {list(graph.members[number][:5])}"
        )
    return node


def close(
    graph: EGraph,
    chosen: Mapping[int, int],
    *,
    bound: float,
    method: str,
    timed_out: bool = False,
    seconds: float = 0.0,
    statistics: Mapping[str, object] | None = None,
) -> Choice:
    """Make a checked `Choice` from e-node numbers by e-class number.

    Args:
        graph: The e-graph the numbers refer to.
        chosen: E-class number -> e-node; may hold more than the roots need.
        bound: A proven lower bound on the cost of every derivation.
        method: The extractor's name.
        timed_out: Whether the deadline stopped the search.
        seconds: Wall time spent.
        statistics: Counts and times, by name.

    Returns:
        The choice restricted to what the roots need; `optimal` when cost meets bound.
    """
    node_of = {graph.ids[number]: node for number, node in chosen.items()}
    needed = order(graph, node_of)
    cost = math.fsum(graph.nodes[node].cost for node in needed.values())
    proven = cost - bound <= TOLERANCE * cost
    status: Status = "optimal" if proven else "timed out" if timed_out else "feasible"
    return Choice(
        node_of=MappingProxyType(
            {graph.ids[number]: node for number, node in needed.items()}
        ),
        cost=cost,
        bound=cost if proven else bound,
        status=status,
        method=method,
        seconds=seconds,
        statistics=MappingProxyType(dict(statistics or {})),
    )

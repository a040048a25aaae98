"""Why two handles are one class: the unions of an e-graph replayed, and kept as a forest.

Handles are joined in the order in which rules did it, and e-nodes whose arguments became
equal right after. Each join adds one edge between two trees, so that later there is exactly
one way between two handles of a class, made of edges that existed as soon as they were one:
reasons never go in circles.

Source: R. Nieuwenhuis, A. Oliveras, Proof-producing congruence closure, 2005.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rulesets.ops import OPERATORS
from tensat.egraph.apply_rules import Firing
from tensat.egraph.tensor_egraph import ENodeKey, TensorEGraph

CONGRUENT, VALUE = -1, -2
"""In place of a firing: the arguments are equal; both are constants of one value."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A join.

    Attributes:
        left: One handle.
        right: The other.
        reason: Number of the firing, or `CONGRUENT`, or `VALUE`.
        time: Number of the firing that brought it about, -1 before the first.
    """

    left: int
    right: int
    reason: int
    time: int


class ProofForest:
    """All joins of an e-graph.

    Args:
        egraph: The e-graph, refreshed.
        encoded: Its e-nodes before the first firing.
        history: All firings, in order.
    """

    def __init__(self, egraph: TensorEGraph, encoded: Sequence[ENodeKey],
                 history: Sequence[Firing]) -> None:  # fmt: skip
        count = len(egraph.key_of)
        self._up: list[Edge | None] = [None] * count
        self._leader = list(range(count))
        self._size = [1] * count
        self._users: dict[int, list[int]] = {}
        self._known: dict[ENodeKey, int] = {}
        self.born: list[ENodeKey] = list(egraph.key_of)
        self.born[: len(encoded)] = encoded
        for firing in history:
            self.born[firing.first : firing.first + len(firing.made)] = firing.made
        self._first_constant: dict[int, int] = {}
        self._egraph = egraph
        self._add(range(len(encoded)), -1)
        for time, firing in enumerate(history):
            self._add(range(firing.first, firing.first + len(firing.made)), time)
            for root, built in zip(firing.roots, firing.built, strict=True):
                self._join(root, built, time, time)

    def path(self, first: int, second: int) -> list[Edge]:
        """The joins between two handles; empty if they are the same or not one class."""
        above = {first: 0}
        ours: list[Edge] = []
        while (edge := self._up[first]) is not None:
            ours.append(edge)
            first = edge.right
            above[first] = len(ours)
        theirs: list[Edge] = []
        while second not in above:
            edge = self._up[second]
            if edge is None:
                return []
            theirs.append(edge)
            second = edge.right
        return ours[: above[second]] + theirs[::-1]

    def joined(self, first: int, second: int, before: int) -> bool:
        """Whether two handles were one class before a firing."""
        if self._find(first) != self._find(second):
            return False
        return all(edge.time < before for edge in self.path(first, second))

    def is_constant(self, handle: int) -> bool:
        """Whether an e-node needs no rule to be a constant."""
        key = self.born[handle]
        if key.operator in {"Input", "Opaque"} or not self._egraph.constant(handle):
            return False
        return all(self._egraph.constant(argument) for argument in key.arguments)

    def _add(self, handles: Iterable[int], time: int) -> None:
        for handle in handles:
            if self.is_constant(handle):
                eclass = self._egraph.find(handle)
                twin = self._first_constant.setdefault(eclass, handle)
                self._join(handle, twin, VALUE, time)
            for argument in self.born[handle].arguments:
                self._users.setdefault(self._find(argument), []).append(handle)
            twin = self._known.setdefault(self._key(handle), handle)
            self._join(handle, twin, CONGRUENT, time)

    def _key(self, handle: int) -> ENodeKey:
        """The e-node with leaders for arguments, in order where order does not matter."""
        key = self.born[handle]
        arguments = tuple(self._find(argument) for argument in key.arguments)
        operator = OPERATORS.get(key.operator)
        if operator is not None and operator.commutative:
            arguments = tuple(sorted(arguments))
        return ENodeKey(key.operator, key.attributes, arguments)

    def _find(self, handle: int) -> int:
        leader = self._leader
        while leader[handle] != handle:
            leader[handle] = leader[leader[handle]]
            handle = leader[handle]
        return handle

    def _join(self, left: int, right: int, reason: int, time: int) -> None:
        waiting = [(left, right, reason)]
        while waiting:
            left, right, reason = waiting.pop()
            small, large = self._find(left), self._find(right)
            if small == large:
                continue
            if self._size[small] > self._size[large]:
                left, right, small, large = right, left, large, small
            self._turn(left)
            self._up[left] = Edge(left, right, reason, time)
            self._leader[small] = large
            self._size[large] += self._size[small]
            users = self._users.pop(small, [])
            self._users.setdefault(large, []).extend(users)
            for user in users:
                twin = self._known.setdefault(self._key(user), user)
                if self._find(twin) != self._find(user):
                    waiting.append((user, twin, CONGRUENT))

    def _turn(self, handle: int) -> None:
        """Make a handle the root of its tree."""
        edge = self._up[handle]
        self._up[handle] = None
        while edge is not None:
            following = self._up[edge.right]
            self._up[edge.right] = Edge(edge.right, edge.left, edge.reason, edge.time)
            edge = following

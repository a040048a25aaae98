"""Why an e-node is there: the applications of rules that it needs, in order.

An application (a *firing*) needs the e-nodes that its left side stood on, and that their
arguments were one class by then. Both come from earlier firings or from the model itself,
so a worklist over e-nodes and over pairs of handles that must be joined collects all of
them. Between two handles of a class the shortest way is taken, over pairs that a rule
joined and over e-nodes that became equal because their arguments did.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rulesets.ops import OPERATORS
from tensat.egraph.apply_rules import Firing
from tensat.egraph.ematch import Found, Matcher
from tensat.egraph.tensor_egraph import ENodeKey, TensorEGraph

CONGRUENT = -1
"""In place of a firing: two e-nodes are equal because their arguments are."""


@dataclass(frozen=True, slots=True)
class Step:
    """A firing and what it stood on.

    Attributes:
        firing: The firing.
        enodes: The e-nodes of its left side, outside first; empty if they are lost.
    """

    firing: Firing
    enodes: tuple[int, ...]


class Provenance:
    """The history of an e-graph, ready for questions.

    Args:
        egraph: The e-graph, refreshed.
        encoded: Its e-nodes before the first firing.
        history: All firings, in order.
    """

    def __init__(self, egraph: TensorEGraph, encoded: Sequence[ENodeKey],
                 history: Sequence[Firing]) -> None:  # fmt: skip
        self.egraph, self.history, self.encoded = egraph, history, encoded
        self.matcher = Matcher(egraph)
        self._firsts = [firing.first for firing in history]
        self._joined: dict[int, list[tuple[int, int]]] = {}
        for index, firing in enumerate(history):
            for root, built in zip(firing.roots, firing.built, strict=True):
                if root != built:
                    self._joined.setdefault(root, []).append((built, index))
                    self._joined.setdefault(built, []).append((root, index))
        self._equal: dict[ENodeKey, list[int]] = {}
        for handle, key in enumerate(egraph.key_of):
            self._equal.setdefault(_sorted(key), []).append(handle)
        self._found: dict[int, Found | None] = {}

    def maker(self, handle: int) -> int | None:
        """The firing that made an e-node; None if it is the model's."""
        index = bisect_right(self._firsts, handle) - 1
        while index >= 0 and self._firsts[index] <= handle:
            firing = self.history[index]
            if handle < firing.first + len(firing.made):
                return index
            index -= 1
        return None

    def why(
        self, handles: Iterable[int], joins: Iterable[tuple[int, int]] = ()
    ) -> tuple[Step, ...]:
        """The firings because of which e-nodes are there and handles are one class.

        Args:
            handles: The e-nodes.
            joins: The pairs of handles.

        Returns:
            Firings in the order in which they happened.
        """
        needed: set[int] = set()
        seen: set[tuple[int, int]] = set()
        work: list[tuple[int, int, int]] = [(handle, handle, -1) for handle in handles]
        work += [(first, second, len(self.history)) for first, second in joins]
        while work:
            first, second, before = work.pop()
            if before < 0:
                maker = self.maker(first)
                reasons = [] if maker is None else [maker]
            elif (first, second) in seen:
                continue
            else:
                seen.add((first, second))
                reasons = []
                for left, right, index in self.path(first, second, before):
                    if index == CONGRUENT:
                        work += self._arguments(left, right, before)
                    else:
                        reasons.append(index)
            for index in reasons:
                if index not in needed:
                    needed.add(index)
                    work += self._premises(index)
        return tuple(self._step(index) for index in sorted(needed))

    def born(self, handle: int) -> tuple[int, ...]:
        """Arguments of an e-node, as handles of the time when it was put in."""
        if handle < len(self.encoded):
            return self.encoded[handle].arguments
        maker = self.maker(handle)
        if maker is None:
            return self.egraph.key_of[handle].arguments
        firing = self.history[maker]
        return firing.made[handle - firing.first].arguments

    def path(self, first: int, second: int, before: int) -> list[tuple[int, int, int]]:
        """The shortest way between two handles of a class: pairs and their firings.

        Args:
            first: One handle.
            second: The other.
            before: Number of the firing before which it must have been open.

        Returns:
            Nothing if there is no way: constants are one because their values are.
        """
        came: dict[int, tuple[int, int]] = {first: (first, CONGRUENT)}
        queue = deque([first])
        while queue and second not in came:
            here = queue.popleft()
            for there, index in self._neighbours(here):
                if there not in came and index < before:
                    came[there] = (here, index)
                    queue.append(there)
        if second not in came:
            return []
        steps = []
        while second != first:
            previous, index = came[second]
            steps.append((previous, second, index))
            second = previous
        return steps[::-1]

    def _neighbours(self, handle: int) -> Iterator[tuple[int, int]]:
        yield from self._joined.get(handle, ())
        for twin in self._equal[_sorted(self.egraph.key_of[handle])]:
            if twin != handle:
                yield twin, CONGRUENT

    def _arguments(
        self, left: int, right: int, before: int
    ) -> Iterator[tuple[int, int, int]]:
        """The pairs of arguments that make two e-nodes equal."""
        ours, theirs = self.born(left), self.born(right)
        find = self.egraph.find
        if [find(a) for a in ours] != [find(a) for a in theirs]:
            theirs = theirs[::-1]
        for one, other in zip(ours, theirs, strict=True):
            if one != other:
                yield one, other, before

    def _match(self, index: int) -> Found | None:
        """Where the left side of a firing stood."""
        if index not in self._found:
            firing = self.history[index]
            split = len(firing.built) + len(firing.pattern.variables)
            find = self.egraph.find
            classes = [find(handle) for handle in firing.row[len(firing.built) : split]]
            variables = dict(zip(firing.pattern.variables, classes, strict=True))
            numbers = firing.row[split:]
            self._found[index] = next(
                (
                    found
                    for found in self.matcher.matches(
                        firing.pattern.rule.lhs, firing.roots, firing.first, variables
                    )
                    if all(
                        self.egraph.key_of[enode].attributes == number
                        for enode, number in zip(found.enodes, numbers, strict=True)
                    )
                ),
                None,
            )
        return self._found[index]

    def _premises(self, index: int) -> Iterator[tuple[int, int, int]]:
        found = self._match(index)
        if found is None:
            return
        firing = self.history[index]
        for enode, place in zip(found.enodes, found.places, strict=True):
            yield enode, enode, -1
            yield self._at(firing, found, *place), enode, index
        first: dict[str, int] = {}
        for name, parent, argument in found.uses:
            handle = self._at(firing, found, parent, argument)
            if first.setdefault(name, handle) != handle:
                yield first[name], handle, index

    def _at(self, firing: Firing, found: Found, parent: int, place: int) -> int:
        """The handle that stood at a place of a left side."""
        if parent < 0:
            return firing.roots[place]
        return self.born(found.enodes[parent])[place]

    def _step(self, index: int) -> Step:
        found = self._match(index)
        return Step(self.history[index], () if found is None else found.enodes)


def _sorted(key: ENodeKey) -> ENodeKey:
    """The same for e-nodes that differ in the order of commutative arguments only."""
    operator = OPERATORS.get(key.operator)
    if operator is None or not operator.commutative or len(key.arguments) != 2:
        return key
    first, second = sorted(key.arguments)
    return ENodeKey(key.operator, key.attributes, (first, second))

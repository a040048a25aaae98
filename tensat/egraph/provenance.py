"""Why an e-node is there: the applications of rules that it needs, in order.

An application (a *firing*) needs the e-nodes that its left side stood on, and that their
arguments were one class by then. Both come from earlier firings or from the model itself,
so a worklist over e-nodes and over pairs of handles that must be joined collects all of
them. What joined two handles is told by `proof_forest`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tensat.egraph.apply_rules import Firing
from tensat.egraph.ematch import Found, Matcher
from tensat.egraph.proof_forest import CONGRUENT, VALUE, Edge, ProofForest
from tensat.egraph.tensor_egraph import ENodeKey, TensorEGraph

MOST_MATCHES = 500
"""Matches that are looked at to find the one on which a firing stood."""


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
        self.matcher = Matcher(egraph, twins=True)
        self.forest = ProofForest(egraph, encoded, history)
        self._firsts = [firing.first for firing in history]
        self._found: dict[int, Found | None] = {}

    def maker(self, handle: int) -> int | None:
        """The firing that made an e-node; None if it is the model's."""
        index = bisect_right(self._firsts, handle) - 1
        while index >= 0:
            firing = self.history[index]
            if firing.made:
                return index if handle < firing.first + len(firing.made) else None
            index -= 1
        return None

    def born(self, handle: int) -> tuple[int, ...]:
        """Arguments of an e-node, as handles of the time when it was put in."""
        return self.forest.born[handle].arguments

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
        work = [*joins, *((handle, handle) for handle in handles)]
        while work:
            pair = work.pop()
            if pair in seen:
                continue
            seen.add(pair)
            reasons = [self.maker(pair[0])] if pair[0] == pair[1] else []
            for edge in self.forest.path(*pair):
                if edge.reason == CONGRUENT:
                    work += self._arguments(edge)
                elif edge.reason != VALUE:
                    reasons.append(edge.reason)
            for index in reasons:
                if index is not None and index not in needed:
                    needed.add(index)
                    work += self._premises(index)
        return tuple(self._step(index) for index in sorted(needed))

    def _arguments(self, edge: Edge) -> Iterator[tuple[int, int]]:
        """The pairs of arguments that make two e-nodes equal."""
        ours, theirs = self.born(edge.left), self.born(edge.right)
        straight = list(zip(ours, theirs, strict=True))
        if not all(self.forest.joined(a, b, edge.time + 1) for a, b in straight):
            straight = list(zip(ours, theirs[::-1], strict=True))
        yield from ((one, other) for one, other in straight if one != other)

    def _match(self, index: int) -> Found | None:
        """Where the left side of a firing stood."""
        if index not in self._found:
            found = list(islice(self._matches(index), MOST_MATCHES))
            fitting = (
                each
                for each in found
                if all(
                    one == other or self.forest.joined(one, other, index)
                    for one, other in self._pairs(index, each)
                )
            )
            self._found[index] = next(fitting, found[0] if found else None)
        return self._found[index]

    def _matches(self, index: int) -> Iterator[Found]:
        """The ways in which the left side of a firing stands in the e-graph of today."""
        firing = self.history[index]
        split = len(firing.built) + len(firing.pattern.variables)
        find = self.egraph.find
        classes = [find(handle) for handle in firing.row[len(firing.built) : split]]
        variables = dict(zip(firing.pattern.variables, classes, strict=True))
        sides = firing.pattern.rule.lhs
        numbers = firing.row[split:]
        for found in self.matcher.matches(sides, firing.roots, firing.first, variables):
            if all(
                self.egraph.key_of[enode].attributes == number
                for enode, number in zip(found.enodes, numbers, strict=True)
            ):
                yield found

    def _premises(self, index: int) -> Iterator[tuple[int, int]]:
        found = self._match(index)
        if found is not None:
            yield from ((enode, enode) for enode in found.enodes)
            yield from self._pairs(index, found)

    def _pairs(self, index: int, found: Found) -> Iterator[tuple[int, int]]:
        """The pairs of handles that are one where a firing stood."""
        firing = self.history[index]
        for enode, place in zip(found.enodes, found.places, strict=True):
            yield self._at(firing, found, *place), enode
        named = zip(firing.pattern.variables, firing.row[len(firing.built) :], strict=False)
        bound = dict(named)
        for name, parent, argument in found.uses:
            handle = self._at(firing, found, parent, argument)
            if bound[name] != handle:
                yield bound[name], handle

    def _at(self, firing: Firing, found: Found, parent: int, place: int) -> int:
        """The handle that stood at a place of a left side."""
        if parent < 0:
            return firing.roots[place]
        return self.born(found.enodes[parent])[place]

    def _step(self, index: int) -> Step:
        found = self._match(index)
        return Step(self.history[index], () if found is None else found.enodes)

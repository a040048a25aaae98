"""Find cuts that a fractional solution violates.

A *closed* set S of e-classes is left by a derivation only through its supports: e-nodes in
S without a child in S. So y_c <= Σ x of supports for every c in S. With S a loop this
forbids cycles; with S wide enough to hold all ways from c down to some shared e-class it
says that c needs that e-class although no single e-node does. Local need rows miss this:
a half through one child and a half through another pay for half of what both share.

Finding the most violated S is NP-hard; S is grown greedily from {c}. An e-node is no
support any more once one of its children joins S, so the child is taken that removes more
support than its own e-nodes bring. After a find its supports count as chosen, and the
search goes on for another cut of the same e-class that shares none of them.

Source: disjunctive action landmarks of delete-free planning; unfounded sets of logic
programs; cut inequalities of directed Steiner trees. E-graph extraction generalizes the
last and is a case of the first two.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from extraction.deadline import Deadline
from extraction.model import Cut, supports_of
from extraction.problem import Problem, class_of

VIOLATION = 1e-3
"""Least violation worth a cut."""

LEAST_NEED = 0.02
"""E-classes needed less than this are not looked at."""

LARGEST = 200
"""E-classes at which a closed set is given up."""

NESTED = 6
"""Cuts per e-class and round."""

POSITIVE = 1e-7


@dataclass(slots=True)
class _Growth:
    """A closed set, its supports by child, and their total value."""

    closed: set[int]
    value: dict[int, float] = field(default_factory=dict)
    by_child: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    total: float = 0.0


class Separator:
    """Searches cuts for one fractional solution after another."""

    def __init__(self, problem: Problem) -> None:
        """Remember the problem; the e-nodes' e-classes are looked up often."""
        self.problem = problem
        self.owner = class_of(problem)
        self.x: dict[int, float] = {}
        self.positive: dict[int, list[int]] = {}

    def find(self, x: Mapping[int, float], deadline: Deadline) -> list[Cut]:
        """Return violated cuts, e-classes needed most first.

        Args:
            x: The value of each e-node.
            deadline: When to stop searching.
        """
        members = self.problem.members
        self.positive = {
            number: [node for node in nodes if x[node] > POSITIVE]
            for number, nodes in members.items()
        }
        need = {number: sum([x[n] for n in nodes]) for number, nodes in members.items()}
        start = [number for number in members if need[number] > LEAST_NEED]
        start.sort(key=lambda number: (-need[number], number))
        cuts: dict[Cut, None] = {}
        for number in start:
            if deadline.passed:
                break
            self.x = dict(x)
            restore: dict[int, list[int]] = {}
            for _ in range(NESTED):
                closed = self._grow(number, need[number] - VIOLATION)
                if closed is None:
                    break
                cut = Cut(number, supports_of(self.problem, closed))
                cuts[cut] = None
                for node in cut.supports:
                    if x[node] <= POSITIVE:
                        owner = self.owner[node]
                        restore.setdefault(owner, self.positive[owner])
                        self.positive[owner] = [*self.positive[owner], node]
                    self.x[node] = 1.0
            self.positive.update(restore)
        return list(cuts)

    def _grow(self, number: int, enough: float) -> set[int] | None:
        """Return a closed set around an e-class whose supports are worth less."""
        growth = _Growth({number})
        self._open(growth, number)
        while True:
            child, gain = self._next(growth)
            if growth.total < enough and gain <= POSITIVE:
                return growth.closed
            if child is None or len(growth.closed) >= LARGEST:
                return growth.closed if growth.total < enough else None
            growth.closed.add(child)
            for node in list(growth.by_child[child]):
                growth.total -= growth.value.pop(node)
                for other in self.problem.children[node]:
                    growth.by_child[other].discard(node)
            del growth.by_child[child]
            self._open(growth, child)

    def _open(self, growth: _Growth, number: int) -> None:
        """Count the supports an e-class brings that has just joined."""
        children = self.problem.children
        for node in self.positive[number]:
            if growth.closed.isdisjoint(children[node]):
                growth.value[node] = self.x[node]
                growth.total += self.x[node]
                for child in children[node]:
                    growth.by_child[child].add(node)

    def _next(self, growth: _Growth) -> tuple[int | None, float]:
        """Return the child that lowers the supports' total most, and by how much."""
        children, x, closed, value = (
            self.problem.children,
            self.x,
            growth.closed,
            growth.value,
        )
        best: int | None = None
        best_gain = 0.0
        for child, nodes in growth.by_child.items():
            if not nodes:
                continue
            gain = 0.0
            for node in nodes:
                gain += value[node]
            for node in self.positive[child]:
                if closed.isdisjoint(children[node]):
                    gain -= x[node]
            if best is None or gain > best_gain + POSITIVE:
                best, best_gain = child, gain
        return best, best_gain

"""Must sets: the e-classes that every acyclic derivation of an e-class contains.

The greatest fixpoint of

    M(n) = union of M(d) over the children d of e-node n
    M(c) = {c} and what all M(n) share, over the e-nodes n of c with c not in M(n)

An e-node whose children all need its own e-class can never be chosen, so it does not take
part in the intersection; by induction over a derivation every set stays a lower bound.
Sets are Python integers used as bit sets: intersections of thousands of e-classes at
memory speed. Bits are numbered children first, so sets of deep e-classes stay short.

Source: dominators of a flow graph, generalized to and/or graphs.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from extraction.problem import Problem

EVERYTHING = -1
"""The bit set with all bits; the start of the iteration."""


@dataclass(frozen=True, slots=True)
class Must:
    """Must sets as bit sets.

    Attributes:
        bit: E-class -> the bit set that holds only it.
        of_class: E-class -> its must set, itself included.
        order: The e-class of each bit position.
    """

    bit: Mapping[int, int]
    of_class: Mapping[int, int]
    order: tuple[int, ...]

    def below(self, children: frozenset[int]) -> int:
        """Return what every derivation of all `children` contains."""
        union = 0
        of_class = self.of_class
        for child in children:
            union |= of_class[child]
        return union

    def classes(self, bits: int) -> list[int]:
        """Return the e-classes of a bit set."""
        text = bin(bits)[:1:-1]
        found, at = [], text.find("1")
        while at >= 0:
            found.append(self.order[at])
            at = text.find("1", at + 1)
        return found


def must_sets(problem: Problem, component: Mapping[int, int]) -> Must:
    """Return the must sets of a cleaned problem, component by component."""
    groups: dict[int, list[int]] = defaultdict(list)
    for number in problem.members:
        groups[component[number]].append(number)
    order = tuple(number for key in sorted(groups) for number in groups[key])
    bit = {number: 1 << position for position, number in enumerate(order)}
    of_class: dict[int, int] = {}
    for key in sorted(groups):
        group = groups[key]
        for number in group:
            of_class[number] = EVERYTHING
        _settle(problem, group, bit, of_class)
    return Must(bit, of_class, order)


def _settle(
    problem: Problem, group: list[int], bit: dict[int, int], of_class: dict[int, int]
) -> None:
    """Shrink the must sets of one component until nothing changes."""
    above: dict[int, set[int]] = {number: set() for number in group}
    if len(group) > 1:
        for number in group:
            for node in problem.members[number]:
                for child in problem.children[node]:
                    if child in above:
                        above[child].add(number)
    dirty = set(group)
    while dirty:
        for number in group:
            if number in dirty:
                dirty.discard(number)
                new = _step(problem, of_class, number, bit[number])
                if new != of_class[number]:
                    of_class[number] = new
                    dirty |= above[number]


def _step(problem: Problem, of_class: dict[int, int], number: int, own: int) -> int:
    common = EVERYTHING
    for node in problem.members[number]:
        union = 0
        for child in problem.children[node]:
            union |= of_class[child]
        if not union & own:
            common &= union
            if not common:
                break
    return common | own

"""Equations between ground terms: orientation, renaming, instances.

Two equations say the same if they differ in which side comes first, in the names of leaves
of one group, or in the argument order of commutative operators; `canonical` makes them one.
An equation is an *instance* of another one if identifying leaves turns that one into it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, product

from rulesets.ground import Ground, Leaf, Node, leaves, size
from rulesets.ops import OPERATORS

VARIANTS = 32
"""Most argument orders that are tried for one side."""


@dataclass(frozen=True, slots=True)
class Equation:
    """Two terms of equal value, the larger one left."""

    lhs: Ground
    rhs: Ground

    def __str__(self) -> str:
        return f"{self.lhs} == {self.rhs}"

    @property
    def size(self) -> int:
        """Number of operators of its larger side."""
        return max(size(self.lhs), size(self.rhs))


def canonical(equation: Equation) -> Equation | None:
    """Return the one way to write an equation, None if its sides are the same term."""
    best: tuple[str, Equation] | None = None
    sides = (equation.lhs, equation.rhs)
    weights = [(size(side), len(str(side))) for side in sides]
    flips = [False] if weights[0] > weights[1] else [True]
    if weights[0] == weights[1]:
        flips = [False, True]
    for flip in flips:
        first, second = sides[::-1] if flip else sides
        for one in islice(_orders(first), VARIANTS):
            for other in islice(_orders(second), VARIANTS):
                if one == other:
                    return None
                named = _renamed(one, other)
                key = f"{named.lhs} {named.rhs}"
                if best is None or key < best[0]:
                    best = key, named
    assert best is not None
    return best[1]


def _renamed(lhs: Ground, rhs: Ground) -> Equation:
    names: dict[Leaf, Leaf] = {}
    counts: dict[str, int] = defaultdict(int)
    for leaf in (*leaves(lhs), *leaves(rhs)):
        if leaf not in names:
            names[leaf] = replace(leaf, name=f"{leaf.group}{counts[leaf.group]}")
            counts[leaf.group] += 1
    return Equation(_with(lhs, names), _with(rhs, names))


def _with(term: Ground, names: dict[Leaf, Leaf]) -> Ground:
    if isinstance(term, Leaf):
        return names[term]
    return Node(
        term.op, term.attributes, tuple(_with(each, names) for each in term.arguments)
    )


def _orders(term: Ground) -> Iterator[Ground]:
    """Yield a term with commutative arguments sorted by form, in all orders of ties."""
    if isinstance(term, Leaf) or not term.arguments:
        yield term
        return
    choices = [list(islice(_orders(argument), VARIANTS)) for argument in term.arguments]
    swaps = [False]
    if OPERATORS[term.op].commutative and len(choices) == 2:
        first, second = (skeleton(argument) for argument in term.arguments)
        swaps = [first > second]
        if first == second and term.arguments[0] != term.arguments[1]:
            swaps = [False, True]
    for swap in swaps:
        for arguments in product(*choices):
            yield Node(term.op, term.attributes, arguments[::-1] if swap else arguments)


def skeleton(term: Ground) -> str:
    """Return a term as text with leaves known by their group only."""
    if isinstance(term, Leaf):
        return f"{term.group}:{','.join(map(str, term.shape))}"
    if not term.arguments:
        return str(term)
    values = ",".join(f"{name}={value}" for name, value in term.attributes)
    return f"({term.op}[{values}] {' '.join(map(skeleton, term.arguments))})"


def occurrences(term: Ground) -> tuple[Leaf, ...]:
    """Return the leaves of a term from left to right, with repetitions."""
    if isinstance(term, Leaf):
        return (term,)
    return tuple(leaf for argument in term.arguments for leaf in occurrences(argument))


def without_instances(equations: Iterable[Equation]) -> list[Equation]:
    """Keep the equations that are no instance of another one, in their order."""
    groups: dict[tuple[str, str], list[tuple[int, Equation]]] = defaultdict(list)
    for place, equation in enumerate(equations):
        groups[skeleton(equation.lhs), skeleton(equation.rhs)].append((place, equation))
    kept: list[tuple[int, Equation]] = []
    for members in groups.values():
        members.sort(key=lambda one: (-_variables(one[1]), one[0]))
        general: list[tuple[Leaf, ...]] = []
        for place, equation in members:
            labels = occurrences(equation.lhs) + occurrences(equation.rhs)
            if not any(_instance(labels, other) for other in general):
                general.append(labels)
                kept.append((place, equation))
    return [equation for _, equation in sorted(kept, key=lambda one: one[0])]


def _variables(equation: Equation) -> int:
    return len({*leaves(equation.lhs), *leaves(equation.rhs)})


def _instance(labels: tuple[Leaf, ...], general: tuple[Leaf, ...]) -> bool:
    image: dict[Leaf, Leaf] = {}
    return all(
        image.setdefault(one, other) == other
        for one, other in zip(general, labels, strict=True)
    )

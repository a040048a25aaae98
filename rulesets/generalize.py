"""Making an equation as general as it can be, by trying.

A subterm that both sides only pass on becomes a leaf. A leaf that stands several times on
both sides becomes several leaves. Each step is kept if both sides still agree at other
sizes and at real values, so a law over few leaves is found in its general form.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import count, permutations

import numpy as np

from rulesets.equation import Equation, canonical, occurrences
from rulesets.family import Family
from rulesets.fingerprint import inputs, same, value_of
from rulesets.ground import Ground, Leaf, Node, leaves, shape_of, size, subterms
from rulesets.tensor import Shape

FLAT = 1e-12
"""Spread of values below which a term counts as constant."""

MOST_PLACES = 3
"""Places of one leaf on one side up to which it is separated."""


def generalize(family: Family, equation: Equation) -> Equation | None:
    """Return the most general equation found, None if its sides become one term."""
    found = abstract(family, equation)
    if found is None:
        return None
    wider = separate(family, found)
    return found if wider == found else abstract(family, wider)


def holds_elsewhere(family: Family, equation: Equation, seed: int = 7) -> bool:
    """Say whether both sides agree at the family's other sizes and at real values."""
    found = tuple(sorted({*leaves(equation.lhs), *leaves(equation.rhs)}, key=str))
    values = inputs(found, family.others, exact=False, seed=seed)
    one = value_of(equation.lhs, family.others, values)
    other = value_of(equation.rhs, family.others, values)
    return same(one, other)


def idle(equation: Equation, sizes: Mapping[str, int], seed: int = 11) -> bool:
    """Say whether a part of it has one value whatever the leaves are, like x - x.

    Such equations are true and endless: what is zero may stand anywhere.
    """
    found = tuple(sorted({*leaves(equation.lhs), *leaves(equation.rhs)}, key=str))
    values = inputs(found, sizes, exact=False, seed=seed)
    parts = {t for side in (equation.lhs, equation.rhs) for t in subterms(side)}
    return any(
        isinstance(term, Node)
        and term.op != "Split"
        and bool(leaves(term))
        and bool(np.ptp(value_of(term, sizes, values)) < FLAT)
        for term in parts
    )


# -- leaves that stand several times ------------------------------------------------------


def separate(family: Family, equation: Equation) -> Equation:
    """Replace a leaf that stands several times on both sides by several leaves."""
    for leaf in leaves(equation.lhs):
        mine, other = (
            [k for k, one in enumerate(occurrences(side)) if one == leaf]
            for side in (equation.lhs, equation.rhs)
        )
        if 2 <= len(mine) == len(other) <= MOST_PLACES:
            wider = _separated(family, equation, leaf, mine, other)
            if wider is not None:
                return separate(family, wider)
    return equation


def _separated(
    family: Family, equation: Equation, leaf: Leaf, mine: list[int], other: list[int]
) -> Equation | None:
    taken = {one.name for one in (*leaves(equation.lhs), *leaves(equation.rhs))}
    fresh = (f"{leaf.group}{k}" for k in count() if f"{leaf.group}{k}" not in taken)
    made = [replace(leaf, name=next(fresh)) for _ in mine]
    lhs = _placed(equation.lhs, dict(zip(mine, made, strict=True)))
    for order in permutations(other):
        wider = Equation(lhs, _placed(equation.rhs, dict(zip(order, made, strict=True))))
        if holds_elsewhere(family, wider):
            return wider
    return None


def _placed(term: Ground, made: dict[int, Leaf]) -> Ground:
    """Return a term with the leaves at some places, counted from the left, replaced."""
    places = count()

    def visit(one: Ground) -> Ground:
        if isinstance(one, Leaf):
            return made.get(next(places), one)
        return Node(one.op, one.attributes, tuple(map(visit, one.arguments)))

    return visit(term)


# -- common subterms ---------------------------------------------------------------------


def abstract(family: Family, equation: Equation) -> Equation | None:
    """Replace subterms of both sides by leaves where the equation stays true.

    Returns:
        The more general equation in canonical form; None if its sides become one term.
    """
    found: Equation | None = equation
    tried: set[Ground] = set()
    while found is not None:
        common = [each for each in _common(found) if each not in tried]
        if not common:
            return canonical(found)
        tried.add(common[0])
        general = _without(family, found, common[0])
        if holds_elsewhere(family, general):
            found = canonical(general)
            tried.clear()
    return None


def _common(equation: Equation) -> list[Ground]:
    """Applications to leaves that occur on both sides, the largest first."""
    mine = {
        each for each in subterms(equation.lhs) if isinstance(each, Node) and leaves(each)
    }
    both = [each for each in dict.fromkeys(subterms(equation.rhs)) if each in mine]
    both = [each for each in both if isinstance(each, Node) and each.op != "Split"]
    return sorted(both, key=size, reverse=True)


def _without(family: Family, equation: Equation, common: Ground) -> Equation:
    shape = shape_of(common)
    group = _group(family, shape)
    taken = {leaf.name for leaf in (*occurrences(equation.lhs), *occurrences(equation.rhs))}
    name = next(f"{group}{k}" for k in count() if f"{group}{k}" not in taken)
    leaf = Leaf(name, shape, group)
    return Equation(_put(equation.lhs, common, leaf), _put(equation.rhs, common, leaf))


def _group(family: Family, shape: Shape) -> str:
    for name, members in family.groups.items():
        if members[0].shape == shape and members[0].sign != "positive":
            return name
    text = "_".join(map(str, shape)).replace("*", "x").replace(" + ", "p")
    return f"y{text}_" if text else "y_"


def _put(term: Ground, common: Ground, leaf: Leaf) -> Ground:
    if term == common:
        return leaf
    if isinstance(term, Leaf):
        return term
    arguments = tuple(_put(each, common, leaf) for each in term.arguments)
    return Node(term.op, term.attributes, arguments)

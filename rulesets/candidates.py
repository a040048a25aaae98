"""From a layer's equations to candidates: one for each law, as terms.

Equations that differ by renaming appear once for each renaming. Those in which neither side
uses its leaves in order are dropped before any term is made. The rest are brought to their
canonical form and made as general as they can be; instances of others are dropped, and so
is what fails at a second choice of sizes and at real values: an accident of the first.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rulesets.bank import Bank, Rows
from rulesets.enumerate import Layer
from rulesets.equation import Equation, canonical, without_instances
from rulesets.family import Family
from rulesets.generalize import generalize, holds_elsewhere, idle
from rulesets.ground import Ground, Leaf, Node, leaves, subterms

MOST_CONSTANTS = 1
"""Constants in one equation; with more, nearly all laws are arithmetic of constants."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of one layer.

    Attributes:
        raw: Equations found.
        distinct: Different ones up to renaming, orientation and common subterms.
        general: Those that are no instance of another one.
        equations: Those that also hold elsewhere, the simplest first.
    """

    raw: int
    distinct: int
    general: int
    equations: tuple[Equation, ...]


def candidates(
    bank: Bank,
    layer: Layer,
    sample: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Candidates:
    """Return the candidates of a layer.

    Args:
        bank: Where its terms are.
        layer: The layer.
        sample: Take every k-th equation.
        progress: Called with the number of equations read.
    """
    ordered = np.flatnonzero(bank.canonical(layer.lhs) | bank.canonical(layer.rhs))
    ordered = ordered[::sample]
    lhs, rhs = layer.lhs.take(ordered), layer.rhs.take(ordered)
    found: dict[Equation, None] = {}
    for done, equation in enumerate(_equations(bank, lhs, rhs)):
        if equation is not None and _few_constants(bank.family, equation):
            found.setdefault(equation)
        if progress is not None and done % 1000 == 0:
            progress(done)
    distinct: dict[Equation, None] = {}
    for equation in without_instances(found):
        wider = generalize(bank.family, equation)
        if wider is not None:
            distinct.setdefault(wider)
    general = without_instances(distinct)
    right = [
        each
        for each in general
        if not idle(each, bank.family.others) and holds_elsewhere(bank.family, each)
    ]
    right.sort(key=simplicity)
    return Candidates(len(layer.lhs), len(found), len(general), tuple(right))


def simplicity(equation: Equation) -> tuple[int, int, int, str]:
    """Return a key: small first, of the small ones the most general, then by text."""
    variables = len({*leaves(equation.lhs), *leaves(equation.rhs)})
    calls = _calls(equation.lhs) + _calls(equation.rhs)
    return (equation.size, calls, -variables, str(equation))


def _calls(term: Ground) -> int:
    return sum(isinstance(each, Node) for each in subterms(term))


def _few_constants(family: Family, equation: Equation) -> bool:
    """Whether a side has at most one constant, and nothing of constants alone."""
    parts = [_constant_parts(side) for side in (equation.lhs, equation.rhs)]
    given = all(each in family.constants for found in parts for each in found)
    return given and max(map(len, parts)) <= MOST_CONSTANTS


def _constant_parts(term: Ground) -> list[Ground]:
    if isinstance(term, Leaf):
        return []
    if not leaves(term):
        return [term]
    return [each for argument in term.arguments for each in _constant_parts(argument)]


def _equations(bank: Bank, lhs: Rows, rhs: Rows) -> Iterator[Equation | None]:
    columns: Iterable[tuple[int, ...]] = zip(
        *(getattr(side, name).tolist() for side in (lhs, rhs) for name in _COLUMNS),
        strict=True,
    )
    for step, left, right, other_step, other_left, other_right in columns:
        one = bank.term(step, left, right)
        other = bank.term(other_step, other_left, other_right)
        yield canonical(Equation(one, other))


_COLUMNS = ("step", "left", "right")

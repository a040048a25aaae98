"""Values at which facts about integers hold: a model shows that something does not follow.

Most questions of a proof have the answer no. A few thousand fixed choices of values are
tried before a solver is asked: where one fulfils all facts and not the goal, the goal does
not follow, and no solver could show it. What the values do not show stays open.

A set of choices is an integer, one bit for each.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from zlib import crc32

import numpy as np
import numpy.typing as npt

from rulesets.size import Atom, Poly, Quotient, Size

COUNT = 4096
MOST_DEGREE = 12
SCALES = (1, 2, 3, 5, 9, 20)
"""The sizes of a choice go up to one of these."""

ALL = (1 << COUNT) - 1

type Longs = npt.NDArray[np.int64]


class _UnknownError(Exception):
    """A size whose values cannot be computed here."""


@lru_cache(maxsize=1 << 15)
def where(size: Size) -> int:
    """Return the choices at which a size is defined and >= 0."""
    if isinstance(size, int):
        return ALL if size >= 0 else 0
    try:
        defined = np.ones(COUNT, np.bool_)
        holds = (_value(size, defined) >= 0) & defined
    except _UnknownError:
        return 0
    return int.from_bytes(np.packbits(holds).tobytes())


def where_all(sizes: Iterable[Size], among: int = ALL) -> int:
    """Return the choices, among some, at which all sizes are >= 0."""
    for size in sizes:
        if not among:
            break
        among &= where(size)
    return among


def unbalanced(
    weighted: Iterable[tuple[Fraction, frozenset[Poly]]], among: int = ALL
) -> bool:
    """Say whether the weights of the domains that hold do not add up to 0 somewhere."""
    sums: dict[Fraction, int] = {Fraction(0): among}
    for weight, domain in weighted:
        holds = where_all(domain)
        split: dict[Fraction, int] = {}
        for total, chosen in sums.items():
            for key, part in ((total + weight, chosen & holds), (total, chosen & ~holds)):
                if part:
                    split[key] = split.get(key, 0) | part
        sums = split
    return any(sums)


def _value(size: Size, defined: npt.NDArray[np.bool_]) -> Longs:
    """Return the values of a size; clears `defined` where a quotient has none."""
    if isinstance(size, int):
        return np.full(COUNT, size, np.int64)
    total = np.zeros(COUNT, np.int64)
    for monomial, number in size.terms:
        if sum(power for _, power in monomial) > MOST_DEGREE:
            raise _UnknownError
        value = np.full(COUNT, number, np.int64)
        for atom, power in monomial:
            value *= _of_atom(atom, defined) ** power
        total += value
    return total


def _of_atom(atom: Atom, defined: npt.NDArray[np.bool_]) -> Longs:
    if isinstance(atom, str):
        return _of_name(atom)
    if not isinstance(atom, Quotient):
        raise _UnknownError
    dividend, divisor = _value(atom.dividend, defined), _value(atom.divisor, defined)
    defined &= divisor >= 1
    return dividend // np.maximum(divisor, 1)


@lru_cache(maxsize=1 << 10)
def _of_name(name: str) -> Longs:
    """Return the values of a symbol: its own, the same in every run.

    Index variables begin at 0. In every second choice all others are positive.
    """
    draw = np.random.default_rng(crc32(name.encode()))
    scale = np.tile(np.repeat(SCALES, 2), COUNT // (2 * len(SCALES)) + 1)[:COUNT]
    if name[0] in "~$":
        return draw.integers(0, scale)
    value = draw.integers(1, scale + 1)
    sign = draw.choice([1, 1, 1, 0, -1], COUNT)
    return np.where(np.arange(COUNT) % 2 == 0, value, value * sign)

"""Sizes: integers, or canonical integer polynomials over named symbols.

A *size* is the length of an axis, or an offset along one. It is an `int` wherever the
model says so, and a `Poly` where it depends on symbolic dimensions. A *monomial* is a
product of powers of *atoms*: a symbol's name, a floor division of polynomials, or the
result of broadcasting sizes whose relation is unknown.

Equal polynomials are equal at run time. Unequal ones may still be equal at run time: ask
`provably_different`. Symbols stand for values >= 0.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from math import gcd, prod
from operator import add, mul

from rulesets.errors import SizeError

type Size = int | Poly
type Atom = str | Quotient | Broadcast
type Monomial = tuple[tuple[Atom, int], ...]

_ONE: Monomial = ()
_ZERO: Size = 0


@dataclass(frozen=True, slots=True, eq=False)
class Poly:
    """A polynomial that is not a constant; make one with `symbol` and arithmetic.

    Attributes:
        terms: Monomials with their non-zero coefficients, in a canonical order.
    """

    terms: tuple[tuple[Monomial, int], ...]
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.terms))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Poly):
            return NotImplemented
        return self._hash == other._hash and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type["Poly"], tuple[tuple[tuple[Monomial, int], ...]]]:
        return Poly, (self.terms,)

    def __add__(self, other: Size) -> Size:
        return _sum(self, other)

    def __neg__(self) -> "Poly":
        return _product(self, -1)  # type: ignore[return-value]

    def __sub__(self, other: Size) -> Size:
        return _sum(self, -other)

    def __rsub__(self, other: int) -> Size:
        return _sum(-self, other)

    def __mul__(self, other: Size) -> Size:
        return _product(self, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __str__(self) -> str:
        return _poly_text(self)


@dataclass(frozen=True, slots=True)
class Quotient:
    """The atom `dividend // divisor`, rounded towards minus infinity; divisor >= 1."""

    dividend: Poly
    divisor: Size

    def __str__(self) -> str:
        return f"(({self.dividend})//{self.divisor})"


@dataclass(frozen=True, slots=True)
class Broadcast:
    """The atom for the common length of axes that broadcast: the one that is not 1."""

    sizes: tuple[Poly, ...]

    def __str__(self) -> str:
        return f"broadcast({', '.join(map(str, self.sizes))})"


@lru_cache(maxsize=1 << 14)
def symbol(name: str) -> Poly:
    """Return the polynomial that is one symbol."""
    return Poly(((((name, 1),), 1),))


def total(sizes: Iterable[Size]) -> Size:
    """Return the sum of sizes."""
    return reduce(add, sizes, 0)


def product(sizes: Iterable[Size]) -> Size:
    """Return the product of sizes, 1 for none."""
    return reduce(mul, sizes, 1)


def floor_div(dividend: Size, divisor: Size) -> Size:
    """Return `dividend // divisor`; a divisor that is a polynomial is taken for positive.

    Raises:
        SizeError: The divisor is a number that is not positive.
    """
    if isinstance(divisor, Poly):
        return _symbolic_quotient(dividend, divisor)
    if divisor < 1:
        raise SizeError(f"cannot divide {dividend} by {divisor}; a divisor is at least 1")
    if isinstance(dividend, int):
        return dividend // divisor
    return _quotient(dividend, divisor)


def ceil_div(dividend: Size, divisor: Size) -> Size:
    """Return `dividend / divisor`, rounded towards plus infinity."""
    return floor_div(dividend + (divisor - 1), divisor)


def divide(dividend: Size, divisor: Size) -> Size | None:
    """Return the size whose product with `divisor` is `dividend`, None if none is known."""
    if divisor == 0:
        return None
    quotient, rest = divide_terms(dividend, divisor)
    return quotient if rest == 0 else None


def divide_terms(dividend: Size, divisor: Size) -> tuple[Size, Size]:
    """Return `quotient, rest` with `quotient * divisor + rest = dividend`."""
    order = _order(dividend, divisor)
    lead, number = max(_terms(divisor), key=lambda term: order(term[0]))
    result, kept = _ZERO, _ZERO
    while dividend != 0:
        monomial, coefficient = max(_terms(dividend), key=lambda term: order(term[0]))
        ratio = _over(monomial, lead)
        if ratio is None or coefficient % number:
            step = _make({monomial: coefficient})
            kept, dividend = kept + step, dividend - step
        else:
            step = _make({ratio: coefficient // number})
            result, dividend = result + step, dividend - step * divisor
    return result, kept


def broadcast_sizes(sizes: Iterable[Size]) -> Size | None:
    """Return the common length of axes that broadcast, None if they provably do not."""
    numbers: set[int] = set()
    polys: dict[Poly, None] = {}
    for size in sizes:
        if isinstance(size, int):
            numbers.add(size)
        else:
            polys.update(dict.fromkeys(_broadcast_parts(size)))
    numbers.discard(1)
    if numbers:
        number = min(numbers)
        fits = len(numbers) == 1 and not any(
            all(provably_different(poly, value) for value in (number, 1)) for poly in polys
        )
        return number if fits else None
    if len(polys) < 2:
        return next(iter(polys), 1)
    ordered = tuple(sorted(polys, key=str))
    return Poly(((((Broadcast(ordered), 1),), 1),))


def evaluate(size: Size, env: Mapping[str, int]) -> int:
    """Return the value of a size; `SizeError` if a symbol has no value."""
    if isinstance(size, int):
        return size
    return sum(
        number * prod(_atom_value(atom, env) ** power for atom, power in monomial)
        for monomial, number in size.terms
    )


@lru_cache(maxsize=1 << 16)
def symbols(size: Size) -> frozenset[str]:
    """Return the names of all symbols in a size."""
    names = set[str]()
    for atom in (atom for monomial, _ in _terms(size) for atom, _ in monomial):
        if isinstance(atom, str):
            names.add(atom)
        elif isinstance(atom, Quotient):
            names |= symbols(atom.dividend) | symbols(atom.divisor)
        else:
            names.update(*map(symbols, atom.sizes))
    return frozenset(names)


def substitute(size: Size, values: Mapping[str, Size]) -> Size:
    """Return a size with the named symbols replaced by sizes."""
    if isinstance(size, int):
        return size
    result = _ZERO
    for monomial, number in size.terms:
        factors = [
            _replaced(atom, values) for atom, power in monomial for _ in range(power)
        ]
        result = result + product(factors) * number
    return result


def provably_nonnegative(size: Size) -> bool:
    """Return whether a size is >= 0 for all values of its symbols, as far as is obvious."""
    if isinstance(size, int):
        return size >= 0
    dividends = (a.dividend for m, _ in size.terms for a, _ in m if isinstance(a, Quotient))
    positive = all(number > 0 for _, number in size.terms)
    return positive and all(map(provably_nonnegative, dividends))


def provably_positive(size: Size) -> bool:
    """Return whether a size is >= 1 for all values of its symbols, as far as is obvious."""
    return provably_nonnegative(size - 1)


def provably_different(one: Size, other: Size) -> bool:
    """Return whether two sizes obviously differ for all values of their symbols."""
    difference = one - other
    if isinstance(difference, int):
        return difference != 0
    if provably_positive(difference) or provably_positive(-difference):
        return True
    constant = dict(difference.terms).get(_ONE, 0)
    step = gcd(*(number for monomial, number in difference.terms if monomial))
    return constant % step != 0


@lru_cache(maxsize=1 << 16)
def _sum(one: Poly, other: Size) -> Size:
    terms = dict(one.terms)
    for monomial, coefficient in _terms(other):
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return _make(terms)


@lru_cache(maxsize=1 << 16)
def _product(one: Poly, other: Size) -> Size:
    terms: dict[Monomial, int] = {}
    for monomial, number in _terms(other):
        for own, coefficient in one.terms:
            both = _times(own, monomial)
            terms[both] = terms.get(both, 0) + coefficient * number
    return _make(terms)


@lru_cache(maxsize=1 << 16)
def _quotient(dividend: Poly, divisor: int) -> Size:
    # floor((k·q + r)/k) = q + floor(r/k), with every coefficient of r in 0 … k-1.
    whole = _make({monomial: number // divisor for monomial, number in dividend.terms})
    rest = _make({monomial: number % divisor for monomial, number in dividend.terms})
    return whole + _proper_quotient(rest, divisor)


def _terms(size: Size) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(size, int):
        return ((_ONE, size),) if size else ()
    return size.terms


def _make(terms: Mapping[Monomial, int]) -> Size:
    kept = [(monomial, number) for monomial, number in terms.items() if number]
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    kept.sort(key=_term_key)
    return Poly(tuple(kept))


def _term_key(term: tuple[Monomial, int]) -> tuple[int, list[tuple[int, str, int]]]:
    # The constant comes last, high degrees first.
    powers = [(*_atom_key(atom), power) for atom, power in term[0]]
    return -sum(power for _, _, power in powers), powers


def _atom_key(atom: Atom) -> tuple[int, str]:
    if isinstance(atom, str):
        return 0, atom
    return (1 if isinstance(atom, Quotient) else 2), str(atom)


def _times(one: Monomial, other: Monomial) -> Monomial:
    if not one or not other:
        return one or other
    powers = dict(one)
    for atom, power in other:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: _atom_key(item[0])))


def _over(one: Monomial, other: Monomial) -> Monomial | None:
    powers = dict(one)
    for atom, power in other:
        powers[atom] = powers.get(atom, 0) - power
    if any(power < 0 for power in powers.values()):
        return None
    return tuple((atom, power) for atom, power in powers.items() if power)


def _order(*sizes: Size) -> Callable[[Monomial], tuple[int, ...]]:
    """Return the key of the graded lexicographic order, under which division ends."""
    found = {atom for size in sizes for monomial, _ in _terms(size) for atom, _ in monomial}
    atoms = sorted(found, key=_atom_key)

    def key(monomial: Monomial) -> tuple[int, ...]:
        powers = dict(monomial)
        return (sum(powers.values()), *(powers.get(atom, 0) for atom in atoms))

    return key


def _proper_quotient(rest: Size, divisor: int) -> Size:
    if isinstance(rest, int):
        return rest // divisor
    terms = dict(rest.terms)
    constant = terms.pop(_ONE, 0)
    common = gcd(divisor, *terms.values())
    divisor //= common
    terms = {monomial: number // common for monomial, number in terms.items()}
    constant //= common
    if divisor == 1:
        return _make({**terms, _ONE: constant})
    match tuple(terms.items()):
        case ((((Quotient(inner, int() as by), 1),), 1),):
            # floor((floor(a/m) + c)/k) = floor((a + c·m)/(k·m))
            return floor_div(inner + constant * by, divisor * by)
    dividend = _make({**terms, _ONE: constant})
    assert isinstance(dividend, Poly)
    return Poly(((((Quotient(dividend, divisor), 1),), 1),))


def _symbolic_quotient(dividend: Size, divisor: Poly) -> Size:
    quotient, rest = divide_terms(dividend, divisor)
    if rest == 0:
        return quotient
    # A polynomial that is a number stands only inside a quotient.
    kept = rest if isinstance(rest, Poly) else Poly(((_ONE, rest),))
    return quotient + Poly(((((Quotient(kept, divisor), 1),), 1),))


def _broadcast_parts(size: Poly) -> tuple[Poly, ...]:
    match size.terms:
        case ((((Broadcast(sizes), 1),), 1),):
            return sizes
    return (size,)


def _atom_value(atom: Atom, env: Mapping[str, int]) -> int:
    if isinstance(atom, str):
        if atom in env:
            return env[atom]
        known = ", ".join(sorted(env)) or "none"
        raise SizeError(f"size symbol {atom!r} has no value; those given: {known}")
    if isinstance(atom, Quotient):
        return evaluate(atom.dividend, env) // evaluate(atom.divisor, env)
    values = [evaluate(size, env) for size in atom.sizes]
    return next((value for value in values if value != 1), 1)


def _replaced(atom: Atom, values: Mapping[str, Size]) -> Size:
    if isinstance(atom, str):
        return values.get(atom, symbol(atom))
    if isinstance(atom, Quotient):
        dividend = substitute(atom.dividend, values)
        return floor_div(dividend, substitute(atom.divisor, values))
    joined = broadcast_sizes(substitute(size, values) for size in atom.sizes)
    if joined is None:
        raise SizeError(f"cannot substitute in {atom}: its sizes no longer broadcast")
    return joined


@lru_cache(maxsize=1 << 15)
def _poly_text(size: Poly) -> str:
    text = " + ".join(_term_text(monomial, number) for monomial, number in size.terms)
    return text.replace("+ -", "- ")


def _term_text(monomial: Monomial, number: int) -> str:
    powers = [str(atom) if power == 1 else f"{atom}^{power}" for atom, power in monomial]
    if number != 1 or not powers:
        powers.insert(0, str(number))
    text = "*".join(powers)
    return f"-{text[3:]}" if text.startswith("-1*") else text

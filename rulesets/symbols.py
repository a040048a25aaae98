"""The symbolic meaning of element rules: scalars are normal forms, indices polynomials."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import inf
from typing import Any, Protocol

from rulesets import normal_form
from rulesets.deadline import check_time
from rulesets.decide import count_out
from rulesets.errors import NotModelledError
from rulesets.integers import Integers, obviously
from rulesets.meaning import Index
from rulesets.normal_form import Ledger
from rulesets.scalar import (
    Apply,
    Element,
    Names,
    Read,
    Sum,
    Term,
    collected,
    free_in_term,
    free_of,
    guard_of,
    guarded,
    names_in,
    number,
    of_atom,
    plus,
    real,
    scaled,
)
from rulesets.size import (
    Poly,
    Size,
    divide,
    divide_terms,
    floor_div,
    substitute,
    symbol,
    symbols,
)
from rulesets.unify import linear_in

ROUNDING = Fraction(1, 4_000_000)
SMALL = 64


class Known(Protocol):
    """Who knows about sizes."""

    @property
    def integers(self) -> Integers:
        """What is known now."""
        ...

    def note(self, fact: Size, /) -> None:
        """Remember that `fact >= 0` wherever its index variables are in their ranges."""
        ...

    def reduced(self, size: Size, /) -> Size:
        """Write products that are known to be equal in one way."""
        ...


def exact(value: float) -> tuple[Fraction, Fraction]:
    """Return base and power of the number a rounded one stands for.

    Attributes and constants are kept in 32 bits: 0.16666667 stands for 1/6 and 0.70710678
    for the root of 1/2. A number that is close to no simple fraction or root is itself.
    """
    given = Fraction(str(value))
    for power, target in ((1, given), (2, given * given)):
        simple = target.limit_denominator(SMALL)
        near = simple and abs(simple - target) <= power * ROUNDING * abs(target)
        if near and (power == 1 or value > 0):
            return simple, Fraction(1, power)
    return given, Fraction(1)


@dataclass(frozen=True, eq=False)
class Value:
    """A scalar: a normal form, with the operators of arithmetic."""

    of: "Symbols"
    sum: Sum

    def __add__(self, other: "Value") -> "Value":
        return Value(self.of, plus(self.sum, other.sum))

    def __sub__(self, other: "Value") -> "Value":
        return Value(self.of, plus(self.sum, scaled(other.sum, -1)))

    def __mul__(self, other: "Value") -> "Value":
        return Value(self.of, normal_form.times(self.of.names, self.sum, other.sum))

    def __neg__(self) -> "Value":
        return Value(self.of, scaled(self.sum, -1))


@dataclass(eq=False)
class Tensors:
    """An argument whose elements are computed when they are read."""

    of: "Symbols"
    shape: tuple[Size, ...]
    dtype: str
    element: Callable[[Index], Value]
    name: str = ""
    known: dict[Index, Value] = field(default_factory=dict)

    def __getitem__(self, index: Index, /) -> Value:
        """Return an element."""
        if index not in self.known:
            self.known[index] = self.element(index)
        return self.known[index]

    def integer(self, index: Index, /) -> Size:
        """Return the only element of an integer variable as a symbol."""
        if not self.name or any(at != 0 for at in index):
            raise NotModelledError("an index that is computed")
        return symbol(f"{self.name}[]")


class Symbols:
    """The meaning on symbols.

    Attributes:
        names: Where names of bound variables come from.
        known: Who knows about sizes.
        ledger: Denominators and radicands met on the way.
        limits: The size of the range of each index variable.
        real_valued: Whether elements are real numbers; else only what holds for integers
            and truth values too is used.
    """

    def __init__(self, names: Names, known: "Known", *, real_valued: bool) -> None:
        """Start with an empty ledger."""
        self.names = names
        self.known = known
        self.ledger = Ledger()
        self.limits: dict[str, Size] = {}
        self.real_valued = real_valued
        self.unrolled = False

    @property
    def integers(self) -> Integers:
        """What is known about sizes."""
        return self.known.integers

    def variable(self, size: Size) -> Poly:
        """Return a new index variable."""
        name = self.names.fresh()
        self.limits[name] = size
        return symbol(name)

    def facts(self, *sizes: Size) -> list[Size]:
        """Return the ranges of the index variables in polynomials."""
        names = sorted(frozenset().union(*map(symbols, sizes)) & set(self.limits))
        return [
            guard
            for name in names
            for guard in (symbol(name), self.limits[name] - symbol(name) - 1)
        ]

    def number(self, value: Any, /) -> Value:
        """Return a number, or an attribute that is a symbol."""
        if isinstance(value, Sum):
            return Value(self, value)
        if isinstance(value, Value):
            return value
        if isinstance(value, float):
            if value in (inf, -inf) or value != value:
                raise NotModelledError("a number that is not finite")
            base, exponent = exact(value)
            if exponent != 1:
                return self.power(Value(self, number(base)), exponent)
            value = base
        return Value(self, number(Fraction(value)))

    def real(self, size: Size, /) -> Value:
        """Return the real value of a size."""
        return Value(self, real(size))

    def where(self, guards: Sequence[Size], value: Value, other: Value, /) -> Value:
        """Choose between scalars."""
        return other + Value(self, guarded(guards, (value - other).sum))

    def sum(self, sizes: Sequence[Size], body: Callable[..., Value], /) -> Value:
        """Bind variables in front of a body."""
        if self.unrolled:
            check_time()
            ranges = product(*(range(int(size)) for size in sizes))  # type: ignore[arg-type]
            return Value(self, plus(*(body(*ks).sum for ks in ranges)))
        ks = [0 if size == 1 else self.variable(size) for size in sizes]
        result = body(*ks).sum
        for k, size in zip(ks, sizes, strict=True):
            if isinstance(k, Poly):
                result = self._summed(k, size, result)
        return Value(self, plus(*(self._counted(term) for term in result.terms)))

    def _counted(self, term: Term) -> Sum:
        """Count what a sum without atoms counts, if its guards always hold."""
        if not term.bound or any(free_of(atom) & term.bound for atom, _ in term.factors):
            return Sum((term,))
        names = names_in(term.domain)
        ranges = self.facts(*(symbol(name) for name in sorted(names - term.bound)))
        known = self.integers.with_facts(ranges)
        for name in sorted(term.bound):
            found = count_out(self.names, term, name, known, thorough=True)
            if found is not None:
                return plus(*(self._counted(each) for each in found.terms))
        return Sum((term,))

    def _summed(self, k: Poly, size: Size, body: Sum) -> Sum:
        (name,) = symbols(k)
        with_k = [term for term in body.terms if name in free_in_term(term)]
        without = [term for term in body.terms if name not in free_in_term(term)]
        bound = collected(
            Term(one.coefficient, one.bound | {name}, one.domain, one.factors)
            for one in with_k
        )
        summed = guarded([k, size - k - 1], bound)
        counted = normal_form.times(self.names, Sum(tuple(without)), real(size))
        return plus(summed, counted)

    def product(self, sizes: Sequence[Size], body: Callable[..., Value], /) -> Value:
        """Multiply a body where every range has one element."""
        if any(size != 1 for size in sizes):
            raise NotModelledError("a product over an axis")
        return body(*[0 for _ in sizes])

    def max(
        self,
        sizes: Sequence[Size],
        body: Callable[..., Value],
        guards: Callable[..., Sequence[Size]] | None = None,
        /,
    ) -> Value:
        """Make the set of the values of a body."""
        if self.unrolled:
            return self._unrolled_max(sizes, body, guards)
        ks = [0 if size == 1 else self.variable(size) for size in sizes]
        domain: list[Size] = list(guards(*ks)) if guards is not None else []
        bound: set[str] = set()
        for k, size in zip(ks, sizes, strict=True):
            if isinstance(k, Poly):
                domain += [k, size - k - 1]
                bound |= symbols(k)
        found = [guard_of(each) for each in domain]
        if any(each is False for each in found):
            raise NotModelledError("a window that sees nothing")
        kept = frozenset(each for each in found if isinstance(each, Poly))
        element = Element(frozenset(bound), kept, body(*ks).sum)
        return Value(self, normal_form.largest(self.names, [element]))

    def _unrolled_max(self, sizes: Sequence[Size], body: Any, guards: Any) -> Value:
        none: frozenset[Any] = frozenset()
        elements = [
            Element(none, none, body(*ks).sum)
            for ks in product(*(range(int(size)) for size in sizes))  # type: ignore[arg-type]
            if guards is None or all(guard >= 0 for guard in guards(*ks))
        ]
        if not elements:
            raise NotModelledError("a window that sees nothing")
        return Value(self, normal_form.largest(self.names, elements))

    def larger(self, one: Value, other: Value, /) -> Value:
        """Make the set of two scalars."""
        none: frozenset[Any] = frozenset()
        elements = [Element(none, none, each.sum) for each in (one, other)]
        return Value(self, normal_form.largest(self.names, elements))

    def wrapped(self, position: Size, size: Size, /) -> Size:
        """Count a negative position from the end."""
        if self.integers.implied(position):
            return position
        if self.integers.implied(-position - 1):
            return position + size
        raise NotModelledError("an index of unknown sign")

    def divmod(self, dividend: Size, divisor: Size, /) -> tuple[Size, Size]:
        """Return quotient and remainder; without a quotient where the ranges show it."""
        if divisor == 1:
            return dividend, 0
        quotient, rest = divide_terms(self.known.reduced(dividend), divisor)
        if self._below(rest, divisor):
            return quotient, rest
        known = self.integers.with_facts(self.facts(rest, divisor))
        if known.implied(rest, 2) and known.implied(divisor - 1 - rest, 2):
            return quotient, rest
        more = floor_div(rest, divisor)
        limit = self._limit_of(rest)
        times = None if limit is None else divide(limit, divisor)
        if times is not None:
            self.known.note(more)
            self.known.note(times - more - 1)
        return quotient + more, rest - divisor * more

    def _below(self, size: Size, limit: Size) -> bool:
        """Say whether `0 <= size < limit`, seen at the ends of the ranges alone."""
        known, greatest = self.integers, size
        for name in sorted(symbols(size) & set(self.limits)):
            parts = linear_in(greatest, name)
            if parts is None or not obviously(known, parts[0]):
                return False
            greatest = substitute(greatest, {name: self.limits[name] - 1})
        least = substitute(size, dict.fromkeys(symbols(size) & set(self.limits), 0))
        return obviously(known, least) and obviously(known, limit - 1 - greatest)

    def _limit_of(self, size: Size) -> Size | None:
        """Return the length of the range of a size that is one index variable."""
        names = symbols(size)
        name = next(iter(names)) if len(names) == 1 else ""
        return self.limits.get(name) if size == symbol(name) else None

    def power(self, base: Value, exponent: Fraction, /) -> Value:
        """Return a power."""
        found = normal_form.power(self.names, self.ledger, base.sum, exponent)
        return Value(self, found)

    def function(self, name: str, /, *arguments: Value) -> Value:
        """Apply a function; some are arithmetic."""
        if name == "where":
            chosen, one, other = arguments
            return other + chosen * (one - other)
        if name == "div":
            return self._divided(*arguments)
        if name == "pow":
            exponent = arguments[1].sum.constant
            if exponent is not None and self.real_valued:
                return self.power(arguments[0], exponent)
        if name == "1/pi":
            return Value(self, of_atom(Apply(name, ())))
        sums = [one.sum for one in arguments]
        return Value(self, normal_form.function(self.names, self.ledger, name, *sums))

    def _divided(self, one: Value, other: Value) -> Value:
        if self.real_valued or other.sum.constant == 1:
            return one * self.power(other, Fraction(-1))
        found = normal_form.function(self.names, self.ledger, "div", one.sum, other.sum)
        return Value(self, found)

    def read(self, name: str, index: Index) -> Value:
        """Return the element of a variable."""
        return Value(self, of_atom(Read(name, tuple(index))))

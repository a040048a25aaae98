"""Arithmetic on normal forms: products, powers, functions, the largest of several.

Three algebraic facts are built in: the exponential of a sum is a product, a power takes
common factors out of a sum, powers of equal atoms are added. A function of a sum whose
guards mention no variable the sum binds is a case analysis: it is taken case by case, so
that `relu(concat)` is a concat of `relu`.

What must not be zero or negative on the way is written into a `Ledger`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, isqrt, lcm

from rulesets.deadline import check_time
from rulesets.scalar import (
    Apply,
    Atom,
    Base,
    Domain,
    Element,
    Largest,
    Names,
    Real,
    Sum,
    Term,
    collected,
    free_of,
    fresh_element,
    freshened,
    guarded,
    names_in,
    number,
    of_atom,
    plus,
    scaled,
    times_atoms,
)
from rulesets.size import Poly

MOST_TERMS = 400


class TooLargeError(Exception):
    """A normal form grows beyond what is worth proving."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a value must be, where a domain holds: ``nonzero`` or ``nonnegative``."""

    kind: str
    value: Sum
    domain: Domain = frozenset()


@dataclass
class Ledger:
    """Every denominator, and every argument of a root or logarithm, of one side."""

    demands: dict[Demand, None] = field(default_factory=dict)

    def add(self, kind: str, value: Sum, domain: Domain) -> None:
        """Write a demand down."""
        self.demands[Demand(kind, value, domain)] = None


def times(names: Names, one: Sum, other: Sum) -> Sum:
    """Return the product of two sums."""
    for first, second in ((one, other), (other, one)):
        constant = first.constant
        if constant is not None:
            return scaled(second, constant)
    if len(one.terms) * len(other.terms) > MOST_TERMS:
        raise TooLargeError("a product has too many terms")
    check_time()
    products = [_product(names, a, b) for a in one.terms for b in other.terms]
    if any(_whole_base(term) for term in products):
        return plus(*(_multiplied_out(names, term) for term in products))
    return collected(products)


def _whole_base(term: Term) -> tuple[Base, Fraction] | None:
    for atom, exponent in term.factors:
        if isinstance(atom, Base) and exponent.denominator == 1 and 0 < exponent <= 8:
            return atom, exponent
    return None


def _multiplied_out(names: Names, term: Term) -> Sum:
    """Write a whole sum to a positive whole power as a product of sums."""
    found = _whole_base(term)
    if found is None:
        return Sum((term,))
    kept = tuple(factor for factor in term.factors if factor != found)
    rest = Sum((Term(term.coefficient, term.bound, term.domain, kept),))
    return times(names, rest, _atom_power(names, *found))


def _product(names: Names, one: Term, other: Term) -> Term:
    if one.bound and other.bound:
        other = freshened(other, names)
    joined = Term(
        one.coefficient * other.coefficient,
        one.bound | other.bound,
        one.domain | other.domain,
        one.factors,
    )
    return times_atoms(joined, other.factors, {})


# -- cases -------------------------------------------------------------------------------


def cases(elements: tuple[Element, ...]) -> Iterator[tuple[Domain, tuple[Element, ...]]]:
    """Yield disjoint cases that leave no guard free of the variables bound around it.

    In a case an element is missing if its own domain is empty there.
    """
    check_time()
    condition = next((g for each in elements for g in _free_guards(each)), None)
    if condition is None:
        yield frozenset(), elements
        return
    opposite = -condition - 1
    for holds, fails in ((condition, opposite), (opposite, condition)):
        assert isinstance(holds, Poly)
        kept = tuple(
            Element(each.bound, each.domain - {holds}, _assumed(each.body, holds, fails))
            for each in elements
            if fails not in each.domain
        )
        for domain, leaves in cases(kept):
            yield domain | {holds}, leaves


def _free_guards(element: Element) -> Iterator[Poly]:
    for condition in sorted(element.domain, key=str):
        if names_in([condition]).isdisjoint(element.bound):
            yield condition
    for term in element.body.terms:
        bound = element.bound | term.bound
        for condition in sorted(term.domain, key=str):
            if names_in([condition]).isdisjoint(bound):
                yield condition


def _assumed(one: Sum, holds: Poly, fails: object) -> Sum:
    return collected(
        Term(term.coefficient, term.bound, term.domain - {holds}, term.factors)
        for term in one.terms
        if fails not in term.domain
    )


def by_cases(sums: tuple[Sum, ...], apply: Callable[..., Sum]) -> Sum:
    """Apply a function to sums, case by case."""
    wrapped = tuple(Element(frozenset(), frozenset(), one) for one in sums)
    return plus(
        *(
            guarded(domain, apply(domain, *(each.body for each in leaf)))
            for domain, leaf in cases(wrapped)
        )
    )


# -- powers ------------------------------------------------------------------------------


def power(names: Names, ledger: Ledger, one: Sum, exponent: Fraction) -> Sum:
    """Return a sum raised to a fixed power."""
    if exponent.denominator == 1 and 0 <= exponent <= 8:
        result = number(1)
        for _ in range(int(exponent)):
            result = times(names, result, one)
        return result
    return by_cases(
        (one,), lambda domain, leaf: _power(names, ledger, leaf, exponent, domain)
    )


def _power(
    names: Names, ledger: Ledger, one: Sum, exponent: Fraction, domain: Domain
) -> Sum:
    whole = exponent.denominator == 1
    coefficient, common, rest = _common_factors(one, whole)
    if not whole:
        sure = all(isinstance(atom, Apply | Real) for atom, _ in common)
        radicand = scaled(rest, -1) if coefficient < 0 else rest
        ledger.add("nonnegative", radicand if sure else one, domain)
    result = _number_power(abs(coefficient) if not whole else coefficient, exponent)
    if not whole and coefficient < 0:
        rest = scaled(rest, -1)
    for atom, times_over in common:
        if exponent < 0 and times_over > 0:
            inner = atom.base if isinstance(atom, Base) else of_atom(atom)
            ledger.add("nonzero", inner, domain)
        result = times(names, result, _atom_power(names, atom, times_over * exponent))
    if rest.constant == 1:
        return result
    if exponent < 0:
        ledger.add("nonzero", rest, domain)
    return times(names, result, of_atom(Base(rest), exponent))


def _atom_power(names: Names, atom: Atom, exponent: Fraction) -> Sum:
    """Return an atom's power; a whole sum to a positive whole power is multiplied out."""
    if isinstance(atom, Base) and exponent.denominator == 1 and exponent > 0:
        result = number(1)
        for _ in range(int(exponent)):
            result = times(names, result, atom.base)
        return result
    return of_atom(atom, exponent) if exponent else number(1)


def _number_power(value: Fraction, exponent: Fraction) -> Sum:
    """Return a power of a number; of a root of a whole number, the part below power 1."""
    if exponent.denominator == 1 and value:
        return number(value ** int(exponent))
    if value <= 0:
        return of_atom(Base(number(value)), exponent)
    coefficient = Fraction(1)
    powers: dict[Atom, Fraction] = {}
    for part, sign in ((value.numerator, 1), (value.denominator, -1)):
        root, left = part, exponent * sign
        while isqrt(root) ** 2 == root > 1:
            root, left = isqrt(root), left * 2
        whole = left.numerator // left.denominator
        coefficient *= Fraction(root) ** whole
        if root > 1 and left != whole:
            powers[Base(number(root))] = left - whole
    return Sum((Term(coefficient, factors=tuple(powers.items())),))


def _common_factors(
    one: Sum, whole: bool
) -> tuple[Fraction, list[tuple[Atom, Fraction]], Sum]:
    """Split a sum into a number, factors of every term, and the rest.

    For a fractional power only factors that are never negative are taken out.
    """
    if not one.terms:
        return Fraction(1), [], one
    numerators = gcd(*(term.coefficient.numerator for term in one.terms))
    coefficient = Fraction(numerators, lcm(*(t.coefficient.denominator for t in one.terms)))
    if all(term.coefficient < 0 for term in one.terms):
        coefficient = -coefficient
    common: list[tuple[Atom, Fraction]] = []
    for atom, _ in one.terms[0].factors:
        powers = [dict(term.factors).get(atom, Fraction(0)) for term in one.terms]
        least = min(powers)
        if least == 0 or any(not free_of(atom).isdisjoint(t.bound) for t in one.terms):
            continue
        if len(set(powers)) > 1 and least < 0:
            continue
        if whole or never_negative(atom, least):
            common.append((atom, least))
    taken = tuple((atom, -least) for atom, least in common)
    rest = collected(
        times_atoms(
            Term(term.coefficient / coefficient, term.bound, term.domain, term.factors),
            taken,
            {},
        )
        for term in one.terms
    )
    return coefficient, common, rest


def never_negative(atom: Atom, exponent: Fraction) -> bool:
    """Say whether a power of an atom is >= 0 wherever it is defined."""
    if exponent.denominator % 2 == 0 or isinstance(atom, Real):
        return True
    return isinstance(atom, Apply) and atom.name == "exp"


# -- functions ---------------------------------------------------------------------------


def function(names: Names, ledger: Ledger, name: str, *arguments: Sum) -> Sum:
    """Apply a function to sums; the unknown ones are opaque."""
    if name == "exp":
        return by_cases(arguments, lambda domain, one: _exponential(names, one))

    def opaque(domain: Domain, *leaf: Sum) -> Sum:
        if name == "log":
            ledger.add("nonnegative", leaf[0], domain)
            ledger.add("nonzero", leaf[0], domain)
        return of_atom(Apply(name, leaf))

    return by_cases(arguments, opaque)


def _exponential(names: Names, one: Sum) -> Sum:
    result = number(1)
    for term in one.terms:
        size = abs(term.coefficient)
        exponent = term.coefficient if size.denominator == 1 else term.coefficient / size
        inner = Term(term.coefficient / exponent, term.bound, term.domain, term.factors)
        result = times(names, result, of_atom(Apply("exp", (Sum((inner,)),)), exponent))
    return result


def largest(names: Names, elements: Iterable[Element]) -> Sum:
    """Return the largest value of elements; sets in sets are one set."""
    return plus(
        *(guarded(domain, _largest(names, leaf)) for domain, leaf in cases((*elements,)))
    )


def _largest(names: Names, elements: tuple[Element, ...]) -> Sum:
    found = dict.fromkeys(flat for each in elements for flat in _flat(names, each))
    kept = tuple(found)
    if len(kept) == 1 and not kept[0].bound and not kept[0].domain:
        return kept[0].body
    return of_atom(Largest(kept))


def _flat(names: Names, element: Element) -> Iterator[Element]:
    # What guards are left mention a variable the element binds: they go into its domain.
    unbound = Element(frozenset(), frozenset(), element.body)
    for domain, (inside,) in cases((unbound,)):
        whole, body = element.domain | domain, inside.body
        inner = _scaled_set(body)
        if inner is None:
            yield Element(element.bound, whole, body)
            continue
        coefficient, found = inner
        for each in found.elements:
            fresh = fresh_element(each, names)
            yield Element(
                element.bound | fresh.bound,
                whole | fresh.domain,
                scaled(fresh.body, coefficient),
            )


def _scaled_set(body: Sum) -> tuple[Fraction, Largest] | None:
    """Return a positive number and a set, if the body is their product."""
    if len(body.terms) != 1:
        return None
    term = body.terms[0]
    if term.bound or term.domain or term.coefficient <= 0 or len(term.factors) != 1:
        return None
    ((atom, exponent),) = term.factors
    if isinstance(atom, Largest) and exponent == 1:
        return term.coefficient, atom
    return None

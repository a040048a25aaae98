"""The normal form of an element: sums of products with guards over bound indices.

    sum   =  TERM + TERM + ...
    term  =  coefficient · SUM_{bound : domain} atom^power · atom^power · ...

Bound variables are integers; the domain is a set of polynomials that must be >= 0 (guards,
ranges of bound variables). A term without bound variables and with a domain is an Iverson
bracket. Atoms are

    Read      an element of a tensor, or a real attribute (no index)
    Real      the real value of one size symbol or index
    Apply     an opaque function of sums
    Base      a whole sum, where its power is negative or a fraction
    Largest   the largest of elements {bound : domain : body}
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import gcd

from rulesets.size import Poly, Size, substitute, symbol, symbols

type Atom = Read | Real | Apply | Base | Largest
type Factors = tuple[tuple[Atom, Fraction], ...]
type Domain = frozenset[Poly]
type Mapped = Mapping[str, Size]


@dataclass(frozen=True)
class Read:
    """An element of a tensor variable."""

    name: str
    index: tuple[Size, ...] = ()


@dataclass(frozen=True)
class Real:
    """The real value of a polynomial that is one symbol or one quotient."""

    size: Size


@dataclass(frozen=True)
class Apply:
    """An opaque function; the name says which."""

    name: str
    arguments: tuple["Sum", ...]

    @cached_property
    def hashed(self) -> int:
        """The hash, computed once."""
        return hash((self.name, self.arguments))

    def __hash__(self) -> int:
        return self.hashed


@dataclass(frozen=True)
class Base:
    """A sum that is raised to a negative or fractional power."""

    base: "Sum"


@dataclass(frozen=True)
class Element:
    """The values a body takes over a domain."""

    bound: frozenset[str]
    domain: Domain
    body: "Sum"


@dataclass(frozen=True)
class Largest:
    """The largest of all values of its elements."""

    elements: tuple[Element, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Largest) and self.members == other.members

    def __hash__(self) -> int:
        return hash(self.members)

    @cached_property
    def members(self) -> frozenset[Element]:
        """The elements without order."""
        return frozenset(self.elements)


@dataclass(frozen=True, eq=False)
class Term:
    """One term of a sum."""

    coefficient: Fraction
    bound: frozenset[str] = frozenset()
    domain: Domain = frozenset()
    factors: Factors = ()

    @cached_property
    def key(self) -> tuple[frozenset[str], Domain, frozenset[tuple[Atom, Fraction]]]:
        """All but the coefficient, factors without order."""
        return self.bound, self.domain, frozenset(self.factors)

    @cached_property
    def hashed(self) -> int:
        """The hash, computed once."""
        return hash((self.coefficient, self.key))

    def __hash__(self) -> int:
        return self.hashed

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Term)
            and self.hashed == other.hashed
            and self.coefficient == other.coefficient
            and self.key == other.key
        )


@dataclass(frozen=True, eq=False)
class Sum:
    """A normal form; two sums with the same terms are equal."""

    terms: tuple[Term, ...] = ()
    members: frozenset[Term] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", frozenset(self.terms))

    def __hash__(self) -> int:
        return hash(self.members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sum) and self.members == other.members

    @property
    def constant(self) -> Fraction | None:
        """The number this is, None if it is none."""
        if not self.terms:
            return Fraction(0)
        first = self.terms[0]
        bare = len(self.terms) == 1 and not (first.bound or first.domain or first.factors)
        return first.coefficient if bare else None


class Names:
    """Makes names for bound variables; none is ever used twice."""

    def __init__(self) -> None:
        self.count = 0

    def fresh(self) -> str:
        """Return a new name."""
        self.count += 1
        return f"~{self.count}"


def number(value: Fraction | int) -> Sum:
    """Return a constant."""
    return Sum((Term(Fraction(value)),)) if value else Sum()


def of_atom(atom: Atom, power: Fraction | int = 1) -> Sum:
    """Return the sum that is one atom."""
    return Sum((Term(Fraction(1), factors=((atom, Fraction(power)),)),))


def real(size: Size) -> Sum:
    """Return the real value of a size."""
    if isinstance(size, int):
        return number(size)
    return Sum(
        tuple(
            Term(
                Fraction(coefficient),
                factors=tuple(
                    (Real(Poly(((((atom, 1),), 1),))), Fraction(power))
                    for atom, power in monomial
                ),
            )
            for monomial, coefficient in size.terms
        )
    )


def collected(terms: Iterable[Term]) -> Sum:
    """Return a sum with equal terms added up."""
    found: dict[object, Term] = {}
    for term in terms:
        before = found.get(term.key)
        if before is not None:
            coefficient = before.coefficient + term.coefficient
            term = Term(coefficient, term.bound, term.domain, term.factors)
        found[term.key] = term
    return Sum(tuple([term for term in found.values() if term.coefficient]))


def plus(*sums: Sum) -> Sum:
    """Return the sum of sums."""
    return collected(term for one in sums for term in one.terms)


def scaled(one: Sum, factor: Fraction | int) -> Sum:
    """Return a sum times a number."""
    return collected(
        Term(term.coefficient * factor, term.bound, term.domain, term.factors)
        for term in one.terms
    )


def guard_of(condition: Size) -> Poly | bool:
    """Return a condition `>= 0` in lowest terms, or whether it holds."""
    if isinstance(condition, int):
        return condition >= 0
    rest = [(monomial, value) for monomial, value in condition.terms if monomial]
    constant = dict(condition.terms).get((), 0)
    common = gcd(*(value for _, value in rest))
    if common == 1:
        return condition
    terms = [(monomial, value // common) for monomial, value in rest]
    if constant // common:
        terms.append(((), constant // common))
    return Poly(tuple(terms))


def guarded(guards: Iterable[Size], one: Sum) -> Sum:
    """Return a sum where all guards are >= 0, and 0 elsewhere."""
    found = [guard_of(condition) for condition in guards]
    if any(each is False for each in found):
        return Sum()
    more = frozenset(each for each in found if isinstance(each, Poly))
    if not more:
        return one
    return collected(
        Term(term.coefficient, term.bound, term.domain | more, term.factors)
        for term in one.terms
    )


# -- variables ---------------------------------------------------------------------------


def free_of(atom: Atom) -> frozenset[str]:
    """Return the names in an atom that it does not bind."""
    match atom:
        case Read(index=index):
            return frozenset().union(*map(symbols, index))
        case Real(size=size):
            return symbols(size)
        case Apply(arguments=arguments):
            return frozenset().union(*map(free, arguments))
        case Base(base=base):
            return free(base)
        case Largest(elements=elements):
            return frozenset().union(
                *(
                    (free(each.body) | names_in(each.domain)) - each.bound
                    for each in elements
                )
            )


def names_in(domain: Iterable[Size]) -> frozenset[str]:
    """Return the names in a set of polynomials."""
    return frozenset().union(*map(symbols, domain))


def free(one: Sum) -> frozenset[str]:
    """Return the free names of a sum."""
    return frozenset().union(*(free_in_term(term) for term in one.terms))


def free_in_term(term: Term) -> frozenset[str]:
    """Return the free names of a term."""
    found = names_in(term.domain)
    return found.union(*(free_of(atom) for atom, _ in term.factors)) - term.bound


# -- substitution ------------------------------------------------------------------------


def replaced_domain(domain: Domain, values: Mapped) -> Domain | None:
    """Substitute in guards; None if one becomes false."""
    result: set[Poly] = set()
    for condition in domain:
        made = guard_of(substitute(condition, values))
        if made is False:
            return None
        if isinstance(made, Poly):
            result.add(made)
    return frozenset(result)


def replaced(one: Sum, values: Mapped) -> Sum:
    """Substitute sizes for free names; the values hold no name bound in the sum."""
    if not values or free(one).isdisjoint(values):
        return one
    return collected(
        made for term in one.terms if (made := replaced_term(term, values)) is not None
    )


def replaced_term(term: Term, values: Mapped) -> Term | None:
    """Substitute in a term; None if its domain becomes empty."""
    domain = replaced_domain(term.domain, values)
    if domain is None:
        return None
    return times_atoms(Term(term.coefficient, term.bound, domain), term.factors, values)


def times_atoms(term: Term, factors: Factors, values: Mapped) -> Term:
    """Multiply a term by atoms in which names are replaced."""
    powers: dict[Atom, Fraction] = dict(term.factors)
    coefficient = term.coefficient
    for atom, power in factors:
        made = replaced_atom(atom, values)
        if isinstance(made, Real) and isinstance(made.size, int):
            coefficient *= Fraction(made.size) ** int(power)
        else:
            powers[made] = powers.get(made, Fraction(0)) + power
    kept = tuple((atom, power) for atom, power in powers.items() if power)
    return Term(coefficient, term.bound, term.domain, kept)


def replaced_atom(atom: Atom, values: Mapped) -> Atom:
    """Substitute in an atom."""
    match atom:
        case Read():
            return Read(atom.name, tuple(substitute(each, values) for each in atom.index))
        case Real():
            return Real(substitute(atom.size, values))
        case Apply():
            return Apply(
                atom.name, tuple(replaced(each, values) for each in atom.arguments)
            )
        case Base():
            return Base(replaced(atom.base, values))
        case Largest():
            moved = (replaced_element(each, values) for each in atom.elements)
            return Largest(tuple(each for each in moved if each is not None))


def replaced_element(element: Element, values: Mapped) -> Element | None:
    """Substitute in an element; None if its domain becomes empty."""
    domain = replaced_domain(element.domain, values)
    if domain is None:
        return None
    return Element(element.bound, domain, replaced(element.body, values))


def freshened(term: Term, names: Names) -> Term:
    """Rename every bound variable of a term."""
    values: dict[str, Size] = {}
    bound = frozenset(_renamed(term.bound, values, names))
    inside = tuple((_fresh_atom(atom, names), power) for atom, power in term.factors)
    domain = replaced_domain(term.domain, values)
    assert domain is not None
    return times_atoms(Term(term.coefficient, bound, domain), inside, values)


def _renamed(bound: Iterable[str], values: dict[str, Size], names: Names) -> Iterator[str]:
    for name in sorted(bound):
        fresh = names.fresh()
        values[name] = symbol(fresh)
        yield fresh


def fresh_sum(one: Sum, names: Names) -> Sum:
    """Rename every bound variable of a sum."""
    return collected(freshened(term, names) for term in one.terms)


def _fresh_atom(atom: Atom, names: Names) -> Atom:
    match atom:
        case Apply():
            return Apply(
                atom.name, tuple(fresh_sum(each, names) for each in atom.arguments)
            )
        case Base():
            return Base(fresh_sum(atom.base, names))
        case Largest():
            return Largest(tuple(fresh_element(each, names) for each in atom.elements))
    return atom


def fresh_element(element: Element, names: Names) -> Element:
    """Rename every bound variable of an element."""
    values: dict[str, Size] = {}
    bound = frozenset(_renamed(element.bound, values, names))
    domain = replaced_domain(element.domain, values)
    assert domain is not None
    return Element(bound, domain, replaced(fresh_sum(element.body, names), values))

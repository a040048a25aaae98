"""Is a normal form 0 everywhere?

Terms whose products are equal under a bijective map of bound variables form a *cluster*.
A cluster is 0 if, at every point, the coefficients of the terms whose domains hold there
add up to 0: one question about integers. Nested sums are compared in the same way. A set
equals another one if their elements cover the same points.

Only a yes means something: no means that the proof was not found.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from rulesets import normal_form
from rulesets.canonical import canonical
from rulesets.deadline import check_time
from rulesets.integers import Integers, same_union
from rulesets.normal_form_text import shown
from rulesets.scalar import (
    Apply,
    Atom,
    Base,
    Domain,
    Element,
    Factors,
    Largest,
    Names,
    Read,
    Real,
    Sum,
    Term,
    collected,
    free_in_term,
    fresh_element,
    freshened,
    names_in,
    plus,
    real,
    replaced_domain,
    replaced_element,
    replaced_term,
    scaled,
    times_atoms,
)
from rulesets.size import Poly, Size, symbols
from rulesets.unify import (
    candidates,
    determinant_is_unit,
    element_candidates,
    inner_names,
    linear_in,
    pairings,
)

MOST_DEPTH = 6


@dataclass
class Cluster:
    """Terms with equal products, their domains in the variables of the first."""

    first: Term
    weighted: list[tuple[Fraction, Domain]]


@dataclass
class Decider:
    """Decides equality of normal forms.

    Attributes:
        names: Where names of bound variables come from.
        reason: What could not be shown last.
    """

    names: Names
    reason: str = ""
    depth: int = 0
    known_zero: dict[tuple[Sum, frozenset[Poly]], bool] = field(default_factory=dict)

    def zero(self, one: Sum, known: Integers) -> bool:
        """Say whether a sum is shown to be 0 wherever the facts hold."""
        if not one.terms:
            return True
        key = one, known.facts
        if key not in self.known_zero:
            self.known_zero[key] = self._zero(one, known)
        return self.known_zero[key]

    def _zero(self, one: Sum, known: Integers) -> bool:
        if self.depth >= MOST_DEPTH or one.constant is not None:
            return False
        self.depth += 1
        try:
            tidied = self.tidy(one, known)
            for cluster in self._clusters(tidied, known):
                if not known.cancels(cluster.weighted):
                    if self.depth == 1:
                        self.reason = f"left over: {shown(cluster.first)}"
                    return False
            return True
        finally:
            self.depth -= 1

    def equal(self, one: Sum, other: Sum, known: Integers) -> bool:
        """Say whether two sums are shown to be equal."""
        if one == other or canonical(one) == canonical(other):
            return True
        return self.zero(plus(one, scaled(other, -1)), known)

    # -- one term ------------------------------------------------------------------------

    def tidy(self, one: Sum, known: Integers) -> Sum:
        """Eliminate bound variables that an equation fixes or that no atom mentions."""
        return plus(*(self._tidied(term, known) for term in one.terms))

    def _tidied(self, term: Term, known: Integers) -> Sum:
        fixed = _fixed(term)
        if fixed is not None:
            name, value = fixed
            bound = term.bound - {name}
            made = replaced_term(
                Term(term.coefficient, bound, term.domain, term.factors), {name: value}
            )
            return Sum() if made is None else self._tidied(made, known)
        for name in sorted(term.bound):
            if not any(name in _names(atom) for atom, _ in term.factors):
                counted = count_out(self.names, term, name, known)
                if counted is not None:
                    return plus(*(self._tidied(each, known) for each in counted.terms))
        return collected([term])

    # -- clusters ------------------------------------------------------------------------

    def _clusters(self, one: Sum, known: Integers) -> list[Cluster]:
        clusters: list[Cluster] = []
        for term in one.terms:
            if not term.coefficient:
                continue
            for cluster in clusters:
                domain = self._mapped(cluster.first, term, known)
                if domain is not None:
                    cluster.weighted.append((term.coefficient, domain))
                    break
            else:
                clusters.append(Cluster(term, [(term.coefficient, term.domain)]))
        return clusters

    def _mapped(self, one: Term, other: Term, known: Integers) -> Domain | None:
        """Return the domain of `other` in the variables of `one`, if products are equal."""
        if one.bound == other.bound and set(one.factors) == set(other.factors):
            return other.domain
        fresh = freshened(other, self.names)
        inner = inner_names(fresh.factors) | fresh.bound
        best: Domain | None = None
        for values in candidates(one, fresh):
            check_time()
            if not _is_bijection(one.bound, values, inner):
                continue
            domain = replaced_domain(fresh.domain, values)
            if domain is None:
                domain = frozenset([_NEVER])
            if best is not None and len(domain & one.domain) <= len(best & one.domain):
                continue
            moved = times_atoms(Term(Fraction(1)), fresh.factors, values)
            here = known.with_facts(domain)
            if moved.coefficient == 1 and self._same_factors(
                one.factors, moved.factors, here
            ):
                best = domain
                if domain == one.domain:
                    break
        return best

    def _same_factors(self, one: Factors, other: Factors, known: Integers) -> bool:
        shared = set(one) & set(other)
        left = tuple(each for each in one if each not in shared)
        right = tuple(each for each in other if each not in shared)
        for number, pairs in enumerate(pairings(left, right)):
            if all(self.same_atom(a, b, known) for a, b in pairs):
                return True
            if number == 5:
                break
        return False

    def same_atom(self, one: Atom, other: Atom, known: Integers) -> bool:
        """Say whether two atoms are shown to be equal."""
        if one == other:
            return True
        match one, other:
            case Read(), Read():
                pairs = zip(one.index, other.index, strict=True)
                return one.name == other.name and all(known.equal(a, b) for a, b in pairs)
            case Real(), Real():
                return known.equal(one.size, other.size)
            case Apply(), Apply():
                arguments = zip(one.arguments, other.arguments, strict=True)
                return one.name == other.name and all(
                    self.equal(a, b, known) for a, b in arguments
                )
            case Base(), Base():
                return self.equal(one.base, other.base, known)
            case Largest(), Largest():
                return self.same_set(one, other, known)
        return False

    # -- sets ----------------------------------------------------------------------------

    def same_set(self, one: Largest, other: Largest, known: Integers) -> bool:
        """Say whether two sets are shown to have the same values."""
        self.depth += 1
        try:
            return self.depth < MOST_DEPTH and self._same_set(one, other, known)
        finally:
            self.depth -= 1

    def _same_set(self, one: Largest, other: Largest, known: Integers) -> bool:
        groups: list[tuple[Element, list[Domain], list[Domain]]] = []
        for side, elements in ((1, one.elements), (2, other.elements)):
            for element in elements:
                element = self._tidied_element(element, known)
                for group in groups:
                    domain = self._mapped_element(group[0], element, known)
                    if domain is not None:
                        group[side].append(domain)  # type: ignore[union-attr]
                        break
                else:
                    groups.append((element, [], []))
                    groups[-1][side].append(element.domain)  # type: ignore[union-attr]
        return all(same_union(known, left, right) for _, left, right in groups)

    def _tidied_element(self, element: Element, known: Integers) -> Element:
        """Eliminate what an equation fixes and what the body does not mention."""
        fixed = _fixed(Term(Fraction(1), element.bound, element.domain))
        if fixed is not None:
            name, value = fixed
            inside = Element(element.bound - {name}, element.domain, element.body)
            made = replaced_element(inside, {name: value})
            return element if made is None else self._tidied_element(made, known)
        body = self.tidy(element.body, known.with_facts(element.domain))
        names = frozenset().union(*(free_in_term(term) for term in body.terms))
        bound, domain = element.bound, element.domain
        for name in sorted(bound - names):
            less = eliminated(domain, name)
            if less is not None:
                bound, domain = bound - {name}, less
        return Element(bound, domain, body)

    def _mapped_element(
        self, one: Element, other: Element, known: Integers
    ) -> Domain | None:
        if one.bound == other.bound and one.body == other.body:
            return other.domain
        fresh = fresh_element(other, self.names)
        inner = fresh.bound.union(
            *(term.bound | inner_names(term.factors) for term in fresh.body.terms)
        )
        best: Domain | None = None
        for values in element_candidates(one, fresh):
            check_time()
            if not _is_bijection(one.bound, values, inner):
                continue
            moved = replaced_element(Element(frozenset(), fresh.domain, fresh.body), values)
            if moved is None:
                continue
            if best is not None and len(moved.domain & one.domain) <= len(
                best & one.domain
            ):
                continue
            if self.equal(one.body, moved.body, known.with_facts(moved.domain)):
                best = moved.domain
                if best == one.domain:
                    break
        return best


_NEVER = Poly((((), -1),))


def _is_bijection(
    one: frozenset[str], values: dict[str, Size], inner: frozenset[str]
) -> bool:
    if not names_in(values.values()).isdisjoint(inner):
        return False
    return determinant_is_unit(one, values)


def count_out(
    names: Names, term: Term, name: str, known: Integers, *, thorough: bool = False
) -> Sum | None:
    """Replace a variable that only the domain mentions by the length of its range.

    Args:
        names: Where names come from.
        term: The term.
        name: The variable.
        known: What is known.
        thorough: Leave out bounds that the others imply.
    """
    bounds = [each for each in term.domain if name in symbols(each)]
    rest = term.domain - set(bounds)
    here = known.with_facts(rest)
    if len(bounds) > 2 and thorough:
        bounds = _needed(bounds, here)
    parts = [linear_in(each, name) for each in bounds]
    if sorted(str(part[0]) for part in parts if part) != ["-1", "1"] or None in parts:
        return None
    length = bounds[0] + bounds[1] + 1
    if not here.implied(length):
        return None
    kept = Term(term.coefficient, term.bound - {name}, rest, term.factors)
    return normal_form.times(names, Sum((kept,)), real(length))


def _needed(bounds: list[Poly], known: Integers) -> list[Poly]:
    """Return bounds of a variable without those that the others imply."""
    for each in sorted(bounds, key=lambda bound: (-len(bound.terms), str(bound))):
        others = [other for other in bounds if other != each]
        if len(others) >= 2 and known.with_facts(others).implied(each):
            bounds = others
    return bounds


def _names(atom: Atom) -> frozenset[str]:
    return free_in_term(Term(Fraction(1), factors=((atom, Fraction(1)),)))


def _fixed(term: Term) -> tuple[str, Size] | None:
    """Return a bound variable and the value that two opposite guards give it."""
    for guard in sorted(term.domain, key=str):
        if -guard in term.domain:
            for name in sorted(symbols(guard) & term.bound):
                parts = linear_in(guard, name)
                if parts is not None and parts[0] in (1, -1):
                    return name, parts[1] * -parts[0]
    return None


def eliminated(domain: Domain, name: str) -> Domain | None:
    """Return the guards that say that some value of a variable fulfils a domain.

    Exact, because every coefficient of the variable is ±1; None if one is not.
    """
    kept: set[Poly] = set()
    lower: list[Size] = []
    upper: list[Size] = []
    for guard in domain:
        parts = linear_in(guard, name)
        if parts is None or parts[0] not in (0, 1, -1):
            return None
        if parts[0] == 0:
            kept.add(guard)
        else:
            (lower if parts[0] == 1 else upper).append(parts[1])
    for one in lower:
        for other in upper:
            both = one + other
            if isinstance(both, Poly):
                kept.add(both)
            elif both < 0:
                return None
    return frozenset(kept)


def atoms_of(sums: Iterable[Sum]) -> Iterator[Atom]:
    """Yield the atoms of sums that no variable is bound around."""
    for one in sums:
        for term in one.terms:
            for atom, _ in term.factors:
                if _names(atom).isdisjoint(term.bound):
                    yield atom

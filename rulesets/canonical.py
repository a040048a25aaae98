"""One name for each bound variable, so that sums built alike are equal as they stand.

The variables of a term are named by the order in which its atoms mention them, and by how
deep the term is nested. Two terms that differ in names alone often become equal; that they
do not proves nothing.
"""

from collections.abc import Iterator
from functools import lru_cache

from rulesets.scalar import (
    Apply,
    Atom,
    Base,
    Element,
    Largest,
    Read,
    Real,
    Sum,
    Term,
    collected,
    free,
    names_in,
    replaced,
    replaced_domain,
    times_atoms,
)
from rulesets.size import Poly, Size, symbol


@lru_cache(maxsize=1 << 12)
def canonical(one: Sum) -> Sum:
    """Return a sum with its bound variables renamed."""
    # A free name may be a canonical one of the term around: the names must be deeper.
    depths = (int(n[1:].split(".")[0]) for n in free(one) if n.startswith("$"))
    return _renamed(one, 1 + max(depths, default=-1))


def _renamed(one: Sum, depth: int) -> Sum:
    return collected(_term(term, depth) for term in one.terms)


def _term(term: Term, depth: int) -> Term:
    inside = tuple((_atom(atom, depth + 1), power) for atom, power in term.factors)
    values = _names(term.bound, (n for atom, _ in inside for n in _mentioned(atom)), depth)
    domain = replaced_domain(term.domain, values)
    assert domain is not None
    bound = names_in(values.values())
    return times_atoms(Term(term.coefficient, bound, domain), inside, values)


def _names(bound: frozenset[str], order: Iterator[str], depth: int) -> dict[str, Size]:
    found = [name for name in dict.fromkeys(order) if name in bound]
    found += sorted(bound - set(found))
    return {name: symbol(f"${depth}.{position}") for position, name in enumerate(found)}


def _atom(atom: Atom, depth: int) -> Atom:
    match atom:
        case Apply(name=name, arguments=arguments):
            return Apply(name, tuple(_renamed(each, depth) for each in arguments))
        case Base(base=base):
            return Base(_renamed(base, depth))
        case Largest(elements=elements):
            return Largest(tuple(dict.fromkeys(_element(each, depth) for each in elements)))
    return atom


def _element(element: Element, depth: int) -> Element:
    body = _renamed(element.body, depth + 1)
    order = (n for term in body.terms for a, _ in term.factors for n in _mentioned(a))
    values = _names(element.bound, order, depth)
    domain = replaced_domain(element.domain, values)
    assert domain is not None
    return Element(names_in(values.values()), domain, replaced(body, values))


def _mentioned(atom: Atom) -> Iterator[str]:
    """Yield the names an atom mentions, in the order it does."""
    match atom:
        case Read(index=index):
            for size in index:
                yield from _in_size(size)
        case Real(size=size):
            yield from _in_size(size)
        case Apply(arguments=arguments):
            for one in arguments:
                yield from _in_sum(one)
        case Base(base=base):
            yield from _in_sum(base)
        case Largest(elements=elements):
            for each in elements:
                yield from _in_sum(each.body)


def _in_sum(one: Sum) -> Iterator[str]:
    for term in one.terms:
        for atom, _ in term.factors:
            yield from _mentioned(atom)


def _in_size(size: Size) -> Iterator[str]:
    if isinstance(size, Poly):
        for monomial, _ in size.terms:
            for atom, _ in monomial:
                if isinstance(atom, str):
                    yield atom
                else:
                    yield from sorted(names_in([Poly(((((atom, 1),), 1),))]))

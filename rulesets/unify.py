"""Maps of bound variables that make one product of atoms another.

`candidates` solves the equations between the indices of paired atoms. What it yields is a
guess: `rulesets.decide` checks the atoms and that the map is a bijection.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import islice, permutations, product

from rulesets.scalar import (
    Apply,
    Atom,
    Base,
    Element,
    Factors,
    Largest,
    Read,
    Real,
    Sum,
    Term,
)
from rulesets.size import Poly, Size, divide, substitute, symbol, symbols

MOST = 48
"""How many guesses are tried for one pair."""

type Equation = tuple[Size, Size]
type Skeleton = tuple[object, ...]


def skeleton(atom: Atom) -> Skeleton:
    """Return what two atoms must have in common to be equal under some map."""
    match atom:
        case Read(name=name, index=index):
            return "read", name, len(index)
        case Apply(name=name, arguments=arguments):
            return "apply", name, len(arguments)
    return (type(atom).__name__,)


def factor_skeletons(factors: Factors) -> Counter[object]:
    """Return the skeletons of factors with their powers."""
    return Counter((skeleton(atom), power) for atom, power in factors)


def candidates(one: Term, other: Term) -> Iterator[dict[str, Size]]:
    """Yield maps from the bound variables of `other` to those of `one`."""
    if len(one.bound) != len(other.bound):
        return
    if factor_skeletons(one.factors) != factor_skeletons(other.factors):
        return
    for equations in islice(_of_factors(one.factors, other.factors), MOST):
        solution = solve(equations, other.bound | inner_names(other.factors))
        if solution is not None:
            yield from completed(one.bound, other.bound, solution)


def element_candidates(one: Element, other: Element) -> Iterator[dict[str, Size]]:
    """Yield maps from the bound variables of one element of a set to another's."""
    if len(one.bound) != len(other.bound):
        return
    unknown = other.bound | frozenset().union(
        *(term.bound | inner_names(term.factors) for term in other.body.terms)
    )
    for equations in islice(of_sums(one.body, other.body), MOST):
        solution = solve(equations, unknown)
        if solution is not None:
            yield from completed(one.bound, other.bound, solution)


def completed(
    one: frozenset[str], other: frozenset[str], solution: Mapping[str, Size]
) -> Iterator[dict[str, Size]]:
    """Pair the variables that the equations leave open, in every order."""
    found = {name: solution[name] for name in other if name in solution}
    missing = sorted(other - found.keys())
    used = frozenset().union(*map(symbols, found.values()))
    unused = sorted(one - used)
    if len(unused) != len(missing):
        return
    for order in islice(permutations(unused), MOST):
        more: dict[str, Size] = {n: symbol(o) for n, o in zip(missing, order, strict=True)}
        yield {**{name: substitute(v, more) for name, v in found.items()}, **more}


def solve(equations: Iterable[Equation], unknown: frozenset[str]) -> dict[str, Size] | None:
    """Solve `left = right` for unknown names on the right; None if it cannot be.

    Equations without an unknown are left to the check that follows.
    """
    waiting = [right - left for left, right in equations]
    solution: dict[str, Size] = {}
    while True:
        waiting = [each for each in waiting if each != 0]
        if any(isinstance(each, int) for each in waiting):
            return None
        found = None
        for each in sorted(waiting, key=lambda e: len(symbols(e) & unknown)):
            found = _solved(each, unknown - solution.keys())
            if found is not None:
                break
        if found is None:
            return solution
        name, value = found
        step = {name: value}
        solution = {key: substitute(v, step) for key, v in solution.items()}
        solution[name] = value
        waiting = [substitute(each, step) for each in waiting]


def _solved(equation: Size, unknown: frozenset[str]) -> tuple[str, Size] | None:
    """Solve `equation = 0` for an unknown whose coefficient divides the rest."""
    for name in sorted(symbols(equation) & unknown):
        parts = linear_in(equation, name)
        if parts is None or parts[0] == 0:
            continue
        value = divide(-parts[1], parts[0])
        if value is not None:
            return name, value
    return None


def linear_in(size: Size, name: str) -> tuple[Size, Size] | None:
    """Return `c, rest` with `size = c·name + rest`; None if it is not linear."""
    if isinstance(size, int):
        return 0, size
    coefficient: Size = 0
    rest: Size = 0
    for monomial, number in size.terms:
        powers = dict(monomial)
        if name in powers:
            if powers.pop(name) > 1:
                return None
            rest_of = tuple(powers.items())
            part: Size = Poly(((rest_of, number),)) if rest_of else number
            coefficient = coefficient + part
            monomial = rest_of
        else:
            rest = rest + (Poly(((monomial, number),)) if monomial else number)
        if any(not isinstance(a, str) and name in symbols(_one(a)) for a, _ in monomial):
            return None
    return coefficient, rest


def _one(atom: object) -> Poly:
    return Poly(((((atom, 1),), 1),))  # type: ignore[arg-type]


def determinant_is_unit(one: frozenset[str], values: Mapping[str, Size]) -> bool:
    """Say whether a map is a bijection of integers: affine with determinant ±1."""
    columns = sorted(one)
    matrix: list[list[Fraction]] = []
    for _, value in sorted(values.items()):
        row = []
        for name in columns:
            parts = linear_in(value, name)
            if parts is None or not isinstance(parts[0], int):
                return False
            row.append(Fraction(parts[0]))
        matrix.append(row)
    return len(matrix) == len(columns) and abs(_determinant(matrix)) == 1


def _determinant(matrix: list[list[Fraction]]) -> Fraction:
    result = Fraction(1)
    for column in range(len(matrix)):
        pivot = next((r for r in range(column, len(matrix)) if matrix[r][column]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != column:
            matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
            result = -result
        result *= matrix[column][column]
        for row in range(column + 1, len(matrix)):
            factor = matrix[row][column] / matrix[column][column]
            for at in range(column, len(matrix)):
                matrix[row][at] -= factor * matrix[column][at]
    return result


# -- equations ---------------------------------------------------------------------------


def pairings(one: Factors, other: Factors) -> Iterator[list[tuple[Atom, Atom]]]:
    """Yield the ways to pair factors with the same skeleton and power."""
    if not one:
        if not other:
            yield []
        return
    (atom, power), *rest = one
    for position, (candidate, candidate_power) in enumerate(other):
        if power == candidate_power and skeleton(atom) == skeleton(candidate):
            remaining = (*other[:position], *other[position + 1 :])
            for pairs in pairings(tuple(rest), remaining):
                yield [(atom, candidate), *pairs]


def _of_factors(one: Factors, other: Factors) -> Iterator[list[Equation]]:
    for pairs in islice(pairings(one, other), MOST):
        choices = [list(islice(_of_atoms(a, b), 6)) for a, b in pairs]
        for chosen in product(*choices):
            yield [equation for part in chosen for equation in part]


def _of_atoms(one: Atom, other: Atom) -> Iterator[list[Equation]]:
    match one, other:
        case Read(index=i), Read(index=j):
            yield list(zip(i, j, strict=True))
        case Real(size=i), Real(size=j):
            yield [(i, j)]
        case Apply(arguments=xs), Apply(arguments=ys):
            parts = [list(islice(of_sums(x, y), 6)) for x, y in zip(xs, ys, strict=True)]
            for chosen in product(*parts):
                yield [equation for part in chosen for equation in part]
        case Base(base=x), Base(base=y):
            yield from of_sums(x, y)
        case Largest(elements=xs), Largest(elements=ys):
            first = next((e for e in xs if e.body.constant is None), None)
            for each in ys:
                if first is not None and each.body.constant is None:
                    yield from islice(of_sums(first.body, each.body), 6)
            if first is None:
                yield []


def of_sums(one: Sum, other: Sum) -> Iterator[list[Equation]]:
    """Yield the equations that pair the terms of `one` with terms of `other`."""
    yield from _of_terms(one.terms, other.terms)


def _of_terms(one: tuple[Term, ...], other: tuple[Term, ...]) -> Iterator[list[Equation]]:
    if not one or not other:
        yield []
        return
    first, *rest = one
    for position, term in enumerate(other):
        if factor_skeletons(first.factors) == factor_skeletons(term.factors):
            remaining = (*other[:position], *other[position + 1 :])
            for equations in islice(_of_factors(first.factors, term.factors), 6):
                for more in islice(_of_terms(tuple(rest), remaining), 6):
                    yield equations + more


def inner_names(factors: Factors) -> frozenset[str]:
    """Return the names bound inside atoms."""
    found: set[str] = set()
    for atom, _ in factors:
        match atom:
            case Apply(arguments=sums):
                pass
            case Base(base=base):
                sums = (base,)
            case Largest(elements=elements):
                sums = tuple(each.body for each in elements)
                found.update(*(each.bound for each in elements))
            case _:
                sums = ()
        for one in sums:
            for term in one.terms:
                found |= term.bound | inner_names(term.factors)
    return frozenset(found)

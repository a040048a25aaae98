"""From a layer's equations to candidates: one for each law, as terms.

Equations that differ by renaming appear once for each renaming. Those in which neither side
uses its leaves in order are dropped before any term is made. The rest are brought to their
canonical form; a subterm that both sides only pass on becomes a leaf; instances of more
general equations are dropped, and so is what fails at a second choice of sizes and at real
values: an accident of the first.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from rulesets.bank import Bank, Rows
from rulesets.enumerate import Layer
from rulesets.equation import Equation, canonical, occurrences, without_instances
from rulesets.family import Family
from rulesets.fingerprint import inputs, same, value_of
from rulesets.ground import Ground, Leaf, Node, leaves, shape_of, size, subterms
from rulesets.tensor import Shape

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
    bank: Bank, layer: Layer, progress: Callable[[int], None] | None = None
) -> Candidates:
    """Return the candidates of a layer."""
    ordered = bank.canonical(layer.lhs) | bank.canonical(layer.rhs)
    lhs, rhs = layer.lhs.take(ordered), layer.rhs.take(ordered)
    found: dict[Equation, None] = {}
    for done, equation in enumerate(_equations(bank, lhs, rhs)):
        if equation is not None and _few_constants(bank.family, equation):
            found.setdefault(equation)
        if progress is not None and done % 1000 == 0:
            progress(done)
    distinct: dict[Equation, None] = {}
    for equation in without_instances(found):
        abstracted = abstract(bank.family, equation)
        if abstracted is not None:
            distinct.setdefault(abstracted)
    general = without_instances(distinct)
    right = [each for each in general if holds_elsewhere(bank.family, each)]
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


def holds_elsewhere(family: Family, equation: Equation, seed: int = 7) -> bool:
    """Say whether both sides agree at the family's other sizes and at real values."""
    found = tuple(sorted({*leaves(equation.lhs), *leaves(equation.rhs)}, key=str))
    values = inputs(found, family.others, exact=False, seed=seed)
    one = value_of(equation.lhs, family.others, values)
    other = value_of(equation.rhs, family.others, values)
    return same(one, other)


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
            return found
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
        if members[0].shape == shape:
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

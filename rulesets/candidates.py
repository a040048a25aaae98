"""From what laws leave open of a layer to candidates: equations as general as they can be.

Open equations are brought to their canonical form, which makes renamings one. Each is then
made as general as it can be; what fails at a second choice of sizes and at real values was
an accident of the first, and what says something of constants alone is left out.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rulesets.bank import Bank, Rows
from rulesets.closure import Closure
from rulesets.enumerate import Layer
from rulesets.equation import Equation, canonical
from rulesets.family import Family
from rulesets.generalize import generalize, holds_elsewhere, idle
from rulesets.ground import Ground, Leaf, Node, leaves, subterms
from rulesets.merge_outputs import pairs

MOST_CONSTANTS = 1
"""Constants in one equation; with more, nearly all laws are arithmetic of constants."""


@dataclass(frozen=True, slots=True)
class Open:
    """An equation that laws leave open.

    Attributes:
        equation: In canonical form.
        node: Where it stands in the closure.
    """

    equation: Equation
    node: int


def open_equations(
    family: Family,
    closure: Closure,
    sample: int = 1,
    progress: Callable[[int], None] | None = None,
) -> list[Open]:
    """Return what is open, once for each renaming, the simplest first.

    Args:
        family: The family.
        closure: The equations of a layer.
        sample: Take every k-th of them.
        progress: Called with the number of equations read.
    """
    found: dict[Equation, int] = {}
    for done, node in enumerate(closure.open()[::sample].tolist()):
        equation = canonical(Equation(*closure.sides(node)))
        if equation is not None and _few_constants(family, equation):
            found.setdefault(equation, node)
        if progress is not None and done % 1000 == 0:
            progress(done)
    waiting = [Open(equation, node) for equation, node in found.items()]
    return sorted(waiting, key=lambda one: simplicity(one.equation))


def widest(family: Family, equation: Equation) -> Equation | None:
    """Return an equation in its most general form, None if it is an accident or idle."""
    if not holds_elsewhere(family, equation):
        return None
    found = generalize(family, equation)
    if found is None or idle(found, family.others) or not holds_elsewhere(family, found):
        return None
    return found


def mergeable(bank: Bank, layer: Layer) -> list[Equation]:
    """Return the equations of a layer that pair up to rules with two roots.

    Both are about outputs of one Split, whose argument uses its leaves in order.
    """
    index = np.array([-1 if one.index is None else one.index for one in bank.steps] or [-1])
    step = layer.lhs.step
    split = (step >= 0) & (index[step] >= 0) & bank.canonical(layer.lhs)
    equations = []
    for place in np.flatnonzero(split):
        one, other = layer.lhs.take(place[None]), layer.rhs.take(place[None])
        sides = [
            bank.term(*(int(c[0]) for c in (r.step, r.left, r.right))) for r in (one, other)
        ]
        equations.append(Equation(*sides))
    return [
        equation
        for pair in pairs(equations)
        if all(holds_elsewhere(bank.family, one) for one in pair)
        for equation in pair
    ]


def _term(bank: Bank, rows: Rows, place: int) -> Ground:
    return bank.term(int(rows.step[place]), int(rows.left[place]), int(rows.right[place]))


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

"""Equations as JSON: lists, so that a state file holds many of them and nothing executes.

A leaf is ``["leaf", name, group, sizes]`` (a fifth item tells its sign), an application
``["call", operator, attributes, arguments]``. A size that is a polynomial is ``{"terms":
[[[[symbol, power], ...], number], ...]}``.
"""

from typing import Any

from rulesets.equation import Equation
from rulesets.errors import RulesetsError
from rulesets.ground import Ground, Leaf, Node
from rulesets.size import Poly, Size, product, symbol, total

type Json = Any
"""Text, number, list or table of JSON."""


def to_json(equation: Equation) -> Json:
    """Return an equation as JSON."""
    return [_term(equation.lhs), _term(equation.rhs)]


def from_json(value: Json) -> Equation:
    """Read an equation.

    Raises:
        RulesetsError: The value is no equation.
    """
    match value:
        case [lhs, rhs]:
            return Equation(_read(lhs), _read(rhs))
    raise RulesetsError(f"an equation is a list of two terms; found {str(value)[:60]}")


def _term(term: Ground) -> Json:
    if isinstance(term, Leaf):
        sign = [term.sign] if term.sign != "any" else []
        sizes = [_value(size) for size in term.shape]
        return ["leaf", term.name, term.group, sizes, *sign]
    attributes: list[Json] = [[name, _value(value)] for name, value in term.attributes]
    return ["call", term.op, attributes, [_term(argument) for argument in term.arguments]]


def _value(value: object) -> Json:
    if isinstance(value, tuple):
        return [_value(one) for one in value]
    if isinstance(value, Poly):
        terms: list[Json] = [
            [[[str(atom), power] for atom, power in monomial], number]
            for monomial, number in value.terms
        ]
        return {"terms": terms}
    assert isinstance(value, int | float | str), value
    return value


def _read(value: Json) -> Ground:
    match value:
        case ["leaf", str(name), str(group), [*sizes], *sign]:
            return Leaf(name, tuple(_plain(size) for size in sizes), group, *sign)
        case ["call", str(op), [*attributes], [*arguments]]:
            pairs = tuple((str(name), _plain(given)) for name, given in attributes)
            return Node(op, pairs, tuple(map(_read, arguments)))
    raise RulesetsError(f"a term is a leaf or a call; found {str(value)[:60]}")


def _plain(value: Json) -> Any:
    if isinstance(value, list):
        return tuple(_plain(one) for one in value)
    if isinstance(value, dict):
        return _size(value["terms"])
    return value


def _size(terms: Json) -> Size:
    return total(
        product(symbol(name) for name, power in monomial for _ in range(power)) * number
        for monomial, number in terms
    )

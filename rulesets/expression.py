"""Attribute expressions: small computations over attributes, shapes and constants.

    expr := 1 | 1.5 | inf | "text" | ?p | # | [expr, ...] | [expr...] | (function expr*)

``?p`` is an attribute variable, or a tensor variable where a function wants a tensor
(``rank ?x``). Inside a spread ``(Op ...)...`` or ``[expr...]``, ``?xs...`` is the current
element of a rest variable and ``#`` its position. The functions are a closed vocabulary,
`FUNCTIONS`; they are exact on integers and on symbolic sizes.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from rulesets.errors import RuleError, ShapeError
from rulesets.match import Facts, Match, Value
from rulesets.size import Poly, Size, floor_div


@dataclass(frozen=True, slots=True)
class Number:
    """A number written out; integers and floats are told apart by the point."""

    value: int | float


@dataclass(frozen=True, slots=True)
class Text:
    """A string written out."""

    value: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """``?p``, or ``?ps...`` (each=True) for the current element of a rest variable."""

    name: str
    each: bool = False


@dataclass(frozen=True, slots=True)
class Position:
    """``#``: the position of the current element of a rest variable."""


@dataclass(frozen=True, slots=True)
class Sequenced:
    """``[a, b]``; an item may be `Each`."""

    items: tuple["Expression | Each", ...]


@dataclass(frozen=True, slots=True)
class Each:
    """``expr...`` inside a list: once for each element of the rest variable."""

    body: "Expression"


@dataclass(frozen=True, slots=True)
class Call:
    """``(function a b)``."""

    function: str
    arguments: tuple["Expression", ...]


ROUNDING = 2.5e-7
"""Relative difference below which floats count as the same number."""

type Expression = Number | Text | Parameter | Position | Sequenced | Call


@dataclass(frozen=True, slots=True)
class Function:
    """A word of the closed vocabulary.

    Attributes:
        meaning: What it returns, in English.
        arity: Fewest and most arguments; None for any number.
        compute: The meaning on values.
        on_tensor: The first argument is a tensor variable, handed over as a handle
            after the facts.
    """

    meaning: str
    arity: tuple[int, int | None]
    compute: Callable[..., Value]
    on_tensor: bool = False


def evaluate(expression: Expression, match: Match, facts: Facts) -> Value:
    """Compute an expression.

    Raises:
        ShapeError: It has no value here (unknown rank, position out of range, division
            by zero).
        RuleError: A variable is not bound; the rule is at fault.
    """
    match expression:
        case Number() | Text():
            return expression.value
        case Parameter(name=name):
            return _lookup(match.attributes, name)
        case Sequenced(items=items):
            return tuple(_item(item, match, facts) for item in items)
        case Call():
            return _call(expression, match, facts)
        case Position():
            raise RuleError("'#' stands outside a spread '(Op ...)...'")


def _lookup[T](table: Mapping[str, T], name: str) -> T:
    try:
        return table[name]
    except KeyError:
        known = ", ".join(sorted(table)) or "none"
        raise RuleError(f"variable ?{name} is not bound; bound here: {known}") from None


def _item(item: Expression | Each, match: Match, facts: Facts) -> Value:
    if isinstance(item, Each):
        raise RuleError("a rest variable has not been expanded; use Rule.at_arity")
    return evaluate(item, match, facts)


def _call(call: Call, match: Match, facts: Facts) -> Value:
    function = FUNCTIONS[call.function]
    arguments: list[object] = []
    rest = call.arguments
    if function.on_tensor:
        first = rest[0]
        assert isinstance(first, Parameter)
        arguments += [facts, _lookup(match.variables, first.name)]
        rest = rest[1:]
    arguments += [evaluate(argument, match, facts) for argument in rest]
    try:
        return function.compute(*arguments)
    except (IndexError, ZeroDivisionError, OverflowError, TypeError, ValueError) as error:
        if isinstance(error, RuleError):
            raise
        raise ShapeError(f"({call.function} ...) has no value here: {error}") from error


# -- the functions -----------------------------------------------------------------------


def _shape(facts: Facts, handle: int) -> tuple[Size, ...]:
    shape = facts.tensor(handle).shape
    if shape is None:
        raise ShapeError("the rank is unknown")
    return shape


def _rank(facts: Facts, handle: int) -> int:
    return len(_shape(facts, handle))


def _dim(facts: Facts, handle: int, axis: int) -> Size:
    """Return one dim; a negative axis counts from the end."""
    return _shape(facts, handle)[axis]


def _value(facts: Facts, handle: int) -> float:
    value = facts.scalar(handle)
    if value is None:
        raise ShapeError("not a constant with one known element")
    return value


def _dtype(facts: Facts, handle: int) -> str:
    return facts.tensor(handle).dtype


def _total(operation: Callable[..., Value]) -> Callable[..., Value]:
    """Extend a binary operation to any number of arguments."""

    def apply(first: Value, *others: Value) -> Value:
        for other in others:
            first = operation(first, other)
        return first

    return apply


def _minus(first: Value, *others: Value) -> Value:
    result: Value = -first if not others else first  # type: ignore[operator]
    for other in others:
        result = operator.sub(result, other)
    return result


def _floor(a: Size, b: int) -> Size:
    return floor_div(a, b) if isinstance(a, Poly) else a // b


def _ratio(a: float, b: float) -> float:
    return float(a) / float(b)


def _concat(*parts: tuple[Value, ...]) -> tuple[Value, ...]:
    return tuple(chain.from_iterable(parts))


def _pick(values: tuple[Value, ...], positions: tuple[int, ...]) -> tuple[Value, ...]:
    if any(position < 0 for position in positions):
        raise IndexError("negative position")
    return tuple(values[position] for position in positions)


def _inverse(permutation: tuple[int, ...]) -> tuple[int, ...]:
    result = [0] * len(permutation)
    for position, source in enumerate(permutation):
        result[source] = position
    return tuple(result)


def _set(values: tuple[Value, ...], position: int, value: Value) -> tuple[Value, ...]:
    changed = list(values)
    changed[position] = value
    return tuple(changed)


def _drop(values: tuple[Value, ...], positions: tuple[int, ...]) -> tuple[Value, ...]:
    return tuple(v for position, v in enumerate(values) if position not in positions)


def _insert(values: tuple[Value, ...], positions: tuple[int, ...], value: Value) -> Value:
    """Insert `value` so that it stands at each of `positions` of the result."""
    remaining = iter(values)
    length = len(values) + len(positions)
    return tuple(value if at in positions else next(remaining) for at in range(length))


def _zip(operation: Callable[..., Value]) -> Callable[..., Value]:
    def apply(a: tuple[Value, ...], b: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(operation(x, y) for x, y in zip(a, b, strict=True))

    return apply


def _slice(values: tuple[Value, ...], start: int, stop: int) -> tuple[Value, ...]:
    return values[start:stop]


def _product(values: Sequence[Size]) -> Size:
    result: Size = 1
    for value in values:
        result = result * value
    return result


def _sum(values: Sequence[Size]) -> Size:
    result: Size = 0
    for value in values:
        result = result + value
    return result


def _spatial_axes(rank: int) -> tuple[int, ...]:
    return tuple(range(2, rank))


def _ones_lost(before: tuple[Size, ...], after: tuple[Size, ...]) -> tuple[int, ...]:
    """Return axes of size 1 whose removal from `before` gives `after`."""
    axes, position = [], 0
    for axis, size in enumerate(before):
        left = len(before) - axis - (len(after) - position)
        matches = position < len(after) and after[position] == size
        if matches and not (size == 1 and left > 0):
            position += 1
        elif size == 1:
            axes.append(axis)
        else:
            raise ValueError("the shapes differ in more than axes of size 1")
    if position != len(after):
        raise ValueError("the shapes differ in more than axes of size 1")
    return tuple(axes)


def _aligned(shape: tuple[Size, ...], rank: int) -> tuple[Size, ...]:
    """Write ones before a shape until it has this rank, as broadcasting does."""
    if len(shape) > rank:
        raise ValueError("the rank is larger already")
    return (1,) * (rank - len(shape)) + shape


FUNCTIONS: Mapping[str, Function] = {
    "rank": Function("the number of axes of a tensor", (1, 1), _rank, True),
    "shape": Function("the sizes of a tensor", (1, 1), _shape, True),
    "dim": Function("the size of a tensor along an axis", (2, 2), _dim, True),
    "value": Function("the element of a constant with one element", (1, 1), _value, True),
    "dtype": Function("the element type of a tensor", (1, 1), _dtype, True),
    "+": Function("the sum", (1, None), _total(operator.add)),
    "-": Function("the difference, or the opposite of one number", (1, None), _minus),
    "*": Function("the product", (1, None), _total(operator.mul)),
    "/": Function("the quotient as a float", (2, 2), _ratio),
    "//": Function("the quotient rounded down", (2, 2), _floor),
    "%": Function("the remainder, of the divisor's sign", (2, 2), operator.mod),
    "int": Function("a number without its fraction", (1, 1), int),
    "min": Function("the smallest", (2, None), min),
    "max": Function("the largest", (2, None), max),
    "iota": Function("the list 0, 1, ... of this length", (1, 1), lambda n: (*range(n),)),
    "repeat": Function("a list of one value, so many times", (2, 2), lambda v, n: (v,) * n),
    "length": Function("the length of a list", (1, 1), len),
    "at": Function("the value at a position of a list", (2, 2), lambda s, i: s[i]),
    "concat": Function("lists one after the other", (1, None), _concat),
    "pick": Function("the values of a list at these positions", (2, 2), _pick),
    "inverse": Function("the inverse of a permutation", (1, 1), _inverse),
    "set": Function("a list with one value replaced", (3, 3), _set),
    "sorted": Function("a list in ascending order", (1, 1), lambda s: (*sorted(s),)),
    "drop": Function("a list without these positions", (2, 2), _drop),
    "insert": Function("a list with a value put at these positions", (3, 3), _insert),
    "slice": Function("the part of a list from a position to another", (3, 3), _slice),
    "plus": Function("the sums of two lists, value by value", (2, 2), _zip(operator.add)),
    "minus": Function("the differences, value by value", (2, 2), _zip(operator.sub)),
    "times": Function("the products, value by value", (2, 2), _zip(operator.mul)),
    "product": Function("the product of a list", (1, 1), _product),
    "sum": Function("the sum of a list", (1, 1), _sum),
    "spatial": Function("the axes from 2 on, for a rank", (1, 1), _spatial_axes),
    "ones-lost": Function(
        "axes of size 1 that only the first shape has", (2, 2), _ones_lost
    ),
    "aligned": Function("a shape with ones in front, of this rank", (2, 2), _aligned),
}


def same_number(a: object, b: object) -> bool:
    """Say whether two values are equal, floats up to two units of single precision.

    Files keep float attributes and most constants in 32 bits, so 1/6 computed here and
    1/6 read from a file differ in the last bits.
    """
    if a == b:
        return True
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same_number, a, b))
    if isinstance(a, float | int) and isinstance(b, float | int):
        inexact = isinstance(a, float) or isinstance(b, float)
        return inexact and abs(a - b) <= ROUNDING * max(abs(a), abs(b)) < math.inf
    return False

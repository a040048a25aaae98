"""Opening numbers of a rule that add up, as in a slice of a slice.

The generator finds such a law at numbers: ``Slice[1:3]`` of ``Slice[2:7]`` is
``Slice[3:5]``. Here a number on the left becomes a variable, and a number on the right
stays, becomes the same variable, or the variable plus what is missing; which of these is
true, and under which conditions, the verifier says.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from rulesets.expression import Call, Each, Expression, Number, Parameter, Sequenced
from rulesets.term import Apply, Term

ADDING = frozenset({"starts", "ends"})
"""Attributes whose numbers are offsets."""

PADS = "pads"


@dataclass(frozen=True, slots=True)
class Spot:
    """A number in an attribute.

    Attributes:
        attribute: Name of the attribute.
        index: Its place in the list that the attribute is, 0 if it is none.
        value: The number.
    """

    attribute: str
    index: int
    value: int


def spots(term: Term) -> list[Spot]:
    """Return the whole numbers in the offsets of a term, from the outside in."""
    if not isinstance(term, Apply):
        return []
    own = [
        Spot(name, index, each)
        for name, value in term.attributes
        if name in ADDING
        for index, item in enumerate(_items(value))
        for each in _numbers(item)
    ]
    return own + [spot for one in term.arguments for spot in spots(one)]


def _items(value: Expression) -> tuple[Expression | Each, ...]:
    return value.items if isinstance(value, Sequenced) else (value,)


def _numbers(value: Expression | Each) -> Iterator[int]:
    match value:
        case Number(value=int(number)):
            yield number
        case Call(arguments=arguments):
            for each in arguments:
                yield from _numbers(each)


def placed(term: Term, at: Mapping[int, Expression]) -> Term:
    """Return a term with expressions in place of some of its `spots`, by their number."""
    return _placed(term, at, iter(range(len(spots(term)))))


def _placed(term: Term, at: Mapping[int, Expression], count: Iterator[int]) -> Term:
    if not isinstance(term, Apply):
        return term
    attributes = tuple(
        (name, _written(value, at, count) if name in ADDING else value)
        for name, value in term.attributes
    )
    inner = tuple(_placed(one, at, count) for one in term.arguments)
    return replace(term, attributes=attributes, arguments=inner)


def _written[E: Expression | Each](
    value: E, at: Mapping[int, Expression], count: Iterator[int]
) -> E | Expression:
    match value:
        case Number(value=int()):
            return at.get(next(count), value)
        case Sequenced(items=items):
            return Sequenced(tuple(_written(item, at, count) for item in items))
        case Call(arguments=arguments):
            inner = tuple(_written(each, at, count) for each in arguments)
            return replace(value, arguments=inner)
    return value


def choices(left: list[Spot], opened: int, right: list[Spot], name: str) -> list[
    dict[int, Expression]
]:  # fmt: skip
    """Return what the right side may be once a number on the left is a variable.

    Args:
        left: The numbers of the left side.
        opened: Which of them became the variable.
        right: The numbers of the right side.
        name: The name of the variable.
    """
    spot = left[opened]
    others = {0, *(one.value for k, one in enumerate(left) if k != opened)}
    same = [
        k
        for k, one in enumerate(right)
        if (one.attribute, one.index) == (spot.attribute, spot.index)
    ]
    adding = [k for k, one in enumerate(right) if one.value - spot.value in others]
    equal = [k for k, one in enumerate(right) if one.value == spot.value]
    tried = [tuple(same), tuple(equal), *((k,) for k in same), *((k,) for k in adding)]
    tried = [several for several in tried if several] or [()]
    return [
        {k: _sum(name, right[k].value - spot.value) for k in several}
        for several in dict.fromkeys(tried)
    ]


def _sum(name: str, rest: int) -> Expression:
    return Parameter(name) if rest == 0 else Call("+", (Parameter(name), Number(rest)))


def summed(lhs: Term, rhs: Term, names: tuple[str, str]) -> tuple[Term, Term] | None:
    """Open two lists of paddings whose sum, place by place, is the one on the right.

    Args:
        lhs: The left side.
        rhs: The right side.
        names: Names for the two lists.

    Returns:
        Both sides over the variables; None if there are no such lists.
    """
    left, right = _lists(lhs), _lists(rhs)
    if len(left) != len(names) or len(right) != 1:
        return None
    if tuple(a + b for a, b in zip(*left, strict=False)) != right[0]:
        return None
    one, other = map(Parameter, names)
    opened = _with_lists(lhs, iter((one, other)))
    return opened, _with_lists(rhs, iter((Call("plus", (one, other)),)))


def _lists(term: Term) -> list[tuple[int, ...]]:
    if not isinstance(term, Apply):
        return []
    own = [
        tuple(n for item in value.items for n in _numbers(item))
        for name, value in term.attributes
        if name == PADS and isinstance(value, Sequenced)
    ]
    return own + [each for one in term.arguments for each in _lists(one)]


def _with_lists(term: Term, values: Iterator[Expression]) -> Term:
    if not isinstance(term, Apply):
        return term
    attributes = tuple(
        (name, next(values) if name == PADS and isinstance(value, Sequenced) else value)
        for name, value in term.attributes
    )
    inner = tuple(_with_lists(one, values) for one in term.arguments)
    return replace(term, attributes=attributes, arguments=inner)

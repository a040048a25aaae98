"""Conditions of rules: a closed vocabulary.

    condition := word argument* | expr = expr | expr != expr | expr <= expr | ...

A word's arguments are tensor variables first, then expressions. In a comparison the
parentheses of the outermost function may be left out: ``rank ?x = 2``. Each word has a
reading on facts and one in English. What is not known does not hold: a size that is
symbolic compares only if its polynomial decides it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rulesets.errors import ShapeError, SizeError
from rulesets.expression import Expression, Parameter, evaluate, same_number
from rulesets.match import Facts, Match, Value
from rulesets.size import Poly, Size, provably_different, provably_nonnegative
from rulesets.tensor import broadcast
from rulesets.term import Reader


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition.

    Attributes:
        word: A key of `WORDS`.
        tensors: The tensor variables it speaks of; ``?xs...`` is one with each=True.
        expressions: Its other arguments.
    """

    word: str
    tensors: tuple[Parameter, ...] = ()
    expressions: tuple[Expression, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the vocabulary.

    Attributes:
        english: What it says; ``{0}``, ``{1}`` are its arguments.
        tensors: How many tensor variables it takes.
        expressions: How many expressions follow.
        holds: Its reading on facts, given the handles and the values.
    """

    english: str
    tensors: int
    expressions: int
    holds: Callable[..., bool]


def holds(condition: Condition, match: Match, facts: Facts) -> bool:
    """Say whether a condition is known to hold."""
    try:
        handles = [match.variables[each.name] for each in condition.tensors]
        values = [evaluate(each, match, facts) for each in condition.expressions]
        return WORDS[condition.word].holds(facts, *handles, *values)
    except (ShapeError, SizeError):
        return False


def describe(condition: Condition) -> str:
    """Return a condition in English."""
    word = WORDS[condition.word]
    names = [f"?{each.name}" for each in condition.tensors]
    if word.tensors == 0 and word.expressions == 2:
        left, right = condition.text.split(f" {condition.word} ", 1)
        return word.english.format(left.strip(), right.strip())
    rest = condition.text.split()[1 + len(names) :]
    return word.english.format(*names, " ".join(rest))


def parse_condition(text: str) -> Condition:
    """Read one condition.

    Raises:
        TermError: The text is no condition; the error says where.
    """
    reader = Reader(text)
    first = reader.token.text
    if reader.token.kind == "name" and first in WORDS and not reader.at_function():
        return _word(reader, first)
    left = _side(reader)
    word = reader.token.text
    if word not in WORDS or reader.token.kind != "mark":
        raise reader.fail(
            f"a comparison or a word expected, found {word or 'the end'!r}; "
            f"possible: {' '.join(WORDS)}"
        )
    reader.expect(word)
    right = _side(reader)
    reader.end()
    return Condition(word, (), (left, right), text)


def _word(reader: Reader, name: str) -> Condition:
    reader.expect(name)
    word = WORDS[name]
    tensors = tuple(reader.parameter() for _ in range(word.tensors))
    expressions = tuple(reader.expression() for _ in range(word.expressions))
    reader.end()
    return Condition(name, tensors, expressions, reader.text)


def _side(reader: Reader) -> Expression:
    if reader.token.kind == "name" and not reader.at_function():
        raise reader.fail(
            f"unknown condition {reader.token.text!r}; possible: {' '.join(WORDS)}"
        )
    return reader.call() if reader.at_function() else reader.expression()


# -- comparisons -------------------------------------------------------------------------


def _equal(_: Facts, left: Value, right: Value) -> bool:
    return same_number(left, right)


def _unequal(_: Facts, left: Value, right: Value) -> bool:
    if isinstance(left, Poly) or isinstance(right, Poly):
        return provably_different(_size(left), _size(right))
    return not same_number(left, right)


def _size(value: Value) -> Size:
    if isinstance(value, int | Poly):
        return value
    raise ShapeError(f"{value!r} is not a size")


def _each(test: Callable[..., bool]) -> Callable[..., bool]:
    """Extend a comparison to lists: value by value, or each value with one number."""

    def check(facts: Facts, left: Value, right: Value) -> bool:
        if isinstance(left, tuple) and isinstance(right, tuple):
            pairs = zip(left, right, strict=False)
            return len(left) == len(right) and all(test(facts, a, b) for a, b in pairs)
        if isinstance(left, tuple):
            return all(test(facts, value, right) for value in left)
        if isinstance(right, tuple):
            return all(test(facts, left, value) for value in right)
        return test(facts, left, right)

    return check


@_each
def _at_most(_: Facts, left: Value, right: Value) -> bool:
    if isinstance(left, Poly) or isinstance(right, Poly):
        return provably_nonnegative(_size(right) - _size(left))
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left <= right
    return False


@_each
def _below(facts: Facts, left: Value, right: Value) -> bool:
    if isinstance(left, int | Poly) and isinstance(right, int | Poly):
        return _at_most(facts, left + 1, right)
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left < right
    return False


# -- words -------------------------------------------------------------------------------


def _scalar(facts: Facts, handle: int) -> bool:
    return facts.scalar(handle) is not None


def _varying(facts: Facts, handle: int) -> bool:
    return not facts.constant(handle)


def _nested(facts: Facts, one: int, other: int) -> bool:
    return _fits(facts, one, other) or _fits(facts, other, one)


def _every(facts: Facts, handle: int, value: Value) -> bool:
    return _elements(lambda array: array == value)(facts, handle)


def _fits(facts: Facts, small: int, large: int) -> bool:
    one, other = facts.tensor(small).shape, facts.tensor(large).shape
    return one is not None and other is not None and broadcast(one, other) == other


def _along(facts: Facts, handle: int, like: int, axis: Value) -> bool:
    """Check that `handle` broadcasts into `like` and varies along one axis at most."""
    one, other = facts.tensor(handle).shape, facts.tensor(like).shape
    if one is None or other is None or not isinstance(axis, int) or len(one) > len(other):
        return False
    axis = axis % len(other)
    offset = len(other) - len(one)
    return all(
        size == 1 or (at + offset == axis and size == other[axis])
        for at, size in enumerate(one)
    )


def _elements(test: Callable[[np.ndarray], np.ndarray]) -> Callable[..., bool]:
    def check(facts: Facts, handle: int) -> bool:
        array = facts.array(handle)
        if array is None:
            value = facts.scalar(handle)
            array = None if value is None else np.asarray(value)
        return array is not None and bool(np.all(test(array)))

    return check


def _zeros(_: Facts, values: Value) -> bool:
    return isinstance(values, tuple) and all(value == 0 for value in values)


def _moves_ones(facts: Facts, handle: int, permutation: Value) -> bool:
    """Check that a transpose only moves axes of size 1, so the elements stay in order."""
    shape = facts.tensor(handle).shape
    if shape is None or not isinstance(permutation, tuple):
        return False
    kept = [int(axis) for axis in permutation if shape[int(axis)] != 1]  # type: ignore[arg-type]
    return kept == sorted(kept)


def _finite(_: Facts, value: Value) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


WORDS: Mapping[str, Word] = {
    "=": Word("{0} equals {1}", 0, 2, _equal),
    "!=": Word("{0} differs from {1}", 0, 2, _unequal),
    "<": Word("{0} is less than {1}", 0, 2, _below),
    "<=": Word("{0} is at most {1}", 0, 2, _at_most),
    ">": Word("{0} is greater than {1}", 0, 2, lambda f, a, b: _below(f, b, a)),
    ">=": Word("{0} is at least {1}", 0, 2, lambda f, a, b: _at_most(f, b, a)),
    "const": Word("{0} depends on no input", 1, 0, lambda f, x: f.constant(x)),
    "varying": Word("{0} depends on an input", 1, 0, _varying),
    "scalar": Word("{0} is a constant with one known element", 1, 0, _scalar),
    "positive": Word(
        "every element of the constant {0} is positive", 1, 0, _elements(lambda a: a > 0)
    ),
    "nonzero": Word(
        "no element of the constant {0} is zero", 1, 0, _elements(lambda a: a != 0)
    ),
    "every": Word("every element of the constant {0} equals {1}", 1, 1, _every),
    "nested": Word("one of {0} and {1} broadcasts into the other's shape", 2, 0, _nested),
    "fits": Word("{0} broadcasts into the shape of {1}", 2, 0, _fits),
    "along": Word(
        "{0} broadcasts into the shape of {1} and varies along axis {2} only",
        2,
        1,
        _along,
    ),
    "moves-ones": Word(
        "permuting the axes of {0} by {1} moves only axes of size 1", 1, 1, _moves_ones
    ),
    "zeros": Word("every number of {0} is 0", 0, 1, _zeros),
    "finite": Word("{0} is finite", 0, 1, _finite),
}

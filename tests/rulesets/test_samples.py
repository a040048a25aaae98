"""Choices of values that show what does not follow; what follows they never deny."""

from fractions import Fraction

import pytest

from rulesets import samples
from rulesets.integers import Integers
from rulesets.size import Poly, Size, evaluate, floor_div, symbol

A, B, AT, BY = (symbol(name) for name in ("a.0", "b.1", "~1", "~2"))
RANGES = [AT, A - AT - 1, BY, B - BY - 1]

FOLLOWS: dict[str, tuple[list[Size], Size]] = {
    "sum of ranges": (RANGES, A + B - AT - BY - 2),
    "row and column in a matrix": (RANGES, A * B - AT * B - BY - 1),
    "a quotient of an index": ([AT, A * B - AT - 1], A - floor_div(AT, B) - 1),
    "equal sizes": ([A - B, B - A], A * A - B * B),
}
DOES_NOT: dict[str, tuple[list[Size], Size]] = {
    "index against another axis": (RANGES, B - AT - 1),
    "a product against a sum": (RANGES, A + B - A * B),
    "a quotient that is smaller": ([AT, A * B - AT - 1], floor_div(AT, B) - 1),
    "squares of equal sizes": ([A - B, B - A], A * A - B * B - 1),
}


def _sizes(case: tuple[list[Size], Size]) -> list[Size]:
    facts, goal = case
    return [*facts, A - 1, B - 1, -goal - 1]


@pytest.mark.parametrize("name", FOLLOWS)
def test_what_follows_is_never_denied(name: str) -> None:
    """At no choice do all facts hold and the goal fail."""
    assert not samples.where_all(_sizes(FOLLOWS[name]))


@pytest.mark.parametrize("name", DOES_NOT)
def test_what_does_not_follow_is_seen_without_a_solver(name: str) -> None:
    """Some choice fulfils the facts and not the goal."""
    assert samples.where_all(_sizes(DOES_NOT[name]))
    facts, goal = DOES_NOT[name]
    assert not Integers(facts, ["a.0", "b.1"]).implied(goal)


@pytest.mark.parametrize("number", [0, 1, 7, samples.COUNT - 1])
def test_a_choice_says_what_its_values_say(number: int) -> None:
    """A bit is set exactly where the size, evaluated at the values, is >= 0."""
    names = ("a.0", "b.1", "~1")
    env = {name: _value_at(symbol(name), number) for name in names}
    for size in (A - 2 * B, A * A * B - 7 * AT, floor_div(A + AT, 3) - B, B - 2):
        chosen = samples.where(size) >> (samples.COUNT - 1 - number) & 1
        assert chosen == (evaluate(size, env) >= 0)


def _value_at(name: Poly, number: int) -> int:
    place = samples.COUNT - 1 - number
    inside = (k for k in range(-50, 50) if samples.where(name - k) >> place & 1)
    return max(inside)


def test_weights_that_cancel_balance_everywhere() -> None:
    """A range split in two has weight 0 with the whole; at another place it has not."""
    one, whole = Fraction(1), frozenset([AT, A + B - AT - 1])
    first, second = frozenset([AT, A - AT - 1]), frozenset([AT - A, A + B - AT - 1])
    among = samples.where_all([A - 1, B - 1])
    assert not samples.unbalanced([(one, whole), (-one, first), (-one, second)], among)
    wrong = frozenset([AT - A - 1, A + B - AT - 1])
    assert samples.unbalanced([(one, whole), (-one, first), (-one, wrong)], among)


def test_a_quotient_has_no_value_where_its_divisor_is_not_positive() -> None:
    """Neither a size with such a quotient nor its opposite holds there."""
    quotient = floor_div(A, symbol("k"))
    there = samples.where(-symbol("k"))
    assert there
    assert not there & (samples.where(quotient) | samples.where(-quotient - 1))

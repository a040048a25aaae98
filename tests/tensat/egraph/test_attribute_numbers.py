"""Attributes become numbers; equal ones the same number."""

from __future__ import annotations

import pytest

from rulesets.size import symbol
from tensat.egraph.attribute_numbers import AttributeNumbers


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        pytest.param(1, 1, True, id="equal"),
        pytest.param(1, 1.0, False, id="int and float"),
        pytest.param(1, True, False, id="int and bool"),
        pytest.param((1, 2), (1, 2), True, id="tuples"),
        pytest.param((1, 2), (1.0, 2.0), False, id="tuples of other type"),
        pytest.param((), "", False, id="empty"),
        pytest.param(0.0, -0.0, False, id="zeros"),
        pytest.param(float("nan"), float("nan"), True, id="NaN"),
        pytest.param(symbol("N"), symbol("N"), True, id="symbols"),
        pytest.param(symbol("N"), symbol("M"), False, id="two symbols"),
        pytest.param("N", symbol("N"), False, id="text and symbol"),
    ],
)
def test_numbers_are_equal_when_type_and_value_are(
    first: object, second: object, same: bool
) -> None:
    """The number tells apart everything that a rule or a model could."""
    numbers = AttributeNumbers(lambda text: None)
    one, two = (numbers.number((("a", value),)) for value in (first, second))
    assert (one == two) is same
    assert (numbers.value(first) == numbers.value(second)) is same


def test_attributes_come_back() -> None:
    """A number gives back the attributes it was made for."""
    numbers = AttributeNumbers(lambda text: None)
    attributes = (("axis", 1), ("keepdims", 0))
    assert numbers.attributes(numbers.number(attributes)) == attributes


def test_values_are_stated_once() -> None:
    """Each new set of attributes becomes rows of the table, an old one none."""
    stated: list[str] = []
    numbers = AttributeNumbers(stated.append)
    number = numbers.number((("axis", 1), ("keepdims", 0)))
    numbers.number((("axis", 1), ("keepdims", 0)))
    axis = numbers.value(1)
    assert len(stated) == 2
    assert stated[0] == f'(set (attribute {number} "axis") {axis})'

"""Attributes and their values as numbers: egglog's tables hold integers only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

type FrozenAttributes = tuple[tuple[str, Any], ...]


class AttributeNumbers:
    """Numbers for sets of attributes, and for single values.

    Args:
        state: Takes the egglog statements that make values columns of the table
            ``attribute``.
    """

    def __init__(self, state: Callable[[str], None]) -> None:
        self._state = state
        self._attributes: list[FrozenAttributes] = []
        self._numbers: dict[object, int] = {}
        self._values: dict[object, int] = {}

    def attributes(self, number: int) -> FrozenAttributes:
        """The attributes with that number, sorted by name."""
        return self._attributes[number]

    def number(self, attributes: FrozenAttributes) -> int:
        """The number of attributes; new ones are stated."""
        typed = tuple((name, _typed(value)) for name, value in attributes)
        number = self._numbers.get(typed)
        if number is None:
            number = self._numbers[typed] = len(self._attributes)
            self._attributes.append(attributes)
            for name, value in typed:
                self._state(f'(set (attribute {number} "{name}") {self._value(value)})')
        return number

    def value(self, value: object) -> int:
        """The number under which a value stands in the table ``attribute``."""
        return self._value(_typed(value))

    def _value(self, typed: object) -> int:
        return self._values.setdefault(typed, len(self._values))


def _typed(value: object) -> object:
    """The value with its types, so that 1, 1.0 and True, 0.0 and -0.0 differ as keys."""
    if isinstance(value, tuple):
        return tuple(_typed(item) for item in value)
    if isinstance(value, float):
        return ("float", value.hex())
    return (type(value).__name__, value)

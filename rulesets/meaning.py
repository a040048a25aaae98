"""What an element rule is written in: sums, guards, functions, reads.

An element rule gets a `Meaning`, attributes, `Operand`s and the index of an element, and
returns the scalar that stands there. There are two meanings: `rulesets.reference` computes
with arrays of numbers, `rulesets.symbols` with normal forms.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Protocol

from rulesets.judge import is_one
from rulesets.size import Size

type Scalar = Any
type Index = tuple[Any, ...]
type ElementRule = Callable[..., Scalar]


class Operand(Protocol):
    """An argument: its shape, its element type, and its elements."""

    @property
    def shape(self) -> tuple[Size, ...]:
        """The sizes of its axes."""
        ...

    @property
    def dtype(self) -> str:
        """Its element type."""
        ...

    def __getitem__(self, index: Index, /) -> Scalar:
        """Return the element at an index."""
        ...

    def integer(self, index: Index, /) -> Any:
        """Return the element at an index as an integer that may stand in an index."""
        ...


class Meaning(Protocol):
    """The operations of an element rule. Scalars are added, subtracted and multiplied."""

    def number(self, value: Any, /) -> Scalar:
        """Return a number, or an attribute of kind float."""
        ...

    def real(self, size: Any, /) -> Scalar:
        """Return the real value of a size or index."""
        ...

    def where(self, guards: Sequence[Any], value: Scalar, other: Scalar, /) -> Scalar:
        """Return one scalar where every guard is >= 0, and the other elsewhere."""
        ...

    def sum(self, sizes: Sequence[Size], body: Callable[..., Scalar], /) -> Scalar:
        """Add up `body(k, ...)` over 0 <= k < size, one k for each size."""
        ...

    def max(
        self,
        sizes: Sequence[Size],
        body: Callable[..., Scalar],
        guards: Callable[..., Sequence[Any]] | None = None,
        /,
    ) -> Scalar:
        """Return the largest `body(k, ...)` whose guards are all >= 0."""
        ...

    def product(self, sizes: Sequence[Size], body: Callable[..., Scalar], /) -> Scalar:
        """Multiply `body(k, ...)` over 0 <= k < size."""
        ...

    def larger(self, one: Scalar, other: Scalar, /) -> Scalar:
        """Return the larger of two scalars."""
        ...

    def wrapped(self, position: Any, size: Size, /) -> Any:
        """Return a position from the front; a negative one counts from the end."""
        ...

    def divmod(self, dividend: Any, divisor: Size, /) -> tuple[Any, Any]:
        """Return quotient and remainder of an index."""
        ...

    def power(self, base: Scalar, exponent: Fraction, /) -> Scalar:
        """Return a fixed power."""
        ...

    def function(self, name: str, /, *arguments: Scalar) -> Scalar:
        """Apply a function known by name."""
        ...


def count(m: Meaning, sizes: Sequence[Any]) -> Scalar:
    """Return the real value of a product of sizes."""
    result = m.number(1)
    for size in sizes:
        result = result * m.real(size)
    return result


def over(m: Meaning, one: Scalar, other: Scalar) -> Scalar:
    """Return a quotient."""
    return one * m.power(other, Fraction(-1))


def broadcast_index(shape: Sequence[Size], index: Index) -> Index:
    """Return the index in a tensor of this shape that broadcasting gives."""
    kept = index[len(index) - len(shape) :]
    return tuple(0 if is_one(size) else at for size, at in zip(shape, kept, strict=True))


def inside(at: Any, size: Any) -> list[Any]:
    """Return the guards that say `0 <= at < size`."""
    return [at, size - at - 1]


def same(one: Any, other: Any) -> list[Any]:
    """Return the guards that say that two indices are equal."""
    return [one - other, other - one]


def smaller(m: Meaning, one: Scalar, other: Scalar) -> Scalar:
    """Return the smaller of two scalars."""
    return -m.larger(-one, -other)

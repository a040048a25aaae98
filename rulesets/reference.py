"""Operators on arrays of numbers, computed from their element rules.

Slow and plain: every index is an array that broadcasts, a sum adds an axis in front. The
arithmetic is that of the arrays: float64 is as good as exact for tests, int64 is exact for
operators without functions.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from rulesets.meaning import Index, Scalar
from rulesets.ops import OPERATORS
from rulesets.size import Size
from rulesets.tensor import Tensor

type Array = Any

_error_function = np.vectorize(math.erf, otypes=[float])


def _divided(x: Array, y: Array) -> Array:
    if np.result_type(x, y).kind in "iu":
        return np.trunc(x / y).astype(np.result_type(x, y))
    return np.divide(x, y)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "erf": _error_function,
    "sin": np.sin,
    "cos": np.cos,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,
    "div": _divided,
    "pow": np.power,
    "where": np.where,
    "equal": np.equal,
    "less": np.less,
    "greater": np.greater,
    "lessorequal": np.less_equal,
    "greaterorequal": np.greater_equal,
    "1/pi": lambda: 1 / math.pi,
}


@dataclass(frozen=True, eq=False)
class Values:
    """An argument with its values."""

    array: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its axes."""
        return tuple(self.array.shape)

    @property
    def dtype(self) -> str:
        """Its element type."""
        return str(self.array.dtype)

    def __getitem__(self, index: Index, /) -> Array:
        """Read elements; indices outside are clipped, for a guard hides what is read."""
        array = self.array.astype(np.int64) if self.dtype == "bool" else self.array
        if not index:
            return array
        limits = zip(index, array.shape, strict=True)
        # An empty axis is never read where a guard holds.
        if 0 in array.shape:
            return np.zeros(np.broadcast_shapes(*map(np.shape, index)), array.dtype)
        return array[tuple(np.clip(at, 0, size - 1) for at, size in limits)]

    def integer(self, index: Index, /) -> Array:
        """Read elements that stand in an index."""
        return self[index].astype(np.int64)


@dataclass
class Numbers:
    """The meaning on numbers.

    Attributes:
        rank: How many axes the result has.
        functions: What the functions known by name compute.
    """

    rank: int
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=lambda: FUNCTIONS)
    depth: int = 0

    def number(self, value: Any, /) -> Scalar:
        """Return a number; fractions become floats unless they are whole."""
        if isinstance(value, Fraction):
            return int(value) if value.denominator == 1 else float(value)
        return value

    def real(self, size: Any, /) -> Scalar:
        """Return the value of a size or index."""
        return size

    def where(self, guards: Sequence[Any], value: Scalar, other: Scalar, /) -> Scalar:
        """Choose between scalars."""
        holds: Any = True
        for guard in guards:
            holds = holds & (np.asarray(guard) >= 0)
        return np.where(holds, value, other)

    def _stacked(self, sizes: Sequence[Size], body: Callable[..., Scalar]) -> Array:
        """Compute a body for all k, along a new first axis."""
        ks = []
        for size in map(_number, sizes):
            self.depth += 1
            ks.append(np.arange(size).reshape(-1, *[1] * (self.rank + self.depth - 1)))
        total = self.rank + self.depth
        values = np.asarray(body(*ks))
        self.depth -= len(sizes)
        values = values.reshape((*[1] * (total - values.ndim), *values.shape))
        counts = tuple(reversed([_number(size) for size in sizes]))
        whole = np.broadcast_to(values, (*counts, *values.shape[len(counts) :]))
        return whole.reshape((math.prod(counts), *whole.shape[len(counts) :]))

    def sum(self, sizes: Sequence[Size], body: Callable[..., Scalar], /) -> Scalar:
        """Add up a body."""
        stacked = self._stacked(sizes, body)
        return stacked.sum(0, dtype=stacked.dtype)

    def product(self, sizes: Sequence[Size], body: Callable[..., Scalar], /) -> Scalar:
        """Multiply a body."""
        stacked = self._stacked(sizes, body)
        return stacked.prod(0, dtype=stacked.dtype)

    def max(
        self,
        sizes: Sequence[Size],
        body: Callable[..., Scalar],
        guards: Callable[..., Sequence[Any]] | None = None,
        /,
    ) -> Scalar:
        """Return the largest value of a body."""
        if guards is None:
            return self._stacked(sizes, body).max(0)
        return self._stacked(
            sizes, lambda *ks: self.where(guards(*ks), body(*ks), _least(body(*ks)))
        ).max(0)

    def larger(self, one: Scalar, other: Scalar, /) -> Scalar:
        """Return the larger of two."""
        return np.maximum(one, other)

    def divmod(self, dividend: Any, divisor: Any, /) -> tuple[Any, Any]:
        """Return quotient and remainder."""
        return np.floor_divide(dividend, divisor), np.remainder(dividend, divisor)

    def wrapped(self, position: Any, size: Any, /) -> Any:
        """Count negative positions from the end."""
        return np.where(position < 0, position + size, position)

    def power(self, base: Scalar, exponent: Fraction, /) -> Scalar:
        """Return a power."""
        if exponent == Fraction(1, 2):
            return np.sqrt(base)
        if exponent == -1:
            return 1 / np.asarray(base)
        return np.power(np.asarray(base, float), float(exponent))

    def function(self, name: str, /, *arguments: Scalar) -> Scalar:
        """Apply a function."""
        if name.startswith("cast "):
            return np.asarray(arguments[0]).astype(name.split()[2])
        return self.functions[name](*arguments)


def _number(size: Size) -> int:
    assert isinstance(size, int), size
    return size


def _least(values: Any) -> Any:
    dtype = np.asarray(values).dtype
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def evaluate(
    op: str,
    attributes: Mapping[str, Any],
    arrays: Sequence[Array],
    functions: Mapping[str, Callable[..., Any]] = FUNCTIONS,
) -> tuple[Array, ...]:
    """Apply an operator to arrays, one array for each of its results.

    Args:
        op: Its name.
        attributes: All of them.
        arrays: The arguments.
        functions: What the functions known by name compute.

    Raises:
        ShapeError: The operator does not apply.
    """
    operator = OPERATORS[op]
    assert operator.element is not None, op
    arguments = [Values(np.asarray(array)) for array in arrays]
    types = tuple(Tensor(one.dtype, one.shape) for one in arguments)
    results = []
    for output, tensor in enumerate(operator.infer(attributes, types)):
        shape = tuple(map(_number, tensor.shape or ()))
        index = tuple(
            np.arange(size).reshape(-1, *[1] * (len(shape) - axis - 1))
            for axis, size in enumerate(shape)
        )
        which = (output,) if output else ()
        meaning = Numbers(len(shape), functions)
        value = operator.element(meaning, attributes, arguments, index, *which)
        dtype = np.result_type(*arrays) if arrays else np.dtype(tensor.dtype)
        if tensor.dtype == "bool" or op == "Cast":
            dtype = np.dtype(tensor.dtype)
        elif op in ("Where", "Gather", "Pow"):
            dtype = np.asarray(arrays[1 if op == "Where" else 0]).dtype
        results.append(np.broadcast_to(value, shape).astype(dtype))
    return tuple(results)

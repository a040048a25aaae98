"""Values of constants inside the e-graph.

Conditions of rules look at values ("is it 3?", "is every element positive?"), and constants
that rewriting creates in many ways must be recognised as one, or their number explodes. So
small constants have a value here, computed in float64 whatever their element type: ways to
compute the same real number then agree to many more digits than two different float32
numbers can, and equal *keys* mean equal numbers. Of float64 constants every bit counts.

A large constant has an `Affine` value instead: ``leaf * scale + shift`` with small scale
and shift, which is exact for what rules do to weights; any other result is a leaf of its
own. What is stored in the result is never computed here but by the runtime, at export.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rulesets.errors import ShapeError
from rulesets.ops import array_of
from rulesets.tensor import FLOATS, Tensor

LIMIT = 4096
"""Largest number of elements of a constant whose value is known to rules."""

LARGE = 1 << 22
"""Largest number of elements of a stored constant that sums are taken over here."""

SCALING = frozenset({"Add", "Sub", "Mul", "Div", "Reciprocal", "Sqrt"})
"""Operators that can leave the range of floats."""

SUMS = frozenset({"ReduceSum", "MatMul"})
"""Operators that make small constants of large ones: shifts that pass through weights."""

KEY_BITS = 36
"""Bits of the mantissa that decide whether two numbers, not of float64, are the same."""

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """``leaf * scale + shift``, broadcast to the leaf's shape.

    Attributes:
        leaf: Handle of a constant too large to have a value here.
        scale: Small array of the leaf's rank.
        shift: Small array of the leaf's rank.
        own: Whether it is a leaf: nothing but its own identity is known of it.
    """

    leaf: int
    scale: Array
    shift: Array
    own: bool = False

    def key(self, dtype: str) -> object:
        """Equal for equal values of the same element type."""
        parts = (_collapsed(self.scale), _collapsed(self.shift))
        return (self.leaf, *(array_key(part, dtype) for part in parts))


@dataclass(frozen=True, slots=True)
class Constant:
    """What is known of a class that depends on constants only.

    Attributes:
        leaves: handles of the stored constants it is made of.
        bytes: size of its value.
        value: the value, if it is known; of small constants as an array.
    """

    leaves: frozenset[int]
    bytes: int
    value: Array | Affine | None

    @property
    def array(self) -> Array | None:
        """The value of a small constant."""
        return None if isinstance(self.value, Affine) else self.value


def contradict(first: Constant, second: Constant) -> bool:
    """Whether two values are known and differ by more than rounding explains."""
    one, two = first.array, second.array
    if one is None or two is None or one.shape != two.shape:
        return False
    if one.dtype.kind != "f" or two.dtype.kind != "f":
        return not np.array_equal(one, two)
    largest = max(float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) for a in (one, two))
    return not np.allclose(one, two, rtol=1e-3, atol=1e-3 * largest, equal_nan=True)


def leaf_value(leaf: int, rank: int) -> Affine:
    """The value of a large constant of which nothing else is known."""
    ones = (1,) * rank
    return Affine(leaf, np.ones(ones), np.zeros(ones), own=True)


def array_key(array: Array, dtype: str) -> object:
    """Equal for equal values of the same element type."""
    if array.dtype.kind != "f" or dtype == "float64":
        return (dtype, array.dtype.str, array.shape, array.tobytes())
    mantissa, exponent = np.frexp(array)
    rounded = np.ldexp(np.round(np.ldexp(mantissa, KEY_BITS)), exponent - KEY_BITS)
    return (dtype, array.shape, rounded.tobytes())


def _collapsed(array: Array) -> Array:
    """The array with axes along which it does not vary cut to length 1."""
    for axis in range(array.ndim):
        first = array.take([0], axis=axis)
        if array.shape[axis] > 1 and np.array_equal(
            np.broadcast_to(first, array.shape), array
        ):
            array = first
    return array


# ---------------------------------------------------------------------- small constants
def _slice(attributes: Mapping[str, Any], x: Array) -> Array:
    index = [slice(None)] * x.ndim
    names = ("axes", "starts", "ends", "steps")
    for axis, start, end, step in zip(*(attributes[name] for name in names), strict=True):
        index[axis] = slice(start, None if step < 0 and end < 0 else end, step)
    return x[tuple(index)]


def _reduce_sum(attributes: Mapping[str, Any], x: Array) -> Array:
    axes: tuple[int, ...] = tuple(attributes["axes"])
    summed: Array = np.asarray(x.sum(axis=axes))
    return np.expand_dims(summed, axes) if attributes["keepdims"] else summed


def _floating(function: Callable[..., Array]) -> Callable[..., Array | None]:
    def evaluate(_: Mapping[str, Any], *arrays: Array) -> Array | None:
        return (
            function(*arrays) if all(array.dtype.kind == "f" for array in arrays) else None
        )

    return evaluate


EVALUATE: dict[str, Callable[..., Array | None]] = {
    "Abs": _floating(np.abs),
    "Add": _floating(np.add),
    "Concat": lambda attributes, *x: np.concatenate(x, axis=attributes["axis"]),
    "Div": _floating(np.divide),
    "Expand": lambda attributes, x: np.broadcast_to(
        x, np.broadcast_shapes(x.shape, attributes["shape"])
    ),
    "Eye": lambda attributes: array_of("Eye", attributes),
    "Fill": lambda attributes: array_of("Fill", attributes),
    "Flatten": lambda attributes, x: x.reshape(
        int(np.prod(x.shape[: attributes["axis"]])), -1
    ),
    "Identity": lambda _, x: x,
    "MatMul": _floating(np.matmul),
    "Max": _floating(np.maximum),
    "Min": _floating(np.minimum),
    "Mul": _floating(np.multiply),
    "Neg": _floating(np.negative),
    "Reciprocal": _floating(np.reciprocal),
    "ReduceSum": _reduce_sum,
    "Reshape": lambda attributes, x: x.reshape(attributes["shape"]),
    "Slice": _slice,
    "Sqrt": _floating(np.sqrt),
    "Squeeze": lambda attributes, x: np.squeeze(x, axis=tuple(attributes["axes"])),
    "Sub": _floating(np.subtract),
    "Transpose": lambda attributes, x: np.transpose(x, attributes["perm"]),
    "Unsqueeze": lambda attributes, x: np.expand_dims(x, axis=tuple(attributes["axes"])),
}


def widened(array: Array) -> Array:
    """The array as float64 if it holds floating-point numbers."""
    floating = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
    return array.astype(np.float64) if floating else array


def evaluate(
    operator: str,
    attributes: Mapping[str, Any],
    arrays: Sequence[Array | None],
    elements: int,
) -> Array | None:
    """The operator's value, or None where it is too large or not evaluated here.

    Args:
        operator: Canonical operator.
        attributes: Its attributes.
        arrays: Values of the arguments.
        elements: Number of elements of the result.
    """
    function = EVALUATE.get(operator)
    if function is None or elements > LIMIT or any(array is None for array in arrays):
        return None
    try:
        with np.errstate(all="ignore"):
            value = function(attributes, *arrays)
    except (TypeError, ValueError):
        return None
    return None if value is None else np.array(widened(np.asarray(value)), order="C")


def degenerate(
    operator: str, value: Array, arrays: Sequence[Array | None], dtype: str
) -> bool:
    """Whether computing the value would lose it: not finite, or too small, in its own type.

    Folding (x * 1e30) * 1e30 into x * inf would be right over the reals and wrong in
    floats.
    """
    if operator not in SCALING or value.dtype.kind != "f":
        return False
    sources = [array for array in arrays if array is not None]
    limits = _limits(dtype)
    if not (np.abs(value) <= limits.max).all():
        return all(np.isfinite(array).all() for array in sources)
    if ((np.abs(value) < limits.tiny) & (value != 0)).any():
        return True
    if operator in {"Add", "Sub"}:
        return False
    return bool((value == 0).any()) and not any((array == 0).any() for array in sources)


def _limits(dtype: str) -> np.finfo[Any]:
    """The range of a type; that of bfloat16 is float32's."""
    return np.finfo(dtype if dtype in {"float16", "float32", "float64"} else "float32")


# ---------------------------------------------------------------------- large constants
def affine(
    operator: str, values: Sequence[Affine | Array | None], rank: int
) -> Affine | None:
    """The value of a large result as scale and shift of a leaf, if it is one."""
    if operator == "Neg" and isinstance(values[0], Affine):
        return Affine(values[0].leaf, -values[0].scale, -values[0].shift)
    if operator not in {"Mul", "Div", "Add", "Sub"} or len(values) != 2:
        return None
    one, two = values
    if isinstance(one, Affine) and isinstance(two, np.ndarray):
        return _combine(operator, one, _aligned(two, rank))
    if (
        isinstance(two, Affine)
        and isinstance(one, np.ndarray)
        and operator in {"Mul", "Add"}
    ):
        return _combine(operator, two, _aligned(one, rank))
    return None


def _combine(operator: str, value: Affine, small: Array) -> Affine | None:
    if small.dtype.kind != "f" or small.ndim != value.scale.ndim:
        return None
    with np.errstate(all="ignore"):
        if operator == "Mul":
            scale, shift = value.scale * small, value.shift * small
        elif operator == "Div":
            scale, shift = value.scale / small, value.shift / small
        else:
            scale = value.scale
            shift = value.shift + (small if operator == "Add" else -small)
    if scale.size > LIMIT or shift.size > LIMIT:
        return None
    return Affine(value.leaf, scale, shift)


def _in_range(value: Affine, dtype: str) -> bool:
    """Whether scale and shift are numbers of a type: finite, and zero or not too small."""
    limits = _limits(dtype)
    return all(
        bool(((size <= limits.max) & ((size >= limits.tiny) | (size == 0))).all())
        for size in (np.abs(value.scale), np.abs(value.shift))
    )


def _spread_out(
    value: Array | Affine | None, data: Callable[[int], Array | None]
) -> Array | None:
    """All elements of a value, of a large one if it is not too large."""
    if not isinstance(value, Affine):
        return value
    leaf = data(value.leaf)
    return None if leaf is None else widened(leaf) * value.scale + value.shift


def _aligned(array: Array, rank: int) -> Array:
    """The array with axes of length 1 in front up to a rank."""
    return array.reshape((1,) * (rank - array.ndim) + array.shape)


def constant_value(
    operator: str,
    attributes: Mapping[str, Any],
    sources: Sequence[Constant],
    tensor: Tensor,
    handle: int,
    data: Callable[[int], Array | None],
) -> Array | Affine | None:
    """The value of an operator over constants, as far as it is kept here.

    Args:
        operator: Canonical operator.
        attributes: Its attributes.
        sources: Its arguments.
        tensor: Type of its result, of static shape.
        handle: The result's handle, by which it is known if nothing else is.
        data: Elements of a leaf by its handle; None if they are not at hand.

    Raises:
        ShapeError: In the element type the value would be lost.
    """
    assert tensor.shape is not None
    elements = int(np.prod(np.asarray(tensor.shape, dtype=np.int64)))
    if elements > LIMIT:
        if tensor.dtype not in FLOATS:
            return None
        rank = len(tensor.shape)
        known = affine(operator, [source.value for source in sources], rank)
        if known is not None and not _in_range(known, tensor.dtype):
            raise ShapeError(f"{operator} of constants leaves the range of {tensor.dtype}")
        return known or leaf_value(handle, rank)
    arrays = [source.array for source in sources]
    if operator in SUMS:
        arrays = [_spread_out(source.value, data) for source in sources]
    value = evaluate(operator, attributes, arrays, elements)
    if value is not None and degenerate(operator, value, arrays, tensor.dtype):
        raise ShapeError(f"{operator} of constants leaves the range of {tensor.dtype}")
    return value

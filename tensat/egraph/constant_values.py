"""Values of small constants inside the e-graph.

Conditions of rules look at values ("is it 3?", "is every element positive?"), so the constants
that rewriting creates need values too. Only cheap, exactly specified operators are evaluated,
and only up to ``LIMIT`` elements; everything else has no value here and is computed by the
runtime at export.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rulesets.ops import array_of

LIMIT = 4096
"""Largest number of elements of a constant whose value is known to rules."""

SCALING = frozenset({"Add", "Sub", "Mul", "Div", "Reciprocal", "Sqrt"})
"""Operators that can leave the range of floats."""

Array = np.ndarray[Any, np.dtype[Any]]


def _reshape(attributes: Mapping[str, Any], x: Array) -> Array:
    return x.reshape(attributes["shape"])


def _squeeze(attributes: Mapping[str, Any], x: Array) -> Array:
    return np.squeeze(x, axis=tuple(attributes["axes"]))


def _unsqueeze(attributes: Mapping[str, Any], x: Array) -> Array:
    return np.expand_dims(x, axis=tuple(attributes["axes"]))


def _slice(attributes: Mapping[str, Any], x: Array) -> Array:
    index = [slice(None)] * x.ndim
    parts = zip(
        attributes["axes"],
        attributes["starts"],
        attributes["ends"],
        attributes["steps"],
        strict=True,
    )
    for axis, start, end, step in parts:
        stop = None if step < 0 and end < 0 else end
        index[axis] = slice(start, stop, step)
    return x[tuple(index)]


def _floating(function: Callable[..., Array]) -> Callable[..., Array | None]:
    def evaluate(_: Mapping[str, Any], *arrays: Array) -> Array | None:
        if any(not np.issubdtype(array.dtype, np.floating) for array in arrays):
            return None
        return function(*arrays)

    return evaluate


EVALUATE: dict[str, Callable[..., Array | None]] = {
    "Abs": _floating(np.abs),
    "Add": _floating(np.add),
    "Concat": lambda attributes, *x: np.concatenate(x, axis=attributes["axis"]),
    "Div": _floating(np.divide),
    "Expand": lambda attributes, x: np.broadcast_to(x, attributes["shape"]),
    "Eye": lambda attributes: array_of("Eye", attributes),
    "Fill": lambda attributes: array_of("Fill", attributes),
    "Flatten": lambda attributes, x: x.reshape(int(np.prod(x.shape[: attributes["axis"]])), -1),
    "Identity": lambda _, x: x,
    "Max": _floating(np.maximum),
    "Min": _floating(np.minimum),
    "Mul": _floating(np.multiply),
    "Neg": _floating(np.negative),
    "Reciprocal": _floating(np.reciprocal),
    "Reshape": _reshape,
    "Slice": _slice,
    "Sqrt": _floating(np.sqrt),
    "Squeeze": _squeeze,
    "Sub": _floating(np.subtract),
    "Transpose": lambda attributes, x: np.transpose(x, attributes["perm"]),
    "Unsqueeze": _unsqueeze,
}


def evaluate(
    operator: str, attributes: Mapping[str, Any], arrays: Sequence[Array | None]
) -> Array | None:
    """The operator's value, or None where it is too large or not evaluated here."""
    function = EVALUATE.get(operator)
    if function is None or any(array is None for array in arrays):
        return None
    if operator in {"Fill", "Expand"}:
        shape = attributes["shape"]
        if not all(isinstance(size, int) for size in shape) or np.prod(shape) > LIMIT:
            return None
    try:
        with np.errstate(all="ignore"):
            value = function(attributes, *arrays)
    except (TypeError, ValueError):
        return None
    return None if value is None or value.size > LIMIT else value.copy(order="C")


def degenerate(operator: str, value: Array, arrays: Sequence[Array | None]) -> bool:
    """Whether computing the value lost it: not finite, or too small, where operands were fine.

    Folding (x * 1e30) * 1e30 into x * inf would be right over the reals and wrong in floats.
    """
    if operator not in SCALING or not np.issubdtype(value.dtype, np.floating):
        return False
    sources = [array for array in arrays if array is not None]
    if not np.isfinite(value).all():
        return all(np.isfinite(array).all() for array in sources)
    tiny = np.finfo(value.dtype).tiny
    if ((np.abs(value) < tiny) & (value != 0)).any():
        return True
    if operator in {"Add", "Sub"}:
        return False
    return bool((value == 0).any()) and not any((array == 0).any() for array in sources)

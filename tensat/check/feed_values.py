"""Random values for a model's input of a given type, name and shape."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tensat.errors import UsageError
from tensat.runtime.messages import Value


@dataclass(frozen=True, slots=True)
class Style:
    """A kind of values.

    Attributes:
        name: Its name.
        kinds: Which inputs it changes against the first style: `f`loats, `i`ntegers.
    """

    name: str
    kinds: str


NATURAL = Style("natural", "")  # by the input's name; floats are normally distributed
UNIT = Style("between 0 and 1", "f")
SMALL = Style("0 or 1", "i")
WHOLE = Style("whole numbers in floats", "f")
ONES = Style("ones", "fi")
ZEROS = Style("zeros", "fi")
EIGHT_KILOHERTZ = Style("8000 in scalars", "i")
STYLES = (NATURAL, SMALL, WHOLE, UNIT, ONES, ZEROS, EIGHT_KILOHERTZ)

_TYPES = {
    "float": "float32", "double": "float64", "float16": "float16", "bfloat16": "bfloat16",
    "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64",
    "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64",
    "bool": "bool", "string": "object",
}  # fmt: skip
_TENSOR = re.compile(r"^tensor\((\w+)\)$")
_MASK = re.compile(r"mask", re.I)
_RATE = re.compile(r"^sr$|sampl|rate", re.I)
_SEGMENT = re.compile(r"type|segment", re.I)
_POSITION = re.compile(r"position|pos_ids", re.I)
_LENGTH = re.compile(r"len|num|size", re.I)
_VOCABULARY = 100  # every table of tokens, bytes or letters is as long as that


def value(
    declared: Value, shape: tuple[int, ...], style: Style, rng: np.random.Generator
) -> np.ndarray:
    """Return an array for an input.

    Args:
        declared: Name and type.
        shape: Concrete sizes.
        style: The kind of values.
        rng: Where they come from.

    Raises:
        UsageError: The input is no tensor of numbers, booleans or strings.
    """
    match = _TENSOR.match(declared.type)
    dtype = _TYPES.get(match.group(1)) if match else None
    if dtype is None:
        raise UsageError(
            f"input {declared.name} is a {declared.type}; only tensors of numbers, "
            "booleans and strings get random values"
        )
    if dtype == "object":
        return np.array(rng.choice(["", "a", "Some words"], shape), object)
    if dtype == "bool":
        whole = bool(_MASK.search(declared.name)) or style is ONES
        return np.full(shape, True) if whole else np.asarray(rng.random(shape) < 0.5)
    if dtype == "bfloat16":
        import ml_dtypes

        return _float(shape, style, rng).astype(ml_dtypes.bfloat16)
    if np.dtype(dtype).kind == "f":
        return _float(shape, style, rng).astype(dtype)
    return _integer(declared.name, shape, style, rng).astype(dtype)


def _float(shape: tuple[int, ...], style: Style, rng: np.random.Generator) -> np.ndarray:
    if style in (ONES, ZEROS):
        return np.full(shape, float(style is ONES))
    if style is WHOLE:
        return rng.integers(0, 10, shape).astype(np.float64)
    if style is UNIT:
        return np.asarray(rng.random(shape))
    return np.asarray(rng.standard_normal(shape))


def _integer(
    name: str, shape: tuple[int, ...], style: Style, rng: np.random.Generator
) -> np.ndarray:
    if style in (ONES, ZEROS):
        return np.full(shape, int(style is ONES))
    if style is EIGHT_KILOHERTZ and not shape:
        return np.array(8000)
    if style is SMALL and shape:
        return np.asarray(rng.integers(0, 2, shape))
    return _by_name(name, shape, rng)


def _by_name(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return what an integer input of this name holds in most models."""
    if _RATE.search(name) and np.prod(shape, dtype=int) == 1:
        return np.full(shape, 16000)
    if _MASK.search(name):
        return np.ones(shape, int)
    if _SEGMENT.search(name):
        return np.zeros(shape, int)
    if _POSITION.search(name) and shape:
        return np.broadcast_to(np.arange(shape[-1]), shape)
    if not shape or _LENGTH.search(name):
        return np.ones(shape, int)
    return np.asarray(rng.integers(0, _VOCABULARY, shape))

"""Operators without arguments, and the names a graph uses for what is not an operator.

`Fill`, `Eye` and `Band` are constants written as terms, so that a rule can make a tensor
of ones or a banded matrix of a size it computes; `array_of` gives their value. `Input`,
`Constant`, `Output` and `Opaque` have no shape rule: the graph knows their types.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from rulesets.errors import ShapeError
from rulesets.judge import judged
from rulesets.meaning import ElementRule, Index, Meaning, Operand, Scalar, same
from rulesets.ops.spec import (
    ANY,
    NUMBERS,
    Attribute,
    Attributes,
    InferRule,
    Operator,
    check_arity,
    floating,
    integer,
    require,
    size_of,
    sizes,
    text,
)
from rulesets.tensor import Shape, Tensor

SPECIAL = frozenset({"Input", "Constant", "Output", "Opaque"})
_DTYPE = Attribute("dtype", "string", "float32")


def _shape_of(name: str, attributes: Attributes) -> Shape:
    if name == "Fill":
        return sizes(attributes, "shape")
    if name == "Eye":
        return (size_of(attributes, "size"),) * 2
    return (size_of(attributes, "rows"), size_of(attributes, "cols"))


def _generator(name: str, *attributes: Attribute) -> Operator:
    allowed = ANY if name == "Fill" else NUMBERS

    def infer(given: Attributes, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        check_arity(inputs, 0, 0)
        dtype, shape = text(given, "dtype"), _shape_of(name, given)
        require(
            dtype in allowed, f"dtype must be one of {', '.join(sorted(allowed))}", dtype
        )
        fits = all(isinstance(size, int) and size >= 0 for size in shape) or judged()
        require(fits, f"the sizes of {name} must be numbers >= 0", shape)
        return (Tensor(dtype, shape),)

    return Operator(name, (*attributes, _DTYPE), (0, 0), infer, _element(name))


def _element(name: str) -> ElementRule:
    def element(
        m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index
    ) -> Scalar:
        if name == "Fill":
            return m.number(a["value"])
        if name == "Eye":
            return m.where(same(i[0], i[1]), m.number(1), m.number(0))
        offset = i[1] - i[0]
        inside = [offset + a["lower"], a["upper"] - offset]
        return m.where(inside, m.number(a["value"]), m.number(0))

    return element


def _no_rule(name: str) -> InferRule:
    def infer(attributes: Attributes, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        raise ShapeError(f"operator {name!r} has no shape rule; the graph knows its type")

    return infer


OPERATORS: tuple[Operator, ...] = (
    _generator("Fill", Attribute("value", "float", 0.0), Attribute("shape", "sizes")),
    _generator("Eye", Attribute("size", "int")),
    _generator(
        "Band",
        Attribute("rows", "int"),
        Attribute("cols", "int"),
        Attribute("lower", "int"),
        Attribute("upper", "int"),
        Attribute("value", "float", 1.0),
    ),
    Operator("Input", (Attribute("name", "string"),), (0, 0), _no_rule("Input")),
    Operator("Constant", (Attribute("key", "string"),), (0, 0), _no_rule("Constant")),
    Operator("Output", (Attribute("index", "int"),), (1, 1), _no_rule("Output")),
    Operator("Opaque", (Attribute("key", "string"),), (0, None), _no_rule("Opaque")),
)
GENERATORS: Mapping[str, Operator] = MappingProxyType(
    {one.name: one for one in OPERATORS if one.name not in SPECIAL}
)


def array_of(name: str, attributes: Attributes) -> npt.NDArray[np.generic]:
    """Return the value of a generator.

    `Fill` is its value everywhere. `Eye` is the identity matrix. `Band` is [rows, cols]
    with its value where `-lower <= column - row <= upper`, and 0 elsewhere. "bfloat16"
    comes back as float32: NumPy has no such type of its own.

    Raises:
        ShapeError: The attributes fit no value, for instance a symbolic size.
    """
    (tensor,) = GENERATORS[name].infer(attributes, ())
    assert tensor.shape is not None
    shape = tuple(size for size in tensor.shape if isinstance(size, int))
    dtype = np.dtype("float32" if tensor.dtype == "bfloat16" else tensor.dtype)
    if name == "Fill":
        return np.full(shape, floating(attributes, "value"), dtype)
    if name == "Eye":
        return np.eye(*shape, dtype=dtype)
    offset = np.arange(shape[1])[None, :] - np.arange(shape[0])[:, None]
    inside = (-integer(attributes, "lower") <= offset) & (
        offset <= integer(attributes, "upper")
    )
    return np.where(inside, floating(attributes, "value"), 0.0).astype(dtype)

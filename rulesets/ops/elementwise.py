"""Operators that act on each element alone, or on elements at the same index."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from math import inf
from operator import add
from typing import Any

from rulesets.meaning import (
    ElementRule,
    Index,
    Meaning,
    Operand,
    Scalar,
    broadcast_index,
    smaller,
)
from rulesets.ops.spec import (
    ANY,
    BOOL,
    FLOATS,
    NUMBERS,
    Attribute,
    Attributes,
    Operator,
    check_arity,
    require,
    same_dtype,
    shaped,
    single,
    text,
)
from rulesets.tensor import Shape, Tensor, broadcast

_FLOAT_UNARY = (
    *("Sigmoid", "Tanh", "Erf", "Exp", "Log", "Sqrt", "Reciprocal"),
    *("HardSwish", "Softplus", "Floor", "Ceil", "Round", "Sin", "Cos"),
)
_HALF = Fraction(1, 2)


def _clip(m: Meaning, low: Any, high: Any, x: Scalar) -> Scalar:
    if low != -inf:
        x = m.larger(x, m.number(low))
    return x if high == inf else smaller(m, x, m.number(high))


def _elu(m: Meaning, a: Mapping[str, Any], x: Scalar) -> Scalar:
    zero = m.number(0)
    below = m.function("exp", smaller(m, x, zero)) - m.number(1)
    return m.larger(x, zero) + m.number(a["alpha"]) * below


def _gelu(m: Meaning, a: Mapping[str, Any], x: Scalar) -> Scalar:
    half, one = m.number(_HALF), m.number(1)
    if a["approximate"] != "none":
        cubic = x + m.number(Fraction("0.044715")) * x * x * x
        root = m.power(m.number(2) * m.function("1/pi"), _HALF)
        return half * x * (one + m.function("tanh", root * cubic))
    return half * x * (one + m.function("erf", x * m.power(m.number(2), -_HALF)))


def _named(name: str) -> Callable[..., Scalar]:
    return lambda m, a, *xs: m.function(name, *xs)


def _folded(name: str) -> Callable[..., Scalar]:
    return lambda m, a, *xs: reduce(getattr(m, name), xs)


# What stands at an index, given the attributes and the arguments' elements there.
_SCALARS: Mapping[str, Callable[..., Scalar]] = {
    "Identity": lambda m, a, x: x,
    "Relu": lambda m, a, x: m.larger(x, m.number(0)),
    "Neg": lambda m, a, x: -x,
    "Abs": lambda m, a, x: m.larger(x, -x),
    "Not": lambda m, a, x: m.number(1) - x,
    "Clip": lambda m, a, x: _clip(m, a["min"], a["max"], x),
    "LeakyRelu": lambda m, a, x: (
        m.larger(x, m.number(0)) + m.number(a["alpha"]) * smaller(m, x, m.number(0))
    ),
    "Elu": _elu,
    "HardSigmoid": lambda m, a, x: _clip(
        m, 0, 1, m.number(a["alpha"]) * x + m.number(a["beta"])
    ),
    "HardSwish": lambda m, a, x: (
        x * _clip(m, 0, 1, m.number(Fraction(1, 6)) * x + m.number(_HALF))
    ),
    "Gelu": _gelu,
    "Sigmoid": lambda m, a, x: m.power(m.number(1) + m.function("exp", -x), Fraction(-1)),
    "Softplus": lambda m, a, x: m.function("log", m.number(1) + m.function("exp", x)),
    "Sqrt": lambda m, a, x: m.power(x, _HALF),
    "Reciprocal": lambda m, a, x: m.power(x, Fraction(-1)),
    "Add": lambda m, a, x, y: x + y,
    "Sub": lambda m, a, x, y: x - y,
    "Mul": lambda m, a, x, y: x * y,
    "Sum": lambda m, a, *xs: reduce(add, xs),
    "Max": _folded("larger"),
    "Min": lambda m, a, *xs: -reduce(m.larger, [-x for x in xs]),
    "And": lambda m, a, x, y: x * y,
    "Or": lambda m, a, x, y: x + y - x * y,
    **{
        name: _named(name.lower())
        for name in (
            *("Sign", "Tanh", "Erf", "Exp", "Log", "Floor", "Ceil", "Round", "Sin", "Cos"),
            *("Div", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"),
            *("Pow", "Where"),
        )
    },
}


def _element(scalar: Callable[..., Scalar]) -> ElementRule:
    """Read every argument at the broadcast index."""

    def element(
        m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index
    ) -> Scalar:
        return scalar(m, a, *(x[broadcast_index(x.shape, i)] for x in xs))

    return element


def _cast(m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index) -> Scalar:
    (x,) = xs
    return x[i] if a["to"] == x.dtype else m.function(f"cast {x.dtype} {a['to']}", x[i])


_SIGNED = NUMBERS - {"uint8", "uint16", "uint32", "uint64"}
_UNARY: Mapping[str, tuple[frozenset[str], tuple[Attribute, ...]]] = {
    **dict.fromkeys(_FLOAT_UNARY, (FLOATS, ())),
    "Identity": (ANY, ()),
    "Relu": (_SIGNED, ()),
    "Neg": (_SIGNED, ()),
    "Abs": (NUMBERS, ()),
    "Sign": (NUMBERS, ()),
    "Not": (BOOL, ()),
    "Clip": (NUMBERS, (Attribute("min", "float", -inf), Attribute("max", "float", inf))),
    "LeakyRelu": (FLOATS, (Attribute("alpha", "float", single(0.01)),)),
    "Elu": (FLOATS, (Attribute("alpha", "float", 1.0),)),
    "HardSigmoid": (
        FLOATS,
        (Attribute("alpha", "float", single(0.2)), Attribute("beta", "float", 0.5)),
    ),
    "Gelu": (FLOATS, (Attribute("approximate", "string", "none"),)),
}
# Name, greatest arity, element types, result type, commutative.
_BROADCASTING: tuple[tuple[str, int | None, frozenset[str], str | None, bool], ...] = (
    ("Add", 2, NUMBERS, None, True),
    ("Sub", 2, NUMBERS, None, False),
    ("Mul", 2, NUMBERS, None, True),
    ("Div", 2, NUMBERS, None, False),
    ("Max", None, NUMBERS, None, True),
    ("Min", None, NUMBERS, None, True),
    ("Sum", None, FLOATS, None, True),
    ("Equal", 2, ANY, "bool", True),
    ("Less", 2, NUMBERS, "bool", False),
    ("Greater", 2, NUMBERS, "bool", False),
    ("LessOrEqual", 2, NUMBERS, "bool", False),
    ("GreaterOrEqual", 2, NUMBERS, "bool", False),
    ("And", 2, BOOL, "bool", True),
    ("Or", 2, BOOL, "bool", True),
)


def _unchanged(attributes: Attributes, shape: Shape) -> Shape:
    return shape


def _broadcast(attributes: Attributes, *shapes: Shape) -> Shape:
    return broadcast(*shapes)


def _joined(inputs: tuple[Tensor, ...]) -> Shape | None:
    shapes = [one.shape for one in inputs if one.shape is not None]
    return broadcast(*shapes) if len(shapes) == len(inputs) else None


def _pow(attributes: Attributes, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    check_arity(inputs, 2, 2)
    same_dtype(inputs[1:], NUMBERS)
    return (Tensor(same_dtype(inputs[:1], NUMBERS), _joined(inputs)),)


def _where(attributes: Attributes, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    check_arity(inputs, 3, 3)
    same_dtype(inputs[:1], BOOL)
    return (Tensor(same_dtype(inputs[1:], ANY), _joined(inputs)),)


def _cast_type(attributes: Attributes, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    check_arity(inputs, 1, 1)
    same_dtype(inputs, ANY)
    target = text(attributes, "to")
    require(target in ANY, f"to must be one of {', '.join(sorted(ANY))}", target)
    return (Tensor(target, inputs[0].shape),)


def unary(
    name: str,
    scalar: Callable[..., Scalar],
    attributes: tuple[Attribute, ...] = (),
    dtypes: frozenset[str] = FLOATS,
) -> Operator:
    """Specify an operator that acts on each element alone.

    Args:
        name: The ONNX operator's name.
        scalar: Takes a `Meaning`, the attributes and an element; returns what it becomes.
        attributes: The ONNX operator's.
        dtypes: The element types it takes.
    """
    return Operator(
        name,
        attributes,
        (1, 1),
        shaped(_unchanged, (1, 1), dtypes),
        _element(scalar),
        elementwise=True,
        data_movement=name == "Identity",
    )


OPERATORS: tuple[Operator, ...] = (
    *(
        unary(name, _SCALARS[name], attributes, dtypes)
        for name, (dtypes, attributes) in _UNARY.items()
    ),
    Operator(
        "Cast", (Attribute("to", "string"),), (1, 1), _cast_type, _cast, elementwise=True
    ),
    *(
        Operator(
            name,
            (),
            (2 if most else 1, most),
            shaped(_broadcast, (2 if most else 1, most), dtypes, result),
            _element(_SCALARS[name]),
            commutative=commutative,
            elementwise=True,
        )
        for name, most, dtypes, result, commutative in _BROADCASTING
    ),
    Operator("Pow", (), (2, 2), _pow, _element(_SCALARS["Pow"]), elementwise=True),
    Operator("Where", (), (3, 3), _where, _element(_SCALARS["Where"]), elementwise=True),
)

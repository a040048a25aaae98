"""Operators that act on each element alone, or on elements at the same index."""

from collections.abc import Mapping
from math import inf

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


def _cast(attributes: Attributes, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    check_arity(inputs, 1, 1)
    same_dtype(inputs, ANY)
    target = text(attributes, "to")
    require(target in ANY, f"to must be one of {', '.join(sorted(ANY))}", target)
    return (Tensor(target, inputs[0].shape),)


OPERATORS: tuple[Operator, ...] = (
    *(
        Operator(
            name,
            attributes,
            (1, 1),
            shaped(_unchanged, (1, 1), dtypes),
            elementwise=True,
            data_movement=name == "Identity",
        )
        for name, (dtypes, attributes) in _UNARY.items()
    ),
    Operator("Cast", (Attribute("to", "string"),), (1, 1), _cast, elementwise=True),
    *(
        Operator(
            name,
            (),
            (2 if most else 1, most),
            shaped(_broadcast, (2 if most else 1, most), dtypes, result),
            commutative=commutative,
            elementwise=True,
        )
        for name, most, dtypes, result, commutative in _BROADCASTING
    ),
    Operator("Pow", (), (2, 2), _pow, elementwise=True),
    Operator("Where", (), (3, 3), _where, elementwise=True),
)

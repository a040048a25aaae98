"""The specification of an operator, and typed access to attributes.

A *canonical operator* is an ONNX operator whose parameter inputs (axes, pads, target
shapes, bounds) are attributes, and whose axes are counted from the front. Its meaning
does not depend on an opset. A specification is written once: a shape rule, and an element
rule that says which scalar stands at an index (see `rulesets.meaning`).

A float attribute is always a float32 value, as in ONNX, so that 0.2 written by hand and
0.2 read from a model are one value.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from struct import error as struct_error
from struct import pack, unpack
from typing import Final

from rulesets.errors import AttributeValueError, ShapeError
from rulesets.meaning import ElementRule
from rulesets.size import Poly, Size
from rulesets.tensor import FLOATS, INTEGERS, NUMBERS, Shape, Tensor

type Value = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[Size, ...]
type Attributes = Mapping[str, Value]
type Frozen = tuple[tuple[str, Value], ...]
type InferRule = Callable[[Attributes, tuple[Tensor, ...]], tuple[Tensor, ...]]
type ShapeRule = Callable[..., Shape]

ANY: Final = NUMBERS | {"bool"}
BOOL: Final = frozenset({"bool"})
INDICES: Final = frozenset({"int32", "int64"})
KINDS: Final = ("int", "float", "ints", "floats", "string", "sizes")

__all__ = [
    "ANY",
    "BOOL",
    "FLOATS",
    "INDICES",
    "INTEGERS",
    "NUMBERS",
    "Attribute",
    "Attributes",
    "Frozen",
    "Operator",
    "Value",
    "axis_in",
    "complete",
    "floating",
    "freeze",
    "integer",
    "integers",
    "require",
    "same_dtype",
    "shaped",
    "single",
    "size_of",
    "sizes",
    "text",
]


@dataclass(frozen=True)
class Attribute:
    """An attribute an operator has.

    Attributes:
        name: Its name.
        kind: One of `KINDS`.
        default: The value where it is not given; None if it must be given.
    """

    name: str
    kind: str
    default: Value | None = None


@dataclass(frozen=True)
class Operator:
    """What an operator means.

    Attributes:
        name: Its name, the ONNX operator's where there is one.
        attributes: All attributes it has.
        arity: The least and the greatest number of arguments; None is no limit.
        infer: The shape rule: complete attributes and argument types in, result types out.
            It raises `ShapeError` when the operator does not apply. Where sizes are
            symbolic, broadcasting axes are taken to fit, and axes that must be equal must
            be known to be.
        element: The element rule: a meaning, complete attributes, arguments, an index; for
            an operator with several results also which one. None: nothing can be said.
        commutative: Whether the arguments may be permuted.
        elementwise: Whether each result element depends only on the argument elements at
            the same, broadcast, index.
        data_movement: Whether every result element is one element of an argument.
    """

    name: str
    attributes: tuple[Attribute, ...]
    arity: tuple[int, int | None]
    infer: InferRule
    element: ElementRule | None = None
    commutative: bool = False
    elementwise: bool = False
    data_movement: bool = False

    @cached_property
    def defaults(self) -> Mapping[str, Value]:
        """The attributes that need not be given, with their values."""
        return {one.name: one.default for one in self.attributes if one.default is not None}

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        """The kind of every attribute."""
        return {one.name: one.kind for one in self.attributes}


def complete(operator: Operator, given: Attributes) -> dict[str, Value]:
    """Return attributes with defaults filled in and values normalized.

    Args:
        operator: The operator.
        given: Some of its attributes; lists are accepted for tuples, ints for floats.

    Raises:
        AttributeValueError: An attribute is unknown, missing, or of the wrong kind.
    """
    result: dict[str, Value] = {}
    for name, value in given.items():
        kind = operator.kinds.get(name)
        if kind is None:
            known = ", ".join(operator.kinds) or "none"
            raise AttributeValueError(
                f"operator {operator.name!r} has no attribute {name!r}; it has: {known}"
            )
        result[name] = _normalized(operator.name, name, kind, value)
    for attribute in operator.attributes:
        if attribute.name not in result:
            if attribute.default is None:
                raise AttributeValueError(
                    f"operator {operator.name!r} needs attribute {attribute.name!r} "
                    f"of kind {attribute.kind}; given: {', '.join(given) or 'none'}"
                )
            result[attribute.name] = attribute.default
    return result


def freeze(attributes: Attributes) -> Frozen:
    """Return attributes as a hashable tuple in alphabetical order."""
    return tuple(sorted(attributes.items()))


def single(value: float) -> float:
    """Return the float32 nearest to a number, as a float."""
    try:
        return float(unpack("f", pack("f", value))[0])
    except (OverflowError, struct_error):
        return float("inf") if value > 0 else float("-inf")


def integer(attributes: Attributes, name: str) -> int:
    """Return an attribute of kind int."""
    value = attributes[name]
    assert isinstance(value, int), (name, value)
    return value


def size_of(attributes: Attributes, name: str) -> Size:
    """Return an attribute of kind int that may be symbolic in a proof."""
    value = attributes[name]
    assert isinstance(value, int | Poly), (name, value)
    return value


def floating(attributes: Attributes, name: str) -> float:
    """Return an attribute of kind float."""
    value = attributes[name]
    assert isinstance(value, int | float), (name, value)
    return value


def text(attributes: Attributes, name: str) -> str:
    """Return an attribute of kind string."""
    value = attributes[name]
    assert isinstance(value, str), (name, value)
    return value


def sizes(attributes: Attributes, name: str) -> tuple[Size, ...]:
    """Return an attribute of kind sizes or ints."""
    value = attributes[name]
    assert isinstance(value, tuple), (name, value)
    return value  # type: ignore[return-value]


def integers(attributes: Attributes, name: str) -> tuple[int, ...]:
    """Return an attribute of kind ints."""
    return sizes(attributes, name)  # type: ignore[return-value]


def require(condition: bool, asked: str, found: object) -> None:
    """Raise unless a condition on shapes or attributes holds.

    Raises:
        ShapeError: The condition does not hold.
    """
    if not condition:
        raise ShapeError(f"{asked}; found {_show(found)}")


def axis_in(attributes: Attributes, name: str, rank: int) -> int:
    """Return an attribute that is an axis of a tensor of the given rank.

    Raises:
        ShapeError: There is no such axis.
    """
    axis = integer(attributes, name)
    require(0 <= axis < rank, f"{name} must be at least 0 and less than rank {rank}", axis)
    return axis


def same_dtype(inputs: tuple[Tensor, ...], allowed: frozenset[str]) -> str:
    """Return the one element type of the arguments.

    Raises:
        ShapeError: They differ, or the type is not allowed.
    """
    dtype = inputs[0].dtype
    for one in inputs:
        if one.dtype != dtype or dtype not in allowed:
            raise ShapeError(
                f"element types must be one of {', '.join(sorted(allowed))}, all equal; "
                f"found {', '.join(other.dtype for other in inputs)}"
            )
    return dtype


def shaped(
    rule: ShapeRule,
    arity: tuple[int, int | None],
    dtypes: frozenset[str] = FLOATS,
    result: str | None = None,
) -> InferRule:
    """Return the `infer` of an operator with one result and arguments of one type.

    Args:
        rule: Takes the attributes and one shape per argument, returns the result's shape.
            It is not called while the rank of an argument is unknown.
        arity: As in `Operator`.
        dtypes: The element types allowed.
        result: The result's element type, None for that of the arguments.
    """
    low, high = arity

    def infer(attributes: Attributes, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        check_arity(inputs, low, high)
        dtype = same_dtype(inputs, dtypes)
        shapes = [one.shape for one in inputs]
        shape = None if None in shapes else rule(attributes, *shapes)
        return (Tensor(result or dtype, shape),)

    return infer


def check_arity(inputs: tuple[Tensor, ...], low: int, high: int | None) -> None:
    """Raise unless the number of arguments is within bounds.

    Raises:
        ShapeError: There are too few or too many arguments.
    """
    if len(inputs) < low or (high is not None and len(inputs) > high):
        most = "any number" if high is None else high
        raise ShapeError(f"expected {low} to {most} arguments; found {len(inputs)}")


def _normalized(operator: str, name: str, kind: str, value: object) -> Value:
    if kind in {"ints", "floats", "sizes"}:
        if isinstance(value, tuple | list):
            member = {"ints": "int", "floats": "float", "sizes": "size"}[kind]
            return tuple([_normalized(operator, name, member, one) for one in value])  # type: ignore[return-value]
    elif kind == "string" and isinstance(value, str):
        return value
    elif kind == "float" and isinstance(value, int | float):
        return single(value)
    elif kind in {"int", "size"} and isinstance(value, int):
        return int(value)
    elif kind == "size" and isinstance(value, Poly):
        return value  # type: ignore[return-value]
    raise AttributeValueError(
        f"attribute {name!r} of operator {operator!r} must be of kind {kind}; "
        f"found {value!r}"
    )


def _show(found: object) -> str:
    if isinstance(found, tuple):
        return f"({', '.join(map(_show, found))})"
    return str(found)

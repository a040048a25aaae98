"""Normalizations, softmax and reductions."""

from rulesets.judge import all_equal, at_least
from rulesets.ops.spec import (
    NUMBERS,
    Attribute,
    Attributes,
    Operator,
    axis_in,
    integer,
    integers,
    require,
    shaped,
    single,
)
from rulesets.tensor import Shape, broadcast

_EPSILON = Attribute("epsilon", "float", single(1e-5))
_REDUCTIONS = ("Sum", "Mean", "Max", "Min", "L2", "Prod")


def _per_channel(attributes: Attributes, x: Shape, *vectors: Shape) -> Shape:
    require(len(x) >= 2, "normalization over channels needs at least 2 axes", len(x))
    fits = all(all_equal(one, (x[1],)) for one in vectors)
    require(fits, f"each vector must have shape [{x[1]}]", vectors)
    return x


def _trailing(attributes: Attributes, x: Shape, *scales: Shape) -> Shape:
    part = x[axis_in(attributes, "axis", len(x)) :]
    fits = all(
        len(one) <= len(part) and all_equal(broadcast(part, one), part) for one in scales
    )
    require(fits, "scale and bias must broadcast to the normalized axes", scales)
    return x


def _lrn(attributes: Attributes, x: Shape) -> Shape:
    require(len(x) >= 2, "normalization across channels needs at least 2 axes", len(x))
    size = integer(attributes, "size")
    require(at_least(size, 1), "size must be at least 1", size)
    return x


def _softmax(attributes: Attributes, x: Shape) -> Shape:
    axis_in(attributes, "axis", len(x))
    return x


def _reduce(attributes: Attributes, x: Shape) -> Shape:
    axes = integers(attributes, "axes")
    fits = axes == tuple(sorted(set(axes))) and all(0 <= axis < len(x) for axis in axes)
    require(fits, f"axes must be ascending and less than rank {len(x)}", axes)
    require(bool(axes) or not x, "at least one axis to reduce", axes)
    if integer(attributes, "keepdims"):
        return tuple(1 if axis in axes else size for axis, size in enumerate(x))
    return tuple(size for axis, size in enumerate(x) if axis not in axes)


OPERATORS: tuple[Operator, ...] = (
    Operator("BatchNormalization", (_EPSILON,), (5, 5), shaped(_per_channel, (5, 5))),
    Operator("InstanceNormalization", (_EPSILON,), (3, 3), shaped(_per_channel, (3, 3))),
    Operator(
        "LayerNormalization",
        (Attribute("axis", "int"), _EPSILON),
        (2, 3),
        shaped(_trailing, (2, 3)),
    ),
    Operator(
        "RMSNormalization",
        (Attribute("axis", "int"), _EPSILON),
        (2, 2),
        shaped(_trailing, (2, 2)),
    ),
    Operator(
        "LRN",
        (
            Attribute("alpha", "float", single(1e-4)),
            Attribute("beta", "float", 0.75),
            Attribute("bias", "float", 1.0),
            Attribute("size", "int"),
        ),
        (1, 1),
        shaped(_lrn, (1, 1)),
    ),
    *(
        Operator(name, (Attribute("axis", "int"),), (1, 1), shaped(_softmax, (1, 1)))
        for name in ("Softmax", "LogSoftmax")
    ),
    *(
        Operator(
            f"Reduce{name}",
            (Attribute("axes", "ints"), Attribute("keepdims", "int", 1)),
            (1, 1),
            shaped(_reduce, (1, 1), NUMBERS),
        )
        for name in _REDUCTIONS
    ),
)

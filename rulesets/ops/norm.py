"""Normalizations, softmax and reductions."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from rulesets.judge import all_equal, at_least
from rulesets.meaning import (
    ElementRule,
    Index,
    Meaning,
    Operand,
    Scalar,
    broadcast_index,
    count,
    inside,
    over,
)
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
    size_of,
)
from rulesets.size import Size, floor_div
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
    size = size_of(attributes, "size")
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


def _mean(m: Meaning, sizes: Sequence[Size], body: Callable[..., Scalar]) -> Scalar:
    return over(m, m.sum(sizes, body), count(m, sizes))


def _normalized(
    m: Meaning, x: Operand, i: Index, axes: Sequence[int], epsilon: Any, *, centred: bool
) -> Scalar:
    """Return an element less its mean over axes, over the root of its mean square."""
    sizes = [x.shape[axis] for axis in axes]

    def at(*ks: Any) -> Scalar:
        return x[_placed(i, axes, ks)]

    mean = _mean(m, sizes, at) if centred else m.number(0)
    square = _mean(m, sizes, lambda *ks: (at(*ks) - mean) * (at(*ks) - mean))
    return (x[i] - mean) * m.power(square + m.number(epsilon), Fraction(-1, 2))


def _placed(i: Index, axes: Sequence[int], ks: Sequence[Any]) -> Index:
    """Return an index with other positions along some axes."""
    result = list(i)
    for axis, k in zip(axes, ks, strict=True):
        result[axis] = k
    return tuple(result)


def _batch_norm_at(
    m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index
) -> Scalar:
    scale, bias, mean, variance = (each[(i[1],)] for each in xs[1:])
    root = m.power(variance + m.number(a["epsilon"]), Fraction(-1, 2))
    return (xs[0][i] - mean) * root * scale + bias


def _instance_norm_at(
    m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index
) -> Scalar:
    axes = range(2, len(xs[0].shape))
    one = _normalized(m, xs[0], i, axes, a["epsilon"], centred=True)
    return one * xs[1][(i[1],)] + xs[2][(i[1],)]


def _trailing_at(*, centred: bool) -> ElementRule:
    def element(
        m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index
    ) -> Scalar:
        axes = range(a["axis"], len(i))
        result = _normalized(m, xs[0], i, axes, a["epsilon"], centred=centred)
        scale, *bias = (each[broadcast_index(each.shape, i)] for each in xs[1:])
        return result * scale + bias[0] if bias else result * scale

    return element


def _lrn_at(m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index) -> Scalar:
    x, size = xs[0], a["size"]
    before = floor_div(size - 1, 2)

    def square(k: Any) -> Scalar:
        at = i[1] + k - before
        one = x[(i[0], at, *i[2:])]
        return m.where(inside(at, x.shape[1]), one * one, m.number(0))

    mean = _mean(m, (size,), square)
    base = m.number(a["bias"]) + m.number(a["alpha"]) * mean
    return x[i] * m.function("pow", base, -m.number(a["beta"]))


def _softmax_at(
    m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index
) -> Scalar:
    x, axis = xs[0], a["axis"]
    total = m.sum(
        (x.shape[axis],), lambda k: m.function("exp", x[_placed(i, (axis,), (k,))])
    )
    return over(m, m.function("exp", x[i]), total)


def _log_softmax_at(
    m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index
) -> Scalar:
    x, axis = xs[0], a["axis"]
    total = m.sum(
        (x.shape[axis],), lambda k: m.function("exp", x[_placed(i, (axis,), (k,))])
    )
    return x[i] - m.function("log", total)


_FOLDS: Mapping[str, Callable[..., Scalar]] = {
    "Sum": lambda m, sizes, at: m.sum(sizes, at),
    "Mean": _mean,
    "Max": lambda m, sizes, at: m.max(sizes, at),
    "Min": lambda m, sizes, at: -m.max(sizes, lambda *ks: -at(*ks)),
    "L2": lambda m, sizes, at: m.power(
        m.sum(sizes, lambda *ks: at(*ks) * at(*ks)), Fraction(1, 2)
    ),
    "Prod": lambda m, sizes, at: m.product(sizes, at),
}


def _reduce_at(name: str) -> ElementRule:
    def element(
        m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index
    ) -> Scalar:
        x, axes = xs[0], a["axes"]
        rest = iter(i)
        if not a["keepdims"]:
            i = tuple(0 if axis in axes else next(rest) for axis in range(len(x.shape)))
        sizes = [x.shape[axis] for axis in axes]
        return _FOLDS[name](m, sizes, lambda *ks: x[_placed(i, axes, ks)])

    return element


OPERATORS: tuple[Operator, ...] = (
    Operator(
        "BatchNormalization",
        (_EPSILON,),
        (5, 5),
        shaped(_per_channel, (5, 5)),
        _batch_norm_at,
    ),
    Operator(
        "InstanceNormalization",
        (_EPSILON,),
        (3, 3),
        shaped(_per_channel, (3, 3)),
        _instance_norm_at,
    ),
    Operator(
        "LayerNormalization",
        (Attribute("axis", "int"), _EPSILON),
        (2, 3),
        shaped(_trailing, (2, 3)),
        _trailing_at(centred=True),
    ),
    Operator(
        "RMSNormalization",
        (Attribute("axis", "int"), _EPSILON),
        (2, 2),
        shaped(_trailing, (2, 2)),
        _trailing_at(centred=False),
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
        _lrn_at,
    ),
    *(
        Operator(name, (Attribute("axis", "int"),), (1, 1), shaped(_softmax, (1, 1)), rule)
        for name, rule in (("Softmax", _softmax_at), ("LogSoftmax", _log_softmax_at))
    ),
    *(
        Operator(
            f"Reduce{name}",
            (Attribute("axes", "ints"), Attribute("keepdims", "int", 1)),
            (1, 1),
            shaped(_reduce, (1, 1), NUMBERS),
            _reduce_at(name),
        )
        for name in _REDUCTIONS
    ),
)

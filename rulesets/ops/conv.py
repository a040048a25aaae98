"""Convolutions and pools: operators with a window, layout [n, c, spatial…].

Attributes per spatial axis: strides, dilations, and pads (all begins, then all ends).
`auto_pad` does not exist here: paddings are explicit.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rulesets.errors import ShapeError
from rulesets.judge import all_equal, at_least, equal, judged, multiple
from rulesets.meaning import (
    ElementRule,
    Index,
    Meaning,
    Operand,
    Scalar,
    count,
    inside,
    over,
    same,
)
from rulesets.ops.spec import (
    NUMBERS,
    Attribute,
    Attributes,
    Operator,
    integer,
    integers,
    require,
    shaped,
    size_of,
)
from rulesets.size import Size, ceil_div, floor_div, symbol
from rulesets.tensor import Shape

_WINDOW = tuple(Attribute(name, "ints") for name in ("strides", "pads", "dilations"))
_GROUP = Attribute("group", "int", 1)
_POOL = (Attribute("kernel", "ints"), *_WINDOW, Attribute("ceil_mode", "int", 0))


def _check_window(attributes: Attributes, kernel: Shape, rank: int) -> None:
    spatial = rank - 2
    require(spatial >= 1, "window operators need at least 3 axes", rank)
    for name, length in (("strides", 1), ("pads", 2), ("dilations", 1)):
        found = integers(attributes, name)
        least = 0 if name == "pads" else 1
        fits = len(found) == length * spatial and all(at_least(one, least) for one in found)
        require(fits, f"{name} must be {length * spatial} numbers >= {least}", found)
    require(len(kernel) == spatial, f"kernel must have {spatial} axes", kernel)


def _window_size(
    size: Size, extent: Size, stride: Size, pads: tuple[Size, Size], *, ceil: bool
) -> Size:
    room = size + pads[0] + pads[1] - extent
    if not ceil:
        result = floor_div(room, stride) + 1
    elif judged():
        # A proof needs no more than that equal windows give equal sizes.
        result = symbol(f"ceil({size}, {extent}, {stride}, {pads[0]}, {pads[1]})")
        require(at_least(result, 1), "window must fit", (size, extent))
        return result
    else:
        result = ceil_div(room, stride) + 1
        # A window that would start in the end padding is left out; it can only happen if:
        if not at_least(extent - 1, pads[1] + stride - 1):
            if not isinstance(size, int) or not isinstance(room, int):
                raise ShapeError(f"ceil_mode needs a size that is a number; found {size}")
            assert isinstance(result, int)
            assert isinstance(stride, int)
            assert isinstance(pads[0], int)
            result -= int((result - 1) * stride >= size + pads[0])
    fits = result >= 1 if isinstance(result, int) else at_least(room, 0)
    require(fits or not isinstance(room, int), "window must fit", (size, extent))
    return result


def _windows(
    attributes: Attributes, spatial: Shape, kernel: Shape, *, ceil: bool = False
) -> Shape:
    count = len(spatial)
    pads = integers(attributes, "pads")
    strides, dilations = integers(attributes, "strides"), integers(attributes, "dilations")
    return tuple(
        _window_size(
            spatial[axis],
            (kernel[axis] - 1) * dilations[axis] + 1,
            strides[axis],
            (pads[axis], pads[count + axis]),
            ceil=ceil,
        )
        for axis in range(count)
    )


def _conv(attributes: Attributes, x: Shape, w: Shape, *bias: Shape) -> Shape:
    _check_window(attributes, w[2:], len(x))
    group = size_of(attributes, "group")
    require(at_least(group, 1), "group must be at least 1", group)
    require(
        equal(x[1], w[1] * group), "channels must be group times those of a kernel", (x, w)
    )
    require(multiple(w[0], group), f"kernels must be a multiple of group {group}", w[0])
    require(
        all(all_equal(b, (w[0],)) for b in bias), f"bias must have shape [{w[0]}]", bias
    )
    return (x[0], w[0], *_windows(attributes, x[2:], w[2:]))


def _conv_transpose(attributes: Attributes, x: Shape, w: Shape, *bias: Shape) -> Shape:
    _check_window(attributes, w[2:], len(x))
    count = len(x) - 2
    group = size_of(attributes, "group")
    extra = integers(attributes, "output_padding")
    strides, dilations = integers(attributes, "strides"), integers(attributes, "dilations")
    pads = integers(attributes, "pads")
    require(len(extra) == count, f"output_padding must be {count} numbers", extra)
    require(multiple(w[0], group), f"channels must be a multiple of group {group}", w[0])
    require(equal(x[1], w[0]), "channels must equal the kernel's first size", (x, w))
    channels = w[1] * group
    require(
        all(all_equal(b, (channels,)) for b in bias),
        f"bias must have shape [{channels}]",
        bias,
    )
    spatial = tuple(
        (x[axis + 2] - 1) * strides[axis]
        + ((w[axis + 2] - 1) * dilations[axis] + 1)
        + (extra[axis] - pads[axis] - pads[count + axis])
        for axis in range(count)
    )
    fits = all(not isinstance(size, int) or size >= 1 for size in spatial)
    require(fits, "result must not be empty", spatial)
    return (x[0], channels, *spatial)


def _pool(attributes: Attributes, x: Shape) -> Shape:
    kernel = integers(attributes, "kernel")
    _check_window(attributes, kernel, len(x))
    ceil = bool(integer(attributes, "ceil_mode"))
    return (*x[:2], *_windows(attributes, x[2:], kernel, ceil=ceil))


def _global_pool(attributes: Attributes, x: Shape) -> Shape:
    require(len(x) >= 3, "pooling needs at least 3 axes", len(x))
    return (*x[:2], *[1] * (len(x) - 2))


def _seen(a: Mapping[str, Any], o: Index, ks: Index) -> list[Any]:
    """Return the positions that a window at `o` sees at its place `ks`."""
    return [
        o[axis] * a["strides"][axis] + k * a["dilations"][axis] - a["pads"][axis]
        for axis, k in enumerate(ks)
    ]


def _inside(at: Sequence[Any], sizes: Sequence[Size]) -> list[Any]:
    return [
        guard for one, size in zip(at, sizes, strict=True) for guard in inside(one, size)
    ]


def _group_of(m: Meaning, channel: Any, per_group: Size, group: Size) -> tuple[Any, Any]:
    return (0, channel) if group == 1 else m.divmod(channel, per_group)


def _conv_at(m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index) -> Scalar:
    x, w, *bias = xs
    inputs = w.shape[1]
    group, _ = _group_of(m, i[1], floor_div(w.shape[0], a["group"]), a["group"])

    def product(c: Any, *ks: Any) -> Scalar:
        at = _seen(a, i[2:], ks)
        one = x[(i[0], group * inputs + c, *at)] * w[(i[1], c, *ks)]
        return m.where(_inside(at, x.shape[2:]), one, m.number(0))

    result = m.sum(w.shape[1:], product)
    return result + bias[0][(i[1],)] if bias else result


def _conv_transpose_at(
    m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index
) -> Scalar:
    x, w, *bias = xs
    count = len(i) - 2
    inputs = floor_div(w.shape[0], a["group"])
    group, output = _group_of(m, i[1], w.shape[1], a["group"])

    def product(c: Any, *places: Any) -> Scalar:
        ks, js = places[:count], places[count:]
        channel = group * inputs + c
        guards = [
            guard
            for axis, at in enumerate(_seen(a, js, ks))
            for guard in same(at, i[2 + axis])
        ]
        return m.where(
            guards, x[(i[0], channel, *js)] * w[(channel, output, *ks)], m.number(0)
        )

    result = m.sum((inputs, *w.shape[2:], *x.shape[2:]), product)
    return result + bias[0][(i[1],)] if bias else result


def _max_pool_at(
    m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index
) -> Scalar:
    x = xs[0]
    return m.max(
        a["kernel"],
        lambda *ks: x[(*i[:2], *_seen(a, i[2:], ks))],
        lambda *ks: _inside(_seen(a, i[2:], ks), x.shape[2:]),
    )


def _average_pool_at(
    m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index
) -> Scalar:
    x, kernel = xs[0], a["kernel"]
    sizes, pads = x.shape[2:], a["pads"]

    def value(*ks: Any) -> Scalar:
        at = _seen(a, i[2:], ks)
        return m.where(_inside(at, sizes), x[(*i[:2], *at)], m.number(0))

    def counted(*ks: Any) -> Scalar:
        at = _seen(a, i[2:], ks)
        guards = _inside(at, sizes)
        if a["count_include_pad"]:
            ends = pads[len(sizes) :]
            guards = [
                size + end - 1 - one for one, size, end in zip(at, sizes, ends, strict=True)
            ]
        return m.where(guards, m.number(1), m.number(0))

    whole = a["count_include_pad"] and not a["ceil_mode"]
    return over(
        m, m.sum(kernel, value), count(m, kernel) if whole else m.sum(kernel, counted)
    )


def _global_pool_at(*, mean: bool) -> ElementRule:
    def element(
        m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index
    ) -> Scalar:
        x, sizes = xs[0], xs[0].shape[2:]
        if not mean:
            return m.max(sizes, lambda *ks: x[(*i[:2], *ks)])
        return over(m, m.sum(sizes, lambda *ks: x[(*i[:2], *ks)]), count(m, sizes))

    return element


OPERATORS: tuple[Operator, ...] = (
    Operator("Conv", (*_WINDOW, _GROUP), (2, 3), shaped(_conv, (2, 3)), _conv_at),
    Operator(
        "ConvTranspose",
        (*_WINDOW, _GROUP, Attribute("output_padding", "ints")),
        (2, 3),
        shaped(_conv_transpose, (2, 3)),
        _conv_transpose_at,
    ),
    Operator("MaxPool", _POOL, (1, 1), shaped(_pool, (1, 1), NUMBERS), _max_pool_at),
    Operator(
        "AveragePool",
        (*_POOL, Attribute("count_include_pad", "int", 0)),
        (1, 1),
        shaped(_pool, (1, 1)),
        _average_pool_at,
    ),
    *(
        Operator(name, (), (1, 1), shaped(_global_pool, (1, 1)), _global_pool_at(mean=mean))
        for name, mean in (("GlobalAveragePool", True), ("GlobalMaxPool", False))
    ),
)

"""Convolutions and pools: operators with a window, layout [n, c, spatial…].

Attributes per spatial axis: strides, dilations, and pads (all begins, then all ends).
`auto_pad` does not exist here: paddings are explicit.
"""

from rulesets.judge import all_equal, at_least, equal
from rulesets.ops.spec import (
    NUMBERS,
    Attribute,
    Attributes,
    Operator,
    integer,
    integers,
    require,
    shaped,
)
from rulesets.size import Size, ceil_div, floor_div
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
    else:
        result = ceil_div(room, stride) + 1
        # A window that would start in the end padding is left out; it can only happen if:
        if not at_least(extent - 1, pads[1] + stride - 1):
            require(isinstance(room, int), "ceil_mode on a size that is a number", size)
            assert isinstance(result, int)
            assert isinstance(size, int)
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
    group = integer(attributes, "group")
    require(at_least(group, 1), "group must be at least 1", group)
    require(
        equal(x[1], w[1] * group), "channels must be group times those of a kernel", (x, w)
    )
    if isinstance(w[0], int) and isinstance(group, int):
        require(w[0] % group == 0, f"kernels must be a multiple of group {group}", w[0])
    require(
        all(all_equal(b, (w[0],)) for b in bias), f"bias must have shape [{w[0]}]", bias
    )
    return (x[0], w[0], *_windows(attributes, x[2:], w[2:]))


def _conv_transpose(attributes: Attributes, x: Shape, w: Shape, *bias: Shape) -> Shape:
    _check_window(attributes, w[2:], len(x))
    count = len(x) - 2
    group = integer(attributes, "group")
    extra = integers(attributes, "output_padding")
    strides, dilations = integers(attributes, "strides"), integers(attributes, "dilations")
    pads = integers(attributes, "pads")
    require(len(extra) == count, f"output_padding must be {count} numbers", extra)
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


OPERATORS: tuple[Operator, ...] = (
    Operator("Conv", (*_WINDOW, _GROUP), (2, 3), shaped(_conv, (2, 3))),
    Operator(
        "ConvTranspose",
        (*_WINDOW, _GROUP, Attribute("output_padding", "ints")),
        (2, 3),
        shaped(_conv_transpose, (2, 3)),
    ),
    Operator("MaxPool", _POOL, (1, 1), shaped(_pool, (1, 1), NUMBERS)),
    Operator(
        "AveragePool",
        (*_POOL, Attribute("count_include_pad", "int", 0)),
        (1, 1),
        shaped(_pool, (1, 1)),
    ),
    Operator("GlobalAveragePool", (), (1, 1), shaped(_global_pool, (1, 1))),
    Operator("GlobalMaxPool", (), (1, 1), shaped(_global_pool, (1, 1))),
)

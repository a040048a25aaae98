"""Pairs of convolutions: folded, enlarged, merged, grouped."""

from __future__ import annotations

import numpy as np

from tensat.ordering.net import Array, Net, Weights, two
from tensat.ordering.pair import Models, Pair

_SAME = {"pads": [1, 1, 1, 1]}


def norm_after(channels: int, side: int) -> Models:
    """Return Conv and BatchNormalization, and the Conv with both."""
    apart, folded = two()
    weights = Weights(11)
    kernel, (scale, shift, mean, variance) = _with_norm(weights, channels)
    factor = scale / np.sqrt(variance + np.float32(1e-5))
    x, y = apart.input(1, channels, side, side), folded.input(1, channels, side, side)
    x = _norm(apart, apart.conv(x, kernel), (scale, shift, mean, variance))
    y = folded.conv(y, kernel * factor[:, None, None, None], shift - mean * factor)
    return _models(apart, x, folded, y, channels, side)


def norm_before(channels: int, side: int) -> Models:
    """Return BatchNormalization and Conv, and the Conv with both."""
    apart, folded = two()
    kernel, (scale, shift, mean, variance) = _with_norm(Weights(12), channels)
    factor = scale / np.sqrt(variance + np.float32(1e-5))
    x, y = apart.input(1, channels, side, side), folded.input(1, channels, side, side)
    x = apart.conv(_norm(apart, x, (scale, shift, mean, variance)), kernel)
    bias = kernel[:, :, 0, 0] @ (shift - mean * factor)
    y = folded.conv(y, kernel * factor[None, :, None, None], bias)
    return _models(apart, x, folded, y, channels, side)


def scalars(channels: int, side: int, layers: int) -> Models:
    """Return Convs between factors and summands, and Convs that hold them."""
    apart, folded = two()
    weights = Weights(13)
    x, y = apart.input(1, channels, side, side), folded.input(1, channels, side, side)
    for _ in range(layers):
        kernel = weights.kernel(channels, channels)
        x = apart.op("Add", apart.op("Mul", x, apart.number(0.7)), apart.number(0.3))
        x = apart.conv(x, kernel)
        x = apart.op("Add", apart.op("Mul", x, apart.number(1.2)), apart.number(-0.1))
        x = apart.op("Relu", x)
        bias = 1.2 * 0.3 * kernel.sum(axis=(1, 2, 3)) - 0.1
        new = (kernel * np.float32(0.7 * 1.2), bias.astype(np.float32))
        y = folded.op("Relu", folded.conv(y, *new))
    return _models(apart, x, folded, y, channels, side)


def fire(squeezed: int, channels: int, side: int) -> Models:
    """Return a 1x1 Conv beside a 3x3 Conv, and one 3x3 Conv of both."""
    apart, merged = two()
    weights = Weights(14)
    point, square = (
        weights.kernel(channels, squeezed),
        weights.kernel(channels, squeezed, 3),
    )
    x, y = apart.input(1, squeezed, side, side), merged.input(1, squeezed, side, side)
    left = apart.op("Relu", apart.conv(x, point))
    right = apart.op("Relu", apart.conv(x, square, **_SAME))
    x = apart.op("Concat", left, right, axis=1)
    enlarged = np.pad(point, [(0, 0), (0, 0), (1, 1), (1, 1)])
    y = merged.conv(y, np.concatenate([enlarged, square]), **_SAME)
    return _models(apart, x, merged, merged.op("Relu", y), 2 * channels, side)


def parallel(inputs: int, channels: int, side: int, size: int) -> Models:
    """Return two Convs of one input, and one Conv and Split."""
    apart, merged = two()
    weights = Weights(15)
    kernels = [weights.kernel(channels, inputs, size) for _ in range(2)]
    x, y = apart.input(1, inputs, side, side), merged.input(1, inputs, side, side)
    same = {"pads": [size // 2] * 4} if size > 1 else {}
    left, right = (apart.op("Relu", apart.conv(x, each, **same)) for each in kernels)
    x = apart.op("Mul", left, right)
    wide = merged.op("Relu", merged.conv(y, np.concatenate(kernels), **same))
    halves = merged.sizes(channels, channels)
    left, right = merged.ops(2, "Split", wide, halves, axis=1)
    return _models(apart, x, merged, merged.op("Mul", left, right), channels, side)


def regrouped(channels: int, each: int, wider: int, side: int) -> Models:
    """Return a Conv in groups of `each` channels, and in groups of `wider`."""
    narrow, wide = two()
    kernel = Weights(16).kernel(channels, each, 3)
    x, y = narrow.input(1, channels, side, side), wide.input(1, channels, side, side)
    x = narrow.conv(x, kernel, group=channels // each, **_SAME)
    y = wide.conv(y, _regroup(kernel, wider), group=channels // wider, **_SAME)
    return _models(narrow, x, wide, y, channels, side)


def sum_or_concat(channels: int, side: int) -> Models:
    """Return a Conv of a Concat, and the sum of two Convs."""
    concat, added = two()
    kernel = Weights(17).kernel(channels, 2 * channels)
    x = [concat.input(1, channels, side, side) for _ in range(2)]
    y = [added.input(1, channels, side, side) for _ in range(2)]
    whole = concat.conv(concat.op("Concat", *x, axis=1), kernel)
    halves = (kernel[:, :channels], kernel[:, channels:])
    parts = [added.conv(each, half) for each, half in zip(y, halves, strict=True)]
    return _models(concat, whole, added, added.op("Add", *parts), channels, side)


def two_points(channels: int, inner: int, side: int) -> Models:
    """Return a 1x1 Conv to more channels and one back, and one Conv."""
    apart, folded = two()
    weights = Weights(18)
    up, down = weights.kernel(inner, channels), weights.kernel(channels, inner)
    x, y = apart.input(1, channels, side, side), folded.input(1, channels, side, side)
    x = apart.conv(apart.conv(x, up), down)
    product = down[:, :, 0, 0] @ up[:, :, 0, 0]
    y = folded.conv(y, product[:, :, None, None])
    return _models(apart, x, folded, y, channels, side)


def upsampling(channels: int, side: int) -> Models:
    """Return a ConvTranspose that doubles sides, and a Conv with DepthToSpace."""
    direct, moved = two()
    kernel = Weights(19).kernel(channels, channels, 2)  # [inputs, outputs, 2, 2] here
    x, y = direct.input(1, channels, side, side), moved.input(1, channels, side, side)
    x = direct.op("ConvTranspose", x, direct.weight(kernel), strides=[2, 2])
    flat = kernel.transpose(1, 2, 3, 0).reshape(4 * channels, channels, 1, 1)
    y = moved.op("DepthToSpace", moved.conv(y, flat), blocksize=2, mode="CRD")
    return _models(direct, x, moved, y, channels, 2 * side)


def gate(channels: int, side: int, inner: int) -> Models:
    """Return a channel gate before a depthwise Conv of stride 2, and after it."""
    before, after = two()
    weights = Weights(20)
    squeeze, excite = weights.kernel(inner, channels), weights.kernel(channels, inner)
    kernel = weights.kernel(channels, 1, 3)
    strided = {"group": channels, "strides": [2, 2], **_SAME}
    x, y = before.input(1, channels, side, side), after.input(1, channels, side, side)
    x = before.op("Mul", x, _gate_of(before, x, squeeze, excite))
    x = before.conv(x, kernel, **strided)
    factor = _gate_of(after, y, squeeze, excite)
    y = after.op("Mul", after.conv(y, kernel, **strided), factor)
    return _models(before, x, after, y, channels, side // 2)


def _gate_of(net: Net, x: str, squeeze: Array, excite: Array) -> str:
    pooled = net.op("GlobalAveragePool", x)
    hidden = net.op("Relu", net.conv(pooled, squeeze))
    return net.op("Sigmoid", net.conv(hidden, excite))


def _regroup(kernel: Array, wider: int) -> Array:
    """Return the weights of a grouped Conv for larger groups, zero between the old ones."""
    channels, each, height, width = kernel.shape
    result = np.zeros((channels, wider, height, width), np.float32)
    for place in range(channels):
        first = place // each * each % wider
        result[place, first : first + each] = kernel[place]
    return result


def _with_norm(weights: Weights, channels: int) -> tuple[Array, tuple[Array, ...]]:
    numbers = tuple(weights.vector(channels) for _ in range(4))
    return weights.kernel(channels, channels), numbers


def _norm(net: Net, x: str, numbers: tuple[Array, ...]) -> str:
    return net.op("BatchNormalization", x, *[net.weight(each) for each in numbers])


def _models(one: Net, x: str, other: Net, y: str, channels: int, side: int) -> Models:
    dims = [(1, channels, side, side)]
    return one.model([x], dims), other.model([y], dims)


_SMALL = {"channels": 8, "side": 6}

PAIRS = (
    Pair(
        "norm-after-conv",
        "Conv, BatchNormalization",
        "Conv",
        norm_after,
        {"channels": 64, "side": 56},
        _SMALL,
    ),
    Pair(
        "norm-before-conv",
        "BatchNormalization, Conv",
        "Conv",
        norm_before,
        {"channels": 64, "side": 56},
        _SMALL,
    ),
    Pair(
        "scalars",
        "scalars around Convs",
        "folded into the Convs",
        scalars,
        {"channels": 48, "side": 40, "layers": 3},
        {**_SMALL, "layers": 2},
    ),
    Pair(
        "fire",
        "1x1 and 3x3 Convs, Concat",
        "one 3x3 Conv",
        fire,
        {"squeezed": 16, "channels": 64, "side": 55},
        {**_SMALL, "squeezed": 4},
    ),
    *(
        Pair(
            f"parallel-{size}x{size}",
            "two Convs",
            "one Conv and Split",
            parallel,
            {"inputs": inputs, "channels": channels, "side": side, "size": size},
            {**_SMALL, "inputs": 8},
        )
        for inputs, channels, side, size in ((64, 96, 35, 3), (192, 16, 28, 1))
    ),
    *(
        Pair(
            f"groups-{each}-{wider}",
            f"groups of {each} channels",
            f"groups of {wider}",
            regrouped,
            {"channels": 128, "each": each, "wider": wider, "side": 28},
            {"channels": 32, "wider": min(wider, 32), "side": 5},
        )
        for each, wider in ((4, 16), (4, 128), (16, 32), (1, 16))
    ),
    Pair(
        "concat-conv",
        "Conv of a Concat",
        "sum of two Convs",
        sum_or_concat,
        {"channels": 64, "side": 28},
        _SMALL,
    ),
    Pair(
        "two-points",
        "1x1 Conv up, 1x1 Conv down",
        "one 1x1 Conv",
        two_points,
        {"channels": 64, "inner": 192, "side": 28},
        {**_SMALL, "inner": 12},
    ),
    Pair(
        "upsampling",
        "ConvTranspose",
        "1x1 Conv, DepthToSpace",
        upsampling,
        {"channels": 48, "side": 40},
        _SMALL,
    ),
    Pair(
        "gate",
        "gate, depthwise Conv of stride 2",
        "the Conv, then the gate",
        gate,
        {"channels": 96, "side": 56, "inner": 24},
        {**_SMALL, "inner": 4},
    ),
)
"""All of them."""

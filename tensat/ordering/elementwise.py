"""Pairs of elementwise operators and of pools."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tensat.ordering.net import Net, Weights, two
from tensat.ordering.pair import Models, Pair

type Way = Callable[[Net, str], str]
"""Adds operators to a net and returns their result."""


def elementwise(one: Way, other: Way, dims: tuple[int, ...]) -> Models:
    """Return two ways to compute something element by element."""
    first, second = two()
    x, y = one(first, first.input(*dims)), other(second, second.input(*dims))
    return first.model([x], [dims]), second.model([y], [dims])


def hard_swish(net: Net, x: str) -> str:
    """Return x clip(x + 3, 0, 6) / 6 as some exporters write it."""
    low, high = net.number(0), net.number(6)
    gate = net.op("Clip", net.op("Add", x, net.number(3)), low, high)
    return net.op("Div", net.op("Mul", x, gate), net.number(6))


def hard_sigmoid_times(net: Net, x: str) -> str:
    """Return the same in two operators."""
    return net.op("Mul", net.op("HardSigmoid", x, alpha=1 / 6, beta=0.5), x)


def hard_swish_operator(net: Net, x: str) -> str:
    """Return the same in one operator."""
    return net.op("HardSwish", x)


def square(net: Net, x: str) -> str:
    """Return x^2 by Pow."""
    return net.op("Pow", x, net.number(2))


def times_itself(net: Net, x: str) -> str:
    """Return x^2 by Mul."""
    return net.op("Mul", x, x)


def _above_one(net: Net, x: str) -> str:
    return net.op("Add", net.op("Mul", x, x), net.number(1))


def three_quarters(net: Net, x: str) -> str:
    """Return (x^2 + 1)^0.75 by Pow."""
    return net.op("Pow", _above_one(net, x), net.number(0.75))


def two_roots(net: Net, x: str) -> str:
    """Return (x^2 + 1)^0.75 by Sqrt."""
    root = net.op("Sqrt", _above_one(net, x))
    return net.op("Mul", root, net.op("Sqrt", root))


def divided(net: Net, x: str) -> str:
    """Return x / 7, three times over."""
    for divisor in (7, 0.3, 1.7):
        x = net.op("Abs", net.op("Div", x, net.number(divisor)))
    return x


def multiplied(net: Net, x: str) -> str:
    """Return the same by Mul."""
    for divisor in (7, 0.3, 1.7):
        x = net.op("Abs", net.op("Mul", x, net.number(1 / divisor)))
    return x


def many_scalars(net: Net, x: str) -> str:
    """Return ((2 x + 1) 3 - 2) / 4 operator by operator."""
    x = net.op("Add", net.op("Mul", x, net.number(2)), net.number(1))
    x = net.op("Sub", net.op("Mul", x, net.number(3)), net.number(2))
    return net.op("Div", x, net.number(4))


def two_scalars(net: Net, x: str) -> str:
    """Return the same as 1.5 x + 0.25."""
    return net.op("Add", net.op("Mul", x, net.number(1.5)), net.number(0.25))


def written_sigmoid(net: Net, x: str) -> str:
    """Return x / (1 + exp(-x))."""
    power = net.op("Exp", net.op("Neg", x))
    return net.op("Div", x, net.op("Add", power, net.number(1)))


def sigmoid_times(net: Net, x: str) -> str:
    """Return x sigmoid(x)."""
    return net.op("Mul", x, net.op("Sigmoid", x))


def _image(name: str, texts: tuple[str, str], one: Way, other: Way) -> Pair:
    """Return a pair on an image by itself."""

    def build(channels: int, side: int) -> Models:
        return elementwise(one, other, (1, channels, side, side))

    sizes = {"channels": 96, "side": 80}
    return Pair(name, *texts, build, sizes, {"channels": 3, "side": 5})


def _behind_conv(name: str, texts: tuple[str, str], one: Way, other: Way) -> Pair:
    """Return a pair behind each of two Convs."""

    def build(channels: int, side: int) -> Models:
        weights = Weights(21)
        kernels = [weights.kernel(channels, channels) for _ in range(2)]

        def behind(way: Way) -> Way:
            def both(net: Net, x: str) -> str:
                for kernel in kernels:
                    x = way(net, net.conv(x, kernel))
                return x

            return both

        return elementwise(behind(one), behind(other), (1, channels, side, side))

    sizes = {"channels": 64, "side": 56}
    return Pair(name, *texts, build, sizes, {"channels": 16, "side": 5})


def response_norm(channels: int, side: int) -> Models:
    """Return LRN, and a banded 1x1 Conv of squares with two roots."""
    whole, written = two()
    size, alpha, bias = 5, 0.1, 1.0
    x, y = whole.input(1, channels, side, side), written.input(1, channels, side, side)
    x = whole.op("LRN", x, size=size, alpha=alpha, beta=0.75, bias=bias)
    rows = np.arange(channels)
    near = np.abs(rows[:, None] - rows[None, :]) <= size // 2
    band = np.where(near, alpha / size, 0).astype(np.float32)[:, :, None, None]
    squares = written.op("Mul", y, y)
    scale = written.conv(squares, band, np.full(channels, bias, np.float32))
    y = written.op("Div", y, _power(written, scale))
    dims = [(1, channels, side, side)]
    return whole.model([x], dims), written.model([y], dims)


def response_norm_pool(channels: int, side: int) -> Models:
    """Return LRN, and an AveragePool of squares along the channels with two roots."""
    whole, written = two()
    x, y = whole.input(1, channels, side, side), written.input(1, channels, side, side)
    x = whole.op("LRN", x, size=5, alpha=0.1, beta=0.75, bias=1.0)
    flat = written.reshape(written.op("Mul", y, y), 1, 1, channels, side * side)
    window = {"kernel_shape": [5, 1], "pads": [2, 0, 2, 0], "count_include_pad": 1}
    mean = written.op("AveragePool", flat, **window)
    mean = written.reshape(mean, 1, channels, side, side)
    scaled = written.op("Mul", mean, written.number(0.1))
    scale = written.op("Add", scaled, written.number(1))
    y = written.op("Div", y, _power(written, scale))
    dims = [(1, channels, side, side)]
    return whole.model([x], dims), written.model([y], dims)


def _power(net: Net, x: str) -> str:
    root = net.op("Sqrt", x)
    return net.op("Mul", root, net.op("Sqrt", root))


def global_mean(channels: int, side: int) -> Models:
    """Return the mean of an image, as a pool and as a reduction."""
    pool, reduction = two()
    x, y = pool.input(1, channels, side, side), reduction.input(1, channels, side, side)
    x = pool.op("GlobalAveragePool", x)
    y = reduction.op("ReduceMean", y, axes=[2, 3], keepdims=1)
    dims = [(1, channels, 1, 1)]
    return pool.model([x], dims), reduction.model([y], dims)


def pool_before_conv(channels: int, side: int) -> Models:
    """Return a 1x1 Conv before an AveragePool, and after it."""
    before, after = two()
    kernel = Weights(22).kernel(channels // 2, channels)
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    x, y = before.input(1, channels, side, side), after.input(1, channels, side, side)
    x = before.op("AveragePool", before.conv(x, kernel), **window)
    y = after.conv(after.op("AveragePool", y, **window), kernel)
    dims = [(1, channels // 2, side // 2, side // 2)]
    return before.model([x], dims), after.model([y], dims)


def relu_and_pool(channels: int, side: int) -> Models:
    """Return Relu before a MaxPool, and after it."""
    before, after = two()
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    x, y = before.input(1, channels, side, side), after.input(1, channels, side, side)
    x = before.op("MaxPool", before.op("Relu", x), **window)
    y = after.op("Relu", after.op("MaxPool", y, **window))
    dims = [(1, channels, side // 2, side // 2)]
    return before.model([x], dims), after.model([y], dims)


_SMALL = {"channels": 8, "side": 6}
_FOUR, _TWO = "Add, Clip, Mul, Div", "HardSigmoid, Mul"

PAIRS = (
    _image("hardswish", (_FOUR, _TWO), hard_swish, hard_sigmoid_times),
    _image("hardswish-op", (_FOUR, "HardSwish"), hard_swish, hard_swish_operator),
    _image("hardsigmoid", (_TWO, "HardSwish"), hard_sigmoid_times, hard_swish_operator),
    _behind_conv("conv-hardswish", (_FOUR, _TWO), hard_swish, hard_sigmoid_times),
    _behind_conv(
        "conv-hardswish-op", (_FOUR, "HardSwish"), hard_swish, hard_swish_operator
    ),
    _image("square", ("Pow(x, 2)", "Mul(x, x)"), square, times_itself),
    _image("power", ("Pow(x, 0.75)", "Sqrt, Sqrt, Mul"), three_quarters, two_roots),
    _image("division", ("Div by a number", "Mul by one"), divided, multiplied),
    _image("five-scalars", ("five scalars", "two scalars"), many_scalars, two_scalars),
    _image("silu", ("x / (1 + exp(-x))", "x Sigmoid(x)"), written_sigmoid, sigmoid_times),
    Pair(
        "response-norm",
        "LRN",
        "banded 1x1 Conv, Sqrt, Div",
        response_norm,
        {"channels": 96, "side": 27},
        _SMALL,
    ),
    Pair(
        "response-norm-pool",
        "LRN",
        "AveragePool, Sqrt, Div",
        response_norm_pool,
        {"channels": 96, "side": 27},
        _SMALL,
    ),
    Pair(
        "global-mean",
        "GlobalAveragePool",
        "ReduceMean",
        global_mean,
        {"channels": 256, "side": 28},
        _SMALL,
    ),
    Pair(
        "pool-before-conv",
        "1x1 Conv, AveragePool",
        "AveragePool, 1x1 Conv",
        pool_before_conv,
        {"channels": 128, "side": 28},
        _SMALL,
    ),
    Pair(
        "relu-and-pool",
        "Relu, MaxPool",
        "MaxPool, Relu",
        relu_and_pool,
        {"channels": 96, "side": 56},
        _SMALL,
    ),
)
"""All of them."""

"""Pairs of plain and blocked layout: the second model uses the runtime's own operators.

What the runtime blocks by itself needs no pair; these are the places where it does not, or
where it does and loses.

Source: layouts of weights as in ONNX Runtime's reorder of filters (OIHWBiBo).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tensat.kernels.machine import NCHWC
from tensat.ordering.elementwise import hard_swish
from tensat.ordering.net import Array, Net, Weights, two
from tensat.ordering.pair import Models, Pair


def blocked_pairs(block: int) -> tuple[Pair, ...]:
    """Return the pairs for a machine with so many channels in a block."""
    return (
        Pair(
            "blocked-island",
            "Add, Clip, Mul, Div between Convs",
            "the same on blocks",
            partial(island, block),
            {"channels": 4 * block, "side": 40},
            {"channels": block, "side": 5},
        ),
        Pair(
            "blocked-gate",
            "channel gate between Convs",
            "gate as depthwise Conv",
            partial(gate, block),
            {"channels": 4 * block, "side": 40},
            {"channels": block, "side": 5},
        ),
        Pair(
            "blocked-mean",
            "ReduceMean between Convs",
            "GlobalAveragePool on blocks",
            partial(mean, block),
            {"channels": 4 * block, "side": 56},
            {"channels": block, "side": 5},
        ),
        Pair(
            "blocked-one-channel",
            "Conv to one channel",
            "Conv to a block of channels",
            partial(narrow, block),
            {"inputs": 4 * block, "outputs": 1, "side": 56},
            {"inputs": block, "side": 5},
        ),
        Pair(
            "blocked-few-inputs",
            "1x1 Conv of few channels",
            "of a block of channels",
            partial(narrow, block),
            {"inputs": 8, "outputs": 4 * block, "side": 80},
            {"side": 5},
        ),
        Pair(
            "blocked-doubling",
            "Resize between Convs",
            "Upsample on blocks",
            partial(doubling, block),
            {"channels": 4 * block, "side": 28},
            {"channels": block, "side": 5},
        ),
    )


def island(block: int, channels: int, side: int) -> Models:
    """Return Convs with hardswish in four operators, plain and on blocks."""
    plain, blocked = two()
    weights = Weights(41)
    x = plain.input(1, channels, side, side)
    y = _reorder(blocked, blocked.input(1, channels, side, side))
    for _ in range(2):
        kernel = weights.kernel(channels, channels, 3)
        x = hard_swish(plain, plain.conv(x, kernel, pads=[1] * 4))
        y = hard_swish(blocked, _conv(blocked, y, kernel, block))
    return _models(plain, x, blocked, y, (1, channels, side, side))


def gate(block: int, channels: int, side: int) -> Models:
    """Return a channel gate between two Convs, plain and on blocks."""
    plain, blocked = two()
    weights = Weights(42)
    kernels = [weights.kernel(channels, channels) for _ in range(3)]
    x = plain.input(1, channels, side, side)
    y = _reorder(blocked, blocked.input(1, channels, side, side))
    x, y = plain.conv(x, kernels[0]), _conv(blocked, y, kernels[0], block)
    factor = plain.conv(plain.op("GlobalAveragePool", x), kernels[1])
    x = plain.op("Mul", x, plain.op("Sigmoid", factor))
    pooled = blocked.op(f"{NCHWC}:GlobalAveragePool", y)
    factor = _conv(blocked, pooled, kernels[1], block, activation="Sigmoid")
    each = blocked.reshape(factor, channels, 1, 1, 1)
    y = blocked.op(f"{NCHWC}:Conv", y, each, kernel_shape=[1, 1], group=channels)
    x, y = plain.conv(x, kernels[2]), _conv(blocked, y, kernels[2], block)
    return _models(plain, x, blocked, y, (1, channels, side, side))


def mean(block: int, channels: int, side: int) -> Models:
    """Return a mean over images between two Convs, plain and on blocks."""
    plain, blocked = two()
    weights = Weights(43)
    first, second = weights.kernel(channels, channels), weights.kernel(channels, channels)
    x = plain.input(1, channels, side, side)
    y = _reorder(blocked, blocked.input(1, channels, side, side))
    x = plain.op("ReduceMean", plain.conv(x, first), axes=[2, 3], keepdims=1)
    x = plain.conv(x, second)
    y = blocked.op(f"{NCHWC}:GlobalAveragePool", _conv(blocked, y, first, block))
    y = _conv(blocked, y, second, block)
    return _models(plain, x, blocked, y, (1, channels, 1, 1))


def narrow(block: int, inputs: int, outputs: int, side: int) -> Models:
    """Return a Conv whose channels do not fill a block, plain and on blocks."""
    plain, blocked = two()
    kernel = Weights(44).kernel(outputs, inputs)
    x = plain.conv(plain.input(1, inputs, side, side), kernel)
    y = _reorder(blocked, blocked.input(1, inputs, side, side))
    y = _conv(blocked, y, kernel, block)
    return _models(plain, x, blocked, y, (1, outputs, side, side))


def doubling(block: int, channels: int, side: int) -> Models:
    """Return an image doubled between two Convs, plain and on blocks."""
    plain, blocked = two()
    weights = Weights(45)
    first, second = weights.kernel(channels, channels), weights.kernel(channels, channels)
    x = plain.input(1, channels, side, side)
    y = _reorder(blocked, blocked.input(1, channels, side, side))
    scales = plain.weight(np.array([1, 1, 2, 2], np.float32))
    how = {"mode": "nearest", "nearest_mode": "round_prefer_floor"}
    x = plain.op("Resize", plain.conv(x, first), "", scales, **how)
    x = plain.conv(x, second)
    y = _conv(blocked, y, first, block)
    y = blocked.op(f"{NCHWC}:Upsample", y, scales=[1, 1, 2, 2])
    y = _conv(blocked, y, second, block)
    return _models(plain, x, blocked, y, (1, channels, 2 * side, 2 * side))


def _reorder(net: Net, x: str) -> str:
    return net.op(f"{NCHWC}:ReorderInput", x)


def _conv(net: Net, x: str, kernel: Array, block: int, **attributes: object) -> str:
    """Return a Conv on blocks that keeps the sides, channels filled up with zeros."""
    outputs, inputs, height, width = kernel.shape
    more = [(0, -outputs % block), (0, -inputs % block), (0, 0), (0, 0)]
    padded = np.pad(kernel, more)
    rows, columns = padded.shape[0] // block, padded.shape[1] // block
    parts = padded.reshape(rows, block, columns, block, height, width)
    packed = parts.transpose(0, 2, 4, 5, 3, 1).reshape(padded.shape)
    if height * width > 1:
        attributes["pads"] = [height // 2, width // 2] * 2
    sides = [height, width]
    weight = net.weight(packed)
    return net.op(f"{NCHWC}:Conv", x, weight, kernel_shape=sides, **attributes)


def _models(
    plain: Net, x: str, blocked: Net, y: str, dims: tuple[int, int, int, int]
) -> Models:
    y = blocked.op(f"{NCHWC}:ReorderOutput", y, channels=dims[1])
    return plain.model([x], [dims]), blocked.model([y], [dims])

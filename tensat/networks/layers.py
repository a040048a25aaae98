"""Layers that several networks are made of: convolutions with weights of their own."""

from __future__ import annotations

from tensat.taso import TasoGraph, TensorHandle

type Pair = tuple[int, int]


def conv(
    graph: TasoGraph,
    x: TensorHandle,
    channels: int,
    kernel: Pair = (1, 1),
    stride: int = 1,
    *,
    padding: str = "SAME",
    activation: str = "RELU",
    groups: int = 1,
) -> TensorHandle:
    """Convolve [n, c, h, w] to so many channels, without a bias.

    Args:
        graph: Where the convolution goes.
        x: The input.
        channels: Channels of the result.
        kernel: Height and width of the kernel.
        stride: Step along both axes.
        padding: "SAME" or "VALID".
        activation: "RELU" or "NONE".
        groups: Parts of the channels that do not mix.
    """
    weight = graph.new_weight(dims=(channels, x.dim(1) // groups, *kernel))
    return graph.conv2d(
        input=x,
        weight=weight,
        strides=(stride, stride),
        padding=padding,
        activation=activation,
    )


def max_pool(
    graph: TasoGraph, x: TensorHandle, size: int, stride: int, padding: str = "SAME"
) -> TensorHandle:
    """Maximum over square windows."""
    return graph.maxpool2d(
        input=x, kernels=(size, size), strides=(stride, stride), padding=padding
    )


def avg_pool(
    graph: TasoGraph, x: TensorHandle, size: int, stride: int, padding: str = "SAME"
) -> TensorHandle:
    """Mean over square windows."""
    return graph.avgpool2d(
        input=x, kernels=(size, size), strides=(stride, stride), padding=padding
    )

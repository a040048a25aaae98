"""MobileNet-v2 with batch norms, and ReLU where the original has ReLU6.

Source: Sandler et al., CVPR 2018.
"""

from __future__ import annotations

from tensat.networks.layers import avg_pool, conv
from tensat.taso import TasoGraph, TensorHandle, new_graph

BLOCKS = (
    (32, 16, 1), (96, 24, 2), (144, 24, 1), (144, 32, 2), (192, 32, 1), (192, 32, 1),
    (192, 64, 1), (384, 64, 1), (384, 64, 1), (384, 64, 1), (384, 96, 2), (576, 96, 1),
    (576, 96, 1), (576, 160, 2), (960, 160, 1), (960, 160, 1), (960, 320, 1),
)  # fmt: skip
"""Expanded channels, channels out and stride of each inverted residual."""

LAST, CLASSES = 1280, 1000


def mobilenet_v2(batch: int = 1, seed: int = 0) -> TasoGraph:
    """MobileNet-v2: [batch, 3, 224, 224] to [batch, 1000, 1, 1] with strides as listed."""
    graph = new_graph(seed=seed)
    x = graph.new_input(dims=(batch, 3, 224, 224))
    x = graph.relu(_normalized(graph, x, 32, 3, 2))
    for expanded, channels, stride in BLOCKS:
        x = _block(graph, x, expanded, channels, stride)
    x = graph.relu(_normalized(graph, x, LAST))
    x = avg_pool(graph, x, 7, 1, "VALID")
    conv(graph, x, CLASSES, activation="NONE")
    return graph


def _block(
    graph: TasoGraph, x: TensorHandle, expanded: int, channels: int, stride: int
) -> TensorHandle:
    y = graph.relu(_normalized(graph, x, expanded))
    y = graph.relu(_normalized(graph, y, expanded, 3, stride, groups=expanded))
    y = _normalized(graph, y, channels)
    return graph.add(x, y) if stride == 1 and x.dim(1) == channels else y


def _normalized(
    graph: TasoGraph,
    x: TensorHandle,
    channels: int,
    size: int = 1,
    stride: int = 1,
    groups: int = 1,
) -> TensorHandle:
    kernel = (size, size)
    y = conv(graph, x, channels, kernel, stride, activation="NONE", groups=groups)
    scale, bias, mean, var = (graph.new_weight(dims=(channels,)) for _ in range(4))
    return graph.batchnorm(y, scale, bias, mean, var)

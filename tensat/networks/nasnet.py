"""NasNet-A as TASO and tensat measured it: three stages, each of six cells.

Source: Zoph et al., CVPR 2018.
"""

from __future__ import annotations

from tensat.networks.layers import avg_pool, conv, max_pool
from tensat.taso import TasoGraph, TensorHandle, new_graph

CHANNELS = (128, 256, 512)
NORMAL_CELLS = 5


def nasnet_a(batch: int = 1, seed: int = 0) -> TasoGraph:
    """NasNet-A without head: [batch, 3, 224, 224] to [batch, 5120, 7, 7]."""
    graph = new_graph(seed=seed)
    x = graph.new_input(dims=(batch, 3, 224, 224))
    x = max_pool(graph, conv(graph, x, 64, (7, 7), 2), 3, 2)
    for channels in CHANNELS:
        previous = current = x
        for _ in range(NORMAL_CELLS):
            new = _normal_cell(graph, previous, current, channels)
            previous, current = current, new
        x = _reduction_cell(graph, previous, current, 2 * channels)
    return graph


def _separable(
    graph: TasoGraph, x: TensorHandle, size: int, stride: int = 1
) -> TensorHandle:
    """A depthwise convolution, then one of 1x1, neither with an activation."""
    channels = x.dim(1)
    kernel = (size, size)
    y = conv(graph, x, channels, kernel, stride, activation="NONE", groups=channels)
    return conv(graph, y, channels, activation="NONE")


def _normal_cell(
    graph: TasoGraph, previous: TensorHandle, current: TensorHandle, channels: int
) -> TensorHandle:
    cur, prev = conv(graph, current, channels), conv(graph, previous, channels)
    sums = [
        graph.add(_separable(graph, cur, 3), cur),
        graph.add(_separable(graph, prev, 3), _separable(graph, cur, 3)),
        graph.add(avg_pool(graph, cur, 3, 1), prev),
        graph.add(avg_pool(graph, prev, 3, 1), avg_pool(graph, prev, 3, 1)),
        graph.add(_separable(graph, prev, 3), _separable(graph, prev, 3)),
    ]
    return graph.concat(1, sums)


def _reduction_cell(
    graph: TasoGraph, previous: TensorHandle, current: TensorHandle, channels: int
) -> TensorHandle:
    cur, prev = conv(graph, current, channels), conv(graph, previous, channels)
    first = graph.add(_separable(graph, prev, 7, 2), _separable(graph, cur, 5, 2))
    second = graph.add(max_pool(graph, cur, 3, 2), _separable(graph, prev, 7, 2))
    sums = [
        first,
        second,
        graph.add(avg_pool(graph, cur, 3, 2), _separable(graph, prev, 5, 2)),
        graph.add(max_pool(graph, cur, 3, 2), _separable(graph, first, 3)),
        graph.add(avg_pool(graph, first, 3, 1), second),
    ]
    return graph.concat(1, sums)

"""Inception-v3 as tensat measured it: no batch norm, no head.

Where TASO's own script differs (maximum pool in the first reduction, mean pool in the last
cells), this is tensat's form. Source: Szegedy et al., CVPR 2016.
"""

from __future__ import annotations

from tensat.networks.layers import avg_pool, conv, max_pool
from tensat.taso import TasoGraph, TensorHandle, new_graph


def inception_v3(batch: int = 1, seed: int = 0) -> TasoGraph:
    """Inception-v3 without head: [batch, 3, 299, 299] to [batch, 2048, 1, 1]."""
    graph = new_graph(seed=seed)
    x = _stem(graph, graph.new_input(dims=(batch, 3, 299, 299)))
    for pooled in (32, 64, 64):
        x = _cell_a(graph, x, pooled)
    x = _reduction_b(graph, x)
    for channels in (128, 160, 160, 192):
        x = _cell_c(graph, x, channels)
    x = _reduction_d(graph, x)
    for _ in range(2):
        x = _cell_e(graph, x)
    avg_pool(graph, x, 8, 1, "VALID")
    return graph


def _stem(graph: TasoGraph, x: TensorHandle) -> TensorHandle:
    x = conv(graph, x, 32, (3, 3), 2, padding="VALID")
    x = conv(graph, x, 32, (3, 3), padding="VALID")
    x = conv(graph, x, 64, (3, 3))
    x = max_pool(graph, x, 3, 2, "VALID")
    x = conv(graph, x, 80)
    x = conv(graph, x, 192, (3, 3), padding="VALID")
    return max_pool(graph, x, 3, 2, "VALID")


def _chain(
    graph: TasoGraph, x: TensorHandle, *steps: tuple[int, tuple[int, int]]
) -> TensorHandle:
    for channels, kernel in steps:
        x = conv(graph, x, channels, kernel)
    return x


def _cell_a(graph: TasoGraph, x: TensorHandle, pooled: int) -> TensorHandle:
    branches = [
        conv(graph, x, 64),
        _chain(graph, x, (48, (1, 1)), (64, (5, 5))),
        _chain(graph, x, (64, (1, 1)), (96, (3, 3)), (96, (3, 3))),
        conv(graph, avg_pool(graph, x, 3, 1), pooled),
    ]
    return graph.concat(1, branches)


def _reduction_b(graph: TasoGraph, x: TensorHandle) -> TensorHandle:
    double = _chain(graph, x, (64, (1, 1)), (96, (3, 3)))
    branches = [
        conv(graph, x, 384, (3, 3), 2, padding="VALID"),
        conv(graph, double, 96, (3, 3), 2, padding="VALID"),
        avg_pool(graph, x, 3, 2, "VALID"),
    ]
    return graph.concat(1, branches)


def _cell_c(graph: TasoGraph, x: TensorHandle, c: int) -> TensorHandle:
    across, down = (1, 7), (7, 1)
    branches = [
        conv(graph, x, 192),
        _chain(graph, x, (c, (1, 1)), (c, across), (192, down)),
        _chain(graph, x, (c, (1, 1)), (c, down), (c, across), (c, down), (192, across)),
        conv(graph, avg_pool(graph, x, 3, 1), 192),
    ]
    return graph.concat(1, branches)


def _reduction_d(graph: TasoGraph, x: TensorHandle) -> TensorHandle:
    seven = _chain(graph, x, (192, (1, 1)), (192, (1, 7)), (192, (7, 1)))
    branches = [
        conv(graph, conv(graph, x, 192), 320, (3, 3), 2, padding="VALID"),
        conv(graph, seven, 192, (3, 3), 2, padding="VALID"),
        max_pool(graph, x, 3, 2, "VALID"),
    ]
    return graph.concat(1, branches)


def _cell_e(graph: TasoGraph, x: TensorHandle) -> TensorHandle:
    three = conv(graph, x, 384)
    double = _chain(graph, x, (448, (1, 1)), (384, (3, 3)))
    branches = [
        conv(graph, x, 320),
        *(conv(graph, three, 384, kernel) for kernel in ((1, 3), (3, 1))),
        *(conv(graph, double, 384, kernel) for kernel in ((1, 3), (3, 1))),
        conv(graph, max_pool(graph, x, 3, 1), 192),
    ]
    return graph.concat(1, branches)

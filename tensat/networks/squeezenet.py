"""SqueezeNet 1.1 without biases. Source: Iandola et al., 2016."""

from __future__ import annotations

from tensat.networks.layers import avg_pool, conv, max_pool
from tensat.taso import TasoGraph, TensorHandle, new_graph

CLASSES = 1000


def squeezenet1_1(batch: int = 1, seed: int = 0) -> TasoGraph:
    """SqueezeNet 1.1: [batch, 3, 224, 224] to [batch, 1000, 1, 1]."""
    graph = new_graph(seed=seed)
    x = graph.new_input(dims=(batch, 3, 224, 224))
    x = conv(graph, x, 64, (3, 3), 2, padding="VALID")
    for squeezed, expanded in ((16, 64), (32, 128)):
        x = max_pool(graph, x, 3, 2, "VALID")
        x = _fire(graph, _fire(graph, x, squeezed, expanded), squeezed, expanded)
    x = max_pool(graph, x, 3, 2, "VALID")
    for squeezed, expanded in ((48, 192), (64, 256)):
        x = _fire(graph, _fire(graph, x, squeezed, expanded), squeezed, expanded)
    x = conv(graph, graph.dropout(x, 0.5), CLASSES)
    avg_pool(graph, x, x.dim(2), 1, "VALID")
    return graph


def _fire(graph: TasoGraph, x: TensorHandle, squeezed: int, expanded: int) -> TensorHandle:
    x = conv(graph, x, squeezed)
    return graph.concat(1, [conv(graph, x, expanded), conv(graph, x, expanded, (3, 3))])

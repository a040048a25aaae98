"""VGG-19 without biases. Source: Simonyan and Zisserman, ICLR 2015."""

from __future__ import annotations

from math import prod

from tensat.networks.layers import conv, max_pool
from tensat.taso import TasoGraph, new_graph

GROUPS = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))
"""Channels and convolutions between two pools."""

HIDDEN, CLASSES = 4096, 1000


def vgg19(batch: int = 1, seed: int = 0) -> TasoGraph:
    """VGG-19: [batch, 3, 224, 224] to [batch, 1000]."""
    graph = new_graph(seed=seed)
    x = graph.new_input(dims=(batch, 3, 224, 224))
    for channels, count in GROUPS:
        for _ in range(count):
            x = conv(graph, x, channels, (3, 3))
        x = max_pool(graph, x, 2, 2)
    width = prod(x.dim(axis) for axis in (1, 2, 3))
    x = graph.reshape(x, (batch, width))
    for inner in (width, HIDDEN):
        weight = graph.new_weight(dims=(inner, HIDDEN))
        x = graph.dropout(graph.matmul(x, weight, activation="RELU"), 0.5)
    graph.matmul(x, graph.new_weight(dims=(HIDDEN, CLASSES)))
    return graph

"""ResNet-50 and ResNeXt-50 as TASO and tensat measured them: no batch norm, no head.

Source: He et al., CVPR 2016; Xie et al., CVPR 2017.
"""

from __future__ import annotations

from tensat.networks.layers import conv, max_pool
from tensat.taso import TasoGraph, TensorHandle, new_graph

BLOCKS = (3, 4, 6, 3)
"""Blocks of each stage."""


def resnet50(batch: int = 1, seed: int = 0) -> TasoGraph:
    """ResNet-50 without stem and head: [batch, 64, 56, 56] to [batch, 2048, 7, 7]."""
    graph = new_graph(seed=seed)
    x = graph.new_input(dims=(batch, 64, 56, 56))
    _stages(graph, x, width=64, expansion=4, groups=1)
    return graph


def resnext50(batch: int = 1, seed: int = 0) -> TasoGraph:
    """ResNeXt-50 (32 groups) without head: [batch, 3, 224, 224] to [batch, 2048, 7, 7]."""
    graph = new_graph(seed=seed)
    x = graph.new_input(dims=(batch, 3, 224, 224))
    x = max_pool(graph, conv(graph, x, 64, (7, 7), 2), 3, 2)
    _stages(graph, x, width=128, expansion=2, groups=32)
    return graph


def _stages(
    graph: TasoGraph, x: TensorHandle, width: int, expansion: int, groups: int
) -> None:
    for stage, blocks in enumerate(BLOCKS):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            x = _block(graph, x, width << stage, stride, expansion, groups)


def _block(
    graph: TasoGraph, x: TensorHandle, width: int, stride: int, expansion: int, groups: int
) -> TensorHandle:
    y = conv(graph, x, width)
    y = conv(graph, y, width, (3, 3), stride, groups=groups)
    y = conv(graph, y, expansion * width, activation="NONE")
    if stride > 1 or x.dim(1) != expansion * width:
        x = conv(graph, x, expansion * width, stride=stride)
    return graph.relu(graph.add(x, y))

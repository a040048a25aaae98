"""BERT as TASO and tensat measured it: eight layers of products without softmax or norms.

The attention of each layer is an output of the graph; the next layer does not use it.
Source: Devlin et al., NAACL 2019, for the sizes.
"""

from __future__ import annotations

from tensat.taso import TasoGraph, TensorHandle, new_graph

LAYERS, LENGTH, MODEL, HEADS = 8, 64, 1024, 16
HEAD = MODEL // HEADS


def bert(batch: int = 1, seed: int = 0) -> TasoGraph:
    """BERT: [batch * 64, 1024] in, eight attentions and the last layer out.

    With a batch of 1 heads are [16, 64, 64] as published, else [batch, 16, 64, 64].
    """
    graph = new_graph(seed=seed)
    t = graph.relu(graph.new_input(dims=(batch * LENGTH, MODEL)))
    for _ in range(LAYERS):
        _attention(graph, t, batch)
        t = _product(graph, t)
    return graph


def _attention(graph: TasoGraph, t: TensorHandle, batch: int) -> None:
    outer = () if batch == 1 else (batch,)
    swap = (1, 0, 2) if batch == 1 else (0, 2, 1, 3)

    def heads(x: TensorHandle) -> TensorHandle:
        shaped = graph.reshape(x, (*outer, LENGTH, HEADS, HEAD))
        return graph.transpose(shaped, swap, shuffle=True)

    q, k, v = [heads(_product(graph, t)) for _ in range(3)]
    out = graph.matmul(graph.matmul(q, k), v)
    graph.reshape(graph.transpose(out, swap, shuffle=True), (batch * LENGTH, MODEL))


def _product(graph: TasoGraph, t: TensorHandle) -> TensorHandle:
    return graph.matmul(t, graph.new_weight(dims=(MODEL, MODEL)))

"""NasRNN as TASO and tensat measured it: five steps of the cell that a search found.

Source: Zoph and Le, ICLR 2017.
"""

from __future__ import annotations

from tensat.taso import TasoGraph, TensorHandle, new_graph

HIDDEN, STEPS, COMBINATIONS = 512, 5, 8


def nasrnn(batch: int = 1, seed: int = 0) -> TasoGraph:
    """NasRNN: an input [batch, 512] per step, the last state [batch, 512] out.

    Each of the 80 products has weights of its own; the first state is a constant.
    """
    graph = new_graph(seed=seed)
    inputs = [graph.new_input(dims=(batch, HIDDEN)) for _ in range(STEPS)]
    state = graph.new_weight(dims=(batch, HIDDEN))
    for x in inputs:
        state = _cell(graph, x, state)
    return graph


def _cell(graph: TasoGraph, x: TensorHandle, h: TensorHandle) -> TensorHandle:
    u = [_combination(graph, x, h) for _ in range(COMBINATIONS)]
    m0 = graph.add(graph.relu(u[0]), graph.sigmoid(u[3]))
    m1 = graph.add(graph.sigmoid(u[1]), graph.tanh(u[2]))
    m2 = graph.mul(graph.sigmoid(u[4]), graph.tanh(u[5]))
    m3 = graph.mul(graph.sigmoid(u[6]), graph.relu(u[7]))
    m4 = graph.add(graph.sigmoid(m1), graph.tanh(m2))
    m5 = graph.mul(graph.tanh(m0), graph.tanh(m3))
    m6 = graph.mul(graph.tanh(m4), graph.tanh(m5))
    return graph.tanh(m6)


def _combination(graph: TasoGraph, x: TensorHandle, h: TensorHandle) -> TensorHandle:
    a, b = (graph.new_weight(dims=(HIDDEN, HIDDEN)) for _ in range(2))
    return graph.add(graph.matmul(x, a), graph.matmul(h, b))

"""A graph becomes an e-graph: one handle per node output that is used as a tensor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rulesets.tensor import Tensor
from tensat.egraph.constant_values import LIMIT, Array
from tensat.egraph.tensor_egraph import TensorEGraph
from tensat.egraph.tensor_types import byte_size
from tensat.model.graph import Graph, Node, Ref

ABSENT = "Absent"
"""Stands in the e-graph for an optional input that is not given."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """An e-graph and where the graph's values are in it.

    Attributes:
        egraph: the e-graph, not yet saturated.
        handle_of: handle of each value of the graph.
        roots: handles of the graph's outputs and of the values that subgraphs capture.
    """

    egraph: TensorEGraph
    handle_of: dict[Ref, int]
    roots: tuple[int, ...]


def encode(graph: Graph, literals: tuple[float, ...] = ()) -> Encoded:
    """The e-graph that holds exactly the graph's nodes.

    Args:
        graph: the graph.
        literals: scalar values that rules test.

    Returns:
        The e-graph with the handle of each value; equal nodes share one.
    """
    total = sum(_bytes(node.outputs[0]) for node in graph.nodes if node.op == "Constant")
    egraph = TensorEGraph(literals, total, lambda key: graph.constants[key].numpy())
    handle_of: dict[Ref, int] = {}
    for index, node in enumerate(graph.nodes):
        handle = _put(egraph, graph, node, handle_of)
        if node.op != "Constant":
            egraph.set_original(handle, index)
        if node.op == "Identity":
            _pass(egraph, handle, node, handle_of)
        if len(node.outputs) == 1:
            handle_of[Ref(index)] = handle
            continue
        for output, tensor in enumerate(node.outputs):
            place = {"index": output}
            handle_of[Ref(index, output)] = egraph.put("Output", place, [handle], (tensor,))
    roots = [handle_of[ref] for _, ref in graph.outputs]
    roots += [handle_of[ref] for _, ref in graph.kept]
    return Encoded(egraph, handle_of, tuple(roots))


def _put(egraph: TensorEGraph, graph: Graph, node: Node, handle_of: dict[Ref, int]) -> int:
    if node.op == "Constant":
        key = dict(node.attributes)["key"]
        tensor = node.outputs[0]
        return egraph.stored(key, tensor, _small(graph, key, tensor), _bytes(tensor))
    arguments = []
    for ref in node.inputs:
        if ref is None:
            arguments.append(egraph.put(ABSENT, {}, [], (Tensor("unknown", None),)))
        else:
            arguments.append(handle_of[ref])
    return egraph.put(node.op, dict(node.attributes), arguments, node.outputs)


def _pass(egraph: TensorEGraph, handle: int, node: Node, handle_of: dict[Ref, int]) -> None:
    """Say that an Identity is what it reads: the runtime removes it before it fuses."""
    source = node.inputs[0]
    if source is not None:
        read = handle_of[source]
        if egraph.tensor(read) == egraph.tensor(handle):
            egraph.union(handle, read)


def _small(graph: Graph, key: str, tensor: Tensor) -> Array | None:
    """The value of a stored constant of few elements."""
    size = byte_size(tensor)
    if size is None or tensor.shape is None:
        return None
    if int(np.prod([int(str(dim)) for dim in tensor.shape])) > LIMIT:
        return None
    return np.asarray(graph.constants[key].numpy())


def _bytes(tensor: Tensor) -> int:
    return byte_size(tensor) or 0

"""The nodes of an ONNX graph that outputs depend on, in topological order.

On the way it finds what makes a graph invalid: values that nothing defines, and cycles.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

import onnx_ir as ir

from tensat.errors import ModelError
from tensat.model.captures import bodies, captured

__all__ = ["ordered"]

type Captures = Mapping[ir.Node, tuple[ir.Value, ...]]


def ordered(graph: ir.Graph) -> tuple[list[ir.Node], Captures]:
    """The live nodes in topological order, and what subgraphs of nodes capture.

    The order is that of the file wherever that is topological, as ONNX demands.

    Raises:
        ModelError: a value is used that nothing defines, or nodes form a cycle.
    """
    captures = {
        node: captured(node, graph) for node in graph if any(True for _ in bodies(node))
    }
    _check_defined(graph)
    nodes = list(graph)
    position = {node: index for index, node in enumerate(nodes)}
    sorted_already = all(
        position[source] < index
        for index, node in enumerate(nodes)
        for source in _sources(node, captures)
    )
    if not sorted_already:
        nodes = _sorted(nodes, position, captures)
    return _live(graph, nodes, captures), captures


def _sources(node: ir.Node, captures: Captures) -> Iterator[ir.Node]:
    for value in (*node.inputs, *captures.get(node, ())):
        if value is not None and (source := value.producer()) is not None:
            yield source


def _check_defined(graph: ir.Graph) -> None:
    for node in graph:
        for value in node.inputs:
            if value is not None and not _defined(value):
                raise ModelError(
                    f"node '{node.name}' ({node.op_type}) reads '{value.name}', "
                    "which nothing defines"
                )
    for value in graph.outputs:
        if not _defined(value):
            raise ModelError(f"nothing computes the output '{value.name}' of the model")
    if not graph.outputs:
        raise ModelError("the model has no outputs")


def _defined(value: ir.Value) -> bool:
    return value.producer() is not None or value.is_graph_input() or value.is_initializer()


def _sorted(
    nodes: list[ir.Node], position: Mapping[ir.Node, int], captures: Captures
) -> list[ir.Node]:
    """Kahn's algorithm; of the nodes that are ready, the first of the file goes first."""
    waits = [0] * len(nodes)
    users: list[list[int]] = [[] for _ in nodes]
    for index, node in enumerate(nodes):
        for source in set(_sources(node, captures)):
            waits[index] += 1
            users[position[source]].append(index)
    ready = [index for index, count in enumerate(waits) if not count]
    result = []
    while ready:
        index = heapq.heappop(ready)
        result.append(nodes[index])
        for user in users[index]:
            waits[user] -= 1
            if not waits[user]:
                heapq.heappush(ready, user)
    if len(result) < len(nodes):
        node = nodes[next(index for index, count in enumerate(waits) if count)]
        raise ModelError(
            f"the graph has a cycle: node '{node.name}' ({node.op_type}) waits for itself"
        )
    return result


def _live(graph: ir.Graph, nodes: list[ir.Node], captures: Captures) -> list[ir.Node]:
    needed = {value.producer() for value in graph.outputs}
    for node in reversed(nodes):
        if node in needed:
            needed.update(_sources(node, captures))
    return [node for node in nodes if node in needed]

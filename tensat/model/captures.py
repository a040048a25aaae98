"""Subgraphs of opaque nodes: which outer values they read, which names they use, copies.

The body of an If, Loop or Scan may read any value of the graphs around it, by name. Such a
*captured* value is an input of the node as much as its own inputs are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

import onnx_ir as ir

from tensat.errors import ModelError

__all__ = ["bodies", "captured", "copy_attributes", "names_inside"]


def bodies(node: ir.Node) -> Iterator[ir.Graph]:
    """The subgraphs that are attributes of the node, without those nested in them."""
    for attribute in node.attributes.values():
        if attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        elif attribute.type == ir.AttributeType.GRAPHS:
            yield from cast("list[ir.Graph]", attribute.as_graphs())


def _all_bodies(node: ir.Node) -> Iterator[ir.Graph]:
    """The subgraphs of the node and everything nested in them."""
    stack = list(bodies(node))
    while stack:
        graph = stack.pop()
        yield graph
        for inner in graph:
            stack.extend(bodies(inner))


def captured(node: ir.Node, outer: ir.Graph) -> tuple[ir.Value, ...]:
    """The values of the outer graph that the subgraphs of the node read, each once.

    Raises:
        ModelError: a subgraph reads or returns a value that nothing defines.
    """
    found: dict[ir.Value, None] = {}
    for graph in _all_bodies(node):
        for inner in graph:
            for value in inner.inputs:
                if value is None:
                    continue
                if value.graph is outer:
                    found[value] = None
                elif value.graph is None:
                    raise ModelError(
                        f"node '{inner.name}' ({inner.op_type}) in subgraph '{graph.name}' "
                        f"reads '{value.name}', which nothing defines"
                    )
        for value in graph.outputs:
            if value.producer() is None and not value.is_initializer():
                if value.is_graph_input():
                    continue
                raise ModelError(
                    f"subgraph '{graph.name}' does not compute its output '{value.name}'"
                )
    return tuple(found)


def names_inside(node: ir.Node) -> Iterator[str]:
    """Names of all values that the subgraphs of the node define."""
    for graph in _all_bodies(node):
        for value in (*graph.inputs, *graph.initializers.values()):
            yield value.name or ""
        for inner in graph:
            for value in inner.outputs:
                yield value.name or ""


def copy_attributes(
    node: ir.Node, replace: Mapping[ir.Value, ir.Value]
) -> tuple[ir.Attr, ...]:
    """The attributes of the node, with copies of its subgraphs.

    Args:
        node: An ONNX node.
        replace: What the copies read instead of each captured outer value.
    """
    result = []
    for attribute in node.attributes.values():
        if attribute.is_ref():
            result.append(attribute)
        elif attribute.type == ir.AttributeType.GRAPH:
            result.append(
                ir.AttrGraph(attribute.name, _copy(attribute.as_graph(), replace))
            )
        elif attribute.type == ir.AttributeType.GRAPHS:
            graphs = cast("list[ir.Graph]", attribute.as_graphs())
            copies = [_copy(body, replace) for body in graphs]
            result.append(ir.AttrGraphs(attribute.name, copies))
        elif attribute.type == ir.AttributeType.TENSOR:
            tensor = attribute.as_tensor()
            result.append(ir.AttrTensor(attribute.name, _resident(tensor)))
        else:
            result.append(attribute)
    return tuple(result)


def _copy(body: ir.Graph, replace: Mapping[ir.Value, ir.Value]) -> ir.Graph:
    copy = body.clone(allow_outer_scope_values=True)
    stack = [copy]
    while stack:
        graph = stack.pop()
        _load_external(graph)
        for node in graph:
            for index, value in enumerate(node.inputs):
                if value is not None and value in replace:
                    node.replace_input_with(index, replace[value])
            stack.extend(bodies(node))
    return copy


def _load_external(graph: ir.Graph) -> None:
    # A subgraph keeps its tensors inside the file: their old location need not exist
    # where the new file goes.
    for value in graph.initializers.values():
        if value.const_value is not None:
            value.const_value = _resident(value.const_value)


def _resident(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    """The tensor, in memory if it was in a file of its own."""
    if not isinstance(tensor, ir.ExternalTensor):
        return tensor
    return ir.Tensor(
        tensor.numpy(), dtype=tensor.dtype, shape=tensor.shape, name=tensor.name
    )

"""Constructs of ONNX that onnx_ir cannot hold, carried through it in disguise.

onnx_ir has no sparse tensors, no map types and no attribute strings that are not UTF-8.
``hide`` rewrites them before a model enters onnx_ir, ``show`` restores them after it left:

* a sparse initializer becomes a Constant node with a ``sparse_value`` (for good: the two
  mean the same);
* an attribute that onnx_ir refuses becomes a string attribute whose doc string is ``MARK``;
* the declaration of an input or output of a refused type loses its type, which moves to a
  metadata entry ``MARK``.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

import onnx

__all__ = ["MARK", "graphs_of", "hide", "show"]

MARK = "tensat.carried"

_SPARSE = (onnx.AttributeProto.SPARSE_TENSOR, onnx.AttributeProto.SPARSE_TENSORS)
_TYPES = (onnx.AttributeProto.TYPE_PROTO, onnx.AttributeProto.TYPE_PROTOS)


def graphs_of(model: onnx.ModelProto) -> Iterator[onnx.GraphProto | onnx.FunctionProto]:
    """The main graph, the functions, and all subgraphs of both."""
    stack: list[onnx.GraphProto | onnx.FunctionProto] = [model.graph, *model.functions]
    while stack:
        graph = stack.pop()
        yield graph
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    stack.append(attribute.g)
                elif attribute.type == onnx.AttributeProto.GRAPHS:
                    stack.extend(attribute.graphs)


def hide(model: onnx.ModelProto, *, own: bool) -> onnx.ModelProto:
    """The model without what onnx_ir refuses.

    Args:
        model: Any model.
        own: Whether the model may be changed in place. If not, it is copied when needed.
    """
    if not own:
        if not _needs_hiding(model):
            return model
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        model = copy
    for graph in graphs_of(model):
        for node in graph.node:
            for attribute in node.attribute:
                if _refused(attribute):
                    _disguise(attribute)
        if isinstance(graph, onnx.GraphProto):
            _hide_values(graph)
            _hide_sparse_initializers(graph)
    return model


def show(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with everything restored that ``hide`` disguised; changed in place."""
    for graph in graphs_of(model):
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.doc_string == MARK:
                    attribute.ParseFromString(base64.b64decode(attribute.s))
        if isinstance(graph, onnx.GraphProto):
            for value in (*graph.input, *graph.output):
                for position, entry in enumerate(value.metadata_props):
                    if entry.key == MARK:
                        value.type.ParseFromString(base64.b64decode(entry.value))
                        del value.metadata_props[position]
                        break
    return model


def _needs_hiding(model: onnx.ModelProto) -> bool:
    for graph in graphs_of(model):
        if any(_refused(a) for node in graph.node for a in node.attribute):
            return True
        if isinstance(graph, onnx.GraphProto) and (
            graph.sparse_initializer
            or any(
                _refused_type(value.type)
                for value in (*graph.input, *graph.output, *graph.value_info)
            )
        ):
            return True
    return False


def _refused(attribute: onnx.AttributeProto) -> bool:
    if attribute.type in _SPARSE:
        return True
    if attribute.type in _TYPES:
        return any(_refused_type(t) for t in (attribute.tp, *attribute.type_protos))
    if attribute.type == onnx.AttributeProto.STRING:
        return not _is_text(attribute.s)
    if attribute.type == onnx.AttributeProto.STRINGS:
        return not all(map(_is_text, attribute.strings))
    return False


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _refused_type(type_: onnx.TypeProto) -> bool:
    while True:
        kind = type_.WhichOneof("value")
        if kind == "sequence_type":
            type_ = type_.sequence_type.elem_type
        elif kind == "optional_type":
            type_ = type_.optional_type.elem_type
        else:
            # A sequence or an optional of nothing known has no kind at all.
            return kind in ("map_type", "opaque_type")


def _disguise(attribute: onnx.AttributeProto) -> None:
    """Turn the attribute into a string that holds all of it."""
    name, data = attribute.name, base64.b64encode(attribute.SerializeToString())
    attribute.Clear()
    attribute.name, attribute.type = name, onnx.AttributeProto.STRING
    attribute.s, attribute.doc_string = data, MARK


def _hide_values(graph: onnx.GraphProto) -> None:
    for value in (*graph.input, *graph.output):
        if _refused_type(value.type):
            data = base64.b64encode(value.type.SerializeToString()).decode("ascii")
            value.metadata_props.add(key=MARK, value=data)
            value.ClearField("type")
    # Types of intermediate values are found again; no need to carry them.
    for position in range(len(graph.value_info) - 1, -1, -1):
        if _refused_type(graph.value_info[position].type):
            del graph.value_info[position]


def _hide_sparse_initializers(graph: onnx.GraphProto) -> None:
    if not graph.sparse_initializer:
        return  # clearing an empty field would make a missing graph an empty one
    for sparse in reversed(graph.sparse_initializer):
        node = onnx.NodeProto(op_type="Constant", output=[sparse.values.name])
        attribute = node.attribute.add(
            name="sparse_value", type=onnx.AttributeProto.SPARSE_TENSOR
        )
        attribute.sparse_tensor.CopyFrom(sparse)
        attribute.sparse_tensor.values.ClearField("name")
        _disguise(attribute)
        graph.node.insert(0, node)
    graph.ClearField("sparse_initializer")

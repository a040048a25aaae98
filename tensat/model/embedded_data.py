"""Whether tensors inside a model file have as much data as their shapes need.

A file that was cut and mended, or written by a faulty tool, parses all the same; looking at
such a tensor fails somewhere later, in words that name no tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import onnx
import onnx_ir as ir

from tensat.errors import ModelError
from tensat.model.onnx_carry import graphs_of

__all__ = ["check_embedded_data"]

_FIELDS = (
    "float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data",
)  # fmt: skip
_SIX_BITS = (
    getattr(ir.DataType, "FLOAT6E2M3", None),
    getattr(ir.DataType, "FLOAT6E3M2", None),
)
"""Newer than some releases of onnx_ir; libraries differ in how they pack them."""
_COMPLEX = (onnx.TensorProto.COMPLEX64, onnx.TensorProto.COMPLEX128)


def check_embedded_data(model: onnx.ModelProto, what: str) -> None:
    """See that each tensor of a model has the data it needs, no more and no less.

    Args:
        model: The model; subgraphs and functions are looked at, too.
        what: How the error calls it.

    Raises:
        ModelError: A tensor has not.
    """
    for tensor in _tensors(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            continue
        try:
            kind = ir.DataType(tensor.data_type)
        except ValueError:  # newer than what we know; it passes through
            continue
        if kind == ir.DataType.UNDEFINED or kind in _SIX_BITS:
            continue
        found, needed, unit = _amounts(tensor, kind)
        if found != needed:
            raise ModelError(
                f"{what}: tensor '{tensor.name}' of shape {list(tensor.dims)} needs "
                f"{needed} {unit} of data and has {found}"
            )


def _amounts(tensor: onnx.TensorProto, kind: ir.DataType) -> tuple[int, int, str]:
    """How much there is, how much there should be, and of what."""
    size = prod(tensor.dims)
    if tensor.HasField("raw_data"):
        return len(tensor.raw_data), -(-size * kind.bitwidth // 8), "bytes"
    found = sum(len(getattr(tensor, field)) for field in _FIELDS)
    if tensor.data_type in _COMPLEX:
        return found, 2 * size, "numbers"
    if kind != ir.DataType.STRING and kind.bitwidth < 8:
        return found, -(-size * kind.bitwidth // 8), "bytes"
    return found, size, "elements"


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    for graph in graphs_of(model):
        if isinstance(graph, onnx.GraphProto):
            yield from graph.initializer
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.TENSOR:
                    yield attribute.t
                elif attribute.type == onnx.AttributeProto.TENSORS:
                    yield from attribute.tensors

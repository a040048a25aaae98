"""Types of opaque nodes whose result has the shape that an operand says.

Such a node is opaque when it cannot be proved that its input has as many elements as asked
for, say. The runtime checks that when it runs, so the asked shape is the type all the same.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from rulesets.errors import ShapeError
from rulesets.size import Size, divide, product
from rulesets.tensor import Tensor, broadcast
from tensat.model.dimensions import Symbols
from tensat.model.graph import dtype_name
from tensat.onnx_forms import OnnxCall, Operand

__all__ = ["asked_type"]


def asked_type(call: OnnxCall, symbols: Symbols) -> Tensor | None:
    """The type of the result of a Reshape, Expand or ConstantOfShape; None if unknown.

    Args:
        call: Any node.
        symbols: Where symbols for sizes that cannot be expressed come from.
    """
    position = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0}.get(call.op_type)
    if position is None or position >= len(call.inputs):
        return None
    sizes = _entries(call.inputs[position])
    first = call.inputs[0]
    if sizes is None or first is None:
        return None
    if call.op_type == "ConstantOfShape":
        value = call.attributes.get("value")
        dtype = "float32"
        if isinstance(value, np.ndarray):
            dtype = dtype_name(ir.DataType.from_numpy(value.dtype))
        return Tensor(dtype, sizes)
    tensor = first.tensor
    if call.op_type == "Expand":
        return _expanded(tensor, sizes)
    return _reshaped(tensor, sizes, bool(call.attributes.get("allowzero", 0)), symbols)


def _entries(operand: Operand | None) -> tuple[Size, ...] | None:
    if operand is None or operand.tensor.rank != 1:
        return None
    if operand.array is not None:
        return tuple(int(size) for size in operand.array)
    return operand.sizes


def _expanded(tensor: Tensor, sizes: tuple[Size, ...]) -> Tensor | None:
    if tensor.shape is None:
        return None
    try:
        return Tensor(tensor.dtype, broadcast(tensor.shape, sizes))
    except ShapeError:
        return None


def _reshaped(
    tensor: Tensor, sizes: tuple[Size, ...], allow_zero: bool, symbols: Symbols
) -> Tensor | None:
    shape = list(sizes)
    for axis, size in enumerate(sizes):
        if size == 0 and not allow_zero:
            if tensor.shape is None or axis >= len(tensor.shape):
                shape[axis] = symbols.fresh()
            else:
                shape[axis] = tensor.shape[axis]
    if -1 in sizes:
        axis = sizes.index(-1)
        rest = product(shape[:axis] + shape[axis + 1 :])
        whole = None if tensor.shape is None else product(tensor.shape)
        exact = None if whole is None else divide(whole, rest)
        shape[axis] = symbols.fresh() if exact is None else exact
    return Tensor(tensor.dtype, tuple(shape))

"""Constants: their keys, their small values, and the tensors that Constant nodes hold."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import onnx_ir as ir

from tensat.model.graph import dtype_name

__all__ = ["SMALL", "Array", "content_key", "from_array", "node_tensor", "small_array"]

SMALL = 4096
"""Most elements of a constant whose value is looked at: parameters, factors, biases."""

type Array = np.ndarray[Any, np.dtype[Any]]


def content_key(tensor: ir.TensorProtocol) -> str:
    """A key that tensors have in common when type, shape and all bytes are equal."""
    shape = ",".join(map(str, tensor.shape))
    digest = hashlib.blake2b(_bytes(tensor), digest_size=12).hexdigest()
    return f"{dtype_name(tensor.dtype)}[{shape}]#{digest}"


def _bytes(tensor: ir.TensorProtocol) -> bytes:
    if tensor.dtype != ir.DataType.STRING:
        return tensor.tobytes()
    # The length before each string keeps ("ab", "c") apart from ("a", "bc").
    return b"".join(
        len(text).to_bytes(8, "little") + text for text in tensor.numpy().ravel().tolist()
    )


def small_array(tensor: ir.TensorProtocol) -> Array | None:
    """The value of a constant of at most ``SMALL`` elements; None for strings too."""
    if tensor.dtype in (ir.DataType.STRING, ir.DataType.UNDEFINED) or tensor.size > SMALL:
        return None
    return tensor.numpy()


def from_array(array: Array) -> ir.TensorProtocol:
    """The array as a tensor; its element type is that of the array."""
    return ir.Tensor(np.ascontiguousarray(array).reshape(array.shape))


def renamed(tensor: ir.TensorProtocol, name: str) -> ir.TensorProtocol:
    """The tensor under another name, without a copy and without touching the original."""
    if tensor.name == name:
        return tensor
    if isinstance(tensor, ir.ExternalTensor):
        return ir.ExternalTensor(
            tensor.location, tensor.offset, tensor.length, tensor.dtype,
            shape=tensor.shape, name=name, base_dir=tensor.base_dir,
        )  # fmt: skip
    shape = ir.Shape(tensor.shape.numpy())
    if tensor.dtype == ir.DataType.STRING:
        return ir.StringTensor(tensor.numpy(), shape=shape, name=name)
    return ir.LazyTensor(lambda: tensor, dtype=tensor.dtype, shape=shape, name=name)


def node_tensor(node: ir.Node) -> ir.TensorProtocol | None:
    """The tensor that a Constant node of any form holds; None if it is sparse."""
    attributes = node.attributes
    if "value" in attributes:
        return attributes["value"].as_tensor()
    if "value_float" in attributes:
        return from_array(np.array(attributes["value_float"].as_float(), np.float32))
    if "value_floats" in attributes:
        return from_array(np.array(attributes["value_floats"].as_floats(), np.float32))
    if "value_int" in attributes:
        return from_array(np.array(attributes["value_int"].as_int(), np.int64))
    if "value_ints" in attributes:
        return from_array(np.array(attributes["value_ints"].as_ints(), np.int64))
    if "value_string" in attributes:
        text = attributes["value_string"].as_string().encode()
        return ir.StringTensor([text], shape=ir.Shape([]))
    if "value_strings" in attributes:
        texts = [text.encode() for text in attributes["value_strings"].as_strings()]
        return ir.StringTensor(texts, shape=ir.Shape([len(texts)]))
    return None

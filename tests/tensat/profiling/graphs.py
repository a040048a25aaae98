"""Small models whose running graph has each kind of node."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

Arrays = dict[str, np.ndarray]


def value(name: str, *dims: int | str) -> ValueInfoProto:
    """Declare a float32 input or output."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def save(
    folder: Path,
    nodes: Sequence[NodeProto],
    values: tuple[Sequence[ValueInfoProto], Sequence[ValueInfoProto]],
    weights: Arrays,
    opset: int = 17,
) -> Path:
    """Write a model of these nodes, inputs and outputs; return its file."""
    tensors = [onnx.numpy_helper.from_array(a, name) for name, a in weights.items()]
    graph = helper.make_graph(nodes, "g", *values, tensors)
    opsets = [helper.make_opsetid("", opset)]
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


def random(*dims: int, seed: int = 0) -> np.ndarray:
    """Return float32 numbers around 0."""
    numbers = np.random.default_rng(seed).standard_normal(dims)
    return numbers.astype(np.float32)


def branch(name: str, op: str, weights: str) -> onnx.GraphProto:
    """Return a body that combines the outer x with outer weights."""
    node = helper.make_node(op, ["x", weights], [name])
    return helper.make_graph([node], name, [], [onnx.ValueInfoProto(name=name)])

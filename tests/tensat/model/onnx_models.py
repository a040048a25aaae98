"""Small ONNX models, a runner, and the round trip, for the tests of import and export."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from tensat.model.onnx_export import to_model, to_proto
from tensat.model.onnx_import import read, to_graph

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL

Shape = Sequence[int | str | None] | None


def value(name: str, shape: Shape, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    """A declaration."""
    return helper.make_tensor_value_info(name, dtype, shape)


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """A node; names are separated by blanks, "-" is an absent one."""
    names = [[n.replace("-", "") for n in text.split()] for text in (inputs, outputs)]
    return helper.make_node(op, *names, **attributes)


def body(
    nodes: Sequence[onnx.NodeProto],
    outputs: Sequence[onnx.ValueInfoProto],
    inputs: Sequence[onnx.ValueInfoProto] = (),
) -> onnx.GraphProto:
    """A subgraph."""
    return helper.make_graph(list(nodes), "body", list(inputs), list(outputs))


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: Mapping[str, Any] | None = None,
    *,
    opset: int = 17,
    ir_version: int = 8,
    domains: Mapping[str, int] | None = None,
    **keywords: Any,
) -> onnx.ModelProto:
    """A model; constants become initializers."""
    tensors = [
        array
        if isinstance(array, TensorProto)
        else onnx.numpy_helper.from_array(np.asarray(array), name)
        for name, array in (constants or {}).items()
    ]
    graph = helper.make_graph(list(nodes), "main", list(inputs), list(outputs), tensors)
    imports = {"": opset, **(domains or {})}
    made = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(d, v) for d, v in imports.items()],
        **keywords,
    )
    made.ir_version = ir_version
    return made


def run(proto: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """Outputs of a model in ONNX Runtime, nothing optimized."""
    options = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.graph_optimization_level = level
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, dict(feeds)))


def random(*shape: int, seed: int = 0) -> np.ndarray[Any, np.dtype[Any]]:
    """Random float32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def ops(proto: onnx.ModelProto) -> list[str]:
    """Operator types of the main graph, in order."""
    return [n.op_type for n in proto.graph.node]


X = [value("x", [2, 3])]
Y = [value("y", [2, 3])]
FEEDS = {"x": random(2, 3, seed=7)}


def rebuilt(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model through import and export, checked and compared with the original."""
    before = proto.SerializeToString()
    result = to_proto(to_model(to_graph(read(proto))))
    assert proto.SerializeToString() == before, "the original changed"
    onnx.checker.check_model(result)
    return result


def agree(proto: onnx.ModelProto, feeds: Mapping[str, Any] = FEEDS) -> onnx.ModelProto:
    """The rebuilt model; it computes exactly what the original computes."""
    result = rebuilt(proto)
    for want, got in zip(run(proto, feeds), run(result, feeds), strict=True):
        np.testing.assert_array_equal(got, want)
    return result

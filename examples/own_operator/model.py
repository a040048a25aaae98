"""Write model.onnx: a dense layer with a softsign in parts, as some exporters leave it."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

weight = np.random.default_rng(0).normal(size=(256, 256)).astype(np.float32) / 16
graph = helper.make_graph(
    [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("Abs", ["y"], ["size"]),
        helper.make_node("Add", ["size", "one"], ["below"]),
        helper.make_node("Div", ["y", "below"], ["z"]),
    ],
    "layer",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4096, 256])],
    [helper.make_tensor_value_info("z", TensorProto.FLOAT, [4096, 256])],
    [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.float32(1), "one")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, "model.onnx")

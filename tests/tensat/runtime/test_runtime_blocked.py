"""A kernel inside a region of blocked layout loses its reorders and nothing else."""

from __future__ import annotations

import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper

from tensat.runtime.blocked import block_of, inside_region
from tensat.runtime.messages import Filling, Kernel

BLOCKED = "com.microsoft.nchwc"
X = Filling("x", TensorProto.FLOAT, (1, 20, 7, 7))
Y = Filling("y", TensorProto.FLOAT, (1, 30, 7, 7))


def _optimized(*nodes: NodeProto) -> ModelProto:
    values = [helper.make_tensor_value_info(f.name, f.onnx_type, f.dims) for f in (X, Y)]
    weights = helper.make_tensor("w", TensorProto.FLOAT, [16, 1], [1.0] * 16)
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [weights])
    return helper.make_model(graph, ir_version=8)


def _node(op: str, inputs: list[str], output: str, domain: str = BLOCKED) -> NodeProto:
    return helper.make_node(op, inputs, [output], domain=domain)


KERNEL = Kernel(b"", (X,), (Filling("w", TensorProto.FLOAT, (16, 1)),), (Y,), blocked=True)
CONV = _node("Conv", ["x1", "w"], "y1")


def test_reorders_become_inputs_and_outputs() -> None:
    """Their channels are filled up to whole blocks, and the constants are inside."""
    reorders = _node("ReorderInput", ["x"], "x1"), _node("ReorderOutput", ["y1"], "y")
    made = inside_region(KERNEL, _optimized(reorders[0], CONV, reorders[1]), 16)
    assert made is not None
    assert [(f.name, f.dims) for f in made.inputs] == [("x1", (1, 32, 7, 7))]
    assert [(f.name, f.dims) for f in made.outputs] == [("y1", (1, 32, 7, 7))]
    assert made.constants == ()
    assert not made.blocked
    graph = onnx.load_model_from_string(made.model).graph
    assert [node.op_type for node in graph.node] == ["Conv"]
    assert [value.name for value in graph.input] == ["x1"]


def test_a_side_without_reorder_stays() -> None:
    """The first convolution of a model reads the plain image."""
    conv = _node("Conv", ["x", "w"], "y1")
    reorder = _node("ReorderOutput", ["y1"], "y")
    made = inside_region(KERNEL, _optimized(conv, reorder), 16)
    assert made is not None
    assert made.inputs == (X,)


def test_a_plain_kernel_is_left_to_the_usual_way() -> None:
    """Where the runtime blocks nothing there is nothing to strip."""
    conv = _node("Conv", ["x", "w"], "y", domain="")
    assert inside_region(KERNEL, _optimized(conv), 16) is None
    assert block_of(_optimized(conv)) == 0


def test_the_probe_tells_the_block() -> None:
    """One output channel is filled up to a block of weights."""
    assert block_of(_optimized(CONV)) == 16

"""A graph's values have handles in the e-graph, equal ones the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from rulesets.tensor import Tensor
from tensat.egraph.encode import Encoded, encode
from tensat.model.graph import Graph, Ref
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_read import read
from tests.tensat.model.onnx_models import BOOL, body, model, node, random, value

X, Y = [value("x", [2, 3])], [value("y", [2, 3])]


def _encoded(proto: onnx.ModelProto) -> tuple[Graph, Encoded]:
    graph = to_graph(read(proto))
    encoded = encode(graph)
    encoded.egraph.refresh()
    return graph, encoded


def _handle(graph: Graph, encoded: Encoded, name: str) -> int:
    """The class of a value of the model."""
    places = {name: ref for ref, name in graph.names.items()} | dict(graph.outputs)
    return encoded.egraph.find(encoded.handle_of[places[name]])


def test_equal_nodes_share_a_class() -> None:
    """Common subexpressions are found by encoding, also through each other."""
    nodes = [
        node("Relu", "x", "a"), node("Relu", "x", "b"),
        node("Tanh", "a", "c"), node("Tanh", "b", "d"), node("Add", "c d", "y"),
    ]  # fmt: skip
    graph, encoded = _encoded(model(nodes, X, Y))
    assert _handle(graph, encoded, "c") == _handle(graph, encoded, "d")
    assert encoded.egraph.size() == 4


def test_random_nodes_never_share_a_class() -> None:
    """Two draws are two values."""
    nodes = [
        node("RandomNormalLike", "x", "a"), node("RandomNormalLike", "x", "b"),
        node("Sub", "a b", "y"),
    ]  # fmt: skip
    graph, encoded = _encoded(model(nodes, X, Y))
    assert _handle(graph, encoded, "a") != _handle(graph, encoded, "b")


def test_several_results_are_outputs_of_one_node() -> None:
    """Each result has a class of its own."""
    nodes = [node("Split", "x sizes", "a b", axis=1)]
    sizes = {"sizes": np.array([1, 2])}
    outputs = [value("a", [2, 1]), value("b", [2, 2])]
    graph, encoded = _encoded(model(nodes, X, outputs, sizes))
    handles = [_handle(graph, encoded, name) for name in "ab"]
    assert [encoded.egraph.tensor(handle).shape for handle in handles] == [(2, 1), (2, 2)]
    assert {encoded.egraph.key_of[handle].operator for handle in handles} == {"Output"}
    assert encoded.roots == tuple(handles)


def test_roots_are_outputs_and_captured_values() -> None:
    """What a subgraph reads must exist as much as what the model gives."""
    nodes = [
        node("Relu", "x", "inner"),
        node("If", "c", "y",
             then_branch=body([node("Neg", "inner", "t")], [value("t", [2, 3])]),
             else_branch=body([node("Identity", "inner", "e")], [value("e", [2, 3])])),
    ]  # fmt: skip
    graph, encoded = _encoded(model(nodes, [*X, value("c", [], BOOL)], Y))
    roots = {encoded.egraph.find(root) for root in encoded.roots}
    assert roots == {_handle(graph, encoded, "inner"), _handle(graph, encoded, "y")}


def test_absent_inputs_have_a_class_that_is_no_constant() -> None:
    """A missing optional input is an argument like others, and stands for nothing."""
    nodes = [node("Resize", "x - scales", "y", mode="cubic")]
    scales = {"scales": np.array([1.0, 1.0], np.float32)}
    _, encoded = _encoded(model(nodes, X, Y, scales, opset=13))
    egraph = encoded.egraph
    absent = [k for k, key in enumerate(egraph.key_of) if key.operator == "Absent"]
    assert len(absent) == 1
    assert not egraph.constant(absent[0])


@pytest.mark.parametrize(
    ("shape", "known"), [((4096,), True), ((4097,), False), ((), True)], ids=str
)
def test_values_of_small_constants_are_known(shape: tuple[int, ...], known: bool) -> None:
    """Up to 4,096 elements rules can look at."""
    nodes = [node("Add", "w w", "y")]
    proto = model(nodes, X, [value("y", shape)], {"w": random(*shape)})
    graph, encoded = _encoded(proto)
    (weight,) = (k for k, n in enumerate(graph.nodes) if n.op == "Constant")
    handle = encoded.handle_of[Ref(weight)]
    assert encoded.egraph.constant(handle)
    assert (encoded.egraph.array(handle) is not None) is known
    assert encoded.egraph.constant(_handle(graph, encoded, "y"))


def test_infinite_constants_of_the_model_are_no_fault() -> None:
    """A model that divides a constant by zero is encoded as it is."""
    constants = {"one": np.ones(3, np.float32), "zero": np.zeros(3, np.float32)}
    nodes = [node("Div", "one zero", "i"), node("Add", "x i", "y")]
    graph, encoded = _encoded(model(nodes, X, Y, constants))
    handle = _handle(graph, encoded, "i")
    assert encoded.egraph.tensor(handle) == Tensor("float32", (3,))
    assert not encoded.egraph.constant(handle)


def test_strings_are_constants_without_a_value() -> None:
    """Their element type has no width and no arithmetic."""
    texts = onnx.helper.make_tensor("s", onnx.TensorProto.STRING, [2], [b"a", b"b"])
    strings = onnx.TensorProto.STRING
    proto = model([node("Identity", "s", "y")], X, [value("y", [2], strings)], {"s": texts})
    graph, encoded = _encoded(proto)
    assert encoded.egraph.array(_handle(graph, encoded, "y")) is None


def test_an_identity_is_what_it_reads() -> None:
    """Without any rule: what is fused over it in the runtime is found as a match."""
    nodes = [node("Relu", "x", "a"), node("Identity", "a", "b"), node("Tanh", "b", "y")]
    graph, encoded = _encoded(model(nodes, X, Y))
    assert _handle(graph, encoded, "a") == _handle(graph, encoded, "b")

"""Import: what becomes a constant, an input, a canonical or opaque node, and its type."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from rulesets.size import symbol
from rulesets.tensor import Tensor
from tensat.errors import UsageError
from tensat.model.graph import CONSTANT, INPUT, OPAQUE, Graph, Node
from tensat.model.onnx_import import read, to_graph
from tests.tensat.model.onnx_models import INT64, model, node, random, value

X = [value("x", [2, 3])]
Y = [value("y", [2, 3])]


def imported(proto: onnx.ModelProto, **options: Any) -> Graph:
    """The graph of a model."""
    return to_graph(read(proto), **options)


def ops(graph: Graph) -> list[str]:
    """Operators of the graph; opaque nodes by their ONNX type."""
    return [
        graph.opaque[n.key].operator if n.op == OPAQUE else n.op
        for n in graph.nodes
        if n.op not in (INPUT, CONSTANT)
    ]


def producer(graph: Graph, output: str) -> Node:
    """The node that computes an output."""
    return graph.nodes[dict(graph.outputs)[output].node]


# ------------------------------------------------------------------------ constants
@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"value": onnx.numpy_helper.from_array(np.float32(2))}, np.float32(2)),
        ({"value_float": 2.5}, np.float32(2.5)),
        ({"value_floats": [1.0, 2.0, 3.0]}, np.array([1, 2, 3], np.float32)),
        ({"value_int": 7}, np.int64(7)),
        ({"value_ints": [1, 2, 3]}, np.array([1, 2, 3])),
    ],
    ids=["tensor", "float", "floats", "int", "ints"],
)
def test_every_form_of_a_constant_node(form: dict[str, Any], expected: Any) -> None:
    """A Constant node of any form has the element type that ONNX gives that form."""
    proto = model(
        [node("Constant", "", "k", **form), node("Identity", "k", "y")],
        X,
        [value("y", None)],
    )
    proto.graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(
        np.asarray(expected).dtype
    )
    (tensor,) = imported(proto).constants.values()
    assert tensor.numpy().dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(tensor.numpy(), expected)


def test_constant_strings_are_constants() -> None:
    """Strings are constants too."""
    proto = model(
        [node("Constant", "", "k", value_strings=["ab", "c"]), node("Identity", "k", "y")],
        X,
        [value("y", [2], onnx.TensorProto.STRING)],
    )
    (tensor,) = imported(proto).constants.values()
    assert tensor.numpy().tolist() == [b"ab", b"c"]


def test_equal_small_constants_are_one_node() -> None:
    """Type, shape and bytes decide: another type or a signed zero is another constant."""
    constants = {
        "a": np.float32(0),
        "b": np.float32(0),
        "c": np.float32(-0.0),
        "d": np.float64(0),
        "e": np.zeros(1, np.float32),
    }
    nodes = [node("Identity", name, f"y{name}") for name in constants]
    outputs = [
        value(f"y{name}", array.shape, helper.np_dtype_to_tensor_dtype(array.dtype))
        for name, array in constants.items()
    ]
    assert len(imported(model(nodes, X, outputs, constants)).constants) == 4


def test_a_large_constant_is_not_read() -> None:
    """A large initializer is the same tensor object in the graph."""
    proto = model(
        [node("Add", "x w", "y")], [value("x", [70, 70])], Y, {"w": random(70, 70)}
    )
    source = read(proto)
    (tensor,) = to_graph(source).constants.values()
    assert tensor is source.graph.initializers["w"].const_value


def test_unused_constants_are_dropped() -> None:
    """Only what outputs depend on is imported."""
    proto = model(
        [node("Relu", "x", "y"), node("Exp", "k", "dead")], X, Y, {"k": random(3)}
    )
    graph = imported(proto)
    assert ops(graph) == ["Relu"]
    assert graph.constants == {}


# --------------------------------------------------------------------------- inputs
def test_unused_inputs_stay_in_order() -> None:
    """The signature is that of the model."""
    proto = model([node("Relu", "x", "y")], [value("u", ["n"]), *X, value("v", None)], Y)
    graph = imported(proto)
    assert [graph.nodes[i].attribute("name") for i in graph.inputs] == ["u", "x", "v"]


def test_an_initializer_among_the_inputs_is_a_default() -> None:
    """From IR version 4 on the caller may replace it, so it is no constant."""
    proto = model([node("Add", "x w", "y")], [*X, value("w", [3])], Y, {"w": random(3)})
    graph = imported(proto)
    assert list(graph.defaults) == ["w"]
    assert len(graph.inputs) == 2
    assert graph.constants == {}


def test_ir_version_3_lists_constants_among_the_inputs() -> None:
    """There an initializer among the inputs is a constant."""
    proto = model(
        [node("Add", "x w", "y")],
        [*X, value("w", [3])],
        Y,
        {"w": random(3)},
        opset=8,
        ir_version=3,
    )
    graph = imported(proto)
    assert [graph.nodes[i].attribute("name") for i in graph.inputs] == ["x"]
    assert len(graph.constants) == 1


def test_symbolic_dimensions() -> None:
    """A name is one symbol everywhere; nameless dimensions are all different."""
    proto = model(
        [node("Relu", "a", "y")],
        [value("a", ["batch size", None, 4]), value("b", ["batch size", "T"])],
        [value("y", [None, None, 4])],
    )
    graph = imported(proto)
    a, b = (graph.nodes[i].outputs[0] for i in graph.inputs)
    assert a == Tensor("float32", (symbol("batch_size"), symbol("?1"), 4))
    assert b == Tensor("float32", (symbol("batch_size"), symbol("T")))


@pytest.mark.parametrize("name", ["?", "-1", "None", "unk", "_"])
def test_placeholders_are_no_names(name: str) -> None:
    """Exporters write them for dimensions of different size."""
    graph = imported(model([node("Relu", "x", "y")], [value("x", [name, 3, name])], Y))
    assert graph.nodes[0].outputs[0].shape == (symbol("?1"), 3, symbol("?2"))


def test_symbols_of_different_names_differ() -> None:
    """Names that become equal when cleaned stay different symbols."""
    proto = model([node("Relu", "a", "y")], [value("a", ["a+b", "a-b"])], Y)
    graph = imported(proto)
    assert graph.nodes[0].outputs[0].shape == (symbol("a_b"), symbol("a_b_2"))


def test_shapes_can_be_given() -> None:
    """A given shape replaces the declared one, in types and in the declaration."""
    proto = model([node("Relu", "x", "y")], [value("x", ["n", 3])], [value("y", ["n", 3])])
    graph = imported(proto, shapes={"x": (5, 3)})
    assert producer(graph, "y").outputs == (Tensor("float32", (5, 3)),)
    assert list(graph.header.inputs[0].shape or ()) == [5, 3]


def test_a_given_size_holds_for_its_name() -> None:
    """Other inputs with a dimension of that name have that size too."""
    proto = model(
        [node("Add", "a b", "y")], [value("a", ["n", 3]), value("b", ["n", 1])], Y
    )
    graph = imported(proto, shapes={"a": (5, 3)})
    assert graph.nodes[graph.inputs[1]].outputs[0].shape == (5, 1)
    with pytest.raises(UsageError, match=r"\[4, 1\] is given for input 'b'"):
        imported(proto, shapes={"a": (5, 3), "b": (4, 1)})


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ({"z": (1,)}, "'z'; the inputs are: x"),
        ({"x": (1,)}, r"\[1\] is given for input 'x', which is declared as \[2,3\]"),
        ({"x": (2, 4)}, r"\[2, 4\] is given for input 'x'"),
    ],
    ids=["unknown", "rank", "size"],
)
def test_shapes_that_do_not_fit_are_refused(shapes: dict[str, Any], text: str) -> None:
    """The error says what is possible."""
    with pytest.raises(UsageError, match=text):
        imported(model([node("Relu", "x", "y")], X, Y), shapes=shapes)


# -------------------------------------------------------------------- shape following
def test_a_computed_static_shape_is_a_constant() -> None:
    """Shape, Gather and arithmetic on a static shape leave no nodes."""
    proto = model(
        [node("Shape", "x", "s"), node("Gather", "s i", "g"), node("Mul", "g g", "y")],
        X,
        [value("y", [], INT64)],
        {"i": np.int64(1)},
    )
    graph = imported(proto)
    assert ops(graph) == []
    assert producer(graph, "y").op == CONSTANT
    assert graph.constants[producer(graph, "y").key].numpy() == 9


def test_int32_values_that_would_wrap_are_not_followed() -> None:
    """The runtime's wrapping decides, not Python's integers."""
    proto = model(
        [node("Mul", "k k", "m"), node("Identity", "m", "y")],
        X,
        [value("y", [1], onnx.TensorProto.INT32)],
        {"k": np.array([70000], np.int32)},
    )
    assert ops(imported(proto)) == ["Mul", "Identity"]


def test_reshape_to_a_computed_symbolic_shape() -> None:
    """A batch that is read from the input becomes an attribute; Shape is not needed."""
    proto = model(
        [
            node("Shape", "x", "s"),
            node("Gather", "s zero", "n"),
            node("Unsqueeze", "n axis", "u"),
            node("Concat", "u rest", "t", axis=0),
            node("Reshape", "x t", "y"),
        ],
        [value("x", ["n", 3, 4])],
        [value("y", ["n", 12])],
        {"zero": np.int64(0), "axis": np.array([0]), "rest": np.array([-1])},
    )
    graph = imported(proto)
    assert ops(graph) == ["Reshape"]
    assert producer(graph, "y").attribute("shape") == (symbol("n"), 12)


def test_stale_declared_shapes_are_not_trusted() -> None:
    """Neither the declared shape of an intermediate value nor that of an output counts."""
    proto = model([node("Celu", "x", "t"), node("Celu", "t", "y")], X, [value("y", [7, 7])])
    proto.graph.value_info.append(value("t", [5, 5]))
    graph = imported(proto)
    assert producer(graph, "y").outputs == (Tensor("float32", (2, 3)),)

"""Opaque nodes: their keys, their arguments, and their types."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from rulesets.size import symbol
from rulesets.tensor import Tensor
from tensat.model.graph import CONSTANT, INPUT, OPAQUE, Graph, Node
from tensat.model.onnx_import import read, to_graph
from tests.tensat.model.onnx_models import BOOL, INT64, body, model, node, random, value

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


def test_types_of_opaque_nodes_come_from_onnx() -> None:
    """Symbolic sizes pass through an opaque node; unknown ones are fresh symbols."""
    proto = model(
        [node("Celu", "x", "c"), node("NonZero", "c", "y")],
        [value("x", ["n", 3])],
        [value("y", [2, None], INT64)],
    )
    graph = imported(proto)
    celu = next(n for n in graph.nodes if n.op == OPAQUE)
    assert celu.outputs == (Tensor("float32", (symbol("n"), 3)),)
    assert producer(graph, "y").outputs == (Tensor("int64", (2, symbol("?1"))),)


def test_a_result_has_the_shape_that_is_asked_for() -> None:
    """A Reshape that cannot be proved to fit has the asked type: the runtime checks it."""
    proto = model(
        [
            node("Shape", "x", "s"),
            node("Slice", "s one two", "w"),
            node("Concat", "zero w rest", "t", axis=0),
            node("Reshape", "x t", "y"),
            node("ConstantOfShape", "s", "z"),
            node("Expand", "k s", "e"),
        ],
        [value("x", ["h", "w", "?", 4])],
        [value("y", [None] * 3), value("z", [None] * 4), value("e", [None] * 4)],
        {
            "one": np.array([1]),
            "two": np.array([2]),
            "zero": np.array([0]),
            "rest": np.array([8]),
            "k": random(1, 4),
        },
    )
    graph = imported(proto)
    h, w, fresh = symbol("h"), symbol("w"), symbol("?1")
    assert producer(graph, "y").outputs == (Tensor("float32", (h, w, 8)),)
    assert producer(graph, "z").outputs == (Tensor("float32", (h, w, fresh, 4)),)
    assert producer(graph, "e").outputs == (Tensor("float32", (h, w, fresh, 4)),)


def test_equal_deterministic_nodes_share_a_key() -> None:
    """Equal content is one key, a different attribute another."""
    proto = model(
        [
            node("Celu", "x", "a", alpha=1.0),
            node("Celu", "x", "b", alpha=1.0, name="n"),
            node("Celu", "x", "c", alpha=2.0),
        ],
        X,
        [value(name, [2, 3]) for name in "abc"],
    )
    graph = imported(proto)
    a, b, c = (producer(graph, name).key for name in "abc")
    assert a == b
    assert b != c


@pytest.mark.parametrize(
    "make",
    [
        lambda name: node("RandomNormalLike", "x", name),
        lambda name: node("Bernoulli", "x", name),
        lambda name: node("Mystery", "x", name, domain="some.where"),
        lambda name: node("Local", "x", name, domain="local"),
    ],
    ids=["random", "bernoulli", "domain", "function"],
)
def test_nodes_that_must_not_be_merged_have_keys_of_their_own(
    make: Callable[[str], onnx.NodeProto],
) -> None:
    """Random nodes, foreign operators and functions are never merged."""
    proto = model(
        [make("a"), make("b")],
        X,
        [value("a", [2, 3]), value("b", [2, 3])],
        domains={"some.where": 1, "local": 1},
    )
    proto.functions.append(
        helper.make_function(
            "local", "Local", ["p"], ["q"], [node("Exp", "p", "q")], proto.opset_import[:1]
        )
    )
    graph = imported(proto)
    a, b = producer(graph, "a"), producer(graph, "b")
    assert a.op == b.op == OPAQUE
    assert a.key != b.key
    assert graph.opaque[a.key].unique


def test_captured_values_are_arguments() -> None:
    """What subgraphs read from outside, nested ones included, follows the own inputs."""
    inner = body([node("Add", "t k", "i")], [value("i", [2, 3])])
    outer = body(
        [node("If", "c", "o", then_branch=inner, else_branch=inner)], [value("o", [2, 3])]
    )
    proto = model(
        [node("Neg", "x", "t"), node("If", "c", "y", then_branch=outer, else_branch=inner)],
        [*X, value("c", [], BOOL)],
        Y,
        {"k": random(3)},
    )
    graph = imported(proto)
    branch = producer(graph, "y")
    record = graph.opaque[branch.key]
    assert record.arity == 1
    assert set(record.captures) == {"t", "k", "c"}
    assert len(branch.inputs) == 4
    assert {name for name, _ in graph.kept} == {"t", "k", "c"}
    assert branch.outputs == (Tensor("float32", (2, 3)),)


def test_a_function_has_inferred_types() -> None:
    """ONNX looks into the function."""
    proto = model([node("Local", "x", "y", domain="local")], X, Y, domains={"local": 1})
    proto.functions.append(
        helper.make_function(
            "local",
            "Local",
            ["p"],
            ["q"],
            [node("Shape", "p", "q")],
            proto.opset_import[:1],
        )
    )
    assert producer(imported(proto), "y").outputs == (Tensor("int64", (2,)),)


def test_absent_inputs_are_none() -> None:
    """An optional input that is left out has no value."""
    proto = model(
        [node("Resize", "x - - s", "y")], [value("x", [1, 1, 2, 2])],
        [value("y", [1, 1, 4, 4])], {"s": np.array([1, 1, 4, 4])},
    )  # fmt: skip
    graph = imported(proto)
    resize = producer(graph, "y")
    if resize.op == OPAQUE:
        assert resize.inputs[1:3] == (None, None)
    assert resize.outputs == (Tensor("float32", (1, 1, 4, 4)),)


def test_several_outputs_are_numbered() -> None:
    """A value is an output of a node, by number."""
    proto = model(
        [node("TopK", "x k", "v i"), node("Relu", "v", "y")],
        X,
        [value("y", [2, 1]), value("i", [2, 1], INT64)],
        {"k": np.array([1])},
    )
    graph = imported(proto)
    assert dict(graph.outputs)["i"].output == 1


def test_nodes_out_of_order_are_sorted() -> None:
    """The order of the file does not matter."""
    proto = model([node("Exp", "t", "y"), node("Relu", "x", "t")], X, Y)
    assert ops(imported(proto)) == ["Relu", "Exp"]

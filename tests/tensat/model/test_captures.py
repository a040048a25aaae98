"""Subgraphs: captured values, their names, and the names inside."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

from tensat.errors import InternalError
from tensat.model.onnx_export import to_model, to_proto
from tensat.model.onnx_import import read, to_graph
from tests.tensat.model.onnx_models import (
    BOOL,
    FEEDS,
    FLOAT,
    X,
    Y,
    agree,
    body,
    model,
    node,
    ops,
    random,
    run,
    value,
)


def test_captured_names_exist_after_export() -> None:
    """A constant, a folded value, an input and a renamed value, each read by a subgraph."""
    branch = body(
        [node("Add", "t k", "a"), node("Mul", "a x", "b"), node("Cast", "s", "f", to=FLOAT),
         node("ReduceSum", "f", "r", keepdims=0), node("Add", "b r", "o")],
        [value("o", [2, 3])],
    )  # fmt: skip
    proto = model(
        [
            node("Neg", "x", "t"),
            node("Shape", "x", "s"),
            node("If", "c", "y", then_branch=branch, else_branch=branch),
        ],
        [*X, value("c", [], BOOL)],
        Y,
        {"k": random(3)},
    )
    result = agree(proto, {**FEEDS, "c": np.array(True)})
    before, after = proto.graph.node[2], result.graph.node[-1]
    assert list(after.attribute) == list(before.attribute)


def test_captured_values_that_became_one_keep_both_names() -> None:
    """Two captured names of one value: one of them is an Identity before the subgraph."""
    then = body([node("Exp", "a", "o")], [value("o", [2, 3])])
    other = body([node("Neg", "b", "o")], [value("o", [2, 3])])
    proto = model(
        [
            node("Relu", "x", "a"),
            node("Relu", "x", "b"),
            node("If", "c", "y", then_branch=then, else_branch=other),
        ],
        [*X, value("c", [], BOOL)],
        Y,
    )
    graph = to_graph(read(proto))
    branch = graph.outputs[0][1].node
    a = dict(graph.kept)["a"]
    inputs = (graph.nodes[branch].inputs[0], a, a)
    nodes = list(graph.nodes)
    nodes[branch] = replace(nodes[branch], inputs=inputs)
    result = to_proto(to_model(replace(graph, nodes=tuple(nodes))))
    onnx.checker.check_model(result)
    assert ops(result) == ["Relu", "Identity", "If"]
    for flag in (True, False):
        feeds = {**FEEDS, "c": np.array(flag)}
        np.testing.assert_array_equal(run(result, feeds)[0], run(proto, feeds)[0])


def test_new_names_avoid_those_inside_subgraphs() -> None:
    """A value that lost its name gets one that no subgraph defines."""
    branch = body(
        [node("Exp", "x", "relu_0"), node("Neg", "relu_0", "o")], [value("o", [2, 3])]
    )
    proto = model(
        [
            node("Relu", "x", "t"),
            node("If", "c", "i", then_branch=branch, else_branch=branch),
            node("Add", "t i", "y"),
        ],
        [*X, value("c", [], BOOL)],
        Y,
    )
    graph = replace(to_graph(read(proto)), names={})
    result = to_proto(to_model(graph))
    onnx.checker.check_model(result)
    names = [name for n in result.graph.node for name in n.output]
    assert "relu_0" not in names
    feeds = {**FEEDS, "c": np.array(True)}
    np.testing.assert_array_equal(run(result, feeds)[0], run(proto, feeds)[0])


def test_one_name_for_two_values_is_a_bug() -> None:
    """A graph that demands it cannot be written."""
    proto = model(
        [node("Relu", "x", "y"), node("Exp", "x", "z")], X, [*Y, value("z", None)]
    )
    graph = to_graph(read(proto))
    (_, one), (_, two) = graph.outputs
    wrong = replace(graph, outputs=(("y", one), ("y", two)))
    with pytest.raises(InternalError, match="'y' is demanded for two different values"):
        to_model(wrong)

"""The Graph: types, liveness, pruning, Output nodes."""

import dataclasses

import onnx_ir as ir
import pytest

from rulesets.tensor import Tensor
from tensat.model.graph import (
    CONSTANT,
    INPUT,
    OUTPUT,
    Graph,
    Header,
    Node,
    Ref,
    dtype_name,
    dtype_of,
    prune,
)

TYPE = Tensor("float32", (2, 3))


def _graph() -> Graph:
    nodes = (
        Node(INPUT, (("name", "x"),), (), (TYPE,)),
        Node(INPUT, (("name", "unused"),), (), (TYPE,)),
        Node(CONSTANT, (("key", "dead"),), (), (TYPE,)),
        Node("Split", (("axis", 1), ("parts", (1, 2))), (Ref(0),), (TYPE, TYPE)),
        Node(OUTPUT, (("index", 1),), (Ref(3),), (TYPE,)),
        Node("Relu", (), (Ref(4),), (TYPE,)),
    )
    return Graph(
        nodes=nodes,
        outputs=(("y", Ref(5)),),
        inputs=(0, 1),
        constants={"dead": ir.tensor([1.0])},
        opaque={},
        defaults={},
        names={Ref(0): "x", Ref(2): "d", Ref(5): "y"},
        header=Header(ir_version=8, opsets={"": 17}),
    )


def test_live_nodes_are_those_of_outputs_and_all_inputs() -> None:
    """An unused input is live, a constant that nobody reads is not."""
    assert _graph().live() == {0, 1, 3, 4, 5}


def test_prune_renumbers_values() -> None:
    """Dead nodes go, with their constants and names; values keep their meaning."""
    graph = prune(_graph())
    assert [node.op for node in graph.nodes] == [INPUT, INPUT, "Split", OUTPUT, "Relu"]
    assert graph.outputs == (("y", Ref(4)),)
    assert graph.nodes[4].inputs == (Ref(3),)
    assert graph.constants == {}
    assert graph.names == {Ref(0): "x", Ref(4): "y"}


def test_prune_of_a_live_graph_is_the_same_object() -> None:
    """Nothing is copied when nothing is dead."""
    graph = prune(_graph())
    assert prune(graph) is graph


def test_an_output_node_is_another_name_of_a_result() -> None:
    """``resolve`` looks through Output nodes."""
    assert _graph().resolve(Ref(4)) == Ref(3, 1)
    assert _graph().resolve(Ref(5)) == Ref(5)


def test_a_missing_attribute_is_a_key_error() -> None:
    """``attribute`` names what is missing."""
    with pytest.raises(KeyError, match="epsilon"):
        _graph().nodes[0].attribute("epsilon")


def test_uses_lists_every_argument() -> None:
    """Each argument is one use."""
    assert list(_graph().uses()) == [(3, Ref(0)), (4, Ref(3)), (5, Ref(4))]


@pytest.mark.parametrize("dtype", list(ir.DataType), ids=lambda dtype: dtype.name)
def test_every_onnx_element_type_has_a_name(dtype: ir.DataType) -> None:
    """Names go both ways."""
    assert dtype_of(dtype_name(dtype)) == dtype


def test_nodes_are_values() -> None:
    """Equal nodes are equal and hash alike; nothing can be assigned."""
    node = _graph().nodes[3]
    assert node == dataclasses.replace(node)
    assert hash(node) == hash(dataclasses.replace(node))
    with pytest.raises(dataclasses.FrozenInstanceError, match="op"):
        node.op = "Concat"  # type: ignore[misc]

"""Export: what a model keeps, how values are named, and how files are written."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper

from rulesets.tensor import Tensor
from tensat.errors import InternalError
from tensat.model.graph import OUTPUT, Node, Ref
from tensat.model.onnx_export import to_model, to_proto
from tensat.model.onnx_import import read, to_graph
from tests.tensat.model.onnx_models import (
    FEEDS,
    FLOAT,
    INT64,
    X,
    Y,
    agree,
    model,
    node,
    ops,
    random,
    rebuilt,
    run,
    value,
)


# ------------------------------------------------------------------------ interface
def test_declarations_are_kept() -> None:
    """Names, order, types and shapes of inputs and outputs, symbolic ones too."""
    proto = model(
        [node("Relu", "b", "z"), node("Neg", "a", "y")],
        [value("b", ["n", None]), value("a", [2, "m"]), value("unused", [None], INT64)],
        [value("z", ["n", "k"]), value("y", [2, None])],
    )
    proto.graph.input[0].doc_string = "an input"
    proto.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    result = rebuilt(proto)
    assert list(result.graph.input) == list(proto.graph.input)
    assert list(result.graph.output) == list(proto.graph.output)


def test_everything_around_the_graph_is_kept() -> None:
    """Producer, versions, doc strings, metadata, imports, names and docs of nodes."""
    proto = model(
        [node("Relu", "x", "t", name="first", doc_string="hello"), node("Celu", "t", "y")],
        X,
        Y,
        producer_name="acme",
        producer_version="9",
        doc_string="model doc",
        domains={"com.example": 3},
    )
    proto.model_version, proto.domain = 4, "example"
    helper.set_model_props(proto, {"author": "me"})
    proto.graph.doc_string = "graph doc"
    proto.graph.node[0].metadata_props.add(key="k", value="v")
    result = agree(proto)
    for field in ("producer_name", "producer_version", "doc_string", "model_version"):
        assert getattr(result, field) == getattr(proto, field)
    assert (result.domain, result.ir_version) == ("example", proto.ir_version)
    assert list(result.opset_import) == list(proto.opset_import)
    assert list(result.metadata_props) == list(proto.metadata_props)
    assert (result.graph.name, result.graph.doc_string) == ("main", "graph doc")
    assert result.graph.node[0] == proto.graph.node[0]


def test_outputs_that_are_not_computed_are_copies() -> None:
    """An output that is an input, a constant or another output gets an Identity."""
    proto = model(
        [
            node("Shape", "x", "s"),
            node("Neg", "x", "n"),
            node("Identity", "s", "y1"),
            node("Identity", "k", "y2"),
        ],
        X,
        [
            value("y1", [2], INT64),
            value("y2", [3]),
            value("n", [2, 3]),
            value("s", [2], INT64),
        ],
        {"k": random(3)},
    )
    assert sorted(ops(agree(proto))) == ["Identity", "Identity", "Identity", "Neg"]


def test_an_output_may_be_an_input_by_name() -> None:
    """No Identity can help then; the name is both."""
    proto = model([node("Relu", "x", "y")], X, [*Y, value("x", [2, 3])])
    result = rebuilt(proto)
    assert [v.name for v in result.graph.output] == ["y", "x"]
    assert ops(result) == ["Relu"]


def test_one_value_may_have_two_output_names() -> None:
    """As when equal nodes are merged."""
    proto = model(
        [node("Relu", "x", "y"), node("Relu", "x", "z")], X, [*Y, value("z", [2, 3])]
    )
    graph = to_graph(read(proto))
    ref = graph.outputs[0][1]
    merged = replace(graph, outputs=(("y", ref), ("z", ref)))
    result = to_proto(to_model(merged))
    assert ops(result) == ["Relu", "Identity"]
    for want, got in zip(run(proto, FEEDS), run(result, FEEDS), strict=True):
        np.testing.assert_array_equal(got, want)


def test_defaults_of_inputs_survive() -> None:
    """The caller may still leave the input out, or give it."""
    proto = model([node("Add", "x w", "y")], [*X, value("w", [3])], Y, {"w": random(3)})
    result = agree(proto)
    agree(proto, {**FEEDS, "w": random(3, seed=5)})
    assert [t.name for t in result.graph.initializer] == ["w"]
    assert [v.name for v in result.graph.input] == ["x", "w"]


def test_initializers_are_no_inputs_from_ir_version_4_on() -> None:
    """Constants cannot be replaced by the caller."""
    result = agree(model([node("Add", "x w", "y")], X, Y, {"w": random(3)}))
    assert [v.name for v in result.graph.input] == ["x"]


def test_initializers_are_inputs_in_ir_version_3() -> None:
    """All of them, those that did not exist before included."""
    proto = model(
        [
            node("Constant", "", "k", value=onnx.numpy_helper.from_array(random(3))),
            node("Add", "x w", "t"),
            node("Mul", "t k", "y"),
        ],
        [value("w", [3]), *X],
        Y,
        {"w": random(3, seed=1)},
        opset=8,
        ir_version=3,
    )
    result = agree(proto)
    assert {t.name for t in result.graph.initializer} == {"w", "k"}
    assert [v.name for v in result.graph.input] == ["x", "k", "w"]


# ----------------------------------------------------------------------------- nodes
def test_functions_and_foreign_operators_pass_through() -> None:
    """Functions stay, called as before; a foreign operator keeps its declared type."""
    proto = model(
        [
            node("Local", "x", "t", domain="local"),
            node("Odd", "t", "u", domain="odd"),
            node("Relu", "u", "y"),
        ],
        X,
        Y,
        domains={"local": 1, "odd": 1},
    )
    proto.functions.append(
        helper.make_function(
            "local", "Local", ["p"], ["q"], [node("Exp", "p", "q")], proto.opset_import[:1]
        )
    )
    proto.graph.value_info.append(value("u", [9, 9]))
    result = rebuilt(proto)
    assert ops(result) == ["Local", "Odd", "Relu"]
    assert list(result.functions) == list(proto.functions)
    assert [v.name for v in result.graph.value_info] == ["u"]
    assert not result.graph.value_info[0].type.tensor_type.HasField("shape")


def test_absent_outputs_stay_absent() -> None:
    """An output named '' in the middle and unused ones at the end."""
    proto = model(
        [node("LSTM", "x w r", "- h", hidden_size=2)],
        [value("x", [1, 1, 3])],
        [value("h", [1, 1, 2])],
        {"w": random(1, 8, 3), "r": random(1, 8, 2)},
    )
    result = agree(proto, {"x": random(1, 1, 3)})
    assert list(result.graph.node[0].output) == ["", "h"]


def test_equal_constants_become_one_initializer() -> None:
    """Large ones too, whatever their names."""
    weights = random(70, 70)
    other = weights.copy()
    other[35, 35] += 1
    proto = model(
        [node("Add", "x a", "t"), node("Add", "t b", "u"), node("Add", "u c", "y")],
        [value("x", [70, 70])],
        [value("y", [70, 70])],
        {"a": weights, "b": weights.copy(), "c": other},
    )
    result = agree(proto, {"x": random(70, 70)})
    assert [t.name for t in result.graph.initializer] == ["a", "c"]


def test_parameters_of_lowered_nodes_share_initializers() -> None:
    """Two Squeezes by the same axes have one constant."""
    proto = model(
        [node("Squeeze", "x a", "t"), node("Exp", "t", "e"), node("Unsqueeze", "e b", "y")],
        [value("x", [1, 3])],
        [value("y", [1, 3])],
        {"a": np.array([0]), "b": np.array([-2])},
    )
    result = agree(proto, {"x": random(1, 3)})
    assert len(result.graph.initializer) == 1


def test_output_nodes_are_looked_through() -> None:
    """A decoder may leave them in the graph."""
    proto = model(
        [node("Split", "x s", "a b", axis=1), node("Relu", "b", "y")],
        X,
        [value("y", [2, 2])],
        {"s": np.array([1, 2])},
    )
    graph = to_graph(read(proto))
    relu = graph.outputs[0][1].node
    source = graph.nodes[relu].inputs[0]
    assert source is not None
    nodes = [
        *graph.nodes[:relu],
        Node(
            OUTPUT,
            (("index", source.output),),
            (Ref(source.node),),
            (graph.tensor(source),),
        ),
        replace(graph.nodes[relu], inputs=(Ref(relu),)),
    ]
    changed = replace(graph, nodes=tuple(nodes), outputs=(("y", Ref(relu + 1)),))
    result = to_proto(to_model(changed))
    np.testing.assert_array_equal(run(result, FEEDS)[0], run(proto, FEEDS)[0])


def test_nodes_of_an_operator_written_out_have_names_of_their_own() -> None:
    """A named GELU of opset 13 is five nodes, two of them products, and they run."""
    proto = model([node("Relu", "x", "y", name="act")], X, Y, opset=13)
    graph = to_graph(read(proto))
    gelu = (("approximate", "none"),)
    nodes = [
        replace(n, op="Gelu", attributes=gelu) if n.op == "Relu" else n for n in graph.nodes
    ]
    result = to_proto(to_model(replace(graph, nodes=tuple(nodes))))
    names = [one.name for one in result.graph.node]
    assert names[-1] == "act"
    assert len(set(names)) == len(names) == 5
    assert all(name.startswith("act/") for name in names[:-1])
    assert np.isfinite(run(result, FEEDS)[0]).all()


def test_an_operator_without_onnx_form_is_a_bug() -> None:
    """Erf does not exist at opset 8; extraction must not choose it."""
    graph = to_graph(read(model([node("Relu", "x", "y")], X, Y, opset=8)))
    nodes = [
        replace(n, op="Erf", attributes=()) if n.op == "Relu" else n for n in graph.nodes
    ]
    with pytest.raises(InternalError, match="Erf cannot be written at opset 8"):
        to_model(replace(graph, nodes=tuple(nodes)))


def test_things_that_onnx_ir_cannot_hold_pass_through() -> None:
    """Sparse constants, map types and strings that are not UTF-8."""
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("k", FLOAT, [1], [2.0]),
        helper.make_tensor("", INT64, [1], [4]),
        [2, 3],
    )
    proto = model(
        [node("Add", "x k", "y"), node("Odd", "x", "z", domain="odd", data=b"\xff\xfe")],
        X,
        Y,
        domains={"odd": 1},
    )
    map_type = helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, None))
    proto.graph.output.append(
        helper.make_value_info("z", helper.make_sequence_type_proto(map_type))
    )
    proto.graph.sparse_initializer.append(sparse)
    result = rebuilt(proto)
    nodes = {n.op_type: n for n in result.graph.node}
    held = nodes["Constant"].attribute[0].sparse_tensor
    assert held.values.float_data == [2.0]
    assert nodes["Odd"].attribute[0].s == b"\xff\xfe"
    assert result.graph.output[1] == proto.graph.output[1]


def test_dead_nodes_are_dropped() -> None:
    """Nothing else is."""
    proto = model([node("Exp", "x", "dead"), node("Relu", "x", "y")], X, Y)
    assert ops(agree(proto)) == ["Relu"]


def test_export_is_deterministic() -> None:
    """Same graph, same bytes."""
    proto = model([node("Add", "x w", "y")], X, Y, {"w": random(3)})
    assert rebuilt(proto).SerializeToString() == rebuilt(proto).SerializeToString()


@pytest.mark.parametrize("opset", range(7, 24))
def test_an_identity_round_trip_at_every_opset(opset: int) -> None:
    """Forms that changed over the opsets come back in the form of the model's opset."""
    squeeze = (
        [node("Squeeze", "u", "s", axes=[0])]
        if opset < 13
        else [node("Squeeze", "u a", "s")]
    )
    unsqueeze = (
        [node("Unsqueeze", "x", "u", axes=[0])]
        if opset < 13
        else [node("Unsqueeze", "x a", "u")]
    )
    proto = model(
        [*unsqueeze, *squeeze, node("Softmax", "s", "p", axis=1), node("Relu", "p", "y")],
        X,
        Y,
        {} if opset < 13 else {"a": np.array([0])},
        opset=opset,
    )
    assert ops(agree(proto)) == ["Unsqueeze", "Squeeze", "Softmax", "Relu"]


def test_types_are_not_needed_for_export() -> None:
    """An unknown type passes through."""
    proto = model(
        [node("SequenceConstruct", "x x", "q"), node("SequenceAt", "q i", "y")],
        X,
        Y,
        {"i": np.int64(1)},
    )
    graph = to_graph(read(proto))
    assert graph.nodes[graph.outputs[0][1].node].outputs[0].dtype == "float32"
    assert Tensor("unknown", None) in [t for n in graph.nodes for t in n.outputs]
    agree(proto)


def test_operators_of_other_domains_bring_their_import() -> None:
    """A node of another domain is written as it is, absent arguments in the middle too."""
    graph = to_graph(read(model([node("Relu", "x", "y")], X, Y)))
    relu = next(at for at, one in enumerate(graph.nodes) if one.op == "Relu")
    source = graph.nodes[relu].inputs[0]
    other = Node(
        "com.microsoft:BiasGelu",
        (("alpha", 0.5), ("mode", "fast")),
        (source, None, source),
        graph.nodes[relu].outputs,
    )
    nodes = (*graph.nodes[:relu], other, *graph.nodes[relu + 1 :])
    proto = to_proto(to_model(replace(graph, nodes=nodes)))
    (written,) = proto.graph.node
    assert (written.domain, written.op_type) == ("com.microsoft", "BiasGelu")
    assert list(written.input) == ["x", "", "x"]
    found = {one.name: helper.get_attribute_value(one) for one in written.attribute}
    assert found == {"alpha": 0.5, "mode": b"fast"}
    assert {one.domain: one.version for one in proto.opset_import}["com.microsoft"] == 1

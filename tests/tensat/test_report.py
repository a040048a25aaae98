"""Reports: sizes of models, and JSON of all that is known."""

from __future__ import annotations

import json

import numpy as np
import onnx
import onnx_ir as ir

from tensat.report import ModelSummary, Report, summarize
from tests.tensat.model.onnx_models import BOOL, X, Y, body, model, node, random, value


def _summary(proto: onnx.ModelProto) -> ModelSummary:
    return summarize(ir.serde.deserialize_model(proto), 1.0, 2.0)


def test_operators_are_counted_and_constants_are_not() -> None:
    """In alphabetical order; weights count in bytes wherever they are stored."""
    weight = onnx.numpy_helper.from_array(random(3))
    nodes = [
        node("Constant", "", "k", value=weight), node("Add", "x w", "a"),
        node("Relu", "a", "b"), node("Add", "b k", "y"),
    ]  # fmt: skip
    nodes[0].ClearField("input")
    found = _summary(model(nodes, X, Y, {"w": random(3), "big": np.zeros(10, np.int64)}))
    assert list(found.operators.items()) == [("Add", 2), ("Relu", 1)]
    assert found.nodes == 3
    assert found.bytes == 12 + 12 + 80
    assert (found.predicted_seconds, found.measured_seconds) == (1.0, 2.0)


def test_nodes_of_subgraphs_count() -> None:
    """Each branch with all its nodes."""
    branch = body([node("Neg", "x", "t"), node("Abs", "t", "u")], [value("u", [2, 3])])
    nodes = [node("If", "c", "y", then_branch=branch, else_branch=branch)]
    found = _summary(model(nodes, [*X, value("c", [], BOOL)], Y))
    assert found.operators == {"Abs": 2, "If": 1, "Neg": 2}


def test_other_domains_are_named() -> None:
    """An operator of another domain is another operator."""
    nodes = [node("Relu", "x", "a", domain="my"), node("Relu", "a", "y")]
    found = _summary(model(nodes, X, Y, domains={"my": 1}))
    assert found.operators == {"Relu": 1, "my::Relu": 1}


def test_strings_have_no_bytes() -> None:
    """Their size is not the sum of elements of a width."""
    texts = onnx.helper.make_tensor("s", onnx.TensorProto.STRING, [2], [b"a", b"bc"])
    proto = model([node("Relu", "x", "y")], X, Y, {"s": texts})
    assert _summary(proto).bytes == 0


def test_constants_of_every_form_have_bytes() -> None:
    """Scalars and lists in attributes are weights too."""
    nodes = [node("Relu", "x", "y")]
    forms = {"value_float": 1.0, "value_ints": [1, 2, 3], "value_string": "text"}
    for name, held in forms.items():
        nodes.append(onnx.helper.make_node("Constant", [], [name], **{name: held}))
    assert _summary(model(nodes, X, Y)).bytes == 4 + 24


def test_constants_that_callers_give_have_no_bytes() -> None:
    """In a function a Constant may be an attribute of the call."""
    held = onnx.helper.make_node("Constant", [], ["k"])
    held.attribute.append(
        onnx.AttributeProto(
            name="value", ref_attr_name="v", type=onnx.AttributeProto.TENSOR
        )
    )
    function = onnx.helper.make_function(
        "my", "F", ["x"], ["y"], [held, node("Add", "x k", "y")],
        [onnx.helper.make_opsetid("", 17)], ["v"],
    )  # fmt: skip
    call = node("F", "x", "y", domain="my", v=onnx.numpy_helper.from_array(random(3)))
    proto = model([call], X, Y, domains={"my": 1})
    proto.functions.append(function)
    assert _summary(proto).operators == {"Add": 1, "my::F": 1}


def test_a_report_is_json() -> None:
    """Everything that is in it can be read back, numbers as numbers."""
    before = ModelSummary({"Relu": 2}, 2, 100, 1e-6, None)
    report = Report(
        True, "Improved: twice as fast.", before, before, ratio=np.float64(2.0),
        input_shapes={"x": (1, 3)}, saturation={"growth": [(1, 1), (3, 2)]},
        extraction={"gap": float("inf")}, notes=("a note",),
    )  # fmt: skip

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    read = json.loads(report.to_json(), parse_constant=refuse)
    assert read["improved"] is True
    assert read["before"] == {
        "operators": {"Relu": 2}, "nodes": 2, "bytes": 100, "predicted_seconds": 1e-6,
        "measured_seconds": None,
    }  # fmt: skip
    assert read["ratio"] == 2.0
    assert read["input_shapes"] == {"x": [1, 3]}
    assert read["extraction"]["gap"] is None
    assert report.to_json().endswith("}\n")


def test_a_report_as_text_is_its_sentence() -> None:
    """One line."""
    before = ModelSummary({}, 0, 0)
    assert str(Report(False, "The original is kept.", before, before)) == (
        "The original is kept."
    )

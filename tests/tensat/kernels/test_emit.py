"""A choice becomes a graph with the names, inputs, outputs and metadata of the original."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest

from rulesets.rule import Rule
from tensat.runtime import Runtime
from tests.tensat.egraph.lab import rule
from tests.tensat.model.onnx_models import (
    BOOL,
    FEEDS,
    X,
    Y,
    body,
    model,
    node,
    ops,
    random,
    run,
    value,
)  # fmt: skip
from tests.tensat.pipeline import RULES, RandomCosts, improved


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """One child for all tests of this file."""
    with Runtime() as made:
        yield made


def _decoded(
    proto: onnx.ModelProto,
    runtime: Runtime,
    rules: Sequence[Rule] = (),
    feeds: Mapping[str, Any] = FEEDS,
    *,
    exact: bool = True,
) -> onnx.ModelProto:
    """The model that comes out; it computes the same."""
    result, _ = improved(proto, runtime, rules=rules)
    onnx.checker.check_model(result)
    for want, got in zip(run(proto, feeds), run(result, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=0 if exact else 1e-5)
    return result


def test_without_rules_the_model_comes_back(runtime: Runtime) -> None:
    """Same nodes, names, constants and values; the outputs are equal bit by bit."""
    nodes = [
        node("MatMul", "x w", "a", name="first"), node("Add", "a b", "c", name="second"),
        node("Softmax", "c", "d", name="third", axis=1), node("Split", "d", "y z", axis=1),
    ]  # fmt: skip
    outputs = [value("y", [2, 2]), value("z", [2, 2])]
    constants = {"w": random(3, 4), "b": random(4)}
    proto = model(nodes, X, outputs, constants, opset=13)
    result = _decoded(proto, runtime)
    assert ops(result) == ops(proto)
    assert [n.name for n in result.graph.node] == ["first", "second", "third", ""]
    assert {n.output[0] for n in result.graph.node} == {"a", "c", "d", "y"}
    assert {t.name for t in result.graph.initializer} == {"w", "b", "constant_0"}


def test_surviving_nodes_keep_name_doc_and_metadata(runtime: Runtime) -> None:
    """What a rule makes has none of its own."""
    nodes = [
        node("Neg", "x", "a", name="gone"), node("Neg", "a", "b", name="gone too"),
        node("Relu", "b", "y", name="kept", doc_string="doc"),
    ]  # fmt: skip
    entry = nodes[2].metadata_props.add()
    entry.key, entry.value = "namespace", "block.1"
    proto = model(nodes, X, Y, ir_version=10)
    result = _decoded(proto, runtime, [rule("(Neg (Neg ?x))", "?x")])
    (kept,) = result.graph.node
    assert (kept.op_type, kept.name, kept.doc_string) == ("Relu", "kept", "doc")
    assert [(p.key, p.value) for p in kept.metadata_props] == [("namespace", "block.1")]


def test_unused_inputs_stay(runtime: Runtime) -> None:
    """The interface is the caller's; inputs that nothing reads any more stay too."""
    nodes = [node("Mul", "p zero", "z"), node("Add", "x z", "y")]
    inputs = [*X, value("p", [3]), value("unused", [5])]
    proto = model(nodes, inputs, Y, {"zero": np.float32(0)})
    vanish = [rule("(Add ?x (Mul ?y 0))", "?x")]
    feeds = {**FEEDS, "p": random(3), "unused": random(5)}
    result = _decoded(proto, runtime, vanish, feeds)
    assert [i.name for i in result.graph.input] == ["x", "p", "unused"]
    assert ops(result) == ["Identity"]


def test_several_outputs_of_one_class(runtime: Runtime) -> None:
    """Two outputs that are equal are still two outputs, with their own names."""
    nodes = [
        node("Relu", "x", "y"), node("Relu", "x", "z"),
        node("Neg", "z", "n"), node("Neg", "n", "w"),
    ]  # fmt: skip
    outputs = [value(name, [2, 3]) for name in "yzw"]
    proto = model(nodes, X, outputs)
    result = _decoded(proto, runtime, [rule("(Neg (Neg ?x))", "?x")])
    assert [o.name for o in result.graph.output] == ["y", "z", "w"]
    assert ops(result).count("Relu") == 1


@pytest.mark.parametrize("rules", [(), RULES], ids=["no rules", "all rules"])
def test_outputs_that_are_inputs_or_constants(
    runtime: Runtime, rules: tuple[Rule, ...]
) -> None:
    """An output may be an input as it is, a stored constant, or a folded one."""
    nodes = [
        node("Identity", "x", "y"), node("Identity", "w", "k"), node("Add", "w w", "f"),
    ]  # fmt: skip
    outputs = [*Y, value("k", [4]), value("f", [4])]
    result = _decoded(model(nodes, X, outputs, {"w": random(4)}), runtime, rules)
    assert [o.name for o in result.graph.output] == ["y", "k", "f"]
    assert "Add" not in ops(result)


def test_the_same_output_twice(runtime: Runtime) -> None:
    """An input that is two outputs is written twice."""
    nodes = [node("Identity", "x", "y"), node("Identity", "x", "z")]
    proto = model(nodes, X, [*Y, value("z", [2, 3])])
    result = _decoded(proto, runtime, RULES)
    assert [o.name for o in result.graph.output] == ["y", "z"]


def test_captured_values_keep_their_names(runtime: Runtime) -> None:
    """A value that a subgraph reads is there under its name, though its class is older."""
    nodes = [
        node("Neg", "x", "n"), node("Neg", "n", "inner"), node("Add", "w w", "double"),
        node("If", "c", "y",
             then_branch=body([node("Add", "inner double", "t")], [value("t", [2, 3])]),
             else_branch=body([node("Identity", "inner", "e")], [value("e", [2, 3])])),
    ]  # fmt: skip
    proto = model(nodes, [*X, value("c", [], BOOL)], Y, {"w": random(3)})
    for condition in (True, False):
        feeds = {**FEEDS, "c": np.array(condition)}
        result = _decoded(proto, runtime, RULES, feeds)
        assert "If" in ops(result)
    names = {t.name for t in result.graph.initializer}
    names |= {name for n in result.graph.node for name in n.output}
    assert {"inner", "double"} <= names


def test_absent_optional_inputs_stay_absent(runtime: Runtime) -> None:
    """An empty name among the inputs is written again."""
    nodes = [node("Resize", "x - scales", "y", mode="linear")]
    scales = {"scales": np.array([1.0, 2.0], np.float32)}
    proto = model(nodes, X, [value("y", [2, 6])], scales, opset=13)
    result = _decoded(proto, runtime, RULES)
    assert list(result.graph.node[0].input) == ["x", "", "scales"]


def test_constant_parts_are_computed(runtime: Runtime) -> None:
    """What depends on constants only is one constant, and its sources are gone."""
    nodes = [
        node("Add", "a b", "c"), node("Sqrt", "c", "d"), node("Exp", "d", "e"),
        node("Mul", "x e", "y"),
    ]  # fmt: skip
    constants = {"a": np.ones(3, np.float32), "b": np.full(3, 3, np.float32)}
    result = _decoded(model(nodes, X, Y, constants), runtime)
    assert ops(result) == ["Mul"]
    (tensor,) = result.graph.initializer
    np.testing.assert_allclose(onnx.numpy_helper.to_array(tensor), np.exp([2.0] * 3), 1e-6)


def test_constants_too_large_to_store_are_computed_at_run_time(runtime: Runtime) -> None:
    """A column times a row stays a product of the two."""
    nodes = [node("Mul", "column row", "table"), node("Add", "x table", "y")]
    constants = {"column": random(200, 1), "row": random(1, 200)}
    x, y = [value("x", [200, 200])], [value("y", [200, 200])]
    result = _decoded(model(nodes, x, y, constants), runtime, (), {"x": random(200, 200)})
    assert ops(result) == ["Mul", "Add"]
    assert sum(len(t.raw_data) for t in result.graph.initializer) < 2000


def test_nodes_without_use_are_gone(runtime: Runtime) -> None:
    """What no output needs is not written."""
    nodes = [node("Relu", "x", "y"), node("Exp", "x", "dead"), node("Neg", "dead", "z")]
    assert ops(_decoded(model(nodes, X, Y), runtime)) == ["Relu"]


def test_the_opset_decides_what_can_be_chosen(runtime: Runtime) -> None:
    """HardSwish is chosen from opset 14 on; before, its definition stays."""
    nodes = [
        node("Add", "x three", "a"), node("Clip", "a zero six", "b"),
        node("Mul", "x b", "c"), node("Div", "c six", "y"),
    ]  # fmt: skip
    constants = {k: np.float32(v) for k, v in (("zero", 0), ("three", 3), ("six", 6))}
    for opset, expected in ((13, False), (14, True)):
        proto = model(nodes, X, Y, constants, opset=opset)
        chosen = set()
        for salt in range(12):
            result, _ = improved(proto, runtime, RandomCosts(salt))
            onnx.checker.check_model(result)
            np.testing.assert_allclose(run(result, FEEDS)[0], run(proto, FEEDS)[0], 1e-5)
            chosen |= set(ops(result))
        assert ("HardSwish" in chosen) is expected


@pytest.mark.parametrize("opset", [11, 14])
def test_constants_are_computed_by_operators_of_the_opset(
    runtime: Runtime, opset: int
) -> None:
    """A hard swish of a constant is computed as it was written where there is no other."""
    nodes = [
        node("Add", "w three", "a"), node("Clip", "a zero six", "b"),
        node("Mul", "w b", "c"), node("Div", "c six", "d"), node("Add", "x d", "y"),
    ]  # fmt: skip
    constants = {k: np.float32(v) for k, v in (("zero", 0), ("three", 3), ("six", 6))}
    proto = model(nodes, X, Y, {**constants, "w": random(3)}, opset=opset)
    result = _decoded(proto, runtime, RULES, exact=False)
    assert ops(result) == ["Add"]


def test_shape_of_symbolic_outputs_is_what_was_declared(runtime: Runtime) -> None:
    """Symbols of the interface keep their names."""
    proto = model(
        [node("Neg", "x", "n"), node("Neg", "n", "y")],
        [value("x", ["batch", 3])],
        [value("y", ["batch", 3])],
    )
    result = _decoded(proto, runtime, RULES)
    dims = [d.dim_param for d in result.graph.output[0].type.tensor_type.shape.dim]
    assert dims == ["batch", ""]

"""Constant parts are computed by the runtime, in one run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import pytest

from tensat.fold import fold
from tensat.model.graph import CONSTANT, INPUT, Graph
from tensat.model.onnx_export import to_model
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_read import read
from tensat.model.onnx_write import to_proto
from tensat.runtime import Failure, FailureKind, Feeds, Program, Runtime
from tests.tensat.model.onnx_models import (
    FEEDS,
    FLOAT,
    INT64,
    X,
    Y,
    model,
    node,
    ops,
    random,
    run,
    value,
)


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """One child for all tests of this file."""
    with Runtime() as made:
        yield made


def _graph(proto: onnx.ModelProto) -> Graph:
    return to_graph(read(proto))


def _foldable(graph: Graph) -> frozenset[int]:
    """Nodes that depend on constants only."""
    found: set[int] = set()
    for index, each in enumerate(graph.nodes):
        sources = {ref.node for ref in each.inputs if ref is not None}
        fixed = found | {k for k, n in enumerate(graph.nodes) if n.op == CONSTANT}
        if each.op not in {CONSTANT, INPUT} and sources and sources <= fixed:
            found.add(index)
    return frozenset(found)


@pytest.mark.parametrize(
    ("op", "dtype"),
    [("Add", np.float32), ("Mul", np.float64), ("Sub", np.int64), ("Add", np.float16),
     ("Add", np.int32), ("Mul", np.uint64)],
)  # fmt: skip
def test_values_are_what_the_runtime_computes(
    runtime: Runtime, op: str, dtype: type
) -> None:
    """For every element type, bit by bit."""
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    constants = {"a": np.array([3, 7], dtype), "b": np.array([250, 5], dtype)}
    proto = model([node(op, "a b", "y")], X, [value("y", [2], kind)], constants)
    graph = _graph(proto)
    result = fold(graph, runtime, _foldable(graph))
    folded = to_proto(to_model(result.graph))
    assert result.refused == ""
    assert op not in ops(folded)
    np.testing.assert_array_equal(run(folded, FEEDS)[0], run(proto, FEEDS)[0])


def test_division_of_integers_is_the_runtimes(runtime: Runtime) -> None:
    """It rounds towards zero, as the model did."""
    constants = {"a": np.array([-7, 7]), "b": np.array([2, 2])}
    proto = model([node("Div", "a b", "y")], X, [value("y", [2], INT64)], constants)
    graph = _graph(proto)
    folded = to_proto(to_model(fold(graph, runtime, _foldable(graph)).graph))
    np.testing.assert_array_equal(run(folded, FEEDS)[0], [-3, 3])


def test_only_values_that_are_used_elsewhere_are_stored(runtime: Runtime) -> None:
    """Inner values of a constant part, and constants that only it read, are gone."""
    nodes = [
        node("Add", "a a", "b"), node("Exp", "b", "c"), node("Neg", "c", "d"),
        node("Mul", "x c", "e"), node("Add", "e d", "y"),
    ]  # fmt: skip
    proto = model(nodes, X, Y, {"a": random(3)})
    graph = _graph(proto)
    result = fold(graph, runtime, _foldable(graph))
    assert result.folded == 2
    assert sorted(n.op for n in result.graph.nodes) == [
        "Add", "Constant", "Constant", "Input", "Mul",
    ]  # fmt: skip
    assert len(result.graph.constants) == 2
    folded = to_proto(to_model(result.graph))
    np.testing.assert_array_equal(run(folded, FEEDS)[0], run(proto, FEEDS)[0])


def test_nothing_to_fold_needs_no_runtime() -> None:
    """The graph comes back as it is."""
    graph = _graph(model([node("Relu", "x", "y")], X, Y))
    runtime = Runtime()
    assert fold(graph, runtime, frozenset()).graph is graph
    assert runtime.starts == 0


class Refusing(Runtime):
    """A runtime that computes nothing."""

    def run(self, program: Program, feeds: Feeds, timeout: float | None = None) -> Failure:
        """Refuse."""
        return Failure(FailureKind.CRASHED, "SIGSEGV")


def test_a_part_that_the_runtime_refuses_stays() -> None:
    """The nodes are kept, and the reason is told."""
    proto = model(
        [node("Add", "a a", "b"), node("Add", "x b", "y")], X, Y, {"a": random(3)}
    )
    graph = _graph(proto)
    result = fold(graph, Refusing(), _foldable(graph))
    assert result.graph is graph
    assert (result.folded, result.refused) == (0, "crashed: SIGSEGV")


def test_names_of_stored_values_do_not_collide(runtime: Runtime) -> None:
    """A constant of the model may be called as ours would be."""
    nodes = [node("Add", "folded.0 folded.0", "b"), node("Add", "x b", "y")]
    proto = model(nodes, X, Y, {"folded.0": random(3)})
    graph = _graph(proto)
    folded = to_proto(to_model(fold(graph, runtime, _foldable(graph)).graph))
    np.testing.assert_array_equal(run(folded, FEEDS)[0], run(proto, FEEDS)[0])


def test_what_the_runtime_cannot_compute_stays_alone(runtime: Runtime) -> None:
    """One value without a kernel does not keep the others from being computed."""
    nodes = [
        node("HardSigmoid", "d", "e"), node("Cast", "e", "f", to=FLOAT),
        node("Exp", "a", "b"), node("Add", "x b", "c"), node("Add", "c f", "y"),
    ]  # fmt: skip
    proto = model(nodes, X, Y, {"a": random(3), "d": random(3).astype(np.float64)})
    graph = _graph(proto)
    result = fold(graph, runtime, _foldable(graph))
    assert result.folded == 1
    assert "HardSigmoid" in result.refused
    kept = {n.op for n in result.graph.nodes}
    assert {"HardSigmoid", "Cast"} <= kept
    assert "Exp" not in kept

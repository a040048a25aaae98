"""Nodes that an optimization keeps are timed as they run, and counted."""

from __future__ import annotations

import time
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tensat.costs.cpu import CpuCosts
from tensat.costs.roofline import Roofline
from tensat.costs.store import CostStore
from tensat.egraph.saturate import Limits
from tensat.improve import Aim, Budget, improve
from tensat.model.graph import OPAQUE
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_read import read
from tensat.profiling.kept_nodes import kept_seconds
from tensat.runtime import Program, Runtime
from tensat.stages import Clock
from tests.tensat.model.onnx_models import model, node, random, value

FEEDS = {"x": random(6, 2, 16)}
LSTM = model(
    [
        node("Relu", "x", "a"),
        node("LSTM", "a w r", "b c d", hidden_size=16),
        node("Identity", "b", "y"),
        node("Shape", "z", "s"),
        node("Identity", "s", "t"),
    ],
    [value("x", [6, 2, 16])],
    [value("y", [6, 1, 2, 16]), value("c", [1, 2, 16]),
     value("t", [2], TensorProto.INT64)],
    {"w": random(1, 64, 16), "r": random(1, 64, 16, seed=1), "z": random(2, 3)},
)  # fmt: skip
UNRUN = model(
    [node("LSTM", "x w r", "y", hidden_size=16)],
    [value("x", [6, 2, 16])],
    [value("y", [6, 1, 2, 16])],
    {"w": random(1, 64, 15), "r": random(1, 64, 16)},
)


def _kept(proto: onnx.ModelProto, folder: Path, store: CostStore) -> dict[int, float]:
    path = folder / "model.onnx"
    onnx.save(proto, path)
    with Runtime() as runtime:
        source = CpuCosts(store, runtime)
        return kept_seconds(
            to_graph(read(path)), Program(str(path)), FEEDS, runtime, source,
            folder=folder, deadline=time.monotonic() + 60, resident=False,
        )  # fmt: skip


def _opaque(proto: onnx.ModelProto) -> dict[str, int]:
    graph = to_graph(read(proto))
    return {
        graph.opaque[one.key].node.op_type: index
        for index, one in enumerate(graph.nodes)
        if one.op == OPAQUE
    }


def test_what_is_kept_is_timed_once(tmp_path: Path) -> None:
    """It is found although the runtime calls its result by another name; then known."""
    with CostStore.open(tmp_path / "costs") as store:
        first = _kept(LSTM, tmp_path, store)
        count = len(store)
        index = _opaque(LSTM)["LSTM"]
        assert 0 < first[index] < 1
        again = _kept(LSTM, tmp_path, store)
        assert len(store) == count
    assert again[index] == pytest.approx(first[index])


def test_nothing_is_kept_nothing_is_done(tmp_path: Path) -> None:
    """No graph is written."""
    proto = model([node("Relu", "x", "y")], [value("x", [2])], [value("y", [2])])
    with CostStore.in_memory() as store:
        assert _kept(proto, tmp_path, store) == {}
    assert not (tmp_path / "running.onnx").exists()


def test_a_model_that_does_not_run_tells_nothing(tmp_path: Path) -> None:
    """Nodes are estimated then."""
    with CostStore.in_memory() as store:
        assert _kept(UNRUN, tmp_path, store) == {}


@pytest.mark.parametrize("seconds", [0.25, 0.5])
def test_what_is_known_counts(seconds: float) -> None:
    """In the prediction before and after, since such nodes are never replaced."""
    graph = to_graph(read(LSTM))
    index = _opaque(LSTM)["LSTM"]
    budget = Budget(Limits(1000, 10.0, 3), 5.0, 5.0)
    aim = Aim({}, kept={index: seconds})
    plan = improve(graph, (), Roofline(), aim, budget, Clock())
    assert plan.original_seconds == pytest.approx(seconds, rel=1e-3)
    assert plan.seconds == pytest.approx(seconds, rel=1e-3)
    without = improve(graph, (), Roofline(), Aim({}), budget, Clock())
    assert without.seconds < 0.01


def test_a_node_with_branches_is_timed(tmp_path: Path) -> None:
    """With the values that it captures; nothing can be told of it from its sizes."""
    branches = {}
    for name, op in (("then_branch", "Neg"), ("else_branch", "Exp")):
        inner = helper.make_node(op, ["a"], [f"{op}_of_a"])
        result = helper.make_tensor_value_info(f"{op}_of_a", TensorProto.FLOAT, None)
        branches[name] = helper.make_graph([inner], name, [], [result])
    proto = model(
        [
            node("Relu", "x", "a"),
            node("ReduceMax", "x", "r", keepdims=0),
            node("Cast", "r", "c", to=int(TensorProto.BOOL)),
            helper.make_node("If", ["c"], ["y"], **branches),
        ],
        [value("x", [6, 2, 16])],
        [value("y", [6, 2, 16])],
    )
    with CostStore.open(tmp_path / "costs") as store:
        found = _kept(proto, tmp_path, store)
        assert 0 < found[_opaque(proto)["If"]] < 1
        (setting,) = store.settings()
        assert any(text.startswith("as-is:If") for text in store.records(setting))

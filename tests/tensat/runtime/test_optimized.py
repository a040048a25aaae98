"""The graph that runs is written, tidied, run again, looked into and timed node by node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tensat.runtime import Failure, Kernel, Level, Program, Runtime
from tensat.runtime.messages import Filling
from tensat.runtime.optimized import node_seconds, tidy
from tests.tensat.profiling.graphs import random, save, value

FEEDS = {"x": random(1, 4, 8, 8)}


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """A real child."""
    with Runtime() as made:
        yield made


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A convolution with Relu, which the runtime fuses, and a Neg."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Neg", ["r"], ["y"]),
    ]
    values = [value("x", "n", 4, 8, 8)], [value("y", "n", 4, 8, 8)]
    return Program(str(save(tmp_path, nodes, values, {"w": random(4, 4, 3, 3)})))


def test_the_graph_that_runs_is_written(
    runtime: Runtime, program: Program, tmp_path: Path
) -> None:
    """It is fused, each node has a name, and it gives what the original gives."""
    target = str(tmp_path / "running.onnx")
    assert runtime.optimized(program, target) is None
    graph = onnx.load(target).graph
    types = [node.op_type for node in graph.node]
    assert "Relu" not in types
    assert "Neg" in types
    names = [node.name for node in graph.node]
    assert all(names)
    assert len(set(names)) == len(names)
    original = runtime.run(program, FEEDS)
    again = runtime.run(Program(target, Level.NONE), FEEDS)
    assert not isinstance(original, Failure)
    assert not isinstance(again, Failure)
    np.testing.assert_array_equal(original[0], again[0])


def test_a_model_that_does_not_load_is_a_failure(runtime: Runtime, tmp_path: Path) -> None:
    """The runtime's text comes back, nothing is written."""
    answer = runtime.optimized(Program(str(tmp_path / "none")), str(tmp_path / "target"))
    assert isinstance(answer, Failure)
    assert not (tmp_path / "target").exists()


def test_inner_values_are_recorded(runtime: Runtime, program: Program) -> None:
    """Names that do not exist are left out."""
    program = Program(program.path, Level.NONE)
    values = runtime.record(program, FEEDS, ["r", "c", "nothing"])
    assert not isinstance(values, Failure)
    assert sorted(values) == ["c", "r"]
    np.testing.assert_array_equal(values["r"], np.maximum(values["c"], 0))


def test_denormal_numbers_are_counted(runtime: Runtime, tmp_path: Path) -> None:
    """Zeros, the smallest normal number, infinity and NaN are none."""
    tiny = np.float32(np.finfo(np.float32).tiny)
    numbers = [0.0, -0.0, 1.0, tiny, -tiny, np.inf, np.nan, 1e-39, -1e-39, 1e-45]
    node = helper.make_node("Identity", ["x"], ["y"])
    values = [value("x", 10)], [value("y", 10)]
    program = Program(str(save(tmp_path, [node], values, {})), Level.NONE)
    seen = runtime.observe(program, {"x": np.array(numbers, np.float32)}, ["x", "y"])
    assert not isinstance(seen, Failure)
    assert {name: each.denormals for name, each in seen.items()} == {"x": 3, "y": 3}


def test_nodes_are_timed(runtime: Runtime, program: Program, tmp_path: Path) -> None:
    """By the names that the file gives them."""
    target = str(tmp_path / "running.onnx")
    assert runtime.optimized(program, target) is None
    found = runtime.node_seconds(Program(target, Level.NONE), FEEDS, 0.0)
    assert not isinstance(found, Failure)
    assert set(found) == {node.name for node in onnx.load(target).graph.node}
    assert all(seconds >= 0 for seconds in found.values())


@pytest.mark.parametrize("declared", [(1, 4, 8, 8), (4, 8)], ids=["bound", "other rank"])
@pytest.mark.parametrize("weights", [True, False], ids=["stream", "no stream"])
def test_a_program_is_timed_with_the_pace(
    runtime: Runtime, tmp_path: Path, declared: tuple[int, ...], weights: bool
) -> None:
    """Even where the output has another rank than the model declares."""
    nodes = [helper.make_node("Neg", ["x"], ["y"])]
    path = save(tmp_path, nodes, ([value("x", "a", "b", "c", "d")], []), {})
    model = onnx.load(path)
    model.graph.output.append(value("y", *declared))
    path.write_bytes(model.SerializeToString())
    found = runtime.paced(Program(str(path)), FEEDS, 0.0, weights)
    assert not isinstance(found, Failure), found
    assert len(found) >= 9
    assert all(each.seconds > 0 and each.slowness >= 1 for each in found)
    assert all(0 < each.pace.product < 1 for each in found)
    assert all((each.pace.stream > 0) is weights for each in found)


def test_constants_among_the_inputs_are_dropped(tmp_path: Path) -> None:
    """The runtime folds them away and leaves the inputs."""
    node = helper.make_node("Neg", ["x"], ["y"])
    values = [value("x", 2), value("gone", 2)], [value("y", 2)]
    path = save(tmp_path, [node], values, {})
    tidy(str(path), ["x"])
    graph = onnx.load(path).graph
    assert [each.name for each in graph.input] == ["x"]
    assert [each.name for each in graph.node] == ["node0"]


def test_a_profile_is_read_and_removed(tmp_path: Path) -> None:
    """Medians of the kernels' times; fences and the session do not count."""
    events = [
        {"cat": "Node", "name": "a_kernel_time", "dur": dur} for dur in (5, 100, 7)
    ] + [
        {"cat": "Node", "name": "a_fence_before", "dur": 9},
        {"cat": "Session", "name": "model_run", "dur": 300},
    ]
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(events))
    assert node_seconds(str(path)) == {"a": pytest.approx(7e-6)}
    assert not path.exists()


def test_a_given_value_is_used(runtime: Runtime) -> None:
    """A Gather whose index is given runs; one that were drawn would be out of range."""
    node = helper.make_node("Gather", ["t", "i"], ["y"])
    table = helper.make_tensor_value_info("t", TensorProto.FLOAT, [1])
    index = helper.make_tensor_value_info("i", TensorProto.INT64, [64])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [64])
    graph = helper.make_graph([node], "g", [table, index], [out])
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9)
    inputs = (
        Filling("t", TensorProto.FLOAT, (1,)),
        Filling("i", TensorProto.INT64, (64,), array=np.zeros(64, np.int64)),
    )
    outputs = (Filling("y", TensorProto.FLOAT, (64,)),)
    kernel = Kernel(model.SerializeToString(), inputs, (), outputs, budget=0.0)
    assert not isinstance(runtime.time(kernel), Failure)

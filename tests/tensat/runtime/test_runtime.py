"""The runtime's child may fail in every way; the parent gets values and goes on."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tensat.runtime import Failure, FailureKind, Level, Program, Runtime


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """One child for all tests of this file; it is started again where a test ends it."""
    with Runtime() as made:
        yield made


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A model: y = relu(x) + 1, z = shape of x; its inner value is r."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Add", ["r", "one"], ["y"]),
        helper.make_node("Shape", ["x"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, "n"])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, "n"]),
            helper.make_tensor_value_info("z", TensorProto.INT64, [2]),
        ],
        [helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])],
    )
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    return Program(str(path))


FEEDS = {"x": np.array([[-1, 2, 3], [4, -5, 6]], np.float32)}


def test_a_program_runs(runtime: Runtime, program: Program) -> None:
    """Outputs come back in the model's order."""
    outputs = runtime.run(program, FEEDS)
    assert not isinstance(outputs, Failure)
    np.testing.assert_array_equal(outputs[0], np.maximum(FEEDS["x"], 0) + 1)
    np.testing.assert_array_equal(outputs[1], [2, 3])


def test_the_interface_is_read(runtime: Runtime, program: Program) -> None:
    """Names, types and dimensions are those of the file."""
    loaded = runtime.load(program)
    assert not isinstance(loaded, Failure)
    assert [(v.name, v.type, v.dims) for v in loaded.inputs] == [
        ("x", "tensor(float)", (2, "n"))
    ]
    assert [v.name for v in loaded.outputs] == ["y", "z"]


def test_inner_values_are_observed(runtime: Runtime, program: Program) -> None:
    """Names that do not exist are left out, outputs and inputs may be asked for too."""
    program = Program(program.path, Level.NONE)
    seen = runtime.observe(program, FEEDS, ["r", "y", "x", "nothing"])
    assert not isinstance(seen, Failure)
    assert {name: item.dims for name, item in seen.items()} == {
        "r": (2, 3),
        "y": (2, 3),
        "x": (2, 3),
    }
    assert seen["r"].dtype == "float32"


def test_programs_are_timed_in_turn(runtime: Runtime, program: Program) -> None:
    """Every round times every program once."""
    times = runtime.compare([program, Program(program.path, copy=1)], FEEDS, 0.0, least=4)
    assert not isinstance(times, Failure)
    assert [len(series) for series in times] == [4, 4]
    assert all(time > 0 for series in times for time in series)


@pytest.mark.parametrize(
    ("path", "feeds", "text"),
    [
        pytest.param("missing", FEEDS, "No such file", id="no file"),
        pytest.param("garbage", FEEDS, "(?i)protobuf|parse", id="no model"),
        pytest.param("", {}, "(?i)missing", id="no input"),
        pytest.param("", {"x": np.zeros((3, 3), np.float32)}, "(?i)dimension", id="shape"),
    ],
)
def test_an_exception_is_a_failure(
    runtime: Runtime,
    program: Program,
    tmp_path: Path,
    path: str,
    feeds: dict[str, np.ndarray],
    text: str,
) -> None:
    """The runtime's text is passed on and the child lives on."""
    (tmp_path / "garbage").write_bytes(b"no model at all")
    starts = runtime.starts
    asked = Program(str(tmp_path / path)) if path else program
    outputs = runtime.run(asked, feeds)
    assert isinstance(outputs, Failure)
    assert outputs.kind is FailureKind.ERROR
    assert re.search(text, outputs.text)
    assert not isinstance(runtime.run(program, FEEDS), Failure)
    assert runtime.starts == max(starts, 1)


@pytest.mark.skipif(os.name != "posix", reason="kills with a signal")
def test_a_crash_is_a_failure(program: Program) -> None:
    """It names the signal, and the next call starts another child."""
    with Runtime() as runtime:
        runtime.version()
        os.kill(runtime.pid, signal.SIGSEGV)
        outputs = runtime.run(program, FEEDS)
        assert outputs == Failure(FailureKind.CRASHED, "SIGSEGV")
        assert not isinstance(runtime.run(program, FEEDS), Failure)
        assert runtime.starts == 2


def test_a_hang_is_a_failure(tmp_path: Path, program: Program) -> None:
    """A model that never ends is given up, and the next call starts another child."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["c"], ["again"]),
            helper.make_node("Relu", ["v"], ["w"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [1]),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["", "go", "x"], ["y"], body=body)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        [helper.make_tensor("go", TensorProto.BOOL, [], [True])],
    )
    opset = [helper.make_opsetid("", 13)]
    path = tmp_path / "endless.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    with Runtime() as runtime:
        endless = runtime.run(
            Program(str(path)), {"x": np.ones(1, np.float32)}, timeout=1.5
        )
        assert endless == Failure(FailureKind.TIMED_OUT, "no answer to run in 1.5 s")
        assert not isinstance(runtime.run(program, FEEDS), Failure)


def test_the_checker_objects(runtime: Runtime, program: Program, tmp_path: Path) -> None:
    """An invalid file gets a text, a valid one none."""
    model = onnx.load(program.path)
    model.graph.node[0].op_type = "NoSuchOperator"
    path = str(tmp_path / "bad.onnx")
    onnx.save(model, path)
    assert runtime.check(program.path) == ""
    assert "NoSuchOperator" in str(runtime.check(path))


def test_a_changed_file_is_loaded_again(runtime: Runtime, program: Program) -> None:
    """Sessions are kept by path, but not when the file has changed."""
    runtime.run(program, FEEDS)
    model = onnx.load(program.path)
    model.graph.node[0].op_type = "Neg"
    model.doc_string = "changed"
    onnx.save(model, program.path)
    outputs = runtime.run(program, FEEDS)
    assert not isinstance(outputs, Failure)
    np.testing.assert_array_equal(outputs[0], 1 - FEEDS["x"])

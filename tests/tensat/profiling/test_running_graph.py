"""The running graph knows each value, and what subgraphs read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from tensat.errors import ExecutionError
from tensat.profiling.running_graph import bodies, captured, running_graph
from tensat.runtime import Program, Runtime
from tests.tensat.profiling.graphs import branch, random, save, value


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """A real child."""
    with Runtime() as made:
        yield made


def test_sizes_and_small_integers_are_those_of_a_run(
    runtime: Runtime, tmp_path: Path
) -> None:
    """Symbols are numbers there; large constants are read from another file."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Expand", ["m", "s"], ["y"]),
    ]
    values = [value("x", "n", 40)], [value("y", "n", 40)]
    weights = random(40, 40)
    path = save(tmp_path, nodes, values, {"w": weights})
    graph = running_graph(
        runtime, Program(str(path)), {"x": random(3, 40)}, tmp_path / "running.onnx"
    )
    seen = [each for each in graph.observed.values() if each.dims == (3, 40)]
    assert len(seen) >= 2
    assert any(np.array_equal(each, [3, 40]) for each in graph.integers.values())
    assert (tmp_path / "running.onnx.data").stat().st_size >= weights.nbytes
    large = [name for name, t in graph.constants.items() if list(t.dims) == [40, 40]]
    np.testing.assert_array_equal(graph.array(large[0]), weights)
    assert graph.weight_bytes >= weights.nbytes


def test_a_model_that_the_runtime_refuses_is_an_error(
    runtime: Runtime, tmp_path: Path
) -> None:
    """One line says what it said."""
    program = Program(str(tmp_path / "none.onnx"))
    with pytest.raises(ExecutionError, match=r"cannot write the graph.*none\.onnx"):
        running_graph(runtime, program, {}, tmp_path / "running.onnx")


def test_subgraphs_and_what_they_read() -> None:
    """Values of the node itself and values made inside do not count."""
    node = helper.make_node(
        "If", ["c"], ["y"],
        then_branch=branch("t", "Add", "v"), else_branch=branch("e", "Mul", "w"),
    )  # fmt: skip
    assert captured(node) == ["x", "w", "v"] or captured(node) == ["x", "v", "w"]
    assert sorted(body.name for body in bodies(node)) == ["e", "t"]

"""Symbols get the values that inputs, or a run of the model, tell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from tensat.model.onnx_import import to_graph
from tensat.model.onnx_read import read
from tensat.runtime import Runtime
from tensat.sizes import bind_sizes
from tests.tensat.model.onnx_models import INT64, Shape, model, node, value


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """One child for all tests of this file."""
    with Runtime() as made:
        yield made


def _sizes(
    proto: onnx.ModelProto, folder: Path, runtime: Runtime, **shapes: tuple[int, ...]
) -> dict[str, int]:
    path = folder / "model.onnx"
    onnx.save(proto, path)
    feeds = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    return bind_sizes(to_graph(read(proto)), shapes, str(path), feeds, runtime)


@pytest.mark.parametrize(
    ("declared", "given", "found"),
    [
        pytest.param(["N", 3], (5, 3), {"N": 5}, id="one"),
        pytest.param(["N", "M"], (5, 3), {"N": 5, "M": 3}, id="two"),
        pytest.param(["N", "N"], (4, 4), {"N": 4}, id="twice"),
        pytest.param([2, 3], (2, 3), {}, id="none"),
    ],
)
def test_inputs_decide(
    tmp_path: Path, declared: Shape, given: tuple[int, ...], found: dict[str, int]
) -> None:
    """Sizes of inputs are read off, without a run."""
    runtime = Runtime()
    proto = model([node("Relu", "x", "y")], [value("x", declared)], [value("y", declared)])
    assert _sizes(proto, tmp_path, runtime, x=given) == found
    assert runtime.starts == 0


def test_unnamed_dimensions_have_symbols_too(tmp_path: Path, runtime: Runtime) -> None:
    """An input of unknown size still has one in the run."""
    proto = model([node("Relu", "x", "y")], [value("x", [None, 3])], [value("y", None)])
    proto.graph.output[0].type.tensor_type.shape.SetInParent()
    proto.graph.output[0].type.tensor_type.shape.dim.extend(
        [onnx.TensorShapeProto.Dimension(), onnx.TensorShapeProto.Dimension(dim_value=3)]
    )
    assert sorted(_sizes(proto, tmp_path, runtime, x=(4, 3)).values()) == [4]


def test_inner_sizes_are_observed(tmp_path: Path, runtime: Runtime) -> None:
    """How many elements a NonZero finds is seen in a run of the model."""
    nodes = [node("NonZero", "x", "z"), node("Neg", "z", "y")]
    proto = model(nodes, [value("x", ["N", 3])], [value("y", [2, "found"], INT64)])
    found = _sizes(proto, tmp_path, runtime, x=(2, 3))
    assert found["N"] == 2
    assert 6 in found.values()


def test_a_model_that_does_not_run_leaves_inner_sizes_open(tmp_path: Path) -> None:
    """Then only the inputs' are known."""
    nodes = [node("NonZero", "x", "z"), node("Neg", "z", "y")]
    proto = model(nodes, [value("x", ["N", 3])], [value("y", [2, "found"], INT64)])
    with Runtime() as runtime:
        graph = to_graph(read(proto))
        found = bind_sizes(graph, {"x": (2, 3)}, str(tmp_path / "none.onnx"), {}, runtime)
    assert found == {"N": 2}

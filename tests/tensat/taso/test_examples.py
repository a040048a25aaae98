"""TASO's documented examples run unchanged but for the module's name."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import tensat
from tests.tensat.model.onnx_models import model, node, random, run, value

QUICK = tensat.Options(cost="roofline", measure=False, seconds=20)


def a_file(folder: Path) -> str:
    """A model with a Gemm, an open batch, an unknown operator, and names of its own."""
    proto = model(
        [
            node("Conv", "image w", "features", pads=[1, 1, 1, 1], name="first"),
            node("Relu", "features", "hot"),
            node("Relu", "hot", "hotter"),
            node("Strange", "hot", "odd", domain="some.where"),
        ],
        [value("image", ["batch", 3, 8, 8])],
        [value("hotter", ["batch", 4, 8, 8]), value("odd", ["batch", 4, 8, 8])],
        {"w": random(4, 3, 3, 3)},
        domains={"some.where": 1},
    )
    path = folder / "model.onnx"
    onnx.save(proto, path)
    return str(path)


def test_load_optimize_export_save(tmp_path: Path) -> None:
    """Example (a): what TASO lost (names, opset, unknown operators, open sizes) is kept."""
    old_model = tensat.load_onnx(a_file(tmp_path))
    graph = tensat.optimize(old_model, alpha=1.0, budget=100, options=QUICK)
    new_model = tensat.export_onnx(graph)
    onnx.save(new_model, tmp_path / "optimized.onnx")
    onnx.checker.check_model(new_model)
    saved = onnx.load(tmp_path / "optimized.onnx")
    assert [one.name for one in saved.graph.input] == ["image"]
    assert saved.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert [one.name for one in saved.graph.output] == ["hotter", "odd"]
    assert {one.domain: one.version for one in saved.opset_import}[""] == 17
    assert "Strange" in [one.op_type for one in saved.graph.node]


def test_two_branches_of_convolutions() -> None:
    """Example (b): the activations fused into convolutions are in the exported model."""
    graph = tensat.new_graph()
    input = graph.new_input(dims=(1, 128, 56, 56))
    w1 = graph.new_weight(dims=(128, 128, 3, 3))
    w2 = graph.new_weight(dims=(128, 128, 1, 1))
    w3 = graph.new_weight(dims=(128, 128, 3, 3))
    left = graph.conv2d(
        input=input, weight=w1, strides=(1, 1), padding="SAME", activation="RELU"
    )
    left = graph.conv2d(input=left, weight=w3, strides=(1, 1), padding="SAME")
    right = graph.conv2d(
        input=input, weight=w2, strides=(1, 1), padding="SAME", activation="RELU"
    )
    output = graph.add(left, right)
    output = graph.relu(output)
    assert output.dims == (1, 128, 56, 56)

    new_graph = tensat.optimize(graph, options=QUICK)
    onnx_model = tensat.export_onnx(new_graph)
    onnx.checker.check_model(onnx_model, full_check=True)
    kinds = [one.op_type for one in onnx_model.graph.node]
    assert (kinds.count("Conv"), kinds.count("Relu"), kinds.count("Add")) == (3, 3, 1)
    assert new_graph.cost(options=QUICK) <= graph.cost(options=QUICK)
    feeds = {"data": random(1, 128, 56, 56)}
    before, after = (run(tensat.export_onnx(one), feeds) for one in (graph, new_graph))
    np.testing.assert_allclose(after[0], before[0], rtol=1e-3, atol=1e-4)


def test_loaded_and_exported_is_the_same(tmp_path: Path) -> None:
    """Without optimizing, nodes, names, attributes and opset come out as they went in."""
    path = a_file(tmp_path)
    before, after = onnx.load(path), tensat.export_onnx(tensat.load_onnx(path))
    assert list(after.graph.node) == list(before.graph.node)
    assert list(after.graph.input) == list(before.graph.input)
    assert list(after.graph.output) == list(before.graph.output)
    assert list(after.opset_import) == list(before.opset_import)
    assert [one.name for one in after.graph.initializer] == ["w"]


def test_a_missing_file_is_an_error() -> None:
    """TASO printed and went on; here a model that cannot be read is an error."""
    with pytest.raises(tensat.ModelError, match=r"cannot read 'no\.onnx': no such file"):
        tensat.load_onnx("no.onnx")

"""The routes from PyTorch and TensorFlow: what their exporters write is optimized."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import tensat
from tests.tensat.model.onnx_models import random, run

FOLDER = Path(__file__).parent / "exported"
FILES = sorted(FOLDER.glob("*.onnx"))
QUICK = tensat.Options(cost="roofline", measure=False, seconds=10)


def check(path: Path) -> tensat.Result:
    """Optimize a file; for two sizes of its open batch the outputs stay the same."""
    before = onnx.load(path)
    result = tensat.optimize(path, QUICK)
    after = result.model
    onnx.checker.check_model(after)
    assert list(after.graph.input) == list(before.graph.input)
    assert list(after.graph.output) == list(before.graph.output)
    name = before.graph.input[0].name
    inner = [d.dim_value or 7 for d in before.graph.input[0].type.tensor_type.shape.dim][1:]
    for batch in (1, 3):
        feeds = {name: random(batch, *inner, seed=batch)}
        for want, got in zip(run(before, feeds), run(after, feeds), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)
    return result


def test_all_routes_are_here() -> None:
    """Two models of each of the three exporters."""
    kinds = {path.stem.rpartition("_")[0] for path in FILES}
    assert kinds == {"torch_script", "torch_dynamo", "tf2onnx"}
    assert len(FILES) == 6


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_committed_file(path: Path) -> None:
    """The file is understood whole, and its optimized form computes the same."""
    report = check(path).report
    assert "nothing cheaper was found" in report.reason or report.improved, report.reason
    assert not set(report.opaque) - {"Shape"}, "a part of it was not understood"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_taso_interface_takes_it(path: Path) -> None:
    """A file of an exporter passes through the TASO-shaped interface unharmed."""
    graph = tensat.load_onnx(path)
    assert len(graph.get_operator_list()) >= 10
    before, after = onnx.load(path), tensat.export_onnx(graph)
    assert [_facts(one) for one in after.graph.node] == [
        _facts(one) for one in before.graph.node
    ]


def _facts(node: onnx.NodeProto) -> tuple[object, ...]:
    """All that a node says; whether an empty field was written out is left aside."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    return node.op_type, node.name, [*node.input], [*node.output], str(attributes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "needs"),
    [("make_torch", ("torch", "onnxscript")), ("make_tensorflow", ("tf2onnx",))],
    ids=["torch", "tensorflow"],
)
def test_export_anew(script: str, needs: tuple[str, ...], tmp_path: Path) -> None:
    """With the framework installed, what it exports now is optimized too."""
    for package in needs:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    # In a process of its own, as users export: frameworks bring a protobuf of theirs.
    command = [sys.executable, str(FOLDER / f"{script}.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    written = sorted(tmp_path.glob("*.onnx"))
    assert written
    for path in written:
        check(path)

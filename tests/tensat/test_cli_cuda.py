"""Commands that measure on a GPU: on a simulated one, and where there is none."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import onnx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from tensat.cli import app
from tensat.costs.cuda import open_cuda
from tests.tensat.model.onnx_models import model, node, random, value

WORKERS = "tests.tensat.cuda."
MODEL = model(
    [
        node("Neg", "x", "a"), node("Neg", "a", "b"),
        node("Conv", "b k", "c", pads=[1] * 4), node("Relu", "c", "y"),
    ],
    [value("x", [1, 8, 12, 12])],
    [value("y", [1, 8, 12, 12])],
    {"k": random(8, 8, 3, 3)},
)  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model; the user has no costs, children find the tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    onnx.save(MODEL, "in.onnx")
    return tmp_path


def _machine(monkeypatch: pytest.MonkeyPatch, worker: str) -> None:
    """Let the machine have the GPU of a worker."""
    opened = partial(open_cuda, worker=f"{WORKERS}{worker}")
    monkeypatch.setattr("tensat.costs.cuda.open_cuda", opened)


def tensat(*arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("optimize", "in.onnx", "out.onnx", "--target", "ort-cuda"),
        ("optimize", "in.onnx", "out.onnx", "--cost", "cuda"),
        ("costs", "measure", "in.onnx", "--cost", "cuda"),
        ("costs", "measure", "in.onnx", "--target", "ort-cuda"),
        ("explain", "in.onnx", "--cost", "cuda"),
    ],
    ids=" ".join,
)
def test_without_a_gpu_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    """The status is that of bad arguments, and nothing is written."""
    _machine(monkeypatch, "worker_without_gpu")
    result = tensat(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr == "tensat: costs of CUDA need a GPU; there is none\n"
    assert not Path("out.onnx").exists()


def test_costs_are_measured_and_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured for a model is known when it is optimized."""
    _machine(monkeypatch, "simulated_worker")
    result = tensat("costs", "measure", "in.onnx", "--cost", "cuda", "--all")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("0 known, ")
    listed = tensat("costs", "list", "--device", "Simulated compute 9.9")
    assert "Relu" in listed.stdout
    assert "FusedConv" in listed.stdout
    result = tensat("optimize", "in.onnx", "out.onnx", "--cost", "cuda", "--report", "r")
    assert result.exit_code == 0, result.output
    report = json.loads(Path("r").read_text())
    assert report["costs"]["source"] == "cuda"
    assert report["costs"].get("measured", 0) == 0
    assert report["costs"]["known"] > 0
    assert report["ratio"] is None
    assert [one.op_type for one in onnx.load("out.onnx").graph.node] == ["Conv", "Relu"]


def test_a_target_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels-last convolutions, too; where they are no faster the result is portable."""
    _machine(monkeypatch, "simulated_worker")
    result = tensat("costs", "measure", "in.onnx", "--target", "ort-cuda", "--all")
    assert result.exit_code == 0, result.output
    assert "NhwcConv" in tensat("costs", "list").stdout
    result = tensat("optimize", "in.onnx", "out.onnx", "--target", "ort-cuda")
    assert result.exit_code == 0, result.output
    assert {one.domain for one in onnx.load("out.onnx").graph.node} == {""}

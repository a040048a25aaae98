"""A profile of a small model, in Python and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import helper
from typer.testing import CliRunner

import tensat
from tensat.cli import app
from tests.tensat.profiling.graphs import random, save, value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two equal products, an activation between, and a branch of loops over nothing."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "v"], ["y"]),
    ]
    values = [value("x", "n", 64)], [value("y", "n", 64)]
    weights = {"w": random(64, 64), "v": random(64, 64, seed=1)}
    return save(tmp_path, nodes, values, weights)


@pytest.fixture
def options(tmp_path: Path) -> tensat.ProfileOptions:
    """Options that keep costs in a folder of their own."""
    return tensat.ProfileOptions({"x": (2, 64)}, cost_db=tmp_path / "costs.sqlite")


def test_kernels_add_up_to_the_prediction(
    path: Path, options: tensat.ProfileOptions
) -> None:
    """Each node has a price, equal ones the same; the model itself was run."""
    found = tensat.profile(path, options)
    assert [node.operator for node in found.nodes] == ["MatMul", "Relu", "MatMul"]
    assert found.nodes[0].seconds == found.nodes[2].seconds > 0
    assert found.predicted > sum(node.seconds for node in found.nodes)
    assert found.measured > 0
    assert found.runs >= 3
    assert found.shapes == {"x": (2, 64)}
    assert all(node.measured is not None for node in found.nodes)


def test_a_second_profile_measures_no_kernel(
    path: Path, options: tensat.ProfileOptions
) -> None:
    """All its costs are known, from a model in memory too, if they were steady."""
    first = tensat.profile(path, options)
    second = tensat.profile(onnx.load(path), options)
    unsteady = first.counts.get("unsteady", 0)
    assert second.counts.get("known", 0) >= 2 - unsteady
    if not unsteady:
        assert second.counts == {"known": 2}
        assert [n.spread for n in second.nodes] == [n.spread for n in first.nodes]
        assert [n.runs for n in second.nodes] == [n.runs for n in first.nodes]


def test_without_time_kernels_are_estimated(path: Path, tmp_path: Path) -> None:
    """And the counts say so."""
    options = tensat.ProfileOptions(cost_db=tmp_path / "costs.sqlite", seconds=0.0)
    found = tensat.profile(path, options)
    assert found.counts == {"scaled": 2}
    assert {node.origin for node in found.nodes} == {"scaled"}


def test_several_threads_are_another_profile(path: Path, tmp_path: Path) -> None:
    """Kernels are timed again, with that many threads."""
    options = tensat.ProfileOptions(cost_db=tmp_path / "costs.sqlite", threads=2)
    found = tensat.profile(path, options)
    assert found.threads == 2
    assert found.measured > 0


def _run(*arguments: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, ["profile", *arguments])
    return answer.exit_code, answer.output


def test_the_command_shows_the_table(path: Path, tmp_path: Path) -> None:
    """And writes all of it as JSON."""
    report = tmp_path / "profile.json"
    database = str(tmp_path / "costs.sqlite")
    code, text = _run(str(path), "--cost-db", database, "--json", str(report))
    assert code == 0, text
    assert "predicted / measured" in text
    content = json.loads(report.read_text())
    assert len(content["nodes"]) == 3
    code, text = _run(str(path), "--cost-db", database, "--json", "-", "--all")
    assert code == 0, text
    assert json.loads(text)["measured"] > 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(["missing.onnx"], 3, "no such file", id="no model"),
        pytest.param(["MODEL", "--input-shape", "z:1"], 2, "no such input", id="no input"),
        pytest.param(["MODEL", "--json", "no/where"], 2, "no folder", id="no folder"),
        pytest.param(["MODEL", "--threads", "0"], 2, "threads", id="no threads"),
    ],
)
def test_faults_are_one_line(
    path: Path, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    """With an exit code that says whose fault it is."""
    known = ["--cost-db", str(tmp_path / "costs.sqlite")]
    given = [str(path) if each == "MODEL" else each for each in arguments]
    found, text = _run(*given, *known)
    assert found == code, text
    assert said in text

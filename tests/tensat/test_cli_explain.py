"""The commands `explain` and `egraph`, and the page that `optimize` writes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
import typer
from click.testing import Result as CliResult
from typer.testing import CliRunner

from extraction.egraph_json import read as read_egraph
from tensat.cli import app
from tensat.egraph_export import MOST_CLASSES
from tensat.options import COSTS, TARGETS
from tests.tensat.small_search import CONV

OWN = Path(__file__).parents[2] / "examples" / "own_operator"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model."""
    monkeypatch.chdir(tmp_path)
    onnx.save(CONV, "in.onnx")
    return tmp_path


def tensat(*arguments: str, stdin: bytes = b"") -> CliResult:
    """Run a command in this process."""
    cost = ("--cost", "roofline")
    return CliRunner().invoke(app, [*arguments, *cost], input=stdin)


def test_explain_writes_nothing(folder: Path) -> None:
    """A text on standard output, no file."""
    ran = tensat("explain", "in.onnx")
    assert ran.exit_code == 0, ran.output
    assert "add-is-conv-bias" in ran.stdout
    assert [path.name for path in folder.iterdir()] == ["in.onnx"]


def test_explain_reads_standard_input(folder: Path) -> None:
    """A dash reads the model from there."""
    ran = tensat("explain", "-", stdin=Path("in.onnx").read_bytes())
    assert ran.exit_code == 0, ran.output
    assert "add-is-conv-bias" in ran.stdout


def test_explain_files(folder: Path) -> None:
    """JSON and a page."""
    ran = tensat("explain", "in.onnx", "--json", "e.json", "--html", "e.html")
    assert ran.exit_code == 0, ran.output
    assert json.loads(Path("e.json").read_text())["improved"] is True
    assert Path("e.html").read_text().startswith("<!doctype html>")


def test_the_report_is_a_page(folder: Path) -> None:
    """Where its file's name says so."""
    arguments = ("in.onnx", "out.onnx", "--no-measure", "--report", "report.html", "-q")
    ran = tensat("optimize", *arguments)
    assert ran.exit_code == 0, ran.output
    page = Path("report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "scale-after-conv" in page


def test_explain_only_proved(folder: Path) -> None:
    """The shipped rules are proved: nothing changes."""
    ran = tensat("explain", "in.onnx", "--only-proved")
    assert ran.exit_code == 0, ran.output
    assert "proved for all sizes" in ran.stdout
    assert "not proved" not in ran.stdout


def test_explain_why_not(folder: Path) -> None:
    """A rule that is left out is followed all the same."""
    arguments = ("--why-not", "relu-of-relu", "--skip", "relu-of-relu")
    ran = tensat("explain", "in.onnx", *arguments)
    assert ran.exit_code == 0, ran.output
    assert "relu-of-relu changed the e-graph 0 times. It was left out" in ran.stdout
    assert "it would apply" in ran.stdout


def test_explain_knows_what_the_user_brings(folder: Path) -> None:
    """Own operators and rules change what is found, and are explained and followed."""
    for name in ("softsign.py", "softsign.toml", "model.py"):
        shutil.copy(OWN / name, folder)
    subprocess.run([sys.executable, "model.py"], cwd=folder, check=True)
    own = ("--operators", "softsign.py", "--rules", "softsign.toml")
    ran = tensat("explain", "model.onnx", *own)
    assert ran.exit_code == 0, ran.output
    assert "+ Softsign" in ran.stdout
    assert "softsign-from-parts" in ran.stdout
    ran = tensat("explain", "model.onnx", *own, "--why-not", "softsign-from-parts")
    assert ran.exit_code == 0, ran.output
    assert "softsign-from-parts changed the e-graph 1 time" in ran.stdout


@pytest.mark.parametrize("name", ["explain", "egraph"])
def test_they_search_as_optimize_does(name: str) -> None:
    """What steers the search of one command steers that of the others."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    options = [{each.name for each in commands[n].params} for n in ("optimize", name)]
    results = {"source", "target", "measure", "report", "quiet"}
    assert options[0] - options[1] == results


@pytest.mark.parametrize(
    ("option", "values"), [("cost", COSTS), ("for_target", TARGETS)], ids=["cost", "target"]
)
def test_help_names_what_is_possible(option: str, values: tuple[str, ...]) -> None:
    """All of it, as the options know it."""
    command = typer.main.get_command(app).commands["optimize"]  # type: ignore[attr-defined]
    (found,) = (each for each in command.params if each.name == option)
    assert found.metavar == "|".join(values)


def test_help_says_how_large_a_picture_may_be() -> None:
    """So that nobody waits for a search to learn it."""
    ran = CliRunner().invoke(app, ["egraph", "--help"])
    assert f"{MOST_CLASSES} classes at most" in " ".join(ran.stdout.split())


def test_egraph_files(folder: Path) -> None:
    """JSON and a picture."""
    ran = tensat("egraph", "in.onnx", "--json", "e.json", "--svg", "e.svg")
    assert ran.exit_code == 0, ran.output
    assert read_egraph("e.json").nodes
    assert Path("e.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["explain", "in.onnx", "--why-not", "x"], 2, "no rule is called 'x'"),
        (["explain", "in.onnx", "--skip", "x"], 2, "no rule is called 'x'"),
        (["explain", "in.onnx", "--html", "no/x.html"], 2, "there is no folder 'no'"),
        (["explain", "none.onnx"], 3, "none.onnx"),
        (["explain", "-"], 3, "standard input is no ONNX model"),
        (["egraph", "in.onnx"], 2, "nothing to write; possible: --json FILE"),
        (["egraph", "in.onnx", "--svg", "."], 2, "is a folder"),
        (["egraph", "in.onnx", "--svg", "in.onnx"], 2, "is the model itself"),
        (["explain", "in.onnx", "--json", "x", "--html", "x"], 2, "cannot both be 'x'"),
        (["explain", "in.onnx", "--rules", "x"], 2, "'x' cannot be read: No such file"),
    ],
    ids=[
        "why-not",
        "skip",
        "folder",
        "missing",
        "stdin",
        "nothing",
        "is folder",
        "is model",
        "same file",
        "rules",
    ],
)
def test_bad_arguments(folder: Path, arguments: list[str], code: int, text: str) -> None:
    """One line and an exit code."""
    ran = tensat(*arguments, stdin=b"not a model")
    assert ran.exit_code == code, ran.output
    assert text in ran.stderr
    assert len(ran.stderr.splitlines()) == 1

"""What commands refuse: a line each, in the words of the command line; nothing is lost."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from tensat.cli import app
from tensat.cli_errors import OneLineGroup, check_files, named_as_options
from tensat.errors import UsageError
from tests.tensat.small_search import CONV


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two models, and links to the first."""
    monkeypatch.chdir(tmp_path)
    onnx.save(CONV, "in.onnx")
    onnx.save(CONV, "out.portable.onnx")
    Path("soft.onnx").symlink_to("in.onnx")
    Path("hard.onnx").hardlink_to("in.onnx")
    return tmp_path


def tensat(*arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["optimize", "in.onnx"], "Missing argument 'OUT'; see tensat optimize --help"),
        (["optimize", "a", "b", "--max-node", "3"], "--max-nodes"),
        (["nothing"], "No such command 'nothing'; see tensat --help"),
        (["costs", "nothing"], "No such command 'nothing'; see tensat costs --help"),
    ],
    ids=["argument", "option", "command", "command of a command"],
)
def test_arguments_are_refused_in_one_line(arguments: list[str], text: str) -> None:
    """Without a box, with the place where to read on."""
    result = CliRunner().invoke(app, arguments, prog_name="tensat")
    assert result.exit_code == 2
    assert text in result.stderr
    assert result.stderr.startswith("tensat: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["costs"]], ids=["all", "costs"])
def test_no_arguments_ask_for_help(arguments: list[str]) -> None:
    """All commands are listed; nothing was done, so the status is not 0."""
    result = tensat(*arguments)
    assert result.exit_code == 2
    assert "Commands:" in result.output


def test_a_question_that_is_not_answered() -> None:
    """Nothing is done, one line says so."""
    made = typer.Typer(cls=OneLineGroup, rich_markup_mode=None)
    made.command("ask")(lambda: typer.confirm("really?", abort=True))
    made.command("other")(lambda: None)
    result = CliRunner().invoke(made, ["ask"], input="n\n")
    assert result.exit_code == 1
    assert result.stderr == "tensat: aborted\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("max_nodes must be positive", "--max-nodes must be positive"),
        ("cost 'cost' with cost_db None", "--cost 'cost' with --cost-db None"),
        ("the costs", "the costs"),
    ],
    ids=["dash", "quoted", "part of a word"],
)
def test_parameters_are_named_as_options(text: str, shown: str) -> None:
    """What the user wrote himself stays as it is."""
    with (
        pytest.raises(UsageError) as caught,
        named_as_options(["max_nodes", "cost", "cost_db"]),
    ):
        raise UsageError(text)
    assert str(caught.value) == shown


@pytest.mark.parametrize("name", ["in.onnx", "./in.onnx", "soft.onnx", "hard.onnx"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["optimize", "in.onnx", "out.onnx", "--report"],
        ["explain", "in.onnx", "--json"],
        ["explain", "in.onnx", "--html"],
        ["egraph", "in.onnx", "--svg"],
        ["profile", "in.onnx", "--json"],
        ["compare", "in.onnx", "--json"],
    ],
    ids=" ".join,
)
def test_a_report_never_replaces_the_model(
    folder: Path, arguments: list[str], name: str
) -> None:
    """By no name that it has."""
    before = Path("in.onnx").read_bytes()
    result = tensat(*arguments, name)
    assert result.exit_code == 2
    assert f"{arguments[-1]} '{Path(name)}' is the model itself" in result.stderr
    assert Path("in.onnx").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["optimize", "in.onnx", "o", "--report", "o"], "OUT and --report cannot both"),
        (["explain", "in.onnx", "--json", "o", "--html", "./o"], "--json and --html"),
        (["explain", "in.onnx", "--json", "-", "--html", "-"], "be standard output"),
    ],
    ids=["report", "two names", "standard output"],
)
def test_two_results_need_two_files(folder: Path, arguments: list[str], text: str) -> None:
    """Else one would be lost."""
    result = tensat(*arguments)
    assert result.exit_code == 2
    assert text in result.stderr
    assert not Path("o").exists()


def test_a_device_takes_as_much_as_it_is_given(folder: Path) -> None:
    """Two files may both be thrown away."""
    null = Path("/dev/null")
    check_files({"--json": null, "--html": null}, ["in.onnx"])


def test_the_portable_form_never_replaces_the_model(folder: Path) -> None:
    """The name of the file beside OUT is ours, so what has it already is asked for."""
    before = Path("out.portable.onnx").read_bytes()
    arguments = ("out.portable.onnx", "out.onnx", "--target", "ort-cpu")
    result = tensat("optimize", *arguments, "--cost", "roofline")
    assert result.exit_code == 2
    assert "has its portable form in 'out.portable.onnx', which is IN" in result.stderr
    assert Path("out.portable.onnx").read_bytes() == before
    assert not Path("out.onnx").exists()

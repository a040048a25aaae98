"""The command that writes the published networks."""

from pathlib import Path

import onnx
import pytest
import typer
from typer.testing import CliRunner

from tensat.cli_network import add_network_command
from tensat.networks import NETWORKS


@pytest.fixture
def app() -> typer.Typer:
    """A command line with this command and another one, so that names are needed."""
    made = typer.Typer()
    add_network_command(made)
    made.command("other")(lambda: None)
    return made


def test_writes_a_network(app: typer.Typer, tmp_path: Path) -> None:
    """The file has the batch that was asked for."""
    path = tmp_path / "out.onnx"
    arguments = ["network", "squeezenet1_1", str(path), "--batch", "2", "--seed", "1"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    model = onnx.load(path)
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2


def test_writes_to_standard_output(app: typer.Typer) -> None:
    """A dash writes the model itself."""
    result = CliRunner().invoke(app, ["network", "squeezenet1_1", "-"])
    assert result.exit_code == 0
    assert onnx.load_model_from_string(result.stdout_bytes).graph.node


def test_lists_networks(app: typer.Typer) -> None:
    """The word list in place of a name."""
    result = CliRunner().invoke(app, ["network", "list"])
    assert result.stdout.split() == list(NETWORKS)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["alexnet", "-"], "network 'alexnet' is unknown; possible: bert"),
        (["bert", "-", "--batch", "0"], "--batch must be at least 1, not 0"),
        (["bert", "-", "--seed", "-1"], "--seed must be at least 0, not -1"),
        (["bert", "nowhere/x.onnx"], "there is no folder 'nowhere'"),
    ],
    ids=["name", "batch", "seed", "folder"],
)
def test_bad_arguments(app: typer.Typer, arguments: list[str], text: str) -> None:
    """One line and exit status 2."""
    result = CliRunner().invoke(app, ["network", *arguments])
    assert result.exit_code == 2
    assert text in result.stderr
    assert len(result.stderr.splitlines()) == 1

"""The commands generate, prune and derive."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from rulesets import cli_generate

RULES = """
[[rule]]
name = "relu-of-relu"
lhs = "(Relu (Relu ?x))"
rhs = "(Relu ?x)"
float = { tag = "exact" }
instances = [{ x = "2,3" }]

[[rule]]
name = "relu-of-relu-of-relu"
lhs = "(Relu (Relu (Relu ?x)))"
rhs = "(Relu ?x)"
float = { tag = "exact" }
instances = [{ x = "2,3" }]
"""


@pytest.fixture
def app() -> typer.Typer:
    """The commands on an application of their own."""
    made = typer.Typer(pretty_exceptions_enable=False)
    cli_generate.add_commands(made)
    return made


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A rule file."""
    file = tmp_path / "rules.toml"
    file.write_text(RULES)
    return file


def said(app: typer.Typer, *arguments: object, code: int = 0) -> str:
    """Run a command; what it prints."""
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def test_derive_counts_rounds_and_names_the_rest(
    app: typer.Typer, rules: Path, tmp_path: Path
) -> None:
    """One equation follows in one round, one does not, one has no sizes."""
    file = tmp_path / "published.txt"
    file.write_text(
        "relu(relu(input_1)) == relu(input_1)\n"
        "relu(input_1) == input_1\n"
        "conv2d(2,2,0,0,input_7,input_10) == input_7\n"
    )
    report = tmp_path / "report.json"
    text = said(app, "derive", file, "--rules", rules, "--report", report)
    assert "not derived (saturated): relu(input_1) == input_1" in text
    assert "1 of 3 from 2 rules" in text
    records = json.loads(report.read_text())
    assert [record.get("rounds") for record in records] == [1, None, None]
    assert "stride (2, 2), pad 0: not read" in records[2]["reason"]


def test_derive_reads_rule_files(app: typer.Typer, rules: Path) -> None:
    """A rule at its instance is an equation like another."""
    assert "2 of 2 from 2 rules" in said(app, "derive", rules, "--rules", rules)


def test_prune_keeps_what_the_others_do_not_derive(app: typer.Typer, rules: Path) -> None:
    """Relu of relu of relu follows from relu of relu."""
    text = said(app, "prune", rules)
    assert "derived relu-of-relu-of-relu" in text
    assert "1 of 2 kept" in text


def test_generate_shows_counts(app: typer.Typer, tmp_path: Path) -> None:
    """One size of the small family, with its state in a folder."""
    folder = tmp_path / "state"
    text = said(
        app, "generate", "--family", "linear-small", "--size", 1, "--folder", folder
    )
    assert "terms" in text
    assert (folder / "counts.json").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--family", "cubic"), "unknown family 'cubic'; known: linear"),
        (("--backend", "dask"), "needs the address of a scheduler"),
    ],
    ids=["family", "scheduler"],
)
def test_faults_are_one_line(
    app: typer.Typer, options: tuple[str, str], message: str, tmp_path: Path
) -> None:
    """A wrong option ends with code 2 and says what is possible."""
    text = said(app, "generate", *options, "--folder", tmp_path, code=2)
    assert message in text
    assert "Traceback" not in text


def test_derivability_is_looked_up_by_name(
    app: typer.Typer, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the engine the commands say what is missing."""
    monkeypatch.setattr(cli_generate, "TEST", "no_such_package.derive")
    text = said(app, "prune", rules, code=2)
    assert "derivability needs no_such_package.derive, which is not installed" in text

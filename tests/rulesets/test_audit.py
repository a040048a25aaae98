"""The audit and its commands."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rulesets.audit import audit, by_row, differences, row_of, write
from rulesets.cli import app
from rulesets.errors import RuleFileError
from rulesets.store import load, parse_file
from rulesets.verify import Verdict

RULES = """
[[rule]]
name = "relu-twice"
lhs = "(Relu (Relu ?x))"
rhs = "(Relu ?x)"
float = { tag = "exact" }
instances = [{ x = "2,3" }]

[[rule]]
name = "through-concat"
over = { F = ["Relu", "Abs"] }
lhs = "(F (Concat[axis=0] ?x ?y))"
rhs = "(Concat[axis=0] (F ?x) (F ?y))"
direction = "both"
float = { tag = "exact" }
proof = { verdict = "tested", ranks = "1" }
instances = [{ x = "2,3", y = "1,3" }]
"""
WRONG = (
    RULES
    + """
[[rule]]
name = "relu-is-abs"
lhs = "(Relu ?x)"
rhs = "(Abs ?x)"
float = { tag = "exact" }
instances = [{ x = "2,3" }]
"""
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with one rule file."""
    (tmp_path / "some.toml").write_text(RULES)
    return tmp_path


def test_rows_of_versions_and_ways_back() -> None:
    """Versions over operators and the way back belong to one row."""
    assert row_of("through-concat[Relu].reverse") == "through-concat"
    assert row_of("relu-twice") == "relu-twice"


def test_a_row_has_its_weakest_verdict(folder: Path) -> None:
    """The weakest verdict and the fewest ranks stand for a row."""
    rules = load(folder)
    verdicts = [Verdict("all-sizes", "1-3"), *[Verdict("all-sizes", "any")] * 4]
    verdicts[2] = Verdict("at-sizes", "2")
    rows = by_row(zip(rules, verdicts, strict=True))
    assert rows == {"relu-twice": ("all-sizes", "1-3"), "through-concat": ("at-sizes", "2")}


def test_verdicts_are_written_once(folder: Path) -> None:
    """Writing twice changes nothing, and what was kept before is replaced."""
    rows = by_row(audit(load(folder)))
    worse, better = differences(load(folder), rows)
    assert worse == ["relu-twice: kept nothing, found all-sizes"]
    assert better == ["through-concat: kept tested, found all-sizes"]
    write(folder, rows)
    text = (folder / "some.toml").read_text()
    write(folder, rows)
    assert (folder / "some.toml").read_text() == text
    assert text.count("proof = ") == 2
    assert {rule.verdict for rule in load(folder)} == {"all-sizes"}
    assert differences(load(folder), rows) == ([], [])


def test_a_verdict_that_is_not_reached_again_counts_as_worse(folder: Path) -> None:
    """A row that keeps a proof for which only a weaker one is found fails the audit."""
    write(folder, by_row(audit(load(folder))))
    weaker = {"relu-twice": ("at-sizes", "2"), "through-concat": ("all-sizes", "any")}
    assert differences(load(folder), weaker) == (
        ["relu-twice: kept all-sizes, found at-sizes"],
        [],
    )


def test_unknown_verdicts_are_errors() -> None:
    """A verdict that is no tier is refused."""
    text = RULES.replace('"tested"', '"believed"')
    with pytest.raises(RuleFileError, match="'verdict' is 'believed'; possible: all-sizes"):
        parse_file(text, "some.toml")
    with pytest.raises(RuleFileError, match="'proof' is"):
        parse_file(text.replace(', ranks = "1"', ""), "some.toml")


def test_audit_command(folder: Path) -> None:
    """The audit fails until the verdicts found are kept."""
    runner = CliRunner()
    arguments = ["audit", "--folder", str(folder), "--jobs", "1"]
    found = runner.invoke(app, arguments)
    assert found.exit_code == 1
    assert "through-concat: kept tested, found all-sizes" in found.output
    assert runner.invoke(app, [*arguments, "--write"]).exit_code == 0
    assert runner.invoke(app, arguments).exit_code == 0


def test_audit_uses_processes(folder: Path) -> None:
    """Several processes find what one finds."""
    rules = load(folder)
    one = [verdict.tier for _, verdict in audit(rules)]
    assert [verdict.tier for _, verdict in audit(rules, jobs=2)] == one


def test_verify_command(tmp_path: Path) -> None:
    """A wrong rule is shown with its counterexample."""
    path = tmp_path / "wrong.toml"
    path.write_text(WRONG)
    found = CliRunner().invoke(app, ["verify", str(path)])
    assert found.exit_code == 1
    assert "relu-is-abs: refuted" in found.output
    assert "counterexample" in found.output
    path.write_text(RULES)
    assert CliRunner().invoke(app, ["verify", str(path)]).exit_code == 0


def test_verify_command_names_a_wrong_file(tmp_path: Path) -> None:
    """A file that is no rule file is a user's fault."""
    path = tmp_path / "wrong.toml"
    path.write_text("[[rule]]\nname = 'x'\n")
    found = CliRunner().invoke(app, ["verify", str(path)])
    assert found.exit_code == 2
    assert "it has no 'lhs'" in found.output


def test_show_command(folder: Path) -> None:
    """A rule is shown by name; a wrong name suggests near ones."""
    runner = CliRunner()
    found = runner.invoke(app, ["show", "relu-twice", "--folder", str(folder)])
    assert "all-sizes any" in found.output
    missing = runner.invoke(app, ["show", "twice", "--folder", str(folder)])
    assert missing.exit_code == 2
    assert "near: relu-twice" in missing.output


def test_list_command(folder: Path) -> None:
    """The list names every rule with its verdict."""
    found = CliRunner().invoke(app, ["list", "--folder", str(folder)])
    assert "relu-twice" in found.output
    assert "tested" in found.output

"""The manifest of the shipped data says what is in the files."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rulesets.cli_records import add_commands
from rulesets.errors import RuleFileError
from rulesets.manifest import (
    DECIDING,
    FILE,
    content_hash,
    manifest_of,
    read,
    stale,
    write,
)
from rulesets.store import load, shipped_folder

RULE = """
[[rule]]
name = "relu-twice"
lhs = "(Relu (Relu ?x))"
rhs = "(Relu ?x)"
float = { tag = "exact" }
proof = { verdict = "all-sizes", ranks = "any" }
instances = [{ x = "2,3" }]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a rule file, a law file and their manifest."""
    (tmp_path / "some.toml").write_text(RULE)
    (tmp_path / "laws").mkdir()
    (tmp_path / "laws" / "more.toml").write_text(RULE.replace("all-sizes", "at-sizes"))
    write(tmp_path / FILE, manifest_of(tmp_path))
    return tmp_path


def test_the_shipped_manifest_is_that_of_the_files() -> None:
    """Hash and counts match; else run `python -m rulesets manifest --write`."""
    kept = read()
    assert stale(kept, manifest_of(versions=kept.versions)) == []


def test_the_shipped_manifest_counts_every_rule() -> None:
    """Counts add up to the rules in use, all of them proved."""
    kept = read()
    assert sum(sum(tiers.values()) for tiers in kept.rules.values()) == len(load())
    tiers = {tier for family in kept.rules.values() for tier in family}
    assert tiers <= {"all-sizes", "at-sizes"}
    assert set(kept.versions) == {"python", *DECIDING}


def test_a_manifest_is_read_as_written(folder: Path) -> None:
    """Families and verdicts of rules and laws are counted apart."""
    found = read(folder / FILE)
    assert found == manifest_of(folder)
    assert found.rules == {"some": {"all-sizes": 1}}
    assert found.laws == {"more": {"at-sizes": 1}}
    assert found.refused == 0


@pytest.mark.parametrize("file", ["some.toml", "laws/more.toml"])
def test_a_changed_file_is_noticed(folder: Path, file: str) -> None:
    """A comment changes the hash, a rule also the counts."""
    path = folder / file
    path.write_text(path.read_text() + "# more\n")
    (only,) = stale(read(folder / FILE), manifest_of(folder))
    assert only.startswith("sha256: kept")
    path.write_text(path.read_text() + RULE.replace("relu-twice", "relu-again"))
    assert len(stale(read(folder / FILE), manifest_of(folder))) == 2


def test_the_hash_knows_names(folder: Path) -> None:
    """A renamed file is another content; the manifest itself is not part of it."""
    before = content_hash(folder)
    (folder / FILE).write_text("")
    assert content_hash(folder) == before
    (folder / "some.toml").rename(folder / "other.toml")
    assert content_hash(folder) != before


def test_versions_are_not_compared(folder: Path) -> None:
    """Another version of a package does not make the files stale."""
    kept = read(folder / FILE)
    assert stale(replace(kept, versions={"numpy": "1"}), kept) == []


def test_a_wrong_manifest_is_named(folder: Path) -> None:
    """A file without a hash is no manifest."""
    (folder / FILE).write_text("refused = 1")
    with pytest.raises(RuleFileError, match=r"manifest\.toml is no manifest: 'sha256'"):
        read(folder / FILE)


def test_the_command_compares(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """It fails where the files have changed, until it is told to write."""
    import typer

    app = typer.Typer()
    add_commands(app)
    monkeypatch.setattr("rulesets.cli_records.shipped_folder", lambda: folder)
    monkeypatch.setattr("rulesets.manifest.shipped_folder", lambda: folder)
    runner = CliRunner()
    assert runner.invoke(app, ["manifest"]).exit_code == 0
    (folder / "some.toml").write_text(RULE + "# changed\n")
    assert runner.invoke(app, ["manifest"]).exit_code == 1
    assert runner.invoke(app, ["manifest", "--write"]).exit_code == 0
    assert runner.invoke(app, ["manifest"]).exit_code == 0
    assert shipped_folder() != folder

"""The commands `tensat costs …`: what they say, write and refuse."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from tensat.cli import app
from tensat.costs.exchange import read_costs
from tensat.costs.store import CostStore, Record, Setting
from tests.tensat.model.onnx_models import model, node, random, value

ONE, TWO = Setting("Processor 9", "runtime 1", 1), Setting("Processor 9", "runtime 1", 2)
FAR = Setting("Accelerator 5", "runtime 1", 1)
RELU, TANH = (f"{op}@17[](float32[4])->(float32[4])" for op in ("Relu", "Tanh"))
LOCKS = {"a.sqlite-wal", "a.sqlite-shm"}  # SQLite's own; they may stay, and are empty
X, Y = [value("x", ["n", 300])], [value("y", ["n", 40])]
MODEL = model(
    [node("Neg", "x", "a"), node("Neg", "a", "b"), node("MatMul", "b w", "y")],
    X, Y, {"w": random(300, 40)},
)  # fmt: skip


def costs(*arguments: str, stdin: bytes = b"") -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(app, ["costs", *arguments], input=stdin)


def fails(*arguments: str, stdin: bytes = b"", code: int = 2) -> str:
    """Run a command that must end with one line of error, and return that."""
    result = costs(*arguments, stdin=stdin)
    assert result.exit_code == code, result.output
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("tensat: ")
    return result.stderr


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, with a database in it; the user has none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with CostStore.open("a.sqlite") as store:
        store.save(ONE, {RELU: Record(2e-6, measured=5), TANH: Record(3e-3, measured=5)})
        store.save(TWO, {RELU: Record(1e-6, measured=5), TANH: Record(math.inf)})
        store.save(FAR, {RELU: Record(5e-7, measured=5)})
    return tmp_path


def settings(path: str) -> dict[Setting, int]:
    """What a database holds."""
    with CostStore.open_to_read(path) as store:
        return store.settings()


def test_list_shows_each_setting() -> None:
    """As a table, unless an operator or a setting is asked for."""
    result = costs("list", "--cost-db", "a.sqlite")
    assert result.exit_code == 0, result.output
    assert re.findall(r"(\d+) costs of '(\w+) .* (\d) thread", result.stdout) == [
        ("1", "Accelerator", "1"),
        ("2", "Processor", "1"),
        ("2", "Processor", "2"),
    ]
    result = costs("list", "--cost-db", "a.sqlite", "--op", "relu", "--threads", "1")
    assert re.findall(r"[.\d]+ .s", result.stdout) == ["500 ns", "2 µs"]
    assert "Tanh" not in result.stdout


def test_list_as_json() -> None:
    """All of it, with the signatures in full; the table is not printed as well."""
    result = costs("list", "--cost-db", "a.sqlite", "--device", "proc", "--json", "-")
    found = json.loads(result.stdout)
    assert [(each["device"], each["threads"]) for each in found] == [
        ("Processor 9", 1),
        ("Processor 9", 2),
    ]
    assert [cost["signature"] for cost in found[0]["costs"]] == [RELU, TANH]
    assert found[1]["costs"][1]["seconds"] is None
    costs("list", "--cost-db", "a.sqlite", "--device", "proc", "--json", "list.json")
    assert json.loads(Path("list.json").read_text()) == found


def test_a_user_without_costs() -> None:
    """Nothing is an answer, and no database is made for it."""
    assert costs("list").stdout == "no costs are stored\n"
    assert "holds no costs to export" in fails("export", "x")
    assert "there is no such file" in fails("clear", "--all", "--yes")
    assert not Path("cache").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(
            ("list", "--device", "x"), "no such costs; it holds 'Acc", id="device"
        ),
        pytest.param(("list", "--op", "x"), "of 'x'; there are some of Relu, Tan", id="op"),
        pytest.param(("export", "no/x"), "there is no folder 'no'", id="no folder"),
        pytest.param(("export", "a.sqlite"), "is a database", id="export over itself"),
        pytest.param(("export", "x", "--threads", "7"), "no such costs", id="no setting"),
        pytest.param(("measure", "x", "--target", "y"), "'y' is unknown", id="target"),
        pytest.param(
            ("measure", "x", "--cost", "roofline"),
            "cost 'roofline' is not measured; possible: cpu, cuda",
            id="estimates",
        ),
        pytest.param(
            ("measure", "x", "--cost", "cuda", "--target", "ort-cpu"),
            "target 'ort-cpu' with cost 'cuda'",
            id="two devices",
        ),
        pytest.param(("clear",), "Either --all, or --device", id="clear what"),
        pytest.param(("clear", "--all", "--threads", "1"), "Either --all", id="clear both"),
        pytest.param(("clear", "--device", "x"), "has no such costs", id="clear nothing"),
    ],
)
def test_what_cannot_be_done(folder: Path, arguments: tuple[str, ...], text: str) -> None:
    """One line says what is possible; the database stays as it is."""
    before = Path("a.sqlite").read_bytes()
    assert text in fails(*arguments, "--cost-db", "a.sqlite")
    assert Path("a.sqlite").read_bytes() == before
    assert {path.name for path in folder.iterdir()} - LOCKS == {"a.sqlite"}


def test_export_and_import_carry_all() -> None:
    """A second import changes nothing; a second export has the same bytes."""
    result = costs("export", "a.costs", "--cost-db", "a.sqlite")
    assert result.stdout.count("\n") == 3
    result = costs("import", "a.costs", "--cost-db", "b.sqlite")
    assert (
        result.stdout == "5 added, 0 replaced by newer ones, 0 not newer than those there\n"
    )
    result = costs("import", "a.costs", "--cost-db", "b.sqlite")
    assert result.stdout.startswith("0 added, 0 replaced by newer ones, 5 not newer")
    costs("export", "b.costs", "--cost-db", "b.sqlite")
    assert Path("a.costs").read_bytes() == Path("b.costs").read_bytes()
    assert (
        costs("export", "-", "--cost-db", "b.sqlite").stdout_bytes
        == Path("a.costs").read_bytes()
    )


def test_import_from_standard_input_and_from_a_database() -> None:
    """Into the user's database, which is made."""
    text = costs("export", "-", "--cost-db", "a.sqlite", "--device", "acc").stdout_bytes
    assert costs("import", "-", stdin=text).stdout.startswith("1 added")
    assert costs("import", "a.sqlite").stdout.startswith("4 added, 0 replaced")
    assert settings("cache/tensat/costs.sqlite") == {FAR: 1, ONE: 2, TWO: 2}


def test_a_bad_import_changes_nothing() -> None:
    """All or nothing, and one line that says where it is wrong."""
    costs("export", "a.costs", "--cost-db", "a.sqlite")
    lines = Path("a.costs").read_text().splitlines(keepends=True)
    Path("bad.costs").write_text("".join(lines[:-1]))
    before = Path("a.sqlite").read_bytes()
    text = fails("import", "bad.costs", "--cost-db", "a.sqlite")
    assert "'bad.costs' is no file of exported costs, line 9: the file ends here" in text
    assert "standard input" in fails("import", "-", "--cost-db", "a.sqlite", stdin=b"hello")
    assert Path("a.sqlite").read_bytes() == before


def test_compare_two_settings_of_one_file() -> None:
    """They are chosen by what they have in common."""
    result = costs("compare", "a.sqlite", "--device", "processor")
    assert "A: a.sqlite: Processor 9 / runtime 1 / 1 thread" in result.stdout
    assert "B: a.sqlite: Processor 9 / runtime 1 / 2 threads" in result.stdout
    assert "1 in both, 0 in A only, 0 in B only" in result.stdout
    assert "1 refused in B only" in result.stdout
    assert "median 0.500" in result.stdout


def test_compare_two_files() -> None:
    """A database and an export, one setting of each."""
    costs("export", "far.costs", "--cost-db", "a.sqlite", "--device", "acc")
    result = costs("compare", "far.costs", "a.sqlite", "--threads", "1", "--device", "acc")
    assert "median 1.000, quartiles 1.000 and 1.000" in result.stdout
    text = fails("compare", "far.costs", "a.sqlite", "--threads", "1")
    assert "'a.sqlite' has 2 such settings, 1 needed: 'Accelerator 5" in text
    assert "has 1 such settings, 2 needed" in fails("compare", "far.costs")


def test_clear_asks_first() -> None:
    """No, and the end of input, remove nothing."""
    for answer in (b"n\n", b""):
        result = costs("clear", "--threads", "1", "--cost-db", "a.sqlite", stdin=answer)
        assert result.exit_code == 1
        assert "2 costs of 'Processor 9 / runtime 1 / 1 thread'" in result.stdout
        assert len(settings("a.sqlite")) == 3
    result = costs("clear", "--threads", "1", "--cost-db", "a.sqlite", stdin=b"y\n")
    assert "3 costs were removed" in result.stdout
    assert settings("a.sqlite") == {TWO: 2}


def test_clear_all_without_asking() -> None:
    """The database stays, without costs."""
    result = costs("clear", "--all", "--yes", "--cost-db", "a.sqlite")
    assert "5 costs were removed from 'a.sqlite'" in result.stdout
    assert settings("a.sqlite") == {}


COUNTS = re.compile(
    r"(\d+) known, (\d+) measured, (\d+) refused by the runtime, [\d.]+ s in all\n"
    r"((\d+) varied .*\n)?((\d+) were not measured in time.*\n)?"
)


def test_what_is_measured_is_stored_and_not_measured_again() -> None:
    """A second time it is known; how much that is depends on how busy the machine is."""
    onnx.save(MODEL, "in.onnx")
    command = ("measure", "in.onnx", "--cost-db", "b.sqlite", "--seconds", "40")
    first = costs(*command)
    assert first.exit_code == 0, first.output
    assert COUNTS.fullmatch(first.stdout), first.stdout
    before = read_costs("b.sqlite")
    assert {where.threads for where in before} == {1}
    second = COUNTS.fullmatch(costs(*command).stdout)
    assert second is not None
    assert int(second[1]) > 0
    for where, records in read_costs("b.sqlite").items():
        for signature, record in before[where].items():
            assert records[signature] == record
            assert records[signature].measured == record.measured
    assert Path("in.onnx").read_bytes() == MODEL.SerializeToString()


def test_two_processes_measure_into_one_database() -> None:
    """They start together, without a database; neither loses what it measured."""
    onnx.save(MODEL, "in.onnx")
    arguments = ["measure", "in.onnx", "--cost-db", "b.sqlite", "--seconds", "40"]
    command = [sys.executable, "-m", "tensat", "costs", *arguments]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    told = [child.communicate(timeout=300)[0].decode() for child in children]
    assert [child.returncode for child in children] == [0, 0]
    found = [match for text in told if (match := COUNTS.fullmatch(text))]
    assert len(found) == 2
    rows = sum(settings("b.sqlite").values())
    assert rows >= max(int(match[2]) for match in found)
    assert rows > 0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        pytest.param(lambda path: path.write_text("no model"), "no ONNX model", id="text"),
        pytest.param(
            lambda path: onnx.save(
                model([node("Strange", "x", "y", domain="d")], X, Y, domains={"d": 1}), path
            ),
            "nothing was measured: The original is kept: ",
            id="not for the runtime",
        ),
    ],
)
def test_a_model_that_cannot_be_measured(make: Callable[[Path], object], text: str) -> None:
    """The reason, in one line."""
    make(Path("in.onnx"))
    assert text in fails("measure", "in.onnx", code=3)


def test_a_recorded_table_replaces_the_device() -> None:
    """An optimization by a table of another device says how much of it was estimated."""
    onnx.save(MODEL, "in.onnx")
    known = {"MatMul@17[](float32[1x300],float32[300x40]c)->(float32[1x40])": Record(1e-5)}
    with CostStore.open("b.sqlite") as store:
        store.save(FAR, known)
    costs("export", "far.costs", "--cost-db", "b.sqlite")
    command = ["optimize", "in.onnx", "out.onnx", "--cost", "table", "--no-measure"]
    result = CliRunner().invoke(
        app, [*command, "--cost-table", "far.costs", "--report", "r"]
    )
    assert result.exit_code == 0, result.output
    assert re.search(r"The cost table holds \d+ of \d+ costs; it scales", result.stdout)
    report = json.loads(Path("r").read_text())
    assert report["costs"]["source"] == "table"
    assert report["costs"]["scaled"] > 0
    assert report["improved"] is True
    result = CliRunner().invoke(app, [*command, "--cost-table", "a.sqlite"])
    assert result.exit_code == 2
    assert "has 2 settings for 1 threads; it holds 'Accelerator 5" in result.stderr
    result = CliRunner().invoke(app, command)
    assert "'table' needs a file" in result.stderr

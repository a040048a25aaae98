"""Searches side by side: what a comparison says, shows and refuses."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from tensat.cli_compare import add_compare_command
from tensat.compare import CompareOptions, compare
from tensat.comparison import plot, table, worker
from tensat.comparison.one_table import OneTable
from tensat.comparison.row import Comparison, Row
from tensat.comparison.search import Task
from tensat.costs.source import Signature
from tensat.errors import ExecutionError, UsageError
from tests.tensat.model.onnx_models import X, Y, model, node, random, value

NAMES = [
    "original", "backtrack 1/1000", "backtrack 1.05/100", "backtrack 1.05/1000", "ILP k=0",
    "greedy tree k=1", "greedy dag k=1", "ILP k=1", "ILP k=2",
]  # fmt: skip
PROTO = model(
    [
        node("MatMul", "x v", "a"), node("MatMul", "x w", "b"), node("Add", "a b", "c"),
        node("Neg", "c", "d"), node("Neg", "d", "e"), node("Relu", "e", "y"),
    ],
    [value("x", ["n", 3])], [value("y", ["n", 4])],
    {"v": random(3, 4), "w": random(3, 4, seed=1)},
)  # fmt: skip
INSIDE = CompareOptions(isolated=False, input_shapes={"x": (2, 3)})


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """All searches on a small model, in this process."""
    return compare(PROTO, INSIDE, name="small")


@pytest.fixture
def app() -> typer.Typer:
    """A command line with this command and another one, so that names are needed."""
    made = typer.Typer()
    add_compare_command(made)
    made.command("other")(lambda: None)
    return made


def test_every_search_has_a_row(comparison: Comparison) -> None:
    """The original first, then backtracking, then extraction by rounds."""
    assert [row.name for row in comparison.rows] == NAMES
    assert (comparison.model, comparison.source, comparison.operators) == (
        "small", "roofline", 6,
    )  # fmt: skip
    assert not any(row.note for row in comparison.rows)
    for row in comparison.rows[1:]:
        assert row.seconds > 0
        assert row.seen > 1
        assert row.unit == ("graphs" if row.method == "backtracking" else "e-nodes")
        assert row.memory is None or row.memory >= 0
        assert row.record[-1][1] == pytest.approx(row.cost, rel=1e-9)


def test_the_ilp_is_never_worse(comparison: Comparison) -> None:
    """It proves its cost, which no other search beats."""
    ilp = comparison.ilp
    assert ilp is not None
    assert ilp.settings == {"rounds": 1}
    assert ilp.gap == 0
    assert comparison.worse_than(ilp) == ()
    assert ilp.cost < comparison.rows[0].cost
    assert comparison.of("greedy-dag")[0].gap is None


def test_same_answer_in_processes_of_their_own(comparison: Comparison) -> None:
    """Where a search runs has no influence on what it finds."""
    again = compare(PROTO, replace(INSIDE, isolated=True), name="small")
    assert [(row.name, row.cost, row.seen) for row in again.rows] == [
        (row.name, row.cost, row.seen) for row in comparison.rows
    ]
    assert all(row.memory is not None for row in again.rows[1:])


def test_results_are_timed_when_asked() -> None:
    """Each search's result is raced against the original; it has a ratio and a spread."""
    options = replace(INSIDE, measure=True, searches=((1.0, 10),), rounds=(1,))
    found = compare(PROTO, options)
    assert found.rows[0].ratio is None
    for row in found.rows[1:]:
        assert row.ratio is not None
        assert row.ratio > 0
        assert row.spread is not None


def test_equal_results_are_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches that end with the same graph share its ratio."""
    module = importlib.import_module("tensat.compare")  # the package has the function
    plain, raced = module.time_in_turn, []

    def count(*arguments: Any, **keywords: Any) -> Any:
        raced.append(arguments[2])
        return plain(*arguments, **keywords)

    monkeypatch.setattr(module, "time_in_turn", count)
    options = replace(INSIDE, measure=True, searches=((1.0, 0),), rounds=(1,))
    rows = compare(PROTO, options).rows
    greedy, exact = (next(r for r in rows if r.method == m) for m in ("greedy-dag", "ilp"))
    assert greedy.ratio == exact.ratio
    assert len({row.ratio for row in rows[1:]}) == len(raced) < len(rows) - 1


def test_costs_can_be_measured(tmp_path: Path) -> None:
    """With `cpu` costs operators are timed here, and stored; the ILP is cheapest still."""
    database = tmp_path / "costs.sqlite"
    found = compare(PROTO, replace(INSIDE, cost="cpu", cost_db=database, isolated=True))
    assert (found.source, [row.name for row in found.rows]) == ("cpu", NAMES)
    assert not any(row.note for row in found.rows)
    assert database.stat().st_size > 0
    ilp = found.ilp
    assert ilp is not None
    assert found.worse_than(ilp) == ()
    assert 0 < ilp.cost <= found.rows[0].cost < 1


class Fickle:
    """A source that says something else whenever it is asked."""

    name = "fickle"

    def __init__(self) -> None:
        self.number = itertools.count(1)

    def seconds(self, signatures: Sequence[Signature], *_: object) -> list[float]:
        """A new number each time."""
        return [1e-6 * next(self.number) for _ in signatures]


@pytest.mark.parametrize("isolated", [False, True], ids=["together", "forked"])
def test_all_searches_see_the_same_costs(
    monkeypatch: pytest.MonkeyPatch, isolated: bool
) -> None:
    """What one search was told, and its fork with it, holds for the next ones."""

    @contextlib.contextmanager
    def fickle(_: worker.Request) -> Iterator[Fickle]:
        yield source

    source = Fickle()
    monkeypatch.setattr(worker, "_costs", fickle)
    path = "small.onnx"
    monkeypatch.setattr(worker, "read", lambda _: ir.serde.deserialize_model(PROTO))
    tasks = CompareOptions(searches=((1.0, 0), (1.0, 0)), rounds=(0,), greedy_rounds=0)
    request = worker.Request(path, tasks.tasks()[-2:], {"n": 2})
    rows = [answer.row for answer in worker.answers(request, fork=isolated)]
    assert [row.cost for row in rows] == [rows[0].cost] * 3


def test_only_what_is_new_is_asked() -> None:
    """Each signature once, whatever it is asked with."""
    one, two = (Signature(op, (), (), (), 17) for op in ("Neg", "Relu"))
    table = OneTable(Fickle(), {})
    assert table.seconds([one, one]) == [1e-6, 1e-6]
    assert table.seconds([two, one]) == [2e-6, 1e-6]


def test_a_search_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its row says what went wrong, and has no cost."""
    plain = worker.run_task

    def run(task: Task, *arguments: object) -> object:
        if task.methods == ("backtracking",):
            raise RuntimeError("out of luck")
        return plain(task, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(worker, "run_task", run)
    found = compare(PROTO, INSIDE)
    notes = [row.note for row in found.rows if row.method == "backtracking"]
    assert notes == ["RuntimeError: out of luck"] * 3
    assert found.backtracking is None
    assert found.ilp is not None
    rows = json.loads(found.to_json())["rows"]
    assert rows[1]["cost"] is None
    assert "out of luck" in _shown(found)


def test_a_worker_that_dies_is_an_error() -> None:
    """What ends without an answer is not taken for one."""
    request = worker.Request("no such file.onnx", (), {})
    with pytest.raises(ExecutionError, match="ended after 0 of 1 rows"):
        list(worker.ask(request))


def test_costs_that_cannot_be_had_are_the_users_fault(tmp_path: Path) -> None:
    """What the worker says of them is the error, not that it ended."""
    onnx.save(PROTO, tmp_path / "small.onnx")
    request = worker.Request(str(tmp_path / "small.onnx"), (), {"n": 2}, cost="gpu")
    with pytest.raises(UsageError, match="cost 'gpu' is unknown; possible: cpu, cuda"):
        list(worker.ask(request))


def test_json_has_everything(comparison: Comparison) -> None:
    """Names, gaps and records; numbers are numbers."""
    read = json.loads(comparison.to_json())
    assert [row["name"] for row in read["rows"]] == NAMES
    assert read["rows"][7]["gap"] == 0
    assert read["rows"][0]["bound"] is None
    assert all(len(point) == 2 for row in read["rows"] for point in row["record"])
    assert read["versions"]["onnx"] == onnx.__version__


def test_the_table_fits_and_concludes(comparison: Comparison) -> None:
    """80 columns; a line for each backtracking search."""
    lines = _shown(comparison).splitlines()
    assert all(len(line) <= 80 for line in lines)
    for name in NAMES:
        assert any(line.startswith(name) for line in lines), name
    assert sum("times as long as ILP k=1" in line for line in lines) == 3


def test_the_table_keeps_its_columns(comparison: Comparison) -> None:
    """Numbers are there in full, whatever the reason why a search ended."""
    rows = [replace(r, stop="saturated, timed out", seen=123456) for r in comparison.rows]
    lines = _shown(replace(comparison, rows=tuple(rows))).splitlines()
    assert sum("123456" in line and line.endswith("timed out") for line in lines) == 8
    assert "…" not in "".join(lines)


def _shown(comparison: Comparison) -> str:
    console = Console(width=80)
    with console.capture() as captured:
        console.print(table.render(comparison), soft_wrap=False)
    return captured.get()


ILP = Row("ilp", {"rounds": 1}, 1.0, 1.0, "saturated", 2.0, record=((0.0, 3.0), (2.0, 1.0)))
SLOW = Row("backtracking", {"alpha": 1.0, "budget": 9}, 1.0, None, "budget", 8.0,
           record=((0.0, 3.0), (4.0, 1.0)))  # fmt: skip


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (SLOW, "took 4 times as long as ILP k=1; it had ILP's cost after 4.00 s"),
        (
            replace(SLOW, cost=1.5, record=((0.0, 3.0), (4.0, 1.5))),
            "took 4 times as long as ILP k=1 and ended 50 % dearer",
        ),
        (
            replace(SLOW, cost=0.5, record=((0.0, 3.0), (1.0, 0.5))),
            "and ended cheaper; it had ILP's cost after 1.00 s",
        ),
    ],
    ids=["equal", "dearer", "cheaper"],
)
def test_conclusions(row: Row, text: str) -> None:
    """Time is compared, and cost where it differs; a better graph is reported first."""
    found = Comparison("m", "roofline", 1, (Row("original", {}, 3.0), row, ILP))
    lines = table.conclusions(found)
    assert text in lines[-1]
    assert ("; ILP's is 100 % dearer." in lines[0]) is (row.cost < 1.0)


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_plot(comparison: Comparison, tmp_path: Path, suffix: str) -> None:
    """A panel for each model; the same bytes each time."""
    failed = Row("ilp", {"rounds": 2}, math.nan, note="failed")
    second = replace(comparison, model="other", rows=(*comparison.rows[:-1], failed))
    paths = [tmp_path / f"{number}{suffix}" for number in range(2)]
    for path in paths:
        plot.draw([comparison, second], path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    if suffix == ".svg":
        assert "other" in paths[0].read_text()


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"cost": "gpu"}, "cost 'gpu' is unknown; possible: cpu, "),
        ({"cost": "table"}, "'table' needs a file"),
        ({"seconds": math.inf}, "seconds must be finite, not inf"),
        ({"seconds": 0.0}, "seconds must be positive, not 0.0"),
        ({"greedy_rounds": 5}, r"greedy_rounds is 5; possible: \(0, 1, 2\)"),
    ],
    ids=["cost", "table", "forever", "seconds", "rounds"],
)
def test_options_are_checked(wrong: dict[str, object], text: str) -> None:
    """Options that make no sense are refused."""
    with pytest.raises(UsageError, match=text):
        CompareOptions(**wrong)  # type: ignore[arg-type]


def test_unknown_rules_are_refused() -> None:
    """A rule to be skipped must exist."""
    with pytest.raises(UsageError, match="no rule is called 'no-such-rule'"):
        compare(PROTO, CompareOptions(skip=("no-such-rule",)))


def test_command(app: typer.Typer, tmp_path: Path) -> None:
    """A file is compared; the table is shown, JSON and plot are written."""
    onnx.save(
        model([node("Neg", "x", "a"), node("Neg", "a", "y")], X, Y), tmp_path / "m.onnx"
    )
    report, picture = tmp_path / "r.json", tmp_path / "p.svg"
    arguments = ["compare", str(tmp_path / "m.onnx"), "--seconds", "5"]
    arguments += ["--json", str(report), "--plot", str(picture)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "m: 2 operators, roofline costs" in result.output
    (read,) = json.loads(report.read_text())
    assert read["model"] == "m"
    assert picture.read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nothing"], "'nothing' is neither a file nor a network; networks: bert, "),
        (["bert", "--plot", "p.gif"], "plot 'p.gif' ends with '.gif'; possible: .svg"),
        (["bert", "--json", "none/r.json"], "there is no folder 'none'"),
    ],
    ids=["model", "plot", "json"],
)
def test_command_errors(app: typer.Typer, arguments: list[str], text: str) -> None:
    """Bad arguments are one line and exit code 2."""
    result = CliRunner().invoke(app, ["compare", *arguments])
    assert result.exit_code == 2
    assert text in result.output

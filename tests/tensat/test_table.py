"""The before/after table as a terminal shows it."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from tensat.report import ModelSummary, Report
from tensat.table import MOST_ROWS, render


def _text(before: ModelSummary, after: ModelSummary, *, improved: bool = True) -> str:
    console = Console(file=StringIO(), width=100)
    console.print(render(Report(improved, "One sentence.", before, after)))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def _row(text: str, name: str) -> list[str]:
    """The cells of a row."""
    (line,) = (line for line in text.splitlines() if line.startswith(name + " "))
    return line.removeprefix(name).split()


BEFORE = ModelSummary({"Add": 3, "Conv": 2, "Relu": 1}, 6, 2_500_000, 2e-3, 3e-3)
AFTER = ModelSummary({"Conv": 2, "Relu": 2}, 4, 2_000_000, 1e-3, 1.5e-3)


def test_changes() -> None:
    """Operators that changed, sums, bytes with a unit, times with the ratio."""
    text = _text(BEFORE, AFTER)
    assert _row(text, "Add") == ["3", "0", "-3"]
    assert _row(text, "Relu") == ["1", "2", "+1"]
    assert "Conv" not in text
    assert _row(text, "operators") == ["6", "4", "-2"]
    assert _row(text, "weights") == ["2.50", "MB", "2.00", "MB", "-20.0%"]
    assert _row(text, "predicted") == ["2", "ms", "1", "ms", "2.00x"]
    assert _row(text, "measured") == ["3", "ms", "1.5", "ms", "2.00x"]
    assert text.rstrip().endswith("One sentence.")


@pytest.mark.parametrize(("improved", "shown"), [(True, "1.90x"), (False, "2.00x")])
def test_the_ratio_of_pairs_of_runs(improved: bool, shown: str) -> None:
    """It is the one that the sentence names; a refused candidate's says nothing here."""
    console = Console(file=StringIO(), width=100)
    console.print(render(Report(improved, "", BEFORE, AFTER, ratio=1.9)))
    assert isinstance(console.file, StringIO)
    assert _row(console.file.getvalue(), "measured")[-1] == shown


def test_nothing_changed() -> None:
    """No operator rows, and no changes in the sums."""
    text = _text(BEFORE, BEFORE, improved=False)
    assert _row(text, "operators") == ["6", "6"]
    assert _row(text, "predicted") == ["2", "ms", "2", "ms", "1.00x"]
    assert "Add" not in text


def test_unknown_times() -> None:
    """What was not measured is a dash; a time of zero has no ratio."""
    before = ModelSummary({}, 0, 0, 1e-3, None)
    text = _text(before, ModelSummary({}, 0, 0, 0.0, None))
    assert _row(text, "measured") == ["-", "-"]
    assert _row(text, "predicted") == ["1", "ms", "0", "ms"]


def test_long_tables_are_cut() -> None:
    """The largest changes are shown, the others summed up."""
    names = [f"Op{k:02}" for k in range(20)]
    before = ModelSummary({name: k + 1 for k, name in enumerate(names)}, 210, 0)
    text = _text(before, ModelSummary({}, 0, 0))
    shown = [line for line in text.splitlines() if line.startswith("Op")]
    assert len(shown) == MOST_ROWS - 1
    assert shown[0].startswith("Op19")
    assert _row(text, "5 others") == ["15", "0", "-15"]


@pytest.mark.parametrize(
    ("size", "text"),
    [(999, "999 B"), (1000, "1.00 kB"), (1_500_000, "1.50 MB"), (3 * 10**9, "3.00 GB")],
)
def test_units(size: int, text: str) -> None:
    """Bytes have the largest unit that leaves a number above one."""
    assert " ".join(_row(_text(BEFORE, ModelSummary({}, 0, size)), "weights")[2:4]) == text

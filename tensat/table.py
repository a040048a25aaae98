"""The before/after table of a report, for terminals."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tensat.report import Report

MOST_ROWS = 16
"""Operators shown at most; the others are summed up."""


def render(report: Report) -> RenderableType:
    """The report's sentence and a table of what changed."""
    style = "green" if report.improved else "yellow"
    sentence = Text(report.reason, style=style)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for title in ("before", "after", "change"):
        table.add_column(title, justify="right")
    for name, old, new in _operator_rows(report):
        table.add_row(name, str(old), str(new), _difference(new - old))
    before, after = report.before, report.after
    table.add_section()
    table.add_row(
        "operators",
        str(before.nodes),
        str(after.nodes),
        _difference(after.nodes - before.nodes),
    )
    table.add_row(
        "weights",
        _bytes(before.bytes),
        _bytes(after.bytes),
        _share(before.bytes, after.bytes),
    )
    table.add_row("predicted", *_times(before.predicted_seconds, after.predicted_seconds))
    measured = _times(before.measured_seconds, after.measured_seconds)
    if report.improved and report.ratio is not None:
        # Runs were timed in turn: the ratio of pairs is steadier than that of two medians.
        measured = (*measured[:2], f"{report.ratio:.2f}x")
    table.add_row("measured", *measured)
    notes = [Text(note) for note in report.notes]
    return Group(table, Text(), sentence, *_cost_lines(report), *notes)


def _cost_lines(report: Report) -> list[Text]:
    """How much of a recorded table's answers was estimated."""
    if report.costs.get("source") != "table" or not report.costs.get("scaled"):
        return []
    known = report.costs.get("known", 0) + report.costs.get("refused", 0)
    asked = known + report.costs["scaled"]
    text = (
        f"The cost table holds {known} of {asked} costs; it scales estimates of the rest."
    )
    return [Text(text, style="yellow")]


def _operator_rows(report: Report) -> list[tuple[str, int, int]]:
    """Operators whose number changed, the largest changes first."""
    names = {*report.before.operators, *report.after.operators}
    rows = [
        (name, report.before.operators.get(name, 0), report.after.operators.get(name, 0))
        for name in names
    ]
    changed = sorted(
        (row for row in rows if row[1] != row[2]), key=lambda r: (-abs(r[2] - r[1]), r[0])
    )
    if len(changed) <= MOST_ROWS:
        return changed
    rest = changed[MOST_ROWS - 1 :]
    summed = (f"{len(rest)} others", sum(r[1] for r in rest), sum(r[2] for r in rest))
    return [*changed[: MOST_ROWS - 1], summed]


def _difference(number: int) -> str:
    return f"{number:+d}" if number else ""


def _bytes(number: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.2f} {unit}"
    return f"{number} B"


def _share(before: int, after: int) -> str:
    return f"{(after - before) / before:+.1%}" if before and after != before else ""


def _times(before: float | None, after: float | None) -> tuple[str, str, str]:
    if before is None or after is None:
        return (_time(before), _time(after), "")
    ratio = f"{before / after:.2f}x" if after > 0 else ""
    return (_time(before), _time(after), ratio)


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.4g} ms"

"""Comparisons as a table for terminals."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tensat.comparison.row import BACKTRACKING, SAME, Comparison, Row

COLUMNS = ("cost ms", "gain %", "gap %", "search s", "seen", "MB")


def render(comparison: Comparison) -> RenderableType:
    """A table with a row for each search, and what follows from it.

    "seen" counts graphs, or e-nodes; "backtrack 1.05/1000" has alpha 1.05 and a budget of
    1000 graphs, and "k=1" stands for one round of multi-pattern rules. Latencies, if they
    were measured, stand in place of the reason why a search ended.
    """
    title = (
        f"{comparison.model}: {comparison.operators} operators, {comparison.source} costs"
    )
    table = Table(box=None, pad_edge=False, header_style="bold", title=title)
    table.add_column("", no_wrap=True)
    measured = any(row.ratio is not None for row in comparison.rows)
    for name in (*COLUMNS, "measured" if measured else "ended"):
        table.add_column(name, justify="right", no_wrap=True)
    first = comparison.rows[0]
    for row in comparison.rows:
        last = _ratio(row) if measured else "failed" if row.note else _ended(row)
        table.add_row(row.name, *_cells(row, first), last)
    return Group(table, Text(), *(Text(line) for line in conclusions(comparison)))


def _ratio(row: Row) -> str:
    return "" if row.ratio is None else f"{row.ratio:.2f} ± {row.spread or 0:.2f}"


def _ended(row: Row) -> str:
    """Why the search ended: what was cut off last, in a word or two."""
    return row.stop.rsplit(", ", 1)[-1]


def _cells(row: Row, first: Row) -> tuple[str, ...]:
    if row.note:
        return ("",) * len(COLUMNS)
    return (
        f"{1e3 * row.cost:.5g}",
        "" if row is first else _percent(first.cost, row.cost, ".2f"),
        "" if row.gap is None else f"{100 * row.gap:.2g}",
        "" if row is first else f"{row.seconds:.2f}",
        "" if row is first else str(row.seen),
        "" if row.memory is None else f"{row.memory / 2**20:.0f}",
    )


def _percent(dear: float, cheap: float, form: str) -> str:
    """How much dearer one cost is than another, in percent."""
    share = 100 * (dear / cheap - 1) if cheap > 0 else math.inf
    return f"{0.0 if dear == cheap else share:{form}}"


def conclusions(comparison: Comparison) -> Sequence[str]:
    """What the rows say about the ILP: is it cheapest, and is it faster?"""
    lines = [f"{row.name} failed: {row.note}" for row in comparison.rows if row.note]
    ilp = comparison.ilp
    if ilp is None:
        return lines
    worse = comparison.worse_than(ilp)
    if worse:
        best = min(worse, key=lambda row: row.cost)
        share = _percent(ilp.cost, best.cost, ".3g")
        lines.append(f"{best.name} found a graph; ILP's is {share} % dearer.")
    rows = [row for row in comparison.of(BACKTRACKING) if not row.note]
    return [*lines, *(f"{row.name} {against(row, ilp)}" for row in rows)]


def against(row: Row, ilp: Row) -> str:
    """What a backtracking search did, seen from the ILP."""
    times = row.seconds / max(ilp.seconds, 1e-9)
    reached = row.reached(ilp.cost)
    took = f"took {times:.2g} times as long as {ilp.name}"
    if reached is None:
        return f"{took} and ended {_percent(row.cost, ilp.cost, '.2g')} % dearer."
    if row.cost < ilp.cost * (1 - SAME):
        return f"{took} and ended cheaper; it had ILP's cost after {reached:.2f} s."
    return f"{took}; it had ILP's cost after {reached:.2f} s."

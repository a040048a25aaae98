"""Rows as a table for terminals."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tensat.ordering.result import TIE, Agreement, Row, count

_STYLES = {Agreement.DISAGREE: "bold red", Agreement.UNCLEAR: "yellow"}


def render(rows: Sequence[Row]) -> RenderableType:
    """Return the table, and what it comes to in one line; times in milliseconds."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("pair", no_wrap=True)
    table.add_column("A / B", overflow="fold")
    titles = ("predicted A", "B", "measured A", "B", "predicted A/B", "measured A/B")
    for title in titles:
        table.add_column(title, justify="right")
    table.add_column("")
    for row in rows:
        table.add_row(*_cells(row), style=_STYLES.get(row.agreement, ""))
    return Group(table, Text(), Text(summary(rows)))


def summary(rows: Sequence[Row]) -> str:
    """Return how often predictions were right, in one line."""
    agree, disagree = count(rows, Agreement.AGREE), count(rows, Agreement.DISAGREE)
    text = f"the predicted winner is the measured one in {agree} of {agree + disagree}"
    text += f" pairs that differ by more than {TIE:.0%}; {count(rows, Agreement.TIE)} "
    text += "differ by less"
    same = [row.difference for row in rows if row.agreement is Agreement.SAME]
    if same:
        text += f", {len(same)} are one graph in the runtime (at most {max(same):.1%})"
    unclear = count(rows, Agreement.UNCLEAR)
    return f"{text}, {unclear} spread too widely" if unclear else text


def _cells(row: Row) -> list[str]:
    times = (*(each.seconds for each in row.predicted), *row.measured)
    return [
        row.name,
        f"{row.one} / {row.other}",
        *(f"{1e3 * seconds:.3f}" for seconds in times),
        f"{row.predicted_ratio:.3f}",
        f"{row.ratio:.3f} ± {row.spread:.3f}",
        str(row.agreement),
    ]

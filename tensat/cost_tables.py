"""Stored costs and their comparison, as tables for terminals."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.table import Table

from tensat.costs.agreement import Agreement
from tensat.costs.exchange import date
from tensat.costs.signature_text import shorten
from tensat.costs.store import Record

MOST_PAIRS = 10
"""Pairs shown of a comparison, those that agree least."""

_UNITS = ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))


def duration(seconds: float) -> str:
    """Return a time in a unit in which it has one to three digits before the point."""
    if math.isinf(seconds):
        return "refused"
    for unit, name in _UNITS:
        digits = f"{seconds / unit:.3g}"
        if float(digits) < 1000:
            return f"{digits} {name}"
    return f"{seconds:.0f} s"


def listing(records: Mapping[str, Record], most: int = 0) -> Table:
    """A table of what is stored in one setting, the largest costs first.

    Args:
        records: Costs by signature text.
        most: Rows at most; 0 for all.
    """
    table = _table("cost", "spread", "measured", "signature")
    ordered = sorted(
        records.items(),
        key=lambda each: (math.isinf(each[1].seconds), -each[1].seconds, each[0]),
    )
    for signature, record in ordered[: most or None]:
        spread = f"{record.spread:.1%}" if math.isfinite(record.seconds) else ""
        table.add_row(
            duration(record.seconds), spread, date(record.measured)[:10], shorten(signature)
        )
    return table


def summary(first: str, second: str, found: Agreement) -> list[str]:
    """Lines that say what two recordings have in common and how they differ.

    Args:
        first: Name of the first recording.
        second: Name of the second.
        found: Their comparison.
    """
    lines = [
        f"A: {first}",
        f"B: {second}",
        f"{len(found.pairs)} in both, {len(found.only_first)} in A only, "
        f"{len(found.only_second)} in B only",
    ]
    for which, where in (
        (found.refused_first, "A only"),
        (found.refused_second, "B only"),
        (found.refused_both, "both"),
    ):
        lines += [f"{len(which)} refused in {where}"] if which else []
    quartiles = found.quartiles()
    if quartiles is not None:
        low, middle, high = quartiles
        a, b = found.sums()
        lines += [
            f"B / A: median {middle:.3f}, quartiles {low:.3f} and {high:.3f}",
            f"sums: A {duration(a)}, B {duration(b)}, B / A {b / a:.3f}",
        ]
    return lines


def worst(found: Agreement) -> Table:
    """A table of the pairs that agree least."""
    table = _table("B / A", "A", "B", "signature")
    for pair in found.pairs[:MOST_PAIRS]:
        table.add_row(
            f"{pair.ratio:.3f}",
            duration(pair.first),
            duration(pair.second),
            shorten(pair.signature),
        )
    return table


def _table(*names: str) -> Table:
    """A table whose last column is long and folded."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names[:-1]:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(names[-1], overflow="fold")
    return table

"""Stored costs are shown in units that fit, the largest first."""

from __future__ import annotations

import math

import pytest
from rich.console import Console
from rich.table import Table

from tensat.cost_tables import duration, listing, summary, worst
from tensat.costs.agreement import agreement
from tensat.costs.store import Record


def shown(what: Table) -> list[str]:
    """The lines that a terminal of 100 columns shows."""
    console = Console(width=100)
    with console.capture() as capture:
        console.print(what)
    return [line.rstrip() for line in capture.get().splitlines()]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ns"),
        (1.5e-9, "1.5 ns"),
        (99.9e-9, "99.9 ns"),
        (999.4e-9, "999 ns"),
        (999.6e-9, "1 µs"),
        (1.234e-5, "12.3 µs"),
        (0.25, "250 ms"),
        (2.0, "2 s"),
        (12345.0, "12345 s"),
        (math.inf, "refused"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    """Three digits, and never a thousand of a unit."""
    assert duration(seconds) == text


def test_a_listing() -> None:
    """Costs, the largest first, refused ones last, in a table that is as long as asked."""
    records = {
        "Relu@17[](float32[4])->(float32[4])": Record(2e-6, 0.125, measured=1.7e9),
        "Tanh@17[](float32[4])->(float32[4])": Record(3e-3, 0.01, measured=1.7e9),
        "anything": Record(math.inf, note="no kernel", measured=1.7e9),
    }
    assert [line.split() for line in shown(listing(records))] == [
        ["cost", "spread", "measured", "signature"],
        ["3", "ms", "1.0%", "2023-11-14", "Tanh@17", "f32[4]"],
        ["2", "µs", "12.5%", "2023-11-14", "Relu@17", "f32[4]"],
        ["refused", "2023-11-14", "anything"],
    ]
    (_, row) = shown(listing(records, 1))
    assert row.endswith("Tanh@17 f32[4]")


def test_a_comparison() -> None:
    """Counts, ratios and the pairs that agree least, ten at most."""
    first = {f"s{k}": Record(1e-6) for k in range(14)} | {"r": Record(math.inf)}
    second = {f"s{k}": Record(1e-6 * (k + 1)) for k in range(1, 14)} | {"r": Record(1.0)}
    found = agreement(first, second)
    assert summary("file a", "file b", found) == [
        "A: file a",
        "B: file b",
        "13 in both, 1 in A only, 0 in B only",
        "1 refused in A only",
        "B / A: median 8.000, quartiles 5.000 and 11.000",
        "sums: A 13 µs, B 104 µs, B / A 8.000",
    ]
    lines = shown(worst(found))
    assert lines[0].split() == ["B", "/", "A", "A", "B", "signature"]
    assert lines[1].split() == ["14.000", "1", "µs", "14", "µs", "s13"]
    assert len(lines) == 1 + 10


def test_nothing_in_common() -> None:
    """No ratios then."""
    found = agreement({"a": Record(1.0)}, {"b": Record(1.0)})
    assert summary("x", "y", found)[2:] == ["0 in both, 1 in A only, 1 in B only"]

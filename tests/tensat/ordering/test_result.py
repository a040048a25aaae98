"""Who was right, from made-up numbers."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from tensat.ordering.result import Agreement, count, to_json
from tensat.ordering.table import render, summary
from tests.tensat.ordering.rows import row


@pytest.mark.parametrize(
    ("predicted", "measured", "spread", "wanted"),
    [
        (1.2, 1.3, 0.01, Agreement.AGREE),
        (0.8, 0.7, 0.01, Agreement.AGREE),
        (1.001, 1.06, 0.01, Agreement.AGREE),
        (0.999, 1.06, 0.01, Agreement.DISAGREE),
        (1.2, 0.9, 0.01, Agreement.DISAGREE),
        (1.0, 1.3, 0.01, Agreement.DISAGREE),
        (0.5, 1.04, 0.01, Agreement.TIE),
        (1.5, 0.96, 0.01, Agreement.TIE),
        (1.5, 0.96, 0.5, Agreement.TIE),
        (1.5, 0.95, 0.01, Agreement.DISAGREE),
        (1.2, 1.08, 0.1, Agreement.UNCLEAR),
        (0.8, 0.93, 0.1, Agreement.UNCLEAR),
    ],
)
def test_agreement(
    predicted: float, measured: float, spread: float, wanted: Agreement
) -> None:
    """The sign of both differences decides, where the measured one is a difference."""
    assert row(predicted, measured, spread).agreement is wanted


def test_difference_is_that_of_the_slower_model() -> None:
    """Which of the two is called first does not matter."""
    assert row(1, 1.25).difference == pytest.approx(0.25)
    assert row(1, 0.8).difference == pytest.approx(0.25)


def test_one_graph_has_no_winner() -> None:
    """Whatever is measured: two models of the same kernels differ by noise only."""
    found = row(1, 1.3)
    same = replace(found, predicted=(found.predicted[0],) * 2)
    assert (found.one_graph, same.one_graph) == (False, True)
    assert same.agreement is Agreement.SAME
    assert "0 differ by less, 1 are one graph in the runtime (at most 30.0%)" in summary(
        [same]
    )


ROWS = [row(2, 2), row(1, 2), row(1, 1), row(1, 1.2, 0.5), row(0.4, 0.5)]


def test_counts() -> None:
    """Each row is counted once."""
    found = {kind: count(ROWS, kind) for kind in Agreement}
    assert found == {
        Agreement.AGREE: 2,
        Agreement.DISAGREE: 1,
        Agreement.TIE: 1,
        Agreement.SAME: 0,
        Agreement.UNCLEAR: 1,
    }


def test_summary() -> None:
    """Ties and unclear pairs are not among those that could be right or wrong."""
    text = summary(ROWS)
    assert "in 2 of 3 pairs that differ by more than 5%; 1 differ by less, 1 spread" in text
    assert "spread" not in summary(ROWS[:3])


def test_table_has_times_in_milliseconds() -> None:
    """Predicted and measured, both ratios with the spread, and the verdict."""
    text = io.StringIO()
    Console(width=200, file=text).print(render([row(1.5, 1.25, 0.02, "pair-1")]))
    line = next(x for x in text.getvalue().splitlines() if x.startswith("pair-1"))
    words = [
        "pair-1",
        "this",
        "way",
        "/",
        "that",
        "way",
        "1.500",
        "1.000",
        "1.250",
        "1.000",
    ]
    assert line.split() == [*words, "1.500", "1.250", "±", "0.020", "agree"]


def test_json_holds_all() -> None:
    """Rows with their kernels, the verdicts, and how many of each."""
    found = json.loads(to_json(ROWS, 2))
    assert found["threads"] == 2
    assert found["counts"] == {"agree": 2, "tie": 1, "same": 0, "unclear": 1, "disagree": 1}
    first = found["pairs"][0]
    assert (first["agreement"], first["predicted_ratio"]) == ("agree", 2.0)
    assert first["predicted"][0]["kernels"][0]["name"] == "Relu"

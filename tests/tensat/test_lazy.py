"""Lazy measuring is compared with measuring everything, on equal numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tensat.costs.representative import representative
from tensat.costs.source import Argument, Signature
from tensat.kernels.settle import LazySource, Settled, settle
from tensat.lazy import Replayed, Row, chosen, compare, main, render
from tests.tensat.kernels.test_problem import LATER, Prices, _candidates, _rewritten


def _settled() -> Settled:
    lab, root = _rewritten()
    found = _candidates(lab, root, ())
    prices = Prices({"Relu": 4e-6, "Tanh": 3e-6, "Sigmoid": 2e-6, "Max": 2.5e-6})
    return settle(found, found, prices, deadline=LATER, seconds=20.0, everything=True)


def test_what_was_asked_for_is_known_from_then_on() -> None:
    """Also under another number in a constant, which the kernel does not read."""
    one = Argument("float32", (), constant=True, value=1.0)
    x = Argument("float32", (4,))
    first = Signature("Mul", (), (x, one), (x,), 23)
    second = replace(first, inputs=(x, replace(one, value=2.0)))
    source = Replayed({first: 1.0, second: 1.0}, 0.5)
    assert isinstance(source, LazySource)
    assert source.known([first, second]) == [None, None]
    assert source.seconds([first]) == [1.0]
    assert source.known([first, second]) == [1.0, 1.0]
    assert source.timed == {representative(first)}
    assert 0 < source.floor(first) < 1.0
    assert source.dispatch() == 0.5


def test_the_lazy_plan_is_that_of_all_costs() -> None:
    """Both searches see the same numbers; the lazy one asks for no more of them."""
    settled = _settled()
    row = compare("small", settled, settled.dispatch, 1, 0)
    assert row.equal
    assert row.lazy == row.everything == pytest.approx(settled.choice.cost)
    assert 0 < row.timed <= row.kernels
    assert row.gap == 0.0
    assert len(chosen(settled)) > 1


def test_a_difference_is_shown() -> None:
    """A row of two plans says that they differ, and by how much."""
    row = Row("m", 10, 5, 4, 1e-3, 1.01e-3, False, 0, 0.0, 3, (1.0, 2.0))
    cells = [list(column.cells) for column in render([row]).columns]
    assert ["differ"] in cells
    assert ["1.000%"] in cells


def test_a_missing_file_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit status is 2 and the text names the file."""
    assert main([str(tmp_path / "none.onnx"), "--cost-db", str(tmp_path / "c")]) == 2
    assert "none.onnx" in capsys.readouterr().err

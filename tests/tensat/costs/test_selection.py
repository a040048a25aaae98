"""Settings are chosen by parts of their names."""

from __future__ import annotations

import pytest

from tensat.costs.selection import Selection
from tensat.costs.store import Setting
from tensat.errors import UsageError

SETTINGS = [
    Setting("Processor 9", "onnxruntime 1.32 CPU", 1),
    Setting("Processor 9", "onnxruntime 1.32 CPU", 2),
    Setting("Accelerator 5", "onnxruntime 1.30 CUDA", 1),
]


@pytest.mark.parametrize(
    ("selection", "places"),
    [
        pytest.param(Selection(), [2, 0, 1], id="nothing asked"),
        pytest.param(Selection(("processor",)), [0, 1], id="device"),
        pytest.param(Selection(("sor 9", "CELERA")), [2, 0, 1], id="either device"),
        pytest.param(Selection(runtime="cuda"), [2], id="runtime"),
        pytest.param(Selection(threads=1), [2, 0], id="threads"),
        pytest.param(Selection(("9",), "1.32", 2), [1], id="all"),
    ],
)
def test_a_selection(selection: Selection, places: list[int]) -> None:
    """Every condition must hold; the order is that of settings."""
    assert selection.among(SETTINGS, "f") == [SETTINGS[place] for place in places]


def test_the_whole_name_of_a_runtime_means_no_other() -> None:
    """Though it may be the beginning of another's."""
    longer = Setting("Processor 9", "onnxruntime 1.32 CPU, small weights", 1)
    found = Selection(runtime="onnxruntime 1.32 CPU").among([*SETTINGS, longer], "f")
    assert found == SETTINGS[:2]
    found = Selection(runtime="1.32 cpu", threads=1).among([*SETTINGS, longer], "f")
    assert found == [SETTINGS[0], longer]


def test_nothing_found_is_an_error_that_names_what_there_is() -> None:
    """Unless there is nothing at all."""
    with pytest.raises(
        UsageError, match=r"'f' has no such costs; it holds 'Accelerator 5 /"
    ):
        Selection(("nobody's",)).among(SETTINGS, "f")
    assert Selection(("nobody's",)).among([], "f") == []


def test_an_empty_selection_is_false() -> None:
    """Zero threads are asked for, though in vain."""
    assert not Selection()
    assert Selection(threads=0)
    assert Selection(runtime="a")
    assert Selection(("a",))

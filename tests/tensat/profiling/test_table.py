"""The table of a profile shows kernels, sums and the ratio."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from tensat.profiling.result import NodeCost, Profile
from tensat.profiling.table import MOST_ROWS, render


def _node(name: str, signature: str, seconds: float, origin: str = "known") -> NodeCost:
    return NodeCost(
        name, "com.microsoft.nchwc:Conv", "f32[1x8]", signature, seconds, 0.02, 50, origin,
        2 * seconds,
    )  # fmt: skip


def _profile(*nodes: NodeCost) -> Profile:
    return Profile(nodes, 3e-6, 2e-6, 1e-3, 0.01, 40, 1, {"x": (1, 8)}, 0.5, {"known": 2})


def _text(profile: Profile, every_node: bool = False) -> str:
    console = Console(width=150, record=True, quiet=True)
    with console.capture():
        console.print(render(profile, every_node))
    with console.capture() as captured:
        console.quiet = False
        console.print(render(profile, every_node))
    return captured.get()


PROFILE = _profile(
    _node("a", "one", 1e-4), _node("b", "two", 4e-4), _node("c", "one", 1e-4)
)


def test_the_sum_is_predicted() -> None:
    """Kernels, what nodes cost besides, and the overhead of a run."""
    assert PROFILE.kernels == pytest.approx(6e-4)
    assert PROFILE.predicted == pytest.approx(6.05e-4)
    assert PROFILE.ratio == pytest.approx(0.605)


def test_equal_kernels_are_one_row() -> None:
    """The largest comes first; its share is that of the sum."""
    lines = _text(PROFILE).splitlines()
    rows = [line.split() for line in lines if line.startswith("nchwc:Conv")]
    assert [row[2] for row in rows] == ["1", "2"]
    assert rows[0][3:] == ["400.0", "2%", "400", "66.1%", "800"]


def test_every_node_can_have_a_row() -> None:
    """In the order of the graph."""
    lines = _text(PROFILE, every_node=True).splitlines()
    rows = [line.split() for line in lines if line.startswith("nchwc:Conv")]
    assert [row[3] for row in rows] == ["100.0", "400.0", "100.0"]


def test_many_kernels_are_summed_up() -> None:
    """The table stays short, and nothing is lost from it."""
    nodes = [_node(f"n{k}", f"s{k}", 1e-5) for k in range(MOST_ROWS + 3)]
    text = _text(_profile(*nodes))
    assert "4 others" in text
    assert f"{MOST_ROWS + 3} others" not in _text(_profile(*nodes), every_node=True)


def test_the_last_lines_are_the_sums() -> None:
    """With what they consist of."""
    text = _text(PROFILE)
    for part in ("0.600 ms", "0.002 ms", "0.605 ms", "1.000 ms", "0.605     predicted"):
        assert part in text
    assert "median of 40 runs, spread 1.0%" in text


def test_what_is_not_measured_is_marked() -> None:
    """An estimate is not shown as if it were a measurement."""
    text = _text(_profile(_node("a", "one", 1e-4, "scaled")))
    assert "nchwc:Conv (scaled)" in text


def test_json_holds_all_of_it() -> None:
    """With the sums, in seconds."""
    content = json.loads(PROFILE.to_json())
    assert content["ratio"] == pytest.approx(0.605)
    assert content["nodes"][1]["seconds"] == 4e-4
    assert content["shapes"] == {"x": [1, 8]}

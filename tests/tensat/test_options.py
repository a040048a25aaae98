"""Options are checked when they are made."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tensat.errors import UsageError
from tensat.options import COSTS, Options


@pytest.mark.parametrize(
    ("given", "text"),
    [
        pytest.param({"cost": "gpu"}, "'gpu' is unknown; possible: cpu", id="cost"),
        pytest.param({"cost": "table"}, "cost_table None: 'table' needs a", id="no table"),
        pytest.param({"cost_table": Path("t")}, "only 'table' has one", id="a table"),
        pytest.param({"seconds": 0}, "seconds must be positive, not 0", id="no time"),
        pytest.param({"seconds": -1.0}, "seconds must be positive", id="negative time"),
        pytest.param({"seconds": float("nan")}, "seconds must be positive", id="NaN"),
        pytest.param({"max_nodes": 0}, "max_nodes must be positive", id="nodes"),
        pytest.param({"iterations": 0}, "iterations must be positive", id="iterations"),
        pytest.param({"threads": 0}, "threads must be positive", id="threads"),
        pytest.param({"threads": 10_000}, "threads must be at most", id="many threads"),
        pytest.param({"multi_iterations": -1}, "multi_iterations must be >= 0", id="multi"),
        pytest.param({"seed": -1}, "seed must be >= 0, not -1", id="seed"),
        pytest.param({"seconds": float("inf")}, "seconds must be finite", id="for ever"),
    ],
)  # fmt: skip
def test_bad_values_are_refused(given: dict[str, Any], text: str) -> None:
    """The text says what was given and what is possible."""
    with pytest.raises(UsageError, match=text):
        Options(**given)


@pytest.mark.parametrize(
    ("target", "cost", "possible"),
    [
        ("ort-cuda", "cpu", "cuda, table"),
        ("ort-cuda", "roofline", "cuda, table"),
        ("ort-cpu", "cuda", "cpu, table, roofline"),
    ],
)
def test_a_target_needs_costs_of_its_device(target: str, cost: str, possible: str) -> None:
    """Costs of another device say nothing of its layouts."""
    text = f"target '{target}' with cost '{cost}': .*; possible: {possible}$"
    with pytest.raises(UsageError, match=text):
        Options(target=target, cost=cost)


@pytest.mark.parametrize(
    ("target", "cost"), [("portable", "cpu"), ("ort-cpu", "cpu"), ("ort-cuda", "cuda")]
)
def test_the_cost_is_that_of_the_target(target: str, cost: str) -> None:
    """Unless another one is asked for."""
    assert Options(target=target).cost == cost


@pytest.mark.parametrize("cost", COSTS)
def test_good_values_are_kept(cost: str) -> None:
    """An option is what was given."""
    table = Path("t") if cost == "table" else None
    options = Options(cost=cost, cost_table=table, seconds=1.5, multi_iterations=0, seed=7)
    assert (options.cost, options.seconds, options.seed) == (cost, 1.5, 7)


def test_options_are_immutable() -> None:
    """A run cannot change its own options."""
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign"):
        Options().seed = 3  # type: ignore[misc]

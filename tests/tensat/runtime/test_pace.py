"""What was measured at one pace of the machine is stated for another."""

from __future__ import annotations

import pytest

from tensat.runtime.pace import Demand, Pace, calm, middle, moved

AT = Pace(product=1e-4, stream=1e-10)
BUSY = Pace(product=2e-4, stream=3e-10)


@pytest.mark.parametrize(
    ("demand", "factor"),
    [
        pytest.param(Demand(0, 1.0), 2.0, id="computes"),
        pytest.param(Demand(0, 0.5), 2**0.5, id="moves numbers"),
        pytest.param(Demand(20_000_000, 1.0), 3.0, id="waits for weights only"),
        pytest.param(Demand(5_000_000, 1.0), 2.5, id="waits for half of its time"),
    ],
)
def test_each_part_follows_its_yardstick(demand: Demand, factor: float) -> None:
    """A kernel of a millisecond, of which no more than that can be waiting."""
    busy = moved(1e-3, demand, AT, BUSY)
    assert busy == pytest.approx(factor * 1e-3)
    assert moved(busy, demand, BUSY, AT) == pytest.approx(1e-3)


def test_where_nobody_looked_at_the_stream_it_does_not_count() -> None:
    """All of the time follows the product."""
    demand = Demand(5_000_000, 1.0)
    assert moved(1e-3, demand, AT, Pace(2e-4)) == pytest.approx(2e-3)


def test_paces_are_summed_up_by_yardstick() -> None:
    """The middle is a median; the calm pace is a quartile of each."""
    paces = [Pace(product, 10 - product) for product in (1.0, 2.0, 3.0, 4.0, 9.0)]
    assert middle(paces) == Pace(3.0, 7.0)
    assert calm(paces) == Pace(2.0, 6.0)

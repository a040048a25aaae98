"""Two recordings are compared where both have a cost."""

from __future__ import annotations

import math

import pytest

from tensat.costs.agreement import Pair, agreement
from tensat.costs.store import Record

NEVER = Record(math.inf)


def test_pairs_come_worst_first() -> None:
    """Twice as slow and twice as fast are equally far off."""
    first = {name: Record(4.0) for name in "abcd"}
    second = {"a": Record(5.0), "b": Record(1.0), "c": Record(12.0), "d": Record(4.0)}
    found = agreement(first, second)
    assert found.pairs == (
        Pair("b", 4.0, 1.0),
        Pair("c", 4.0, 12.0),
        Pair("a", 4.0, 5.0),
        Pair("d", 4.0, 4.0),
    )
    assert [pair.ratio for pair in found.pairs] == [0.25, 3.0, 1.25, 1.0]
    assert found.quartiles() == pytest.approx((0.8125, 1.125, 1.6875))
    assert found.sums() == (16.0, 22.0)


def test_every_signature_is_counted_once() -> None:
    """In both, in one only, or refused by one or both."""
    first = {"a": Record(1.0), "b": Record(1.0), "c": NEVER, "d": NEVER, "e": Record(1.0)}
    second = {"b": Record(1.0), "c": NEVER, "d": Record(1.0), "e": NEVER, "f": NEVER}
    found = agreement(first, second)
    assert [pair.signature for pair in found.pairs] == ["b"]
    assert (found.only_first, found.only_second) == (("a",), ("f",))
    assert (found.refused_first, found.refused_second) == (("d",), ("e",))
    assert found.refused_both == ("c",)


def test_few_pairs() -> None:
    """One ratio is all quartiles; none has none; a cost of zero has no ratio."""
    one = agreement({"a": Record(1.0)}, {"a": Record(3.0)})
    assert one.quartiles() == (3.0, 3.0, 3.0)
    none = agreement({"a": Record(0.0)}, {"a": Record(3.0)})
    assert none.quartiles() is None
    assert none.pairs == ()

"""How far two recordings of costs agree, for signatures that both hold."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from tensat.costs.store import Record


@dataclass(frozen=True, slots=True)
class Pair:
    """One signature's costs, in seconds.

    Attributes:
        signature: Its text.
        first: In the first recording.
        second: In the second.
    """

    signature: str
    first: float
    second: float

    @property
    def ratio(self) -> float:
        """Second / first; above 1 where the second is slower."""
        return self.second / self.first


@dataclass(frozen=True, slots=True)
class Agreement:
    """What two recordings say of one another.

    Attributes:
        pairs: Signatures with a cost in both, the ones that agree least first.
        only_first: Signatures that the second does not hold.
        only_second: Signatures that the first does not hold.
        refused_first: Signatures that cannot run in the first, but in the second.
        refused_second: Signatures that cannot run in the second, but in the first.
        refused_both: Signatures that can run in neither.
    """

    pairs: tuple[Pair, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    refused_first: tuple[str, ...]
    refused_second: tuple[str, ...]
    refused_both: tuple[str, ...]

    def quartiles(self) -> tuple[float, float, float] | None:
        """Return the quartiles of the ratios, the middle one second; None without pairs."""
        ratios = [pair.ratio for pair in self.pairs]
        if len(ratios) < 2:
            return (ratios[0],) * 3 if ratios else None
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return low, middle, high

    def sums(self) -> tuple[float, float]:
        """Return the sum of all pairs' costs in each recording, in seconds."""
        first = math.fsum(pair.first for pair in self.pairs)
        return first, math.fsum(pair.second for pair in self.pairs)


def agreement(first: Mapping[str, Record], second: Mapping[str, Record]) -> Agreement:
    """Compare two recordings by signature text.

    Args:
        first: Costs in one setting.
        second: Costs in another, or in the same at another time.
    """
    pairs = []
    refused: dict[tuple[bool, bool], list[str]] = {}
    for signature in sorted(first.keys() & second.keys()):
        a, b = first[signature].seconds, second[signature].seconds
        if math.isinf(a) or math.isinf(b):
            refused.setdefault((math.isinf(a), math.isinf(b)), []).append(signature)
        elif a > 0 and b > 0:
            pairs.append(Pair(signature, a, b))
    pairs.sort(key=lambda pair: -abs(math.log(pair.ratio)))
    return Agreement(
        tuple(pairs),
        tuple(sorted(first.keys() - second.keys())),
        tuple(sorted(second.keys() - first.keys())),
        tuple(refused.get((True, False), ())),
        tuple(refused.get((False, True), ())),
        tuple(refused.get((True, True), ())),
    )

"""How far estimates are off, operator by operator, and what to multiply them by.

An estimate knows the arithmetic of an operator but not the machine. Where some costs of an
operator are known, the middle ratio of known to estimated cost tells how far its other
estimates are off; operators of which nothing is known take the middle of all ratios.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scales:
    """What estimates are multiplied by.

    Attributes:
        by_operator: The factor of each operator that something is known about.
        general: The factor of all others.
    """

    by_operator: Mapping[str, float]
    general: float

    def of(self, operator: str) -> float:
        """Return the factor of an operator."""
        return self.by_operator.get(operator, self.general)


def scales_of(known: Iterable[tuple[str, float, float]]) -> Scales:
    """Return the factors that known costs suggest.

    Args:
        known: Operator, known cost and estimated cost, both in seconds; pairs of which
            either is not a positive finite number say nothing and are passed over.

    Returns:
        Medians of known / estimated; 1 where nothing is known at all.
    """
    ratios: dict[str, list[float]] = defaultdict(list)
    for operator, seconds, estimate in known:
        if 0 < seconds < math.inf and 0 < estimate < math.inf:
            ratios[operator].append(seconds / estimate)
    everything = [ratio for group in ratios.values() for ratio in group]
    general = statistics.median(everything) if everything else 1.0
    return Scales({op: statistics.median(group) for op, group in ratios.items()}, general)

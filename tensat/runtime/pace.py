"""How fast the machine is at a moment, and what a kernel takes at another moment.

Neighbours on the same processor and on the same memory come and go; a machine is not the
same from second to second. So whatever is timed is timed beside two yardsticks, and can be
stated for any other moment of which the yardsticks are known: the part of a kernel's time
that waits for weights follows the stream of weights, the rest follows the product.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """What the yardsticks take.

    Attributes:
        product: Seconds of a small product of matrices within the core's own cache.
        stream: Seconds per byte of weights that come from memory; 0 if nobody looked.
    """

    product: float
    stream: float = 0.0


@dataclass(frozen=True, slots=True)
class Demand:
    """What the time of a kernel follows.

    Attributes:
        streamed: Bytes of weights that come from memory, each time.
        follows: Power of the product's slowness that the rest of the kernel has: 1 where
            it computes, less where it moves numbers.
    """

    streamed: int = 0
    follows: float = 1.0


def moved(seconds: float, demand: Demand, at: Pace, to: Pace) -> float:
    """Return what a kernel takes at another pace.

    Args:
        seconds: What it takes at `at`; positive.
        demand: What its time follows.
        at: The pace at which that was measured.
        to: The other one.
    """
    known = at.stream > 0 and to.stream > 0
    waiting = min(1.0, demand.streamed * at.stream / seconds) if known else 0.0
    waited = waiting * to.stream / at.stream if known else 0.0
    slowness = math.exp(demand.follows * math.log(to.product / at.product))
    return seconds * (waited + (1 - waiting) * slowness)


def middle(paces: Sequence[Pace]) -> Pace:
    """Return the median of each yardstick."""
    return Pace(
        statistics.median(each.product for each in paces),
        statistics.median(each.stream for each in paces),
    )


def calm(paces: Sequence[Pace]) -> Pace:
    """Return the lower quartile of each yardstick: the machine when others let it be."""
    return Pace(
        _quartile([each.product for each in paces]),
        _quartile([each.stream for each in paces]),
    )


def _quartile(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 4]

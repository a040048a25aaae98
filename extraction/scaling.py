"""Find the unit in which all costs are whole numbers.

Sums of whole numbers are exact, one cost is better than another by at least 1, and CP-SAT
takes nothing else. Costs that once were float32 (tensor cost models) carry its rounding
noise; they count as whole when the noise explains the rest.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

FLOAT32_NOISE = 6.1e-8
"""Half a unit in the last place of a float32, relative."""

MOST_NOISE = 0.25
"""Absolute noise beyond which a scaled cost says nothing about being whole."""

MOST_DIGITS = 9
LARGEST = 2.0**50
"""Sums stay below this, with room to spare under 2**53."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How costs are turned into the numbers a solver sees.

    Attributes:
        factor: Scaled cost = cost * factor.
        whole: Whether scaled costs are rounded to whole numbers.
    """

    factor: float = 1.0
    whole: bool = False

    @property
    def step(self) -> float:
        """Least difference of two different scaled costs; 0.0 when unknown."""
        return 1.0 if self.whole else 0.0

    def scaled(self, cost: float) -> float:
        """Return a cost in the scaled unit."""
        return float(round(cost * self.factor)) if self.whole else cost * self.factor


def find_scale(costs: Iterable[float]) -> Scale:
    """Return a factor that makes all costs whole, as small as can be, or no scaling.

    A power of ten, over the greatest common divisor of what that gives: the larger the
    least step between two costs, the more a bound proves.
    """
    distinct = sorted({cost for cost in costs if cost}, reverse=True)
    total = sum(distinct)
    for digits in range(MOST_DIGITS + 1):
        factor = 10.0**digits
        if total * factor > LARGEST:
            break
        if all(_whole(cost * factor) for cost in distinct):
            shared = math.gcd(*[round(cost * factor) for cost in distinct])
            return Scale(factor / max(shared, 1), whole=True)
    return Scale()


def _whole(value: float) -> bool:
    return abs(value - round(value)) <= min(MOST_NOISE, FLOAT32_NOISE * value + 1e-9)

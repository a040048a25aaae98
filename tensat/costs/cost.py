"""What measuring cost sources give: a cost, how it is known, and what is measured first."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tensat.costs.source import Signature

_BLURRED = 1e-6  # seconds that no spread of a small kernel matters beside
_LEFT = 0.125  # of a slow pace, in costs that are restated for the usual one
_LEFT_AT_MOST = 0.5


class Origin(StrEnum):
    """Where a cost comes from."""

    KNOWN = "known"  # measured earlier
    MEASURED = "measured"  # measured now
    UNSTEADY = "unsteady"  # measured now, but on too disturbed a machine to be kept
    REFUSED = "refused"  # the runtime has no kernel for it: infinite
    SCALED = "scaled"  # estimated, then scaled by the measurements
    ESTIMATED = "estimated"  # by the roofline; never measured


@dataclass(frozen=True, slots=True)
class Cost:
    """What one signature costs, and how that is known.

    Attributes:
        seconds: Infinity where the runtime refuses the operator.
        origin: Measured, known or estimated.
        spread: Relative spread of the repetitions.
        note: Why it was refused, or what else is worth knowing of the measurement.
        runs: Number of repetitions.
        pace: How slow the machine was while it was measured; 1 is the best seen.
    """

    seconds: float
    origin: Origin
    spread: float = 0.0
    note: str = ""
    runs: int = 0
    pace: float = 1.0

    def disturbance(self, careful: bool = False) -> float:
        """How much the machine was disturbed: by how much it may be wrong, relative.

        Costs are restated for the usual pace, which takes most of a slow one away.

        Args:
            careful: Whether to think that more of it is left.
        """
        spread = self.spread if self.spread * self.seconds > _BLURRED else 0.0
        left = _LEFT_AT_MOST if careful else _LEFT
        return 0.0 if math.isinf(self.seconds) else spread + left * (self.pace - 1)


def mean_of(first: Cost, second: Cost) -> Cost:
    """Return the mean of two measurements of one kernel, by their numbers of runs.

    The spread is that of the wider one.
    """
    runs = first.runs + second.runs
    seconds = (first.seconds * first.runs + second.seconds * second.runs) / runs
    return Cost(seconds, second.origin, max(first.spread, second.spread), "", runs)


def by_turns(
    signatures: Sequence[Signature], estimate: Callable[[Signature], float]
) -> list[Signature]:
    """Order by falling estimate within each operator, operators in turn."""
    groups: dict[str, list[Signature]] = defaultdict(list)
    for signature in signatures:
        groups[signature.op].append(signature)
    ranked = [
        (place, -estimate(signature), k, signature)
        for k, group in enumerate(groups.values())
        for place, signature in enumerate(sorted(group, key=estimate, reverse=True))
    ]
    return [entry[-1] for entry in sorted(ranked, key=lambda entry: entry[:3])]

"""One deadline, made once and handed down to everything that can take long."""

import math
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in time.

    Attributes:
        at: Seconds on `time.monotonic`'s clock; infinity for never.
    """

    at: float = math.inf

    @staticmethod
    def after(seconds: float) -> "Deadline":
        """Return the deadline `seconds` from now."""
        return Deadline(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self.at

    def sooner(self, seconds: float) -> "Deadline":
        """Return this deadline or `seconds` from now, whichever comes first."""
        return Deadline(min(self.at, time.monotonic() + seconds))

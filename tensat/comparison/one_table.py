"""One table of costs for all searches of a comparison, so that only the search differs.

A source that measures may answer the same question twice with two numbers: what spreads
too widely is not kept in its store, and what a deadline cut off is estimated. Here the
first answer holds for every search that comes after.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensat.costs.source import CostSource, Progress, Signature

type Known = dict[Signature, float]
"""Seconds of every signature that was asked for."""


class OneTable:
    """A cost source that never changes its mind.

    Attributes:
        name: That of the source behind it.
        known: All answers so far; grows.
    """

    def __init__(self, source: CostSource, known: Known) -> None:
        """Stand before a source.

        Args:
            source: Asked for what is not known.
            known: Answers of earlier searches; new ones are put in.
        """
        self.name = source.name
        self.known = known
        self._source = source

    def seconds(
        self,
        signatures: Sequence[Signature],
        deadline: float | None = None,
        progress: Progress | None = None,
    ) -> list[float]:
        """As the source itself, where it is asked for the first time."""
        new = [each for each in dict.fromkeys(signatures) if each not in self.known]
        if new:
            costs = self._source.seconds(new, deadline, progress)
            self.known.update(zip(new, costs, strict=True))
        return [self.known[each] for each in signatures]

"""Partial choices: what they ask of the rest, what they give to it, and what they cost.

A partial choice is one number and a cost. The number is a set of bits: one for each e-class
that the choice *asks for* and one for each e-class that it *does not give*, so that a
choice is at least as useful as another exactly if its bits are a subset. Of two where that
holds the dearer one goes: it is never needed.
"""

from typing import NamedTuple

from extraction.deadline import Deadline
from extraction.errors import TooWideError


class Pick(NamedTuple):
    """An e-node for an e-class."""

    number: int
    node: int


type Trace = Pick | tuple[Trace, Trace] | None
"""The picks of a partial choice, as they were joined."""

type Partial = tuple[int, float, Trace]
"""Bits, cost and picks."""

type Best = dict[int, tuple[float, Trace]]
"""The cheapest partial choice of each set of bits."""


class Effort:
    """How much may still be done: pairs of partial choices compared or joined."""

    def __init__(self, most: float, deadline: Deadline | None = None) -> None:
        """Allow so many pairs; a deadline is for machines that are too busy for them."""
        self.left = most
        self._deadline = deadline or Deadline()

    def spend(self, pairs: float) -> None:
        """Take from what is left.

        Raises:
            TooWideError: There is not as much left, or no time.
        """
        self.left -= pairs
        if self.left < 0 or self._deadline.passed:
            raise TooWideError("the e-graph is too wide for elimination; possible: solvers")


def put(best: Best, bits: int, cost: float, trace: Trace) -> None:
    """Remember a partial choice if none of the same bits is as cheap."""
    known = best.get(bits)
    if known is None or cost < known[0]:
        best[bits] = (cost, trace)


def undominated(best: Best, most: float, effort: Effort) -> list[Partial]:
    """Return those that none other replaces and that cost no more than `most`.

    Returns:
        The cheapest first; among equals the order is that of their bits.
    """
    rest = sorted(
        (cost, bits.bit_count(), bits) for bits, (cost, _) in best.items() if cost <= most
    )
    kept: list[int] = []
    found: list[Partial] = []
    for cost, _, bits in rest:
        absent = ~bits
        effort.spend(len(kept))
        for other in kept:
            if not other & absent:
                break
        else:
            kept.append(bits)
            found.append((bits, cost, best[bits][1]))
    return found


def join(one: list[Partial], other: list[Partial], most: float, effort: Effort) -> Best:
    """Return every pair of two tables, cheapest first each, as one partial choice."""
    effort.spend(len(one) * len(other))
    best: Best = {}
    for bits, cost, trace in one:
        for more, price, way in other:
            total = cost + price
            if total > most:
                break
            put(best, bits | more, total, (trace, way))
    return best


def settled(best: Best, asked: int, withheld: int) -> Best:
    """Return the partial choices that give what they ask for, that e-class left out.

    Args:
        best: Partial choices to which everything belongs that has to do with an e-class.
        asked: The bit of asking for it.
        withheld: The bit of not giving it.
    """
    both = asked | withheld
    found: Best = {}
    for bits, (cost, trace) in best.items():
        if bits & both != both:
            put(found, bits & ~both, cost, trace)
    return found


def picks(traces: list[Trace]) -> dict[int, int]:
    """Return e-class -> e-node of all picks."""
    chosen: dict[int, int] = {}
    stack = list(traces)
    while stack:
        trace = stack.pop()
        if isinstance(trace, Pick):
            chosen[trace.number] = trace.node
        elif trace is not None:
            stack.extend(trace)
    return chosen

"""All pairs."""

from __future__ import annotations

from tensat.ordering import convolution, elementwise, linear, transformer
from tensat.ordering.blocked import blocked_pairs
from tensat.ordering.pair import Pair


def all_pairs(block: int) -> tuple[Pair, ...]:
    """Return every pair that this kind of machine can run.

    Args:
        block: Channels in a block of the runtime's blocked layout; 0 where it has none.
    """
    plain = (linear, convolution, elementwise, transformer)
    found = [pair for module in plain for pair in module.PAIRS]
    return (*found, *(blocked_pairs(block) if block else ()))

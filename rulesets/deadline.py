"""When a proof gives up: one deadline for whatever the proof calls.

Everything that may run long asks `check_time`: runs through scenarios, products of normal
forms, maps of bound variables, questions about integers. Processor time is counted, so that
a busy machine does not shorten a proof.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf


class OutOfTimeError(Exception):
    """The time for a proof is over."""


_DEADLINE: ContextVar[float] = ContextVar("deadline", default=inf)


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Let `check_time` raise once `time.process_time()` is past a deadline, in seconds."""
    token = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def deadline_in(seconds: float) -> float:
    """Return the deadline that is so many seconds away."""
    return time.process_time() + seconds


def check_time() -> None:
    """Return while there is time.

    Raises:
        OutOfTimeError: There is none left.
    """
    if time.process_time() > _DEADLINE.get():
        raise OutOfTimeError("out of time")

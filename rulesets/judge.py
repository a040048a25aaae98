"""Who decides whether sizes are equal or large enough.

Shape rules ask `equal`, `at_least`, `multiple`, `joined`. Ordinarily the answer is what
the polynomials show. While a rule is proved, `judging` puts another judge in place: on the
left side it takes for granted what is asked, on the right side it proves it.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from rulesets.size import Size, broadcast_sizes, provably_nonnegative


class Judge(Protocol):
    """Decides questions about sizes that differ as polynomials."""

    def equal(self, one: Size, other: Size, /) -> bool:
        """Say whether two sizes are equal."""
        ...

    def at_least(self, size: Size, least: Size, /) -> bool:
        """Say whether `size >= least`."""
        ...

    def one(self, size: Size, /) -> bool:
        """Say whether a size is taken to be 1 without being so as a polynomial."""
        ...

    def position(self, offset: Size, size: Size, /) -> Size | None:
        """Return the position that an offset of unknown sign means; None if unknown."""
        ...

    def multiple(self, size: Size, of: Size, /) -> bool:
        """Say whether a size is a multiple of another one."""
        ...

    def joined(self, sizes: tuple[Size, ...], /) -> Size | None:
        """Return the common length of axes that broadcast, None if they do not."""
        ...


_JUDGE: ContextVar[Judge | None] = ContextVar("judge", default=None)


@contextmanager
def judging(judge: Judge) -> Iterator[None]:
    """Let a judge decide inside the block."""
    token = _JUDGE.set(judge)
    try:
        yield
    finally:
        _JUDGE.reset(token)


def judged() -> bool:
    """Say whether a judge is in place, so that every size may be symbolic."""
    return _JUDGE.get() is not None


def equal(one: Size, other: Size) -> bool:
    """Say whether two sizes are known to be equal."""
    if one == other:
        return True
    if isinstance(one, int) and isinstance(other, int):
        return False
    judge = _JUDGE.get()
    return judge is not None and judge.equal(one, other)


def all_equal(ones: Iterable[Size], others: Iterable[Size]) -> bool:
    """Say whether two lists of sizes are known to be equal."""
    first, second = tuple(ones), tuple(others)
    return len(first) == len(second) and all(map(equal, first, second))


def at_least(size: Size, least: Size) -> bool:
    """Say whether a size is known to be `least` or more."""
    if isinstance(size, int) and isinstance(least, int):
        return size >= least
    judge = _JUDGE.get()
    return (
        provably_nonnegative(size - least) if judge is None else judge.at_least(size, least)
    )


def is_one(size: Size) -> bool:
    """Say whether a size is 1, so that the axis broadcasts."""
    if isinstance(size, int):
        return size == 1
    judge = _JUDGE.get()
    return judge is not None and judge.one(size)


def position(offset: Size, size: Size) -> Size | None:
    """Return the position a judge gives an offset that it does not look into."""
    judge = None if isinstance(offset, int) else _JUDGE.get()
    return None if judge is None else judge.position(offset, size)


def multiple(size: Size, of: Size) -> bool:
    """Say whether a size is a multiple of another one, or may be for all that is known."""
    if isinstance(size, int) and isinstance(of, int):
        return size % of == 0
    judge = _JUDGE.get()
    return judge is None or judge.multiple(size, of)


def joined(sizes: Iterable[Size]) -> Size | None:
    """Return the common length of axes that broadcast, None if they provably do not."""
    judge = _JUDGE.get()
    return broadcast_sizes(sizes) if judge is None else judge.joined(tuple(sizes))

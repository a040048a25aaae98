"""Stages of an optimization: their names, their wall times, and who wants to know."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """Something that shows how far an optimization is."""

    def stage(self, name: str) -> None:
        """A stage begins."""
        ...

    def step(self, done: int, total: int) -> None:
        """Part of the current stage is done."""
        ...

    def note(self, text: str) -> None:
        """One line about the current stage."""
        ...


class Silent:
    """Shows nothing."""

    def stage(self, name: str) -> None:
        """Ignore."""

    def step(self, done: int, total: int) -> None:
        """Ignore."""

    def note(self, text: str) -> None:
        """Ignore."""


class Clock:
    """Measures stages and passes their names on.

    Attributes:
        progress: Who is told.
        seconds: Wall time of each stage so far.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress: Progress = progress or Silent()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[Progress]:
        """Measure what happens inside."""
        self.progress.stage(name)
        start = time.monotonic()
        try:
            yield self.progress
        finally:
            spent = time.monotonic() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + spent

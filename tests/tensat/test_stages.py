"""Stages are named, measured, and shown to whoever wants to know."""

from __future__ import annotations

import pytest

from tensat.stages import Clock, Silent


class Recorder:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def stage(self, name: str) -> None:
        """A stage begins."""
        self.told.append(name)

    def step(self, done: int, total: int) -> None:
        """Part of it is done."""
        self.told.append((done, total))

    def note(self, text: str) -> None:
        """A line about it."""
        self.told.append(text)


def test_stages_are_passed_on_and_measured() -> None:
    """In order, with what happens inside; a stage entered twice counts once."""
    recorder = Recorder()
    clock = Clock(recorder)
    with clock.stage("read") as progress:
        progress.step(1, 2)
    with clock.stage("write"):
        pass
    first = clock.seconds["read"]
    with clock.stage("read") as progress:
        progress.note("again")
    assert recorder.told == ["read", (1, 2), "write", "read", "again"]
    assert list(clock.seconds) == ["read", "write"]
    assert clock.seconds["read"] >= first >= 0


def test_a_stage_that_fails_is_measured() -> None:
    """The error passes, the time is kept."""
    clock = Clock()
    with pytest.raises(ValueError, match="broken"), clock.stage("read"):
        raise ValueError("broken")
    assert set(clock.seconds) == {"read"}


def test_nobody_need_listen() -> None:
    """Without a listener nothing is shown."""
    assert isinstance(Clock().progress, Silent)

"""The last word on a candidate: valid, equal to the original, and faster, or not.

The candidate must pass the ONNX checker, load, keep the interface, and give the
original's outputs on every given input. The reference is the original with the runtime's
optimizer off, so that a fault of that optimizer is not taken for ours. Then both run in
turn, the original from two sessions: what these two differ by is the noise, and only a
gain beyond it counts. Nothing here trusts a predicted cost.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp, log
from typing import Any

import numpy as np

from tensat.check.equivalence import TOLERANCES, Comparison, Tolerance, compare
from tensat.errors import one_line
from tensat.runtime import Failure, FailureKind, Feeds, Level, Loaded, Program, Runtime

Series = tuple[Sequence[float], Sequence[float], Sequence[float]]
"""Seconds of the original, the candidate, and the original's other session, by round."""

_SETS = 3  # sessions are made anew so often before a close race is decided
_LONGEST = 6.0  # seconds of racing after which no new sessions are made: large models
_LEAST_SPREAD = 0.005  # no clock here is better


class Reason(StrEnum):
    """What decided."""

    FASTER = "faster"
    UNMEASURED = "equal, not measured"
    NOT_FASTER = "not faster"
    INVALID = "refused by the ONNX checker"
    NOT_LOADED = "refused by the runtime"
    INTERFACE = "other inputs or outputs"
    NOT_RUN = "fails when it runs"
    CRASHED = "crashes the runtime"
    TIMED_OUT = "does not end in time"
    DIFFERENT = "gives other outputs"
    ORIGINAL = "the original itself does not run"


@dataclass(frozen=True, slots=True)
class Race:
    """Latencies of original and candidate, measured in turn.

    Attributes:
        original: Median seconds.
        candidate: Median seconds.
        ratio: Median over the rounds of original / candidate; above 1: faster.
        spread: What the original differs from itself by, or what the medians are
            uncertain by, relative; a smaller gain is none.
        rounds: Runs of the candidate.
    """

    original: float
    candidate: float
    ratio: float
    spread: float
    rounds: int

    @property
    def faster(self) -> bool:
        """Whether the candidate is faster beyond the spread."""
        return self.ratio > 1 + self.spread


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the guard found.

    Attributes:
        accepted: Whether the candidate may take the original's place.
        reason: What decided.
        text: One line for people.
        deviation: Largest deviation of an output over the output's largest number.
        race: The latencies, if it came to that.
    """

    accepted: bool
    reason: Reason
    text: str
    deviation: float = 0.0
    race: Race | None = None


def judge(
    runtime: Runtime,
    original: str,
    candidate: str,
    inputs: Sequence[Feeds],
    *,
    measure: bool = True,
    threads: int = 1,
    seconds: float = 4.0,
    tolerances: Mapping[str, Tolerance] = TOLERANCES,
) -> Verdict:
    """Return whether the candidate is valid, equal and faster.

    Args:
        runtime: Where both run.
        original: Path of the original model.
        candidate: Path of the candidate.
        inputs: What both are fed with, at least one; the first is used for timing.
        measure: Whether to time; without, an equal candidate is accepted.
        threads: Threads that compute while timing.
        seconds: About how long timing may take; slow models take longer.
        tolerances: How far outputs may be off, by dtype.
    """
    refused = _static(runtime, original, candidate)
    if refused is not None:
        return refused
    judged = _outputs(runtime, original, candidate, inputs, tolerances)
    if not judged.accepted or not measure:
        return judged
    race = time_in_turn(
        runtime, original, candidate, inputs[0], threads=threads, seconds=seconds
    )
    if isinstance(race, Failure):
        return replace(_failed(race), deviation=judged.deviation)
    reason = Reason.FASTER if race.faster else Reason.NOT_FASTER
    text = (
        f"{reason}: {1e3 * race.original:.4g} ms before, {1e3 * race.candidate:.4g} ms "
        f"after, ratio {race.ratio:.3f} with spread {race.spread:.3f}"
    )
    return Verdict(race.faster, reason, text, judged.deviation, race)


def time_in_turn(
    runtime: Runtime,
    original: str,
    candidate: str,
    feeds: Feeds,
    *,
    threads: int = 1,
    seconds: float = 4.0,
) -> Race | Failure:
    """Return the latencies of two models, run in turn on one core.

    Sessions differ by where their memory lies, so a race that is not clear is repeated
    with new sessions, and the median ratio counts.
    """
    programs = (
        Program(original, threads=threads),
        Program(candidate, threads=threads),
        Program(original, threads=threads, copy=1),
    )
    sets: list[Series] = []
    begin = time.monotonic()
    for _ in range(_SETS):
        runtime.forget()
        start = time.monotonic()
        warm = runtime.run(programs[0], feeds)
        if isinstance(warm, Failure):
            return warm
        once = max(time.monotonic() - start, 1e-3)
        least = max(3, min(9, int(2 * seconds / (len(programs) * once))))
        times = runtime.compare(programs, feeds, seconds / _SETS, least)
        if isinstance(times, Failure):
            return times
        sets.append((times[0], times[1], times[2]))
        race = race_of(sets)
        clear = abs(race.ratio - 1) > 3 * race.spread
        if clear or time.monotonic() - begin > _LONGEST:
            break
    return race


def race_of(sets: Sequence[Series]) -> Race:
    """Return the race of one or more sets of (original, candidate, original again).

    Runs of the same round share what the machine does at that time, so the ratio is the
    median of the rounds' ratios, and the original's two series tell what a ratio of equal
    models comes to.
    """
    rounds = [row for times in sets for row in zip(*times, strict=True)]
    logarithms = [(log(a) + log(c)) / 2 - log(b) for a, b, c in rounds]
    itself = statistics.median(
        abs(statistics.median(log(a) - log(c) for a, _, c in zip(*times, strict=True)))
        for times in sets
    )
    low, middle, high = statistics.quantiles(logarithms, n=4, method="inclusive")
    uncertain = 1.57 * (high - low) / len(logarithms) ** 0.5  # of a median, 95 %
    return Race(
        original=statistics.median(time for a, _, c in sets for time in (*a, *c)),
        candidate=statistics.median(time for _, b, _ in sets for time in b),
        ratio=exp(middle),
        spread=exp(max(_LEAST_SPREAD, itself, uncertain)) - 1,
        rounds=len(rounds),
    )


def _static(runtime: Runtime, original: str, candidate: str) -> Verdict | None:
    """Return why the candidate cannot stand in for the original; None if it can."""
    objection = runtime.check(candidate)
    if isinstance(objection, Failure):
        return _failed(objection)
    if objection and runtime.check(original) == "":
        return _verdict(Reason.INVALID, objection)
    before = runtime.load(Program(original, Level.NONE))
    if isinstance(before, Failure):
        return _verdict(Reason.ORIGINAL, str(before))
    after = runtime.load(Program(candidate))
    if isinstance(after, Failure):
        return _failed(after, Reason.NOT_LOADED)
    difference = _interface(before, after)
    return _verdict(Reason.INTERFACE, difference) if difference else None


def _interface(before: Loaded, after: Loaded) -> str:
    """Return how the interfaces differ; empty if they do not."""
    sides: list[tuple[str, Callable[[Loaded], list[Any]]]] = [
        ("inputs", lambda side: list(side.inputs)),
        ("defaults", lambda side: sorted((v.name, v.type) for v in side.defaults)),
        ("outputs", lambda side: [(value.name, value.type) for value in side.outputs]),
    ]
    for what, of in sides:
        if of(before) != of(after):
            return f"{what} {of(after)} in place of {of(before)}"
    return ""


def _outputs(
    runtime: Runtime,
    original: str,
    candidate: str,
    inputs: Sequence[Feeds],
    tolerances: Mapping[str, Tolerance],
) -> Verdict:
    """Return whether the outputs are equal.

    The candidate runs under the runtime's full optimization, and on the first input also
    without any.
    """
    deviation = 0.0
    reference = Program(original, Level.NONE)
    loaded = runtime.load(reference)
    if isinstance(loaded, Failure):
        return _verdict(Reason.ORIGINAL, str(loaded))
    names = [value.name for value in loaded.outputs]
    for place, feeds in enumerate(inputs):
        wanted = runtime.run(reference, feeds)
        if isinstance(wanted, Failure):
            return _verdict(Reason.ORIGINAL, str(wanted))
        for level in (Level.ALL, Level.NONE) if place == 0 else (Level.ALL,):
            given = runtime.run(Program(candidate, level), feeds)
            if isinstance(given, Failure):
                return _failed(given)
            found = compare(names, wanted, given, tolerances)
            if not found.equal:
                found = _second_look(
                    runtime, original, candidate, feeds, names, wanted, given, tolerances
                )
            deviation = max(deviation, found.deviation)
            if not found.equal:
                text = f"{found.text}, input {place}, {level}"
                return replace(_verdict(Reason.DIFFERENT, text), deviation=deviation)
    text = f"equal on {len(inputs)} inputs, largest deviation {deviation:.1e}"
    return Verdict(True, Reason.UNMEASURED, text, deviation)


def _second_look(
    runtime: Runtime,
    original: str,
    candidate: str,
    feeds: Feeds,
    names: Sequence[str],
    wanted: Sequence[object],
    given: Sequence[object],
    tolerances: Mapping[str, Tolerance],
) -> Comparison:
    """Compare again without what is not the candidate's fault.

    Outputs that the original itself does not repeat are random: only their type and
    shape must agree. If the original moves as far under the runtime's own optimizer, the
    candidate is compared without that optimizer.
    """
    again = runtime.run(Program(original, Level.NONE), feeds)
    if isinstance(again, Failure):
        return Comparison(False, str(again))
    stable = [
        compare([name], [a], [b], tolerances).equal
        for name, a, b in zip(names, wanted, again, strict=True)
    ]
    found = _compare_stable(names, wanted, given, stable, tolerances)
    if found.equal:
        return found
    optimized = runtime.run(Program(original, Level.ALL), feeds)
    plain = runtime.run(Program(candidate, Level.NONE), feeds)
    if isinstance(optimized, Failure) or isinstance(plain, Failure):
        return found
    if _compare_stable(names, wanted, optimized, stable, tolerances).equal:
        return found
    return _compare_stable(names, wanted, plain, stable, tolerances)


def _compare_stable(
    names: Sequence[str],
    wanted: Sequence[object],
    given: Sequence[object],
    stable: Sequence[bool],
    tolerances: Mapping[str, Tolerance],
) -> Comparison:
    if len(wanted) != len(given):
        return compare(names, wanted, given, tolerances)
    one = [a if keep else _kind(a) for a, keep in zip(wanted, stable, strict=True)]
    other = [b if keep else _kind(b) for b, keep in zip(given, stable, strict=True)]
    return compare(names, one, other, tolerances)


def _kind(output: object) -> str:
    if isinstance(output, np.ndarray):
        return f"{output.dtype}{list(output.shape)}"
    return type(output).__name__


def _verdict(reason: Reason, detail: str) -> Verdict:
    return Verdict(False, reason, one_line(f"{reason}: {detail}"))


def _failed(failure: Failure, otherwise: Reason = Reason.NOT_RUN) -> Verdict:
    reasons = {
        FailureKind.CRASHED: Reason.CRASHED,
        FailureKind.TIMED_OUT: Reason.TIMED_OUT,
    }
    return _verdict(reasons.get(failure.kind, otherwise), failure.text)

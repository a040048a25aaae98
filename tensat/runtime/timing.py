"""Clocks around the runtime; runs in the child process only.

With one thread the runtime computes on the calling thread, so the thread's own CPU time
is the model's and neighbours on the same core do not count. With several threads only
the clock on the wall tells, and wants a quiet machine.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from tensat.runtime.messages import Kernel, PacedRun, Timing
from tensat.runtime.pace import Pace, middle, moved
from tensat.runtime.prepare import prepared
from tensat.runtime.yardsticks import (
    KINDS,
    STREAMED,
    assorted,
    nothing,
    product,
    stream,
    uniform,
)

_SMALLEST = 1e-7  # seconds: no kernel is faster than its own dispatch
_LEAST, _MOST = 9, 100  # rounds of an attempt
_RETRIES = 1  # attempts after the first
_ATTEMPTS = 5
_WIDE = 0.08  # a spread from which on another attempt is made
_FINEST = 1e-6  # seconds: clocks tell no more
_FLOOD = 8 << 20  # bytes that drive everything else out of a core's own cache
_SETTLED = 8e-4  # seconds after which a product takes what it takes, whatever ran before
_UNSETTLING = 3e-4  # seconds of a run that the product notices
_BRIEF = 2e-3  # seconds of a run that notices what ran before it
_SLICE = 0.05  # seconds for which one look at the pace holds
_SOME = 48  # nodes of a dozen kinds
_SOME_NODES = partial(assorted, _SOME)


def clock(threads: int) -> Callable[[], int]:
    """Return the clock, in nanoseconds, that fits the number of threads."""
    return time.thread_time_ns if threads == 1 else time.perf_counter_ns


@contextmanager
def pinned(threads: int) -> Iterator[None]:
    """Keep a single calling thread on one core where the system can do that."""
    if threads != 1 or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def interleaved(
    runs: Sequence[Callable[[], object]],
    threads: int,
    seconds: float,
    rounds: tuple[int, int] = (9, 400),
    warm_up: int = 2,
) -> list[list[float]]:
    """Time several functions in turn, each round starting with another one.

    Args:
        runs: What to time.
        threads: Decides the clock.
        seconds: Stop after this long, but not before the least number of rounds.
        rounds: Least and largest number of rounds.
        warm_up: Rounds before the first counted one.

    Returns:
        For each function the seconds of each round.
    """
    now = clock(threads)
    result: list[list[float]] = [[] for _ in runs]
    with pinned(threads):
        for _ in range(warm_up):
            for run in runs:
                run()
        end = time.perf_counter() + seconds
        for turn in range(rounds[1]):
            if turn >= rounds[0] and time.perf_counter() > end:
                break
            for place in range(len(runs)):
                which = (turn + place) % len(runs)
                start = now()
                runs[which]()
                result[which].append((now() - start) / 1e9)
    return result


class KernelClock:
    """Times small models; keeps what it judges them by."""

    def __init__(self) -> None:
        self._runs: dict[tuple[Callable[[int], Kernel], int], Callable[[], object]] = {}
        self._best: dict[tuple[str, int], float] = {}
        self._flood = np.ones(_FLOOD // 4, np.float32)

    def time(self, kernel: Kernel) -> Timing:
        """Return the time of one copy of the kernel, from the steadiest of some attempts.

        Each run is accompanied by a run of nothing and by the yardsticks, so that all meet
        the machine in the same state.
        """
        run = prepared(kernel)
        found = self._attempt(run, kernel)
        for _ in range(_RETRIES):
            if found.pace <= kernel.slowest and found.spread <= _WIDE:
                break
            again = self._attempt(run, kernel)
            found = min(found, again, key=lambda each: each.spread + each.pace)
        return found

    def _attempt(self, run: Callable[[], object], kernel: Kernel) -> Timing:
        idle, now = self._run(nothing, kernel.threads), clock(kernel.threads)
        others = np.ones(kernel.between // 4, np.float32)
        samples: list[float] = []
        paces: list[Pace] = []
        with pinned(kernel.threads):
            before = self._slowness(kernel.threads)
            run()
            once = _once(run, now)
            brief, settle = once < _BRIEF, _SETTLED if once > _UNSETTLING else 0.0
            start = time.perf_counter()
            for turn in range(_MOST):
                if turn >= _LEAST and time.perf_counter() - start > kernel.budget:
                    break
                product = self._product(kernel.threads, settle)
                idle()
                without = _once(idle, now)
                if others.size:
                    others.sum()
                elif brief:
                    run()
                samples.append(max(_once(run, now) - without, _SMALLEST) / kernel.copies)
                weights = self._stream(kernel.threads) if kernel.demand.streamed else 0.0
                paces.append(Pace(product, weights))
            after = self._slowness(kernel.threads)
        pace = middle(paces)
        pairs = zip(samples, paces, strict=True)
        steadied = [moved(each, kernel.demand, at, pace) for each, at in pairs]
        seconds = statistics.median(steadied)
        quartiles = statistics.quantiles(steadied, n=4)
        return Timing(
            seconds=max(seconds, _SMALLEST),
            spread=(quartiles[2] - quartiles[0]) / 2 / max(seconds, _FINEST),
            runs=len(samples),
            pace=max(before, after),
            at=pace,
        )

    def paced(
        self, run: Callable[[], object], threads: int, seconds: float, weights: bool
    ) -> list[PacedRun]:
        """Run something again and again; return what each run took, and the pace.

        Args:
            run: What to time.
            threads: Threads that compute.
            seconds: Stop after this long, but not before `_LEAST` runs.
            weights: Whether to look at the stream after each run, when its weights are as
                old as the model's own; it drives the model out of a core's own cache.
        """
        now, result = clock(threads), list[PacedRun]()

        def once() -> tuple[float, float]:
            return _once(run, now), self._stream(threads) if weights else 0.0

        with pinned(threads):
            for _ in range(2):
                run()
            end = time.perf_counter() + seconds
            while time.perf_counter() < end or len(result) < _LEAST:
                before, stop = self._slowness(threads), time.perf_counter() + _SLICE
                product = self._product(threads)
                run()
                found = [once()]
                while time.perf_counter() < stop:
                    found.append(once())
                product = (product + self._product(threads)) / 2
                slowness = max(before, self._slowness(threads))
                result.extend(
                    PacedRun(each, slowness, Pace(product, stream))
                    for each, stream in found
                )
        return result

    def paces(self, threads: int, seconds: float, between: int) -> list[Pace]:
        """Look at both yardsticks again and again for so many seconds.

        Args:
            threads: Threads that compute.
            seconds: Stop after this long, but not before `_LEAST` looks.
            between: Bytes that are read between two looks: the other weights of a model
                drive those of the stream out of as many caches.
        """
        deluge, found = np.ones(between // 4, np.float32), list[Pace]()
        end = time.perf_counter() + seconds
        with pinned(threads):
            self._stream(threads)
            while time.perf_counter() < end or len(found) < _LEAST:
                deluge.sum()
                weights = self._stream(threads)
                found.append(Pace(self._product(threads), weights))
        return found

    def _product(self, threads: int, settle: float = _SETTLED) -> float:
        """Return the seconds of a small product, undisturbed by interrupts.

        Args:
            threads: Threads that compute.
            settle: Seconds until a core is back at the clock of wide vectors, whatever ran
                before.
        """
        run, now = self._run(product, threads), clock(threads)
        end = time.perf_counter() + settle
        run()
        while time.perf_counter() < end:
            run()
        return min(_once(run, now) for _ in range(2))

    def _stream(self, threads: int) -> float:
        """Return the seconds per byte of weights that come from memory."""
        return _once(self._run(stream, threads), clock(threads)) / STREAMED

    def _slowness(self, threads: int) -> float:
        """Return how slow the machine is just now; 1 is the best it was seen at.

        Slow memory counts half: few kernels wait for it all the time.
        """
        now = clock(threads)
        found = {
            "product": statistics.median(self._product(threads) for _ in range(3)),
            "memory": statistics.median(_once(self._flood.sum, now) for _ in range(3)),
        }
        ratios = {}
        for name, seconds in found.items():
            best = self._best.get((name, threads), seconds)
            self._best[name, threads] = min(seconds, best)
            ratios[name] = seconds / self._best[name, threads]
        return max(ratios["product"], (1 + ratios["memory"]) / 2)

    def best(self, threads: int, known: Mapping[str, float]) -> dict[str, float]:
        """Return the best that the machine was seen at: seconds by name of the yardstick.

        Args:
            threads: Threads that compute.
            known: What other processes saw.
        """
        self._slowness(threads)
        for name in ("product", "memory"):
            best = self._best[name, threads]
            self._best[name, threads] = min(best, known.get(name, best))
        return {name: self._best[name, threads] for name in ("product", "memory")}

    def overhead(self, threads: int) -> float:
        """Return the seconds of a run that computes nothing."""
        run, now = self._run(nothing, threads), clock(threads)
        with pinned(threads):
            return statistics.median(_once(run, now) for _ in range(_MOST))

    def dispatch(self, threads: int, resident: bool) -> tuple[float, Pace]:
        """Return the seconds that a node takes besides its kernel, and the pace.

        Kernels are timed in loops over one of them. Where kernels alternate, each finds
        less of its code and branches prepared; where weights pass through the core's own
        cache, even what the runtime notes of a node is gone.

        Args:
            threads: Threads that compute.
            resident: Whether the weights of the model stay in that cache.
        """
        run, now = self._run(_SOME_NODES, threads), clock(threads)
        loops = [prepared(uniform(kind, _SOME, threads)) for kind in range(KINDS)]
        found: list[float] = []
        products: list[float] = []
        with pinned(threads):
            for _ in range(_ATTEMPTS):
                samples: list[float] = []
                products.append(self._product(threads))
                for _ in range(_MOST // 10):
                    extra = 0.0 if resident else self._cold(run, now, threads)
                    mixed = _again(run, now)
                    apart = [_again(each, now) for each in loops]
                    samples.append(extra + mixed - statistics.fmean(apart))
                found.append(statistics.median(samples))
        node = max(0.0, statistics.median(found)) / _SOME
        return node, Pace(statistics.median(products))

    def _cold(
        self, run: Callable[[], object], now: Callable[[], int], threads: int
    ) -> float:
        """Return by how much longer a run takes after the cache was flooded."""
        idle = self._run(nothing, threads)
        found = []
        for each in (run, idle):
            warm = _again(each, now)
            self._flood.sum()
            found.append(_once(each, now) - warm)
        return found[0] - found[1]

    def _run(self, make: Callable[[int], Kernel], threads: int) -> Callable[[], object]:
        """Return what runs a yardstick."""
        if (make, threads) not in self._runs:
            self._runs[make, threads] = prepared(make(threads))
        return self._runs[make, threads]


def _once(run: Callable[[], object], now: Callable[[], int]) -> float:
    start = now()
    run()
    return (now() - start) / 1e9


def _again(run: Callable[[], object], now: Callable[[], int]) -> float:
    """Return the seconds of a run right after another one."""
    run()
    return _once(run, now)

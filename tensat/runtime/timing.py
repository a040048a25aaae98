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
from typing import Any

import numpy as np
import onnxruntime as ort

from tensat.runtime.messages import Filling, Kernel, Timing
from tensat.runtime.yardsticks import KINDS, assorted, nothing, pace, uniform

_SMALLEST = 1e-7  # seconds: no kernel is faster than its own dispatch
_NUMPY_TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64",
}  # fmt: skip
_BFLOAT16 = 16
_WEIGHTS = 4096  # elements from which on constants are drawn around 0
_BLOCK = 1 << 20  # random numbers from which all tensors are filled
_LEAST, _MOST = 9, 100  # rounds of an attempt
_RETRIES = 1  # attempts after the first
_ATTEMPTS = 5
_WIDE = 0.08  # a spread from which on another attempt is made
_SLOW = 1.08  # the machine's slowness that asks for one, too
_FINEST = 1e-6  # seconds: clocks tell no more
_FLOOD = 8 << 20  # bytes that drive everything else out of a core's own cache
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


def options(level: str, threads: int) -> Any:
    """Return session options: silent, and no spinning pool that disturbs others."""
    result = ort.SessionOptions()
    result.intra_op_num_threads = threads
    result.inter_op_num_threads = 1
    result.log_severity_level = 4
    result.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    result.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return result


class KernelClock:
    """Times small models; keeps what it judges them by."""

    def __init__(self) -> None:
        self._runs: dict[tuple[Callable[[int], Kernel], int], Callable[[], object]] = {}
        self._best: dict[tuple[str, int], float] = {}
        self._flood = np.ones(_FLOOD // 4, np.float32)

    def time(self, kernel: Kernel) -> Timing:
        """Return the time of one copy of the kernel, from the steadiest of some attempts.

        Each run is followed by a run of nothing, so that both meet the machine in the same
        state.
        """
        run = _prepared(kernel)
        found = self._attempt(run, kernel)
        for _ in range(_RETRIES):
            if found.pace <= _SLOW and found.spread <= _WIDE:
                break
            again = self._attempt(run, kernel)
            found = min(found, again, key=lambda each: each.spread + 2 * (each.pace - 1))
        return found

    def _attempt(self, run: Callable[[], object], kernel: Kernel) -> Timing:
        idle, now = self._run(nothing, kernel.threads), clock(kernel.threads)
        samples: list[float] = []
        with pinned(kernel.threads):
            before = self._pace(kernel.threads)
            for _ in range(2):
                run()
                idle()
            start = time.perf_counter()
            for turn in range(_MOST):
                if turn >= _LEAST and time.perf_counter() - start > kernel.budget:
                    break
                samples.append(_once(run, now) - _once(idle, now))
            after = self._pace(kernel.threads)
        middle = statistics.median(samples)
        quartiles = statistics.quantiles(samples, n=4)
        return Timing(
            seconds=max(middle / kernel.copies, _SMALLEST),
            spread=(quartiles[2] - quartiles[0]) / 2 / max(middle, _FINEST),
            runs=len(samples),
            pace=max(before, after),
        )

    def paced(
        self, run: Callable[[], object], threads: int, seconds: float
    ) -> list[tuple[float, float]]:
        """Run something again and again; return seconds and pace of each run.

        Args:
            run: What to time.
            threads: Threads that compute.
            seconds: Stop after this long, but not before `_LEAST` runs.
        """
        now, result = clock(threads), list[tuple[float, float]]()
        with pinned(threads):
            for _ in range(2):
                run()
            end = time.perf_counter() + seconds
            while time.perf_counter() < end or len(result) < _LEAST:
                before, stop = self._pace(threads), time.perf_counter() + _SLICE
                run()
                times = [_once(run, now)]
                while time.perf_counter() < stop:
                    times.append(_once(run, now))
                slowness = max(before, self._pace(threads))
                result.extend((each, slowness) for each in times)
        return result

    def _pace(self, threads: int) -> float:
        """Return how slow the machine is just now; 1 is the best it was seen at.

        Slow memory counts half: few kernels wait for it all the time.
        """
        product, now = self._run(pace, threads), clock(threads)
        product()
        found = {
            "product": statistics.median(_once(product, now) for _ in range(5)),
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
        self._pace(threads)
        for name in ("product", "memory"):
            best = self._best[name, threads]
            self._best[name, threads] = min(best, known.get(name, best))
        return {name: self._best[name, threads] for name in ("product", "memory")}

    def overhead(self, threads: int) -> float:
        """Return the seconds of a run that computes nothing."""
        run, now = self._run(nothing, threads), clock(threads)
        with pinned(threads):
            return statistics.median(_once(run, now) for _ in range(_MOST))

    def dispatch(self, threads: int, resident: bool) -> float:
        """Return what a node takes besides its kernel, in seconds.

        Kernels are timed in loops over one of them. Where kernels alternate, each finds
        less of its code and branches prepared; where weights pass through the core's own
        cache, even what the runtime notes of a node is gone.

        Args:
            threads: Threads that compute.
            resident: Whether the weights of the model stay in that cache.
        """
        run, now = self._run(_SOME_NODES, threads), clock(threads)
        loops = [_prepared(uniform(kind, _SOME, threads)) for kind in range(KINDS)]
        found: list[float] = []
        with pinned(threads):
            for _ in range(_ATTEMPTS):
                samples: list[float] = []
                for _ in range(_MOST // 10):
                    extra = 0.0 if resident else self._cold(run, now, threads)
                    mixed = _again(run, now)
                    apart = [_again(each, now) for each in loops]
                    samples.append(extra + mixed - statistics.fmean(apart))
                found.append(statistics.median(samples))
        return max(0.0, statistics.median(found)) / _SOME

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
            self._runs[make, threads] = _prepared(make(threads))
        return self._runs[make, threads]


def _once(run: Callable[[], object], now: Callable[[], int]) -> float:
    start = now()
    run()
    return (now() - start) / 1e9


def _again(run: Callable[[], object], now: Callable[[], int]) -> float:
    """Return the seconds of a run right after another one."""
    run()
    return _once(run, now)


def _prepared(kernel: Kernel) -> Callable[[], object]:
    """Return what runs the kernel once, its tensors bound."""
    rng = np.random.default_rng(kernel.seed)
    numbers = rng.random(_BLOCK, dtype=np.float32)
    setup = options("ORT_DISABLE_ALL", kernel.threads)
    constants = [_fill(filling, rng, numbers, weights=True) for filling in kernel.constants]
    if constants:
        setup.add_external_initializers([f.name for f in kernel.constants], constants)
    session = ort.InferenceSession(kernel.model, setup, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for filling in kernel.inputs:
        binding.bind_ortvalue_input(filling.name, _fill(filling, rng, numbers))
    for filling in kernel.outputs:
        _bind_output(binding, filling)
    return lambda: session.run_with_iobinding(binding)


def _fill(
    filling: Filling, rng: np.random.Generator, numbers: np.ndarray, weights: bool = False
) -> Any:
    """Return an OrtValue; inputs are positive, to keep logarithms on the fast path."""
    if filling.array is not None:
        return ort.OrtValue.ortvalue_from_numpy(np.array(filling.array, order="C"))
    count = int(np.prod(filling.dims, dtype=np.int64))
    name = _NUMPY_TYPES.get(filling.onnx_type)
    if name is None and filling.onnx_type != _BFLOAT16:
        raise ValueError(f"no random values for ONNX type {filling.onnx_type}")
    values: np.ndarray
    if filling.value is not None:
        values = np.full(count, filling.value, np.float32)
    elif name is None or np.dtype(name).kind == "f":
        # Tensors begin at different numbers, so no two are equal and could be merged.
        values = np.resize(numbers[rng.integers(_BLOCK // 2) :], count)
        if weights and count >= _WEIGHTS:
            values = (values - np.float32(0.5)) * np.float32(0.1)
        else:
            values = values + np.float32(0.25)
    else:
        values = rng.integers(0, max(filling.below, 1), count)
    if name is None:
        bits = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        shaped = bits.reshape(filling.dims)
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(shaped, _BFLOAT16)
    return ort.OrtValue.ortvalue_from_numpy(values.astype(name).reshape(filling.dims))


def _bind_output(binding: Any, filling: Filling) -> None:
    """Bind a buffer of our own, so that no run allocates; the runtime's if that fails."""
    name = _NUMPY_TYPES.get(filling.onnx_type)
    if name is None or not filling.dims or any(size < 1 for size in filling.dims):
        binding.bind_output(filling.name)
        return
    buffer = ort.OrtValue.ortvalue_from_shape_and_type(list(filling.dims), np.dtype(name))
    binding.bind_ortvalue_output(filling.name, buffer)

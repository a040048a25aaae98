"""Clocks around the runtime; runs in the child process only.

With one thread the runtime computes on the calling thread, so the thread's own CPU time
is the model's and neighbours on the same core do not count. With several threads only
the clock on the wall tells, and wants a quiet machine.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import ModelProto

from tensat.runtime.blocked import block_of, inside_region, probe, saved_by
from tensat.runtime.messages import Filling, Kernel, Timing

_SMALLEST = 1e-7  # seconds: no kernel is faster than its own dispatch
_NUMPY_TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64",
}  # fmt: skip
_BFLOAT16 = 16


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
    """Times small models; keeps the random numbers and the overhead of a run."""

    def __init__(self) -> None:
        self._overhead: dict[int, float] = {}
        self._block: int | None = None

    def time(self, kernel: Kernel) -> Timing:
        """Return the time of one copy of the kernel."""
        if kernel.threads not in self._overhead:
            identity = _identity(kernel.threads)
            self._overhead[kernel.threads] = statistics.median(_samples(identity)[0])
        if kernel.blocked and (inside := self._inside_region(kernel)) is not None:
            samples, runs = _samples(inside, "ORT_DISABLE_ALL")
        else:
            samples, runs = _samples(kernel)
        whole = statistics.median(samples)
        quartiles = statistics.quantiles(samples, n=4)
        net = max(whole - self._overhead[kernel.threads], 0.05 * whole)
        return Timing(
            seconds=max(net / kernel.copies, _SMALLEST),
            spread=(quartiles[2] - quartiles[0]) / 2 / max(whole, 1e-9),
            runs=runs,
        )

    def _inside_region(self, kernel: Kernel) -> Kernel | None:
        """Return the kernel without reorders, if this machine blocks channels."""
        if self._block is None:
            empty = Kernel(probe().SerializeToString(), (), (), ())
            self._block = block_of(_optimized(empty))
        if not self._block:
            return None
        return inside_region(kernel, _optimized(kernel), self._block)


def _optimized(kernel: Kernel) -> ModelProto:
    rng = np.random.default_rng(kernel.seed)
    return saved_by(lambda path: _session(kernel, rng, "ORT_ENABLE_ALL", path))


def _session(kernel: Kernel, rng: np.random.Generator, level: str, save: str = "") -> Any:
    """Return a session with the kernel's constants; it saves what it makes of it."""
    setup = options(level, kernel.threads)
    if save:
        setup.optimized_model_filepath = save
    constants = [_fill(filling, rng) for filling in kernel.constants]
    if constants:
        setup.add_external_initializers([f.name for f in kernel.constants], constants)
    return ort.InferenceSession(kernel.model, setup, providers=["CPUExecutionProvider"])


def _samples(kernel: Kernel, level: str = "ORT_ENABLE_ALL") -> tuple[list[float], int]:
    rng = np.random.default_rng(kernel.seed)
    session = _session(kernel, rng, level)
    binding = session.io_binding()
    for filling in kernel.inputs:
        binding.bind_ortvalue_input(filling.name, _fill(filling, rng))
    for filling in kernel.outputs:
        _bind_output(binding, filling)
    now, samples = clock(kernel.threads), []
    with pinned(kernel.threads):
        start = time.perf_counter()
        session.run_with_iobinding(binding)
        once = max(time.perf_counter() - start, 1e-6)
        repeats = max(5, min(60, int(kernel.budget / once)))
        for _ in range(1 if repeats == 5 else 3):  # a slow kernel is warm after one run
            session.run_with_iobinding(binding)
        for _ in range(repeats):
            begin = now()
            session.run_with_iobinding(binding)
            samples.append((now() - begin) / 1e9)
    return samples, repeats


def _fill(filling: Filling, rng: np.random.Generator) -> Any:
    """Return an OrtValue; positive floats, so that no logarithm leaves the fast path."""
    count = int(np.prod(filling.dims, dtype=np.int64))
    if filling.onnx_type == _BFLOAT16:
        bits = (_floats(filling, count, rng).view(np.uint32) >> 16).astype(np.uint16)
        shaped = bits.reshape(filling.dims)
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(shaped, _BFLOAT16)
    name = _NUMPY_TYPES.get(filling.onnx_type)
    if name is None:
        raise ValueError(f"no random values for ONNX type {filling.onnx_type}")
    dtype = np.dtype(name)
    if dtype.kind == "f":
        values = _floats(filling, count, rng)
    elif filling.value is not None:
        values = np.full(count, filling.value)
    else:
        values = rng.integers(0, max(filling.below, 1), count)
    return ort.OrtValue.ortvalue_from_numpy(values.astype(dtype).reshape(filling.dims))


def _floats(filling: Filling, count: int, rng: np.random.Generator) -> np.ndarray:
    if filling.value is not None:
        return np.full(count, filling.value, np.float32)
    return rng.random(count, dtype=np.float32) + np.float32(0.25)


def _bind_output(binding: Any, filling: Filling) -> None:
    """Bind a buffer of our own, so that no run allocates; the runtime's if that fails."""
    name = _NUMPY_TYPES.get(filling.onnx_type)
    if name is None or any(size < 1 for size in filling.dims):
        binding.bind_output(filling.name)
        return
    buffer = ort.OrtValue.ortvalue_from_shape_and_type(list(filling.dims), np.dtype(name))
    binding.bind_ortvalue_output(filling.name, buffer)


def _identity(threads: int) -> Kernel:
    """Return a model that does nothing: what it takes is the overhead of a run."""
    from onnx import TensorProto, helper

    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    node = helper.make_node("Identity", ["x"], ["y"])
    graph = helper.make_graph([node], "overhead", value[:1], value[1:])
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    x, y = (Filling(name, TensorProto.FLOAT, (1,)) for name in "xy")
    return Kernel(model.SerializeToString(), (x,), (), (y,), threads=threads)

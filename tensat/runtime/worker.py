"""The child process in which the runtime lives; see tensat.runtime."""

from __future__ import annotations

import os
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnxruntime as ort

from tensat.runtime.messages import (
    Feeds,
    Kernel,
    Loaded,
    Observed,
    PacedRun,
    Program,
    Timing,
    Value,
)
from tensat.runtime.optimized import node_seconds, tidy
from tensat.runtime.pace import Pace
from tensat.runtime.prepare import options
from tensat.runtime.serve import serve
from tensat.runtime.timing import KernelClock, interleaved

_KEPT_SESSIONS = 4
_KEPT_BYTES = 1 << 30  # with more in use, older sessions go before a new one is made
_NAMES_AT_ONCE = 200  # intermediate values that one run keeps alive for their sizes
_BFLOAT16 = 16
_LEAST_NORMAL = np.uint32(1 << 24)  # bits of the smallest normal number, sign shifted out

Key = tuple[Program, float, int]


class Worker:
    """The functions that a request can name; sessions are kept between requests."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[Key, Any] = OrderedDict()
        self._clock = KernelClock()

    def version(self) -> str:
        """Return the runtime's version."""
        return str(ort.__version__)

    def load(self, program: Program) -> Loaded:
        """Load a program, or find it loaded, and return its interface."""
        session = self._session(program)
        return Loaded(
            _values(session.get_inputs()),
            _values(session.get_outputs()),
            _values(session.get_overridable_initializers()),
        )

    def check(self, path: str) -> str:
        """Return what the ONNX checker objects to; empty if nothing."""
        import onnx

        try:
            onnx.checker.check_model(path)
        except onnx.checker.ValidationError as error:
            return " ".join(str(error).split())
        return ""

    def run(self, program: Program, feeds: Feeds) -> list[Any]:
        """Run a program and return its outputs in order."""
        return _run(self._session(program), feeds)

    def observe(
        self, program: Program, feeds: Feeds, names: Sequence[str]
    ) -> dict[str, Observed]:
        """Run a program and return type and sizes of inner values; unknown names: none."""
        result: dict[str, Observed] = {}
        for start in range(0, len(names), _NAMES_AT_ONCE):
            part = list(names[start : start + _NAMES_AT_ONCE])
            session, found = _exposing(program, part)
            if found:
                outputs = _run(session, feeds, found)
                result.update(zip(found, map(_observed, outputs), strict=True))
        return result

    def record(
        self, program: Program, feeds: Feeds, names: Sequence[str]
    ) -> dict[str, np.ndarray]:
        """Run a program and return the inner values that are tensors."""
        result: dict[str, np.ndarray] = {}
        for start in range(0, len(names), _NAMES_AT_ONCE):
            session, found = _exposing(program, names[start : start + _NAMES_AT_ONCE])
            values = _run(session, feeds, found) if found else []
            pairs = zip(found, values, strict=True)
            result.update((n, v) for n, v in pairs if isinstance(v, np.ndarray))
        return result

    def optimized(self, program: Program, target: str) -> None:
        """Write the graph that the runtime makes of a program, weights beside it."""
        setup = options(program.level, program.threads)
        setup.optimized_model_filepath = target
        weights = f"{os.path.basename(target)}.data"
        setup.add_session_config_entry(
            "session.optimized_model_external_initializers_file_name", weights
        )
        session = ort.InferenceSession(
            program.path, setup, providers=["CPUExecutionProvider"]
        )
        tidy(target, {item.name for item in session.get_inputs()})

    def node_seconds(
        self, program: Program, feeds: Feeds, seconds: float
    ) -> dict[str, float]:
        """Return the median time of each node, by its name; about 3 us too long each."""
        with tempfile.TemporaryDirectory(prefix="tensat-") as folder:
            setup = options(program.level, program.threads)
            setup.enable_profiling = True
            setup.profile_file_prefix = os.path.join(folder, "profile")
            session = ort.InferenceSession(
                program.path, setup, providers=["CPUExecutionProvider"]
            )
            run = [lambda: _run(session, feeds)]
            interleaved(run, program.threads, seconds, (5, 50))
            return node_seconds(session.end_profiling())

    def paced(
        self, program: Program, feeds: Feeds, seconds: float, weights: bool
    ) -> list[PacedRun]:
        """Time a program; return what each run took, and how fast the machine was."""
        run = _bound(self._session(program), feeds)
        return self._clock.paced(run, program.threads, seconds, weights)

    def best(self, threads: int, known: Mapping[str, float]) -> dict[str, float]:
        """Return the best that the machine was seen at."""
        return self._clock.best(threads, known)

    def overhead(self, threads: int) -> float:
        """Return the seconds of a run that computes nothing."""
        return self._clock.overhead(threads)

    def paces(self, threads: int, seconds: float, between: int) -> list[Pace]:
        """Look at the yardsticks for so many seconds."""
        return self._clock.paces(threads, seconds, between)

    def dispatch(self, threads: int, resident: bool) -> tuple[float, Pace]:
        """Return the seconds that a node takes besides its kernel, and the pace."""
        return self._clock.dispatch(threads, resident)

    def compare(
        self, programs: Sequence[Program], feeds: Feeds, seconds: float, least: int
    ) -> list[list[float]]:
        """Time programs in turn; return for each the seconds of each round."""
        runs = []
        for program in programs:
            session = self._session(program)
            runs.append(lambda session=session: session.run(None, feeds))
        return interleaved(runs, programs[0].threads, seconds, (least, 400))

    def time(self, kernel: Kernel) -> Timing:
        """Time a small model."""
        return self._clock.time(kernel)

    def forget(self) -> None:
        """Drop all sessions and their memory."""
        self._sessions.clear()

    def _session(self, program: Program) -> Any:
        status = os.stat(program.path)
        key = (program, status.st_mtime, status.st_size)
        if key in self._sessions:
            self._sessions.move_to_end(key)
            return self._sessions[key]
        while self._sessions and (
            len(self._sessions) >= _KEPT_SESSIONS or _memory() > _KEPT_BYTES
        ):
            self._sessions.popitem(last=False)
        setup = options(program.level, program.threads)
        session = ort.InferenceSession(
            program.path, setup, providers=["CPUExecutionProvider"]
        )
        self._sessions[key] = session
        return session


def _memory() -> int:
    """Return the bytes that this process occupies; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _values(declared: Sequence[Any]) -> tuple[Value, ...]:
    return tuple(Value(item.name, item.type, tuple(item.shape or ())) for item in declared)


def _run(session: Any, feeds: Feeds, names: list[str] | None = None) -> list[Any]:
    """Run a session; bfloat16, which NumPy does not know, goes in as its bits."""
    known = {item.name for item in session.get_inputs()}
    given: dict[str, Any] = {name: feeds[name] for name in feeds if name in known}
    if any(value.dtype.name == "bfloat16" for value in given.values()):
        values = {name: _ort_value(value) for name, value in given.items()}
        return [_array(v) for v in session.run_with_ort_values(names, values)]
    return list(session.run(names, given))


def _bound(session: Any, feeds: Feeds) -> Callable[[], object]:
    """Return what runs a session without copies of inputs and outputs, if that works.

    It does not for strings, nor where an output has another rank than declared.
    """
    binding = session.io_binding()
    try:
        for item in session.get_inputs():
            if item.name in feeds:
                binding.bind_ortvalue_input(item.name, _ort_value(feeds[item.name]))
        for item in session.get_outputs():
            binding.bind_output(item.name)
        for _ in range(2):
            session.run_with_iobinding(binding)
    except Exception:  # the runtime raises many types, none of them documented
        return partial(_run, session, feeds)
    return partial(session.run_with_iobinding, binding)


def _ort_value(array: np.ndarray) -> Any:
    if array.dtype.name != "bfloat16":
        return ort.OrtValue.ortvalue_from_numpy(array)
    bits = np.ascontiguousarray(array).view(np.uint16)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, _BFLOAT16)


def _array(value: Any) -> np.ndarray:
    result: np.ndarray = value.numpy()
    return result


def _exposing(program: Program, names: Sequence[str]) -> tuple[Any, list[str]]:
    """Return a session of the program with inner values as outputs, and their names."""
    import onnx

    model = onnx.load(program.path, load_external_data=False)
    made = {name for node in model.graph.node for name in node.output if name}
    made |= {tensor.name for tensor in model.graph.initializer}
    made |= {value.name for value in model.graph.input}
    found = [name for name in names if name in made]
    declared = {value.name for value in model.graph.output}
    model.graph.output.extend(
        onnx.ValueInfoProto(name=name) for name in found if name not in declared
    )
    setup = options(program.level, program.threads)
    folder = os.path.dirname(os.path.abspath(program.path))
    setup.add_session_config_entry(
        "session.model_external_initializers_file_folder_path", folder
    )
    session = ort.InferenceSession(
        model.SerializeToString(), setup, providers=["CPUExecutionProvider"]
    )
    return session, found


def _observed(value: object) -> Observed:
    if isinstance(value, np.ndarray):
        dims = tuple(map(int, value.shape))
        return Observed(value.dtype.name, dims, _denormals(value), _span(value))
    return Observed(type(value).__name__, None)


def _span(value: np.ndarray) -> float:
    if value.dtype != np.float32 or not value.size:
        return 0.0
    low, high = float(value.min()), float(value.max())
    return high - low if low < high else 0.0


def _denormals(value: np.ndarray) -> int:
    if value.dtype != np.float32:
        return 0
    # Their exponent is 0; shifted to the left, so is that of zero, with nothing behind.
    bits = np.ascontiguousarray(value).view(np.uint32) << 1
    return int(np.count_nonzero(bits - 1 < _LEAST_NORMAL - 1))


def main() -> None:
    """Answer requests until the parent closes the pipe."""
    serve(Worker)

"""ONNX Runtime in a child process: a crash or a hang there is a value here.

Native code of the runtime can end its process (a fault, memory) or never come back. So
every session lives in a child, driven over pipes; models go as file paths. A call that
fails returns a `Failure`; the next call starts a new child, which loads again what it
needs, since requests name programs and no state of the child.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

import numpy as np

from tensat.errors import one_line
from tensat.runtime.messages import (
    Failure,
    FailureKind,
    Feeds,
    Kernel,
    Level,
    Loaded,
    Observed,
    PacedRun,
    Program,
    Request,
    Timing,
    Value,
)
from tensat.runtime.pace import Demand, Pace
from tensat.runtime.pipe import read_message, write_message

__all__ = [
    "Demand",
    "Failure",
    "FailureKind",
    "Feeds",
    "Kernel",
    "Level",
    "Loaded",
    "Observed",
    "Pace",
    "PacedRun",
    "Program",
    "Runtime",
    "Timing",
    "Value",
]

# The child sees this package without its __init__, which would load the whole optimizer.
_START = """
import sys, types
package = types.ModuleType("tensat")
package.__path__ = [sys.argv[1]]
sys.modules["tensat"] = package
import importlib
importlib.import_module(sys.argv[2]).main()
"""

WORKER = "tensat.runtime.worker"
"""The module whose `main` answers in the child."""


class Runtime:
    """A runtime in a child process, started at the first call.

    Use it as a context manager or call `close`; the child also ends when its parent does.

    Attributes:
        patience: Seconds after which a call without a timeout of its own is given up.
        starts: How many children were started so far.
    """

    def __init__(self, patience: float = 300.0, *, worker: str = WORKER) -> None:
        """Start nothing yet.

        Args:
            patience: See above.
            worker: The module that answers in the child. `call` names its functions; the
                other methods are those of `tensat.runtime.worker`.
        """
        self.patience = patience
        self._worker = worker
        self.starts = 0
        self._child: subprocess.Popen[bytes] | None = None
        self._replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._errors: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def version(self, timeout: float | None = None) -> str | Failure:
        """Return the runtime's version."""
        return cast("str | Failure", self.call("version", timeout=timeout))

    def load(self, program: Program, timeout: float | None = None) -> Loaded | Failure:
        """Load a program and return the inputs and outputs that the runtime sees."""
        return cast("Loaded | Failure", self.call("load", program, timeout=timeout))

    def check(self, path: str, timeout: float | None = None) -> str | Failure:
        """Return what the ONNX checker objects to in a file; empty if nothing."""
        return cast("str | Failure", self.call("check", path, timeout=timeout))

    def run(
        self, program: Program, feeds: Feeds, timeout: float | None = None
    ) -> list[Any] | Failure:
        """Run a program once; return its outputs in order, arrays or nested lists."""
        return cast(
            "list[Any] | Failure", self.call("run", program, feeds, timeout=timeout)
        )

    def observe(
        self,
        program: Program,
        feeds: Feeds,
        names: Sequence[str],
        timeout: float | None = None,
    ) -> dict[str, Observed] | Failure:
        """Run a program and return what type and sizes the named inner values had.

        Names of values inside subgraphs, and names that do not exist, are left out.
        """
        answer = self.call("observe", program, feeds, tuple(names), timeout=timeout)
        return cast("dict[str, Observed] | Failure", answer)

    def record(
        self,
        program: Program,
        feeds: Feeds,
        names: Sequence[str],
        timeout: float | None = None,
    ) -> dict[str, np.ndarray] | Failure:
        """Run a program and return the named inner values, as far as they are tensors.

        Names of values inside subgraphs, and names that do not exist, are left out.
        """
        answer = self.call("record", program, feeds, tuple(names), timeout=timeout)
        return cast("dict[str, np.ndarray] | Failure", answer)

    def optimized(
        self, program: Program, target: str, timeout: float | None = None
    ) -> Failure | None:
        """Write the graph that the runtime makes of a program; weights go beside it.

        Every node of the graph has a name of its own.
        """
        answer = self.call("optimized", program, target, timeout=timeout)
        return cast("Failure | None", answer)

    def node_seconds(
        self,
        program: Program,
        feeds: Feeds,
        seconds: float,
        timeout: float | None = None,
    ) -> dict[str, float] | Failure:
        """Return the median seconds of each node by name, as the runtime's profile has it.

        The clock on the wall counts, and the profile itself takes time: good for shares.
        """
        answer = self.call("node_seconds", program, feeds, seconds, timeout=timeout)
        return cast("dict[str, float] | Failure", answer)

    def paced(
        self,
        program: Program,
        feeds: Feeds,
        seconds: float,
        weights: bool,
        timeout: float | None = None,
    ) -> list[PacedRun] | Failure:
        """Time a program; return what each run took, and how fast the machine was.

        The slowness is that of a small computation and of memory, measured close to the
        run; 1 is the best that the child has seen.

        Args:
            program: The model, and how it is loaded.
            feeds: Its inputs.
            seconds: Stop after this long, but not before some runs.
            weights: Whether to look at the stream of weights, too; not for models whose
                weights a core's own cache holds.
            timeout: Seconds after which the call fails.
        """
        answer = self.call("paced", program, feeds, seconds, weights, timeout=timeout)
        return cast("list[PacedRun] | Failure", answer)

    def paces(
        self, threads: int, seconds: float, between: int, timeout: float | None = None
    ) -> list[Pace] | Failure:
        """Look at the yardsticks again and again; return what they took each time.

        Args:
            threads: Threads that compute.
            seconds: Stop after this long, but not before some looks.
            between: Bytes that are read between two looks, as the weights of a model are.
            timeout: Seconds after which the call fails.
        """
        answer = self.call("paces", threads, seconds, between, timeout=timeout)
        return cast("list[Pace] | Failure", answer)

    def best(
        self, threads: int, known: Mapping[str, float], timeout: float | None = None
    ) -> dict[str, float] | Failure:
        """Tell how fast the machine can be, and return the best that was ever seen.

        Args:
            threads: Threads that compute.
            known: Seconds by name of a yardstick, as this returned it earlier.
            timeout: Seconds after which the call fails.
        """
        answer = self.call("best", threads, dict(known), timeout=timeout)
        return cast("dict[str, float] | Failure", answer)

    def overhead(self, threads: int, timeout: float | None = None) -> float | Failure:
        """Return the seconds of a run that computes nothing."""
        return cast("float | Failure", self.call("overhead", threads, timeout=timeout))

    def dispatch(
        self, threads: int, resident: bool, timeout: float | None = None
    ) -> tuple[float, Pace] | Failure:
        """Return the seconds that a node takes besides its kernel, where kernels alternate.

        And the pace of the machine meanwhile.

        Args:
            threads: Threads that compute.
            resident: Whether the weights of the model stay in a core's own cache.
            timeout: Seconds after which the call fails.
        """
        answer = self.call("dispatch", threads, resident, timeout=timeout)
        return cast("tuple[float, Pace] | Failure", answer)

    def compare(
        self,
        programs: Sequence[Program],
        feeds: Feeds,
        seconds: float,
        least: int = 9,
        timeout: float | None = None,
    ) -> list[list[float]] | Failure:
        """Time programs in turn on one core; return the seconds of each round of each.

        Args:
            programs: All with the same number of threads; with one thread CPU time of
                the thread counts, otherwise time on the wall.
            feeds: The inputs of all of them.
            seconds: Stop after this long, but not before `least` rounds.
            least: Least number of rounds.
            timeout: Seconds after which the call fails.
        """
        answer = self.call(
            "compare", tuple(programs), feeds, seconds, least, timeout=timeout
        )
        return cast("list[list[float]] | Failure", answer)

    def time(self, kernel: Kernel, timeout: float | None = None) -> Timing | Failure:
        """Time one copy of a small model."""
        return cast("Timing | Failure", self.call("time", kernel, timeout=timeout))

    def forget(self) -> None:
        """Free the memory of all loaded programs."""
        if self._child is not None:
            self.call("forget")

    def call(self, name: str, *arguments: object, timeout: float | None = None) -> object:
        """Call a function of the child; return its result or a `Failure`."""
        try:
            if self._child is None:
                self._start()
            body = pickle.dumps(Request(name, arguments), protocol=pickle.HIGHEST_PROTOCOL)
            write_message(cast("BinaryIO", self._running.stdin), body)
        except BrokenPipeError:
            return self._ended()
        except OSError as error:
            self.close()
            return Failure(FailureKind.UNAVAILABLE, one_line(error))
        limit = self.patience if timeout is None else timeout
        try:
            reply = self._replies.get(timeout=max(limit, 0.0))
        except queue.Empty:
            self.close()
            return Failure(FailureKind.TIMED_OUT, f"no answer to {name} in {limit:g} s")
        except BaseException:  # an interrupt would leave the answer to the next call
            self.close()
            raise
        return self._ended() if reply is None else pickle.loads(reply)

    def close(self) -> None:
        """End the child; a later call starts another one."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    @property
    def pid(self) -> int:
        """The running child's process id; 0 if there is none."""
        return 0 if self._child is None else self._child.pid

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._child is not None
        return self._child

    def _start(self) -> None:
        self._errors = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115
        self._child = subprocess.Popen(
            [
                *(sys.executable, "-P", "-c", _START),
                *(str(Path(__file__).parent.parent), self._worker),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self.starts += 1
        self._replies = queue.SimpleQueue()
        threading.Thread(
            target=_read_replies, args=(self._child.stdout, self._replies), daemon=True
        ).start()

    def _ended(self) -> Failure:
        """Return why the child ended, with its last words."""
        try:
            status = self._running.wait(timeout=5)
        except subprocess.TimeoutExpired:
            status = 0
        said = self._last_words()
        self.close()
        return Failure(FailureKind.CRASHED, one_line(f"{_status_text(status)} {said}"))

    def _last_words(self) -> str:
        if self._errors is None:
            return ""
        self._errors.seek(0, 2)
        self._errors.seek(max(0, self._errors.tell() - 2000))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return f"({lines[-1]})" if lines else ""


def _status_text(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def _read_replies(stream: BinaryIO, replies: queue.SimpleQueue[bytes | None]) -> None:
    """Hand replies over; None says that the child has ended."""
    with contextlib.suppress(OSError, ValueError):
        while (body := read_message(stream)) is not None:
            replies.put(body)
    replies.put(None)

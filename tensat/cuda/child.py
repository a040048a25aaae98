"""A GPU measured in a child process: what ends or spoils that process costs one kernel."""

from __future__ import annotations

from typing import Self, cast

from tensat.costs.source import Signature
from tensat.cuda.clock import Measured, Patience
from tensat.cuda.crosscheck import Check
from tensat.cuda.device import Facts
from tensat.cuda.provider import Settings
from tensat.cuda.trouble import Refused, Trouble
from tensat.errors import UsageError
from tensat.runtime import Failure, FailureKind, Kernel, Runtime

WORKER = "tensat.cuda.worker"
"""The module whose `main` answers in the child."""

MOST_LOST = 3
"""Children lost one after the other after which no other is started."""

_OPENING = 300.0  # seconds: libraries of gigabytes are loaded
_TIMING = 60.0  # seconds for one kernel

_TROUBLES = {
    FailureKind.CRASHED: Trouble.CRASHED,
    FailureKind.TIMED_OUT: Trouble.HUNG,
    FailureKind.UNAVAILABLE: Trouble.BROKEN,
}
_ENDS = frozenset({Trouble.CRASHED, Trouble.HUNG, Trouble.BROKEN})


class ChildBench:
    """See `tensat.cuda.bench.Bench`. Use it as a context manager or call `close`.

    Attributes:
        facts: What the device says about itself.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        patience: Patience | None = None,
        *,
        worker: str = WORKER,
        timing: float = _TIMING,
    ) -> None:
        """Start a child and open the device there.

        Args:
            settings: How sessions run; which GPU.
            patience: How often and how exactly to time.
            worker: The module that answers in the child.
            timing: Seconds after which a kernel is given up.

        Raises:
            UsageError: There is no such GPU, or something that it needs is missing.
        """
        self._runtime = Runtime(timing, worker=worker)
        self._how = (settings or Settings(), patience or Patience())
        self._losses = 0
        found = self._open()
        if isinstance(found, Failure):
            self._runtime.close()
            wrong = found.kind is not FailureKind.ERROR
            raise UsageError(f"the GPU cannot be opened: {found}" if wrong else found.text)
        self.facts = cast("Facts", found)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def lost(self) -> bool:
        """Whether so many children were lost that no other is started."""
        return self._losses >= MOST_LOST

    def time(self, kernel: Kernel) -> Measured | Refused:
        """Return the time of one copy as a running model pays it."""
        return cast("Measured | Refused", self._call("time", kernel))

    def check(self, signature: Signature, kernel: Kernel) -> Check | Refused | None:
        """Compare with CuPy's own kernel; None where there is none."""
        return cast("Check | Refused | None", self._call("check", signature, kernel))

    def close(self) -> None:
        """End the child."""
        self._runtime.close()

    def _open(self) -> object:
        """Open the device in the child; return what it says about itself, or a failure."""
        return self._runtime.call("facts", *self._how, timeout=_OPENING)

    def _call(self, name: str, *arguments: object) -> object:
        """Call the child; one that is lost or spoiled is ended, the next begins anew."""
        answer: object = None
        if not self._runtime.pid:
            answer = self._open()
        if not isinstance(answer, Failure):
            answer = self._runtime.call(name, *self._how, *arguments)
        if isinstance(answer, Failure):
            trouble = _TROUBLES.get(answer.kind, Trouble.ERROR)
            answer = Refused(trouble, answer.text)
        if isinstance(answer, Refused) and answer.trouble in _ENDS:
            self._losses += 1
            self._runtime.close()
        else:
            self._losses = 0
        return answer

"""Where kernels are timed: a device in this process, or whatever answers like it."""

from __future__ import annotations

from typing import Protocol

from tensat.costs.source import Signature
from tensat.cuda.clock import CudaClock, Measured, Patience
from tensat.cuda.crosscheck import Check, crosscheck
from tensat.cuda.device import Device, Facts
from tensat.cuda.provider import Settings
from tensat.cuda.trouble import Refused, Trouble
from tensat.runtime.messages import Kernel


class Bench(Protocol):
    """Times kernels on one GPU; nothing is raised for a kernel that gives no time.

    Attributes:
        facts: What the device says about itself.
    """

    facts: Facts

    @property
    def lost(self) -> bool:
        """Whether it is of no use to ask for another time."""
        ...

    def time(self, kernel: Kernel) -> Measured | Refused:
        """Return the time of one copy as a running model pays it."""
        ...

    def check(self, signature: Signature, kernel: Kernel) -> Check | Refused | None:
        """Compare with CuPy's own kernel; None where there is none."""
        ...


class LocalBench:
    """A device in this process.

    Attributes:
        facts: What the device says about itself.
        lost: Whether an error made it unusable, as CUDA's errors may do to a process.
    """

    def __init__(
        self,
        device: Device,
        settings: Settings | None = None,
        patience: Patience | None = None,
    ) -> None:
        """Prepare to time.

        Args:
            device: Where.
            settings: How sessions run.
            patience: How often and how exactly to time.

        Raises:
            DeviceError: The device makes no stream.
        """
        self.facts = device.facts
        self.lost = False
        self._settings = settings or Settings()
        self._clock = CudaClock(device, self._settings, patience)

    def time(self, kernel: Kernel) -> Measured | Refused:
        """Return the time of one copy as a running model pays it."""
        answer = self._clock.time(kernel)
        self._note(answer)
        return answer

    def check(self, signature: Signature, kernel: Kernel) -> Check | Refused | None:
        """Compare with CuPy's own kernel; None where there is none."""
        answer = crosscheck(signature, kernel, self._clock, self._settings)
        self._note(answer)
        return answer

    def _note(self, answer: object) -> None:
        broken = isinstance(answer, Refused) and answer.trouble is Trouble.BROKEN
        self.lost = self.lost or broken

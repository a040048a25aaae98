"""Why the device gave no time, and which error texts say so."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tensat.errors import ExecutionError, one_line


class Trouble(StrEnum):
    """Why there is no time."""

    NO_KERNEL = "no kernel"  # this runtime cannot run it, whatever the numbers are
    NO_MEMORY = "out of device memory"
    CRASHED = "crashed"  # the process that measured ended by itself
    HUNG = "hung"  # it gave no answer and was ended
    UNSTEADY = "unsteady"  # the repetitions lie too far apart
    BROKEN = "device unusable"  # every later call of this process fails, too
    ERROR = "error"  # anything else, which says nothing about the operator


_MARKS: dict[Trouble, tuple[str, ...]] = {
    Trouble.NO_MEMORY: ("out of memory", "failed to allocate memory", "memoryallocation"),
    Trouble.BROKEN: (
        *("illegal memory access", "illegaladdress", "unspecified launch failure"),
        *("launchfailure", "device-side assert", "misaligned address"),
        *("illegal instruction", "uncorrectable ecc", "no kernel image is available"),
    ),
    Trouble.NO_KERNEL: ("not_implemented", "invalid_graph", "type error"),
}


@dataclass(frozen=True, slots=True)
class Refused:
    """A time that did not come.

    Attributes:
        trouble: Which kind.
        text: One line: what was tried and what was found.
    """

    trouble: Trouble
    text: str

    def __str__(self) -> str:
        return f"{self.trouble}: {self.text}"


class DeviceError(ExecutionError):
    """A device call failed.

    Attributes:
        refused: What to answer for it.
    """

    def __init__(self, trouble: Trouble, text: str) -> None:
        super().__init__(f"{trouble}: {text}")
        self.refused = Refused(trouble, text)


def trouble_of(text: str) -> Trouble:
    """Return which trouble an error text of the runtime, CuPy or CUDA tells of.

    `BROKEN` are the errors after which CUDA answers every later call of the process with
    the same error, and a runtime that holds no code for this device at all.

    Source: the error codes of `cudaError_t` in NVIDIA's CUDA Runtime API.
    """
    said = text.lower()
    for trouble, marks in _MARKS.items():
        if any(mark in said for mark in marks):
            return trouble
    return Trouble.ERROR


def device_error(error: Exception) -> DeviceError:
    """Return the error of ours that says what one of the runtime or of CuPy said."""
    text = f"{type(error).__name__}: {one_line(error)}"
    return DeviceError(trouble_of(text), text)

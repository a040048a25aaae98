"""What measuring asks of a GPU: a handful of calls, none of which decides anything.

Everything that can be thought about without a device (what to flush, when to wait, what
to subtract, when to try again) lies above this seam, and is tested against a simulated
device that keeps time itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tensat.cuda.provider import Settings
from tensat.runtime.messages import Filling, Kernel

type NativeCall = Callable[[Any, Sequence[Any]], object]
"""Of an array module (`cupy`, or `numpy`) and arrays of it: one kernel of that module."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a device says about itself; costs are stored under it.

    Attributes:
        name: As the driver gives it.
        compute_capability: Such as ``9.0``.
        driver: Newest CUDA version that the driver supports, such as ``13.0``.
        cuda: CUDA version that the runtime was built for.
        onnxruntime: Version of the runtime.
        l2_bytes: Size of the L2 cache.
        memory_bytes: All memory of the device.
        bytes_per_second: Peak of the device memory, from its clock and bus; 0 if unknown.
        flops: Peak of float32 outside tensor cores, from clock and cores; 0 if unknown.
    """

    name: str
    compute_capability: str
    driver: str
    cuda: str
    onnxruntime: str
    l2_bytes: int
    memory_bytes: int
    bytes_per_second: float = 0.0
    flops: float = 0.0


class Stream(Protocol):
    """A queue of work on the device; opaque."""


class Event(Protocol):
    """A point in a stream; opaque."""


@dataclass(frozen=True, slots=True)
class NativeProgram:
    """Calls of one kernel of the array module, each on its own arrays.

    Attributes:
        call: The kernel.
        copies: The arguments of each call; equal names are one array.
        warm: Names of the arguments that a running model has just computed.
        seed: For the random numbers.
    """

    call: NativeCall
    copies: tuple[tuple[Filling, ...], ...]
    warm: frozenset[str]
    seed: int = 0


class Session(Protocol):
    """Something loaded that can be run again and again on the stream it was loaded for.

    Attributes:
        on_host: Whether some of it runs on the CPU, with copies there and back.
    """

    on_host: bool

    def run(self) -> None:
        """Put one run into the stream and return without waiting for it."""
        ...

    def touch(self) -> None:
        """Put reads of the inputs into the stream, so that what fits is in L2 again."""
        ...

    def close(self) -> None:
        """Free what it holds."""
        ...


class Device(Protocol):
    """One GPU; every call may raise `tensat.cuda.trouble.DeviceError`.

    Attributes:
        facts: What the device says about itself.
    """

    facts: Facts

    def stream(self) -> Stream:
        """Return a new stream."""
        ...

    def load(self, kernel: Kernel, stream: Stream, settings: Settings) -> Session:
        """Load a small model whose work goes into a stream of ours."""
        ...

    def native(self, program: NativeProgram, stream: Stream) -> Session:
        """Load calls of the array module's own kernels; their work goes into a stream."""
        ...

    def flush(self, stream: Stream, nbytes: int) -> None:
        """Put writes of that many bytes of unrelated memory into a stream."""
        ...

    def record(self, stream: Stream) -> Event:
        """Put an event into a stream."""
        ...

    def seconds(self, start: Event, end: Event) -> float:
        """Wait for the later of two events and return the seconds between them."""
        ...

    def wait(self, stream: Stream) -> None:
        """Wait until a stream is empty."""
        ...

    def now(self) -> float:
        """Return the host's clock in seconds."""
        ...

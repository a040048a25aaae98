"""What we and the runtime's child process tell each other: plain values, pickled.

The child imports this module too, so it needs nothing but numpy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from tensat.runtime.pace import Demand, Pace

_PLAIN = Demand()

Feeds = dict[str, np.ndarray]
"""Values by input name."""


class Level(StrEnum):
    """How much the runtime optimizes by itself; values are its own names."""

    NONE = "ORT_DISABLE_ALL"
    BASIC = "ORT_ENABLE_BASIC"
    EXTENDED = "ORT_ENABLE_EXTENDED"
    ALL = "ORT_ENABLE_ALL"


class FailureKind(StrEnum):
    """Why the child gave no result."""

    ERROR = "error"  # an exception, its text is passed on
    CRASHED = "crashed"  # the process ended by itself: a signal, out of memory
    TIMED_OUT = "timed out"  # it was ended by us
    UNAVAILABLE = "unavailable"  # it cannot be started


@dataclass(frozen=True, slots=True)
class Failure:
    """A result that did not come.

    Attributes:
        kind: Why.
        text: One line: what the runtime said, or which signal ended it.
    """

    kind: FailureKind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" if self.text else str(self.kind)


@dataclass(frozen=True, slots=True)
class Program:
    """A model file under the options with which the runtime loads it.

    Attributes:
        path: The file; external data lies beside it.
        level: The runtime's own optimization.
        threads: Threads that compute; with 1 it is the calling one.
        copy: Sessions of different copies share nothing.
    """

    path: str
    level: Level = Level.ALL
    threads: int = 1
    copy: int = 0


@dataclass(frozen=True, slots=True)
class Value:
    """An input or output as the runtime declares it.

    Attributes:
        name: Its name.
        type: The runtime's type text, such as `tensor(float)`.
        dims: Sizes, symbols, or None; as far as the model states them.
    """

    name: str
    type: str
    dims: tuple[int | str | None, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a program takes and gives.

    Attributes:
        inputs: Inputs that must be fed.
        outputs: All outputs.
        defaults: Inputs that have a default value, an initializer of the same name.
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    defaults: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """The type and sizes that a value had in one run.

    Attributes:
        dtype: NumPy's name; `object` for strings.
        dims: Sizes; None for what is no tensor.
        denormals: How many float32 numbers are too small to be normal ones; processors
            compute with them by microcode.
        span: Difference of the largest and the smallest float32 number; 0 for other types.
    """

    dtype: str
    dims: tuple[int, ...] | None
    denormals: int = 0
    span: float = 0.0


@dataclass(frozen=True, slots=True)
class Filling:
    """A tensor to make in the child, since random numbers need no pipe.

    Attributes:
        name: Its name in the model.
        onnx_type: ONNX's number of the element type.
        dims: Sizes.
        below: Integers are drawn from 0 up to this; floats lie in [0.25, 1.25), those of
            large constants in [-0.05, 0.05).
        value: All elements have this value instead, where given.
        array: The value itself instead, where given.
    """

    name: str
    onnx_type: int
    dims: tuple[int, ...]
    below: int = 2
    value: float | None = None
    array: np.ndarray | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A small model to be timed.

    Attributes:
        model: Serialized; its large constants are external and listed in `constants`.
        inputs: The inputs to feed.
        constants: Initializers to make.
        outputs: (name, ONNX type, sizes) of the outputs, to bind buffers in advance.
        copies: How many copies of the operator the model holds, one after the other and of
            equally many nodes; the time is per copy.
        seed: For the random numbers.
        threads: Threads that compute.
        budget: Seconds to spend on repetitions.
        demand: What the time of one copy follows.
        between: Bytes that are read between two runs, as the other weights of a model are.
        slowest: Slowness of the machine up to which one attempt is enough.
    """

    model: bytes
    inputs: tuple[Filling, ...]
    constants: tuple[Filling, ...]
    outputs: tuple[Filling, ...]
    copies: int = 1
    seed: int = 0
    threads: int = 1
    budget: float = 0.015
    demand: Demand = _PLAIN
    between: int = 0
    slowest: float = 1.5


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one copy of a kernel takes.

    Attributes:
        seconds: Median, what a run takes without the kernel subtracted.
        spread: Half the distance of the quartiles over the median.
        runs: Repetitions.
        pace: How slow the machine was meanwhile; 1 is the best it was seen at.
        at: The yardsticks meanwhile; the seconds are those at this pace. None if nobody
            looked.
    """

    seconds: float
    spread: float
    runs: int
    pace: float = 1.0
    at: Pace | None = None


@dataclass(frozen=True, slots=True)
class PacedRun:
    """One run of a model.

    Attributes:
        seconds: What it took.
        slowness: How slow the machine was meanwhile; 1 is the best it was seen at.
        pace: The yardsticks meanwhile.
    """

    seconds: float
    slowness: float
    pace: Pace


@dataclass(frozen=True, slots=True)
class Request:
    """One call: the name of a function of the child and its arguments."""

    name: str
    arguments: tuple[Any, ...] = field(default=())

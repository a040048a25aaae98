"""The procedure of timing on a GPU: what to warm, flush, wait for, subtract and refuse.

A cost is wanted as a running model pays it. So before each counted run the L2 cache is
flushed, since weights come from memory, and then the inputs are read once, since in a
running model the operator before has just written them. Then the stream is left to run
empty, an event is recorded, one run is queued, and another event is recorded: both on the
stream that the runtime itself uses, or they would say nothing about its work.

The host starts one kernel after the other, and a GPU often waits for it. A run of K copies
thus takes K times whatever is longer, the start of a kernel or the kernel, as a model does;
what it takes to enter the runtime at all is measured with an empty model and subtracted.
The comparison with other libraries, which start kernels in other ways, wants the device's
part alone: `device_seconds` queues the run behind a flush that is long enough to hide all
starts.

Source: L2 flushing and queueing behind it as in Triton's `do_bench`
(https://triton-lang.org/main/python-api/generated/triton.testing.do_bench.html); events
resolve about 0.5 microseconds (`cudaEventElapsedTime` in the CUDA Runtime API,
https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__EVENT.html).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from math import ceil

from onnx import ModelProto, TensorProto, helper

from tensat.cuda.device import Device, NativeProgram, Session
from tensat.cuda.provider import Settings
from tensat.cuda.trouble import DeviceError, Refused, Trouble
from tensat.runtime.messages import Filling, Kernel

FLUSHED = 2
"""Times the size of L2 that is written to flush it: one size leaves lines behind where
the replacement is not exactly least-recently-used."""

RESOLUTION = 0.5e-6
"""Seconds that two events can tell apart; a narrower spread says nothing."""

_WARM_UP = 5  # the first runs choose algorithms, allocate, and wake the clocks
_SMALLEST = 1e-8  # seconds: a cost is never zero
_LEAST_SHARE = 0.02  # of a run that is the kernel's, however long entering it took


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how exactly to time.

    Attributes:
        budget: Seconds of counted runs that one attempt aims at.
        least: Least counted runs of an attempt.
        most: Largest number of counted runs of the first attempt; each further attempt
            doubles its number.
        widest: Half the distance of the quartiles over the median, above which an attempt
            is not believed.
        attempts: After so many the measurement is refused.
    """

    budget: float = 0.02
    least: int = 9
    most: int = 60
    widest: float = 0.1
    attempts: int = 3


@dataclass(frozen=True, slots=True)
class Measured:
    """How long one copy of a kernel takes.

    Attributes:
        seconds: Median; what it takes to enter the runtime is subtracted.
        spread: Half the distance of the quartiles over that.
        runs: Counted runs.
        on_host: Whether some of it ran on the CPU.
    """

    seconds: float
    spread: float
    runs: int
    on_host: bool = False


class CudaClock:
    """Times small models on one device, all in one stream."""

    def __init__(
        self,
        device: Device,
        settings: Settings | None = None,
        patience: Patience | None = None,
    ) -> None:
        """Make a stream; nothing is timed yet.

        Args:
            device: Where to time.
            settings: How sessions run.
            patience: How often and how exactly.

        Raises:
            DeviceError: The device makes no stream.
        """
        self._device = device
        self._settings = settings or Settings()
        self._patience = patience or Patience()
        self._stream = device.stream()
        self._flush_bytes = FLUSHED * device.facts.l2_bytes
        self._entering: float | None = None
        self._flushing: float | None = None

    def time(self, kernel: Kernel) -> Measured | Refused:
        """Return the time of one copy as a running model pays it, starts included."""
        try:
            entering = self._enter()
            with closing(self._load(kernel)) as session:
                samples = self._steady(
                    session, lambda: self._after_waiting(session), entering
                )
                on_host = session.on_host
        except DeviceError as error:
            return error.refused
        whole, width = _middle(samples)
        net = _net(whole, entering)
        seconds = max(net / kernel.copies, _SMALLEST)
        return Measured(seconds, width / net, len(samples), on_host)

    def device_seconds(self, kernel: Kernel) -> float | Refused:
        """Return the device's part of the time of one copy of a small model."""
        try:
            with closing(self._load(kernel)) as session:
                return self._hidden(session) / kernel.copies
        except DeviceError as error:
            return error.refused

    def native_seconds(self, program: NativeProgram) -> float | Refused:
        """Return the device's part of the time of one call of another library's kernel."""
        try:
            with closing(self._device.native(program, self._stream)) as session:
                return self._hidden(session) / len(program.copies)
        except DeviceError as error:
            return error.refused

    def _load(self, kernel: Kernel) -> Session:
        return self._device.load(kernel, self._stream, self._settings)

    def _enter(self) -> float:
        """Return the seconds of a run of an empty model; measured once.

        It is the host's time, which varies more than a kernel's; since it is shared by all
        copies, the middle of many runs is good enough, whatever their spread.
        """
        if self._entering is None:
            runs = _WARM_UP + self._patience.most
            with closing(self._load(empty_kernel())) as session:
                samples = [self._after_waiting(session) for _ in range(runs)]
            self._entering = statistics.median(samples[_WARM_UP:])
        return self._entering

    def _hidden(self, session: Session) -> float:
        """Return the seconds of a run whose starts are hidden behind a flush."""
        queueing = min(self._queueing(session) for _ in range(_WARM_UP))
        flushes = max(1, ceil(2 * queueing / max(self._flush_seconds(), RESOLUTION)))
        samples = self._steady(session, lambda: self._behind(session, flushes))
        return max(statistics.median(samples), _SMALLEST)

    def _queueing(self, session: Session) -> float:
        """Return the host's seconds to queue one run; the stream is empty afterwards."""
        start = self._device.now()
        session.run()
        seconds = self._device.now() - start
        self._device.wait(self._stream)
        return seconds

    def _flush_seconds(self) -> float:
        """Return the seconds of one flush; measured once."""
        if self._flushing is None:
            samples = []
            for _ in range(_WARM_UP):
                start = self._device.record(self._stream)
                self._device.flush(self._stream, self._flush_bytes)
                end = self._device.record(self._stream)
                samples.append(self._device.seconds(start, end))
            self._flushing = min(samples)
        return self._flushing

    def _after_waiting(self, session: Session) -> float:
        """Return the seconds of one run into an empty stream."""
        self._device.flush(self._stream, self._flush_bytes)
        session.touch()
        self._device.wait(self._stream)
        return self._between_events(session)

    def _behind(self, session: Session, flushes: int) -> float:
        """Return the seconds of one run that is queued behind some flushes."""
        self._device.flush(self._stream, flushes * self._flush_bytes)
        session.touch()
        return self._between_events(session)

    def _between_events(self, session: Session) -> float:
        start = self._device.record(self._stream)
        session.run()
        end = self._device.record(self._stream)
        return self._device.seconds(start, end)

    def _steady(
        self, session: Session, sample: Callable[[], float], entering: float = 0.0
    ) -> list[float]:
        """Return the samples of an attempt that is narrow enough.

        Args:
            session: What is run.
            sample: One counted run.
            entering: What will be subtracted: the spread is judged against the rest.

        Raises:
            DeviceError: No attempt was; or a call failed.
        """
        patience = self._patience
        once = min(sample() for _ in range(_WARM_UP))
        wanted = int(patience.budget / max(once, RESOLUTION))
        rounds = min(max(wanted, patience.least), patience.most)
        narrowest = (float("inf"), 0.0)
        for _ in range(patience.attempts):
            samples = [sample() for _ in range(rounds)]
            whole, width = _middle(samples)
            net = _net(whole, entering)
            if width <= max(patience.widest * net, RESOLUTION):
                return samples
            narrowest = min(narrowest, (width / net, net))
            rounds *= 2
        raise DeviceError(
            Trouble.UNSTEADY,
            f"the middle half of the runs lies {narrowest[0]:.0%} around "
            f"{1e6 * narrowest[1]:.1f} us in the best of {patience.attempts} attempts; "
            f"at most {patience.widest:.0%} is believed",
        )


def empty_kernel() -> Kernel:
    """Return a model that does nothing: one copy of one number."""
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    node = helper.make_node("Identity", ["x"], ["y"])
    graph = helper.make_graph([node], "empty", value[:1], value[1:])
    opset = [helper.make_opsetid("", 13)]
    model: ModelProto = helper.make_model(graph, opset_imports=opset, ir_version=8)
    x, y = (Filling(name, TensorProto.FLOAT, (1,)) for name in "xy")
    return Kernel(model.SerializeToString(), (x,), (), (y,))


def _middle(samples: list[float]) -> tuple[float, float]:
    """Return the median and half the distance of the quartiles."""
    quartiles = statistics.quantiles(samples, n=4)
    return statistics.median(samples), (quartiles[2] - quartiles[0]) / 2


def _net(whole: float, entering: float) -> float:
    return max(whole - entering, _LEAST_SHARE * whole)

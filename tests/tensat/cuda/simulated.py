"""A GPU that keeps time itself: host, streams, events, caches, all without noise.

The host queues kernels and the device works them off, stream by stream. A byte that lies in
L2 costs less than one from memory; a flush empties L2 only if it writes at least twice its
size. The first runs of a session are slow. Events mark the time at which their own stream
gets to them, so that one on another stream than the work says nothing about the work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import onnx

from tensat.costs.source import item_bytes
from tensat.cuda.device import Event, Facts, NativeProgram, Session, Stream
from tensat.cuda.provider import Settings
from tensat.cuda.trouble import DeviceError, Trouble
from tensat.runtime.messages import Filling, Kernel

FACTS = Facts("Simulated", "9.9", "13.0", "13.0", "1.99.0", 1 << 20, 1 << 33, 1e12, 1e13)

Noise = Callable[[int], float]
"""By which factor the n-th run of a session is slower."""


@dataclass
class SimulatedStream:
    """A queue: when it will be empty."""

    free: float = 0.0


@dataclass(frozen=True)
class Costs:
    """Seconds of everything that takes time.

    Attributes:
        enter: Of the host, for each run.
        start: Of the host, for each kernel.
        kernel: Of the device, for each kernel.
        warm: Of the device, for each byte that is in L2.
        cold: Of the device, for each byte that is not.
        written: Of the device, for each byte of a flush.
        first: Of the device, more for each of the first runs of a session.
        slow_runs: How many runs are first ones.
        native: Factor between the other library's kernels and the runtime's.
    """

    enter: float = 40e-6
    start: float = 0.5e-6
    kernel: float = 2e-6
    warm: float = 1e-12
    cold: float = 8e-12
    written: float = 1e-12
    first: float = 1e-2
    slow_runs: int = 3
    native: float = 1.0


@dataclass
class SimulatedDevice:
    """See the module.

    Attributes:
        facts: What it says about itself.
        costs: What takes how long.
        noise: Of the runs of every session but those of empty models.
        empty_noise: Of the runs of empty models.
        refuse: Error text by ONNX type of a model's first node.
        host_types: ONNX types that run on the CPU, above an opset.
        host: The host's clock.
        loads: ONNX type of the first node of every model that was loaded.
        settings: What the sessions were asked for with.
        flushed: Bytes of each flush.
        streams: Those that were made.
        opened: Sessions that are not closed.
    """

    facts: Facts = FACTS
    costs: Costs = field(default_factory=Costs)
    noise: Noise = lambda run: 1.0
    empty_noise: Noise = lambda run: 1.0
    refuse: Mapping[str, Trouble] = field(default_factory=dict)
    host_types: Mapping[str, int] = field(default_factory=dict)
    host: float = 1000.0
    loads: list[str] = field(default_factory=list)
    settings: list[Settings] = field(default_factory=list)
    flushed: list[int] = field(default_factory=list)
    streams: list[SimulatedStream] = field(default_factory=list)
    opened: int = 0
    cached: set[tuple[int, str]] = field(default_factory=set)

    def stream(self) -> Stream:
        """Return an empty queue."""
        self.streams.append(SimulatedStream())
        return cast("Stream", self.streams[-1])

    def load(self, kernel: Kernel, stream: Stream, settings: Settings) -> Session:
        """Return a session; it knows sizes and copies from the kernel's description."""
        model = onnx.load_from_string(kernel.model)
        op_type = model.graph.node[0].op_type
        opset = max([one.version for one in model.opset_import if not one.domain])
        self.loads.append(op_type)
        self.settings.append(settings)
        if op_type in self.refuse:
            raise DeviceError(self.refuse[op_type], f"{op_type} was refused")
        empty = op_type == "Identity"
        return SimulatedSession(
            self,
            cast("SimulatedStream", stream),
            kernel.copies,
            {f.name: _bytes(f) for f in (*kernel.inputs, *kernel.constants)},
            frozenset(f.name for f in kernel.inputs),
            self.empty_noise if empty else self.noise,
            self.costs,
            opset > self.host_types.get(op_type, 10**9),
        )

    def native(self, program: NativeProgram, stream: Stream) -> Session:
        """Return a session of calls that start without entering anything."""
        every = {f.name: _bytes(f) for copy in program.copies for f in copy}
        costs = replace(self.costs, enter=0.0, kernel=self.costs.kernel * self.costs.native)
        return SimulatedSession(
            self,
            cast("SimulatedStream", stream),
            len(program.copies),
            every,
            program.warm,
            self.noise,
            costs,
        )

    def flush(self, stream: Stream, nbytes: int) -> None:
        """Empty L2, if that is enough."""
        self.flushed.append(nbytes)
        self.work(stream, nbytes * self.costs.written)
        if nbytes >= 2 * self.facts.l2_bytes:
            self.cached.clear()

    def record(self, stream: Stream) -> Event:
        """Return the time at which the stream gets here."""
        return cast("Event", max(cast("SimulatedStream", stream).free, self.host))

    def seconds(self, start: Event, end: Event) -> float:
        """Wait and return the difference."""
        self.host = max(self.host, cast("float", end))
        return cast("float", end) - cast("float", start)

    def wait(self, stream: Stream) -> None:
        """Let the host's clock run until the stream is empty."""
        self.host = max(self.host, cast("SimulatedStream", stream).free)

    def now(self) -> float:
        """Return the host's clock."""
        return self.host

    def work(self, stream: Stream | SimulatedStream, seconds: float) -> None:
        """Queue something."""
        queue = cast("SimulatedStream", stream)
        queue.free = max(queue.free, self.host) + seconds


class SimulatedSession:
    """A session of a simulated device."""

    def __init__(
        self,
        device: SimulatedDevice,
        stream: SimulatedStream,
        copies: int,
        reads: Mapping[str, int],
        inputs: frozenset[str],
        noise: Noise,
        costs: Costs,
        on_host: bool = False,
    ) -> None:
        self.on_host = on_host
        self._device = device
        self._stream = stream
        self._copies = copies
        self._reads = reads
        self._inputs = inputs
        self._noise = noise
        self._costs = costs
        self._runs = 0
        device.opened += 1

    def run(self) -> None:
        """Queue the copies; each reads its share of all tensors."""
        self._device.host += self._costs.enter
        factor = self._noise(self._runs)
        extra = self._costs.first if self._runs < self._costs.slow_runs else 0.0
        self._runs += 1
        reading = sum(self._rate(name) * size for name, size in self._reads.items())
        each = factor * (self._costs.kernel + reading / self._copies) + extra
        for _ in range(self._copies):
            self._device.host += self._costs.start
            self._device.work(self._stream, each)
        self._keep(self._reads)

    def touch(self) -> None:
        """Bring the inputs into L2."""
        sizes = {name: self._reads[name] for name in self._inputs}
        self._device.work(self._stream, sum(sizes.values()) * self._costs.cold)
        self._keep(sizes)

    def close(self) -> None:
        """Give it back."""
        self._device.opened -= 1

    def _rate(self, name: str) -> float:
        warm = (id(self), name) in self._device.cached
        return self._costs.warm if warm else self._costs.cold

    def _keep(self, sizes: Mapping[str, int]) -> None:
        if sum(sizes.values()) <= self._device.facts.l2_bytes:
            self._device.cached |= {(id(self), name) for name in sizes}


def _bytes(filling: Filling) -> int:
    kind = onnx.helper.tensor_dtype_to_np_dtype(filling.onnx_type)
    count = 1
    for size in filling.dims:
        count *= size
    return int(count * item_bytes(kind.name))

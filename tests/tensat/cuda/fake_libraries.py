"""Stand-ins for CuPy and ONNX Runtime that write down what they are called with.

They have only what a device call uses, and raise what the real ones raise: arrays are
NumPy's with an address, a stream knows that it is the current one, a session does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace, TracebackType
from typing import Any

import numpy as np

PROPERTIES: dict[str, Any] = {
    "name": b"NVIDIA Fake",
    "major": 9,
    "minor": 0,
    "l2CacheSize": 1 << 20,
    "totalGlobalMem": 1 << 34,
    "memoryClockRate": 1_000_000,  # kHz
    "memoryBusWidth": 4096,  # bits
    "clockRate": 2_000_000,  # kHz
    "multiProcessorCount": 100,
}


class FakeArray:
    """A device buffer: values in the host's memory, at the address that it tells."""

    def __init__(self, library: FakeCupy, values: np.ndarray) -> None:
        self.library = library
        self.values = values
        self.nbytes = values.nbytes
        address = values.ctypes.data
        self.data = SimpleNamespace(ptr=address, memset_async=self._memset)

    def reshape(self, shape: int) -> FakeArray:
        """Return a view of another shape."""
        return FakeArray(self.library, self.values.reshape(shape))

    def view(self, dtype: type) -> FakeArray:
        """Return the same bytes as another type."""
        return FakeArray(self.library, self.values.view(dtype))

    def _memset(self, value: int, size: int, stream: FakeStream) -> None:
        assert size <= self.nbytes
        self.library.calls.append(("memset", size, stream.ptr))


class FakeStream:
    """A stream; inside `with` it is the current one."""

    def __init__(self, library: FakeCupy, non_blocking: bool) -> None:
        library.streams += 1
        self.library = library
        self.ptr = 7000 + library.streams
        self.non_blocking = non_blocking

    def __enter__(self) -> FakeStream:
        self.library.current = self.ptr
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.library.current = 0

    def synchronize(self) -> None:
        """Wait."""
        self.library.calls.append(("wait", self.ptr))


class FakeEvent:
    """An event: the moment it was recorded at."""

    def __init__(self, library: FakeCupy) -> None:
        self.library = library
        self.moment = 0.0

    def record(self, stream: FakeStream) -> None:
        """Take the next millisecond."""
        self.library.milliseconds += 1.5
        self.moment = self.library.milliseconds
        self.library.calls.append(("record", stream.ptr))

    def synchronize(self) -> None:
        """Wait for it."""
        self.library.calls.append(("wait for", self.moment))


@dataclass
class FakeCupy:
    """The module.

    Attributes:
        devices: How many GPUs there are, or what asking for them raises.
        calls: What was called, with the address of the stream that it went to.
        full: Whether memory is used up.
        made: Buffers that were made empty.
    """

    devices: int | Exception = 1
    calls: list[tuple[object, ...]] = field(default_factory=list)
    full: bool = False
    made: list[FakeArray] = field(default_factory=list)
    streams: int = 0
    current: int = 0
    milliseconds: float = 0.0

    @property
    def cuda(self) -> SimpleNamespace:
        """The part with devices, streams and events."""
        return SimpleNamespace(
            Device=lambda number: SimpleNamespace(
                use=lambda: self.calls.append(("use", number)),
                synchronize=lambda: self.calls.append(("wait for device", number)),
            ),
            Stream=lambda non_blocking: FakeStream(self, non_blocking),
            Event=lambda: FakeEvent(self),
            get_elapsed_time=lambda start, end: end.moment - start.moment,
            runtime=SimpleNamespace(
                getDeviceCount=self._count,
                getDeviceProperties=lambda number: PROPERTIES,
                driverGetVersion=lambda: 13000,
            ),
        )

    def _count(self) -> int:
        if isinstance(self.devices, Exception):
            raise self.devices
        return self.devices

    def asarray(self, values: np.ndarray) -> FakeArray:
        """Copy to the device."""
        if self.full:
            raise MemoryError("Out of memory allocating 1,024 bytes (allocated so far: 0).")
        return FakeArray(self, values.copy())

    def empty(self, count: int, dtype: type) -> FakeArray:
        """Return a new buffer."""
        self.made.append(FakeArray(self, np.zeros(count, dtype)))
        return self.made[-1]

    def bitwise_or(self, array: FakeArray, other: int, out: FakeArray) -> FakeArray:
        """Write down the kernel, and on which stream it runs."""
        assert out is array
        before = array.values.copy()
        np.bitwise_or(array.values, other, out=array.values)
        assert np.array_equal(before, array.values)
        self.calls.append(("touch", array.nbytes, self.current))
        return array

    def maximum(self, array: FakeArray, other: float) -> FakeArray:
        """Write down the kernel, and on which stream it runs."""
        self.calls.append(("maximum", array.data.ptr, self.current))
        return array

    def get_default_memory_pool(self) -> SimpleNamespace:
        """Return the pool, which can be emptied."""
        return SimpleNamespace(free_all_blocks=lambda: self.calls.append(("free",)))


@dataclass
class FakeBinding:
    """What is bound to a session."""

    inputs: dict[str, tuple[object, ...]] = field(default_factory=dict)
    outputs: dict[str, tuple[object, ...]] = field(default_factory=dict)

    def bind_input(self, name: str, *place: object) -> None:
        """Bind one."""
        self.inputs[name] = place

    def bind_output(self, name: str, *place: object) -> None:
        """Bind one."""
        self.outputs[name] = place


@dataclass
class FakeOptions:
    """Options of a session or of a run."""

    entries: dict[str, str] = field(default_factory=dict)
    initializers: dict[str, object] = field(default_factory=dict)
    log_severity_level: int = 2
    graph_optimization_level: object = None

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Set one."""
        self.entries[key] = value

    add_run_config_entry = add_session_config_entry

    def add_external_initializers(
        self, names: Sequence[str], values: Sequence[object]
    ) -> None:
        """Give weights from outside."""
        self.initializers.update(zip(names, values, strict=True))


@dataclass
class FakeRuntime:
    """The module `onnxruntime`.

    Attributes:
        available: Providers of the build.
        loaded: Providers that a session gets.
        needs_cpu: Whether models have nodes that only the CPU runs.
        run_error: What running raises.
        sessions: All that were made: options, provider and its options.
        runs: Options of each run.
        bindings: All that were made.
    """

    available: tuple[str, ...] = ("CUDAExecutionProvider", "CPUExecutionProvider")
    loaded: tuple[str, ...] = ("CUDAExecutionProvider", "CPUExecutionProvider")
    needs_cpu: bool = False
    run_error: Exception | None = None
    sessions: list[tuple[FakeOptions, str, dict[str, str]]] = field(default_factory=list)
    runs: list[FakeOptions] = field(default_factory=list)
    bindings: list[FakeBinding] = field(default_factory=list)
    preloaded: int = 0
    __version__: str = "1.99.0"
    cuda_version: str = "13.0"
    GraphOptimizationLevel: Any = field(
        default_factory=lambda: SimpleNamespace(
            ORT_DISABLE_ALL="none", ORT_ENABLE_ALL="all"
        )
    )
    OrtValue: Any = field(
        default_factory=lambda: SimpleNamespace(
            ortvalue_from_numpy=lambda array: (array.dtype.name, array.shape),
            ortvalue_from_numpy_with_onnx_type=lambda array, kind: (kind, array.shape),
        )
    )

    SessionOptions = FakeOptions
    RunOptions = FakeOptions

    def get_available_providers(self) -> list[str]:
        """Return what the build has."""
        return list(self.available)

    def preload_dlls(self) -> None:
        """Print as the real one does."""
        print("Failed to load libcublasLt.so.13")
        self.preloaded += 1

    def InferenceSession(  # noqa: N802 - the library's name
        self,
        model: bytes,
        options: FakeOptions,
        providers: list[tuple[str, dict[str, str]]],
        enable_fallback: int,
    ) -> SimpleNamespace:
        """Return a session that does nothing."""
        assert enable_fallback == 0
        strict = options.entries.get("session.disable_cpu_ep_fallback") == "1"
        if strict and (self.needs_cpu or "CUDAExecutionProvider" not in self.loaded):
            raise RuntimeError(
                "[ONNXRuntimeError] : 1 : FAIL : This session contains graph nodes that "
                "are assigned to the default CPU EP, but fallback to CPU EP has been "
                "explicitly disabled by the user."
            )
        self.sessions.append((options, *providers[0]))
        return SimpleNamespace(
            get_providers=lambda: list(self.loaded),
            io_binding=self._binding,
            run_with_iobinding=self._run,
        )

    def _binding(self) -> FakeBinding:
        self.bindings.append(FakeBinding())
        return self.bindings[-1]

    def _run(self, binding: FakeBinding, options: FakeOptions) -> None:
        if self.run_error is not None:
            raise self.run_error
        self.runs.append(options)


class HostRuntime:
    """The real `onnxruntime`, made to compute on the CPU what it is asked for CUDA.

    Sessions, external weights, bindings by address and options are the library's own; only
    the provider's name and the kind of memory are exchanged.
    """

    def __init__(self) -> None:
        import onnxruntime

        self._ort = onnxruntime

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ort, name)

    def InferenceSession(  # noqa: N802 - the library's name
        self, model: bytes, options: Any, providers: object, enable_fallback: int
    ) -> SimpleNamespace:
        """Return a real session of the CPU's provider, which must not be forbidden."""
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "0")
        real = self._ort.InferenceSession(
            model,
            options,
            providers=["CPUExecutionProvider"],
            enable_fallback=enable_fallback,
        )
        return SimpleNamespace(
            get_providers=lambda: ["CUDAExecutionProvider"],
            io_binding=lambda: _HostBinding(real.io_binding()),
            run_with_iobinding=lambda binding, run: real.run_with_iobinding(
                binding.real, run
            ),
        )


@dataclass
class _HostBinding:
    real: Any

    def bind_input(self, name: str, kind: str, *place: object) -> None:
        assert kind == "cuda"
        self.real.bind_input(name, "cpu", *place)

    def bind_output(self, name: str, kind: str, *place: object) -> None:
        assert kind == "cuda"
        self.real.bind_output(name, "cpu", *place)

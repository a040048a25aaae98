"""The device calls themselves: CuPy for memory, streams and events, ONNX Runtime to run.

The only module that touches CuPy or makes a CUDA session; both libraries are imported when
a device is opened. A session queues its work into the stream that it is given
(`user_compute_stream`), its inputs and outputs lie in CuPy buffers that IO binding names by
address, and a run returns before the work is done, so that events recorded around it are
all that is waited for. A session is first asked for with no fallback to the CPU; where that
is refused, the operator runs partly there, as it would in a model, and the session says so.

Source: https://docs.cupy.dev/en/stable/reference/generated/cupy.cuda.Event.html,
https://docs.cupy.dev/en/stable/user_guide/interoperability.html,
https://onnxruntime.ai/docs/api/python/api_summary.html (IOBinding), and
`onnxruntime_run_options_config_keys.h` for the keys of a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from io import StringIO
from typing import Any

import numpy as np
import onnx_ir as ir

from tensat.cuda.clock import FLUSHED, empty_kernel
from tensat.cuda.device import Event, Facts, NativeProgram, Session, Stream
from tensat.cuda.fillings import host_array
from tensat.cuda.provider import (
    NO_FALLBACK,
    NO_WAITING,
    PROVIDER,
    Settings,
    provider_options,
)
from tensat.cuda.trouble import DeviceError, Trouble, device_error
from tensat.errors import UsageError, one_line
from tensat.runtime.messages import Filling, Kernel

_CORES = {"6.0": 64, "7.0": 64, "7.2": 64, "7.5": 64, "8.0": 64}
_MOST_CORES = 128
"""Float32 units of a multiprocessor, by compute capability; all others have the most.

Source: table of arithmetic instruction throughput, CUDA C++ Programming Guide.
"""

_SILENT = 4
_DISABLED = "explicitly disabled by the user"


def open_device(settings: Settings | None = None) -> CupyDevice:
    """Open a GPU for measuring.

    Args:
        settings: Which one.

    Raises:
        UsageError: CuPy is not installed, ONNX Runtime has no CUDA provider or cannot load
            it, or there is no such GPU; the text says what to do.
    """
    settings = settings or Settings()
    cupy = _cupy()
    ort = _onnxruntime()
    count = _device_count(cupy)
    if not 0 <= settings.device_id < count:
        possible = ", ".join(map(str, range(count)))
        raise UsageError(f"there is no GPU {settings.device_id}; possible: {possible}")
    device = CupyDevice(cupy, ort, settings.device_id)
    try:
        stream = device.stream()
        with closing(device.load(empty_kernel(), stream, settings)) as session:
            session.run()
            device.wait(stream)
    except DeviceError as error:
        raise UsageError(
            f"ONNX Runtime cannot use its CUDA provider ({error}); it is built for CUDA "
            f"{device.facts.cuda} and needs that toolkit and cuDNN"
        ) from error
    return device


class CupyDevice:
    """A GPU as `tensat.cuda.device.Device` asks for it.

    Attributes:
        facts: What the device says about itself.
    """

    def __init__(self, cupy: Any, ort: Any, device_id: int) -> None:
        """Make a GPU the current one.

        Args:
            cupy: The module.
            ort: The module `onnxruntime`.
            device_id: Which GPU.
        """
        self._cupy = cupy
        self._ort = ort
        self._id = device_id
        self._scratch: Any = None
        with _translated():
            cupy.cuda.Device(device_id).use()
            self.facts = _facts(cupy, ort, device_id)

    def stream(self) -> Stream:
        """Return a new stream that does not wait for the default one."""
        with _translated():
            stream: Stream = self._cupy.cuda.Stream(non_blocking=True)
            return stream

    def load(self, kernel: Kernel, stream: Any, settings: Settings) -> Session:
        """Load a small model into a session whose work goes into the stream."""
        with _translated():
            rng = np.random.default_rng(kernel.seed)
            constants = {f.name: host_array(f, rng, weights=True) for f in kernel.constants}
            session, on_host = self._session(kernel, constants, stream, settings)
            binding = session.io_binding()
            inputs = []
            for filling in kernel.inputs:
                host = host_array(filling, rng)
                inputs.append(self._cupy.asarray(host.reshape(-1).view(np.uint8)))
                binding.bind_input(filling.name, *self._place(filling, inputs[-1]))
            outputs = []
            for filling in kernel.outputs:
                count = int(np.prod(filling.dims, dtype=np.int64))
                nbytes = count * _dtype(filling).itemsize
                outputs.append(self._cupy.empty(nbytes, np.uint8))
                binding.bind_output(filling.name, *self._place(filling, outputs[-1]))
            self._cupy.cuda.Device(self._id).synchronize()
        options = self._ort.RunOptions()
        options.add_run_config_entry(*NO_WAITING)
        return _Loaded(
            lambda: session.run_with_iobinding(binding, options),
            self._toucher(inputs, stream),
            (session, binding, inputs, outputs),
            self._free,
            on_host,
        )

    def native(self, program: NativeProgram, stream: Any) -> Session:
        """Load calls of CuPy's own kernels."""
        with _translated():
            rng = np.random.default_rng(program.seed)
            arrays: dict[str, Any] = {}
            for filling in (filling for copy in program.copies for filling in copy):
                if filling.name not in arrays:
                    arrays[filling.name] = self._cupy.asarray(host_array(filling, rng))
            calls = [tuple(arrays[f.name] for f in copy) for copy in program.copies]
            warm = [arrays[name].reshape(-1).view(np.uint8) for name in program.warm]
            self._cupy.cuda.Device(self._id).synchronize()

        def run() -> None:
            with stream:
                for arguments in calls:
                    program.call(self._cupy, arguments)

        return _Loaded(run, self._toucher(warm, stream), (arrays, calls), self._free)

    def flush(self, stream: Any, nbytes: int) -> None:
        """Fill a buffer of at most `FLUSHED` times L2, again and again."""
        with _translated():
            if self._scratch is None:
                size = max(FLUSHED * self.facts.l2_bytes, 1 << 20)
                self._scratch = self._cupy.empty(size, np.uint8)
            while nbytes > 0:
                part = min(nbytes, self._scratch.nbytes)
                self._scratch.data.memset_async(0, part, stream)
                nbytes -= part

    def record(self, stream: Any) -> Event:
        """Record an event."""
        try:
            event = self._cupy.cuda.Event()
            event.record(stream)
        except Exception as error:
            raise device_error(error) from error
        recorded: Event = event
        return recorded

    def seconds(self, start: Any, end: Any) -> float:
        """Wait for the later event; CuPy tells milliseconds."""
        with _translated():
            end.synchronize()
            return float(self._cupy.cuda.get_elapsed_time(start, end)) / 1e3

    def wait(self, stream: Any) -> None:
        """Wait until the stream is empty."""
        with _translated():
            stream.synchronize()

    def now(self) -> float:
        """Return the host's clock in seconds."""
        return time.perf_counter()

    def _session(
        self,
        kernel: Kernel,
        constants: Mapping[str, np.ndarray],
        stream: Any,
        settings: Settings,
    ) -> tuple[Any, bool]:
        """Return a session, and whether part of the model runs on the CPU."""
        kinds = {filling.name: filling.onnx_type for filling in kernel.constants}
        values = [self._host_value(constants[name], kinds[name]) for name in constants]
        provider = (PROVIDER, provider_options(settings, stream.ptr))

        def make(*entries: tuple[str, str]) -> Any:
            options = self._ort.SessionOptions()
            options.log_severity_level = _SILENT
            level = getattr(self._ort.GraphOptimizationLevel, settings.level)
            options.graph_optimization_level = level
            for entry in entries:
                options.add_session_config_entry(*entry)
            if values:
                options.add_external_initializers(list(constants), values)
            return self._ort.InferenceSession(
                kernel.model, options, providers=[provider], enable_fallback=0
            )

        on_host = False
        try:
            session = make(NO_FALLBACK)
        except Exception as error:
            if _DISABLED not in str(error):
                raise
            session, on_host = make(), True
        if PROVIDER not in session.get_providers():
            found = ", ".join(session.get_providers())
            raise DeviceError(Trouble.BROKEN, f"asked for {PROVIDER}, got {found}")
        return session, on_host

    def _host_value(self, array: np.ndarray, onnx_type: int) -> Any:
        """Return an array as the runtime's value; types NumPy lacks go in as their bits."""
        if array.dtype.kind in "biuf":
            return self._ort.OrtValue.ortvalue_from_numpy(array)
        bits = array.view(f"uint{8 * array.dtype.itemsize}")
        return self._ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, onnx_type)

    def _place(self, filling: Filling, buffer: Any) -> tuple[Any, ...]:
        """Return where a tensor lies, in the order in which IO binding wants it."""
        dtype = _dtype(filling)
        kind = dtype.type if dtype.kind in "biuf" else filling.onnx_type
        return ("cuda", self._id, kind, list(filling.dims), int(buffer.data.ptr))

    def _toucher(self, buffers: Sequence[Any], stream: Any) -> Callable[[], None]:
        """Return what reads and writes buffers back, as the operator before writes them."""

        def touch() -> None:
            with stream:
                for buffer in buffers:
                    self._cupy.bitwise_or(buffer, 0, out=buffer)

        return touch

    def _free(self) -> None:
        self._cupy.get_default_memory_pool().free_all_blocks()


class _Loaded:
    """A loaded program; see `tensat.cuda.device.Session`."""

    def __init__(
        self,
        run: Callable[[], object],
        touch: Callable[[], None],
        alive: object,
        free: Callable[[], None],
        on_host: bool = False,
    ) -> None:
        self.on_host = on_host
        self._run: Callable[[], object] | None = run
        self._touch: Callable[[], None] | None = touch
        self._alive: object = alive  # buffers are bound by address alone
        self._free = free

    def run(self) -> None:
        """Queue one run; nothing but the call stands between the events around it."""
        assert self._run is not None
        try:
            self._run()
        except Exception as error:
            raise device_error(error) from error

    def touch(self) -> None:
        """Queue reads of the inputs."""
        assert self._touch is not None
        with _translated():
            self._touch()

    def close(self) -> None:
        """Free session and buffers."""
        self._run = self._touch = self._alive = None
        with _translated():
            self._free()


@contextmanager
def _translated() -> Iterator[None]:
    """Turn what CuPy and the runtime raise into our own error."""
    try:
        yield
    except DeviceError:
        raise
    except Exception as error:
        raise device_error(error) from error


def _cupy() -> Any:
    try:
        import cupy
    except ImportError as error:
        raise UsageError(
            f"costs of CUDA need CuPy, which cannot be imported ({one_line(error)}); "
            "install the extra cuda, or take another cost source"
        ) from error
    return cupy


def _onnxruntime() -> Any:
    import onnxruntime

    found = list(onnxruntime.get_available_providers())
    if PROVIDER not in found:
        raise UsageError(
            f"costs of CUDA need ONNX Runtime's {PROVIDER}; onnxruntime "
            f"{onnxruntime.__version__} has {', '.join(found)}; uninstall onnxruntime "
            "and onnxruntime-gpu, which share a folder, then install onnxruntime-gpu"
        )
    if hasattr(onnxruntime, "preload_dlls"):  # finds CUDA and cuDNN installed by pip
        with redirect_stdout(StringIO()):  # it prints what it does not find
            onnxruntime.preload_dlls()
    return onnxruntime


def _device_count(cupy: Any) -> int:
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except RuntimeError as error:
        raise UsageError(
            f"costs of CUDA need a GPU and its driver; CUDA says {one_line(error)}"
        ) from error
    if count == 0:
        raise UsageError("costs of CUDA need a GPU; the driver finds none")
    return count


def _facts(cupy: Any, ort: Any, device_id: int) -> Facts:
    """Return what the driver tells of a device; clocks come in kHz, the bus in bits."""
    found = cupy.cuda.runtime.getDeviceProperties(device_id)
    capability = f"{found['major']}.{found['minor']}"
    cores = found["multiProcessorCount"] * _CORES.get(capability, _MOST_CORES)
    transfers = 2e3 * found["memoryClockRate"]  # two on each tick
    return Facts(
        name=found["name"].decode(),
        compute_capability=capability,
        driver=_version(cupy.cuda.runtime.driverGetVersion()),
        cuda=str(getattr(ort, "cuda_version", "") or "unknown"),
        onnxruntime=str(ort.__version__),
        l2_bytes=int(found["l2CacheSize"]),
        memory_bytes=int(found["totalGlobalMem"]),
        bytes_per_second=transfers * found["memoryBusWidth"] / 8,
        flops=2e3 * found["clockRate"] * cores,
    )


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _dtype(filling: Filling) -> np.dtype[Any]:
    return ir.DataType(filling.onnx_type).numpy()

"""The device calls, on libraries that write down what they are called with.

No GPU has run them: that the calls are made in this way is tested, and that ONNX Runtime
takes them, on the CPU; the rest is what the cited documentation says.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper

from tensat.costs.source import Argument, Signature
from tensat.cuda.cupy_device import CupyDevice, open_device
from tensat.cuda.device import NativeProgram
from tensat.cuda.fillings import host_array
from tensat.cuda.native import native_call
from tensat.cuda.provider import Settings
from tensat.cuda.trouble import DeviceError, Refused, Trouble
from tensat.errors import UsageError
from tensat.runtime.messages import Filling, Kernel
from tests.tensat.cuda.fake_libraries import FakeCupy, FakeRuntime, HostRuntime

KERNEL = Kernel(
    b"model",
    (
        Filling("x", TensorProto.FLOAT, (2, 3)),
        Filling("i", TensorProto.INT64, (4,), below=9),
        Filling("b", TensorProto.BFLOAT16, (5,)),
    ),
    (Filling("w", TensorProto.FLOAT, (3, 7)), Filling("v", TensorProto.BFLOAT16, (7,))),
    (Filling("y", TensorProto.FLOAT16, (2, 7)),),
)


def _device(cupy: FakeCupy | None = None, ort: FakeRuntime | None = None) -> CupyDevice:
    return CupyDevice(cupy or FakeCupy(), ort or FakeRuntime(), 0)


def test_the_session_queues_into_the_stream() -> None:
    """The provider gets the stream's address, and TF32 stays off unless asked for."""
    ort = FakeRuntime()
    device = _device(ort=ort)
    stream = device.stream()
    device.load(KERNEL, stream, Settings())
    device.load(KERNEL, stream, Settings(tf32=True, prefer_nhwc=True))
    (options, provider, plain), (_, _, asked) = ort.sessions
    assert provider == "CUDAExecutionProvider"
    assert plain["user_compute_stream"] == asked["user_compute_stream"] == "7001"
    assert (plain["use_tf32"], plain["prefer_nhwc"]) == ("0", "0")
    assert (asked["use_tf32"], asked["prefer_nhwc"]) == ("1", "1")
    assert options.graph_optimization_level == "none"
    assert options.initializers == {
        "w": ("float32", (3, 7)),
        "v": (TensorProto.BFLOAT16, (7,)),
    }


def test_tensors_are_bound_by_address() -> None:
    """Inputs and outputs lie in buffers of the device; types NumPy lacks go by number."""
    ort = FakeRuntime()
    device = _device(ort=ort)
    device.load(KERNEL, device.stream(), Settings())
    (binding,) = ort.bindings
    places = [*binding.inputs.values(), *binding.outputs.values()]
    assert [place[:4] for place in places] == [
        ("cuda", 0, np.float32, [2, 3]),
        ("cuda", 0, np.int64, [4]),
        ("cuda", 0, TensorProto.BFLOAT16, [5]),
        ("cuda", 0, np.float16, [2, 7]),
    ]
    assert len({place[4] for place in places}) == 4


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_the_real_runtime_takes_the_calls(dtype: str) -> None:
    """ONNX Runtime itself, on the CPU, computes from the buffers into the buffers."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    weights = TensorProto(name="w", data_type=kind, dims=(3, 7))
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="elsewhere")
    x, w, y = (
        Filling(name, kind, dims, below=9)
        for name, dims in (("x", (2, 3)), ("w", (3, 7)), ("y", (2, 7)))
    )
    declared = [helper.make_tensor_value_info(f.name, kind, f.dims) for f in (x, y)]
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", declared[:1], declared[1:], [weights])
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9)
    kernel = Kernel(model.SerializeToString(), (x,), (w,), (y,), seed=5)
    cupy = FakeCupy()
    device = CupyDevice(cupy, HostRuntime(), 0)
    device.load(kernel, device.stream(), Settings()).run()
    rng = np.random.default_rng(5)
    given_w, given_x = host_array(w, rng), host_array(x, rng)
    found = cupy.made[0].values.view(dtype).reshape(2, 7)
    np.testing.assert_allclose(found, given_x @ given_w, rtol=1e-2)
    assert np.abs(found.astype(float)).max() > 0


def test_the_real_runtime_takes_bfloat16() -> None:
    """Types that NumPy lacks are bound and given by number and bits."""
    kind = TensorProto.BFLOAT16
    x, y = (Filling(name, kind, (5,)) for name in "xy")
    declared = [helper.make_tensor_value_info(name, kind, (5,)) for name in "xy"]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])], "g", declared[:1], declared[1:]
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9)
    cupy = FakeCupy()
    device = CupyDevice(cupy, HostRuntime(), 0)
    kernel = Kernel(model.SerializeToString(), (x,), (), (y,), seed=5)
    device.load(kernel, device.stream(), Settings()).run()
    wanted = host_array(x, np.random.default_rng(5)).view(np.uint16)
    assert np.array_equal(cupy.made[0].values.view(np.uint16), wanted)


def test_a_run_does_not_wait() -> None:
    """Runs are queued; the runtime is told not to wait for the stream at their end."""
    ort = FakeRuntime()
    device = _device(ort=ort)
    device.load(KERNEL, device.stream(), Settings()).run()
    assert ort.runs[0].entries == {"disable_synchronize_execution_providers": "1"}


def test_events_are_recorded_on_the_stream_and_told_in_seconds() -> None:
    """Both events go to the given stream; the later one is waited for."""
    cupy = FakeCupy()
    device = _device(cupy)
    stream = device.stream()
    cupy.calls.clear()
    start, end = device.record(stream), device.record(stream)
    assert device.seconds(start, end) == pytest.approx(1.5e-3)
    assert cupy.calls == [("record", 7001), ("record", 7001), ("wait for", 3.0)]


def test_a_flush_writes_all_bytes() -> None:
    """More than the buffer of twice L2 is written by writing it again."""
    cupy = FakeCupy()
    device = _device(cupy)
    stream = device.stream()
    cupy.calls.clear()
    device.flush(stream, (5 << 20) + 1)
    whole = ("memset", 2 << 20, 7001)
    assert cupy.calls == [whole, whole, ("memset", (1 << 20) + 1, 7001)]


def test_touching_reads_every_input_on_the_stream() -> None:
    """The inputs, not the weights, are read and written back unchanged."""
    cupy = FakeCupy()
    device = _device(cupy)
    session = device.load(KERNEL, device.stream(), Settings())
    cupy.calls.clear()
    session.touch()
    assert cupy.calls == [("touch", n, 7001) for n in (4 * 6, 8 * 4, 2 * 5)]


def test_native_calls_run_on_the_stream() -> None:
    """CuPy's kernels are called once per copy, each on its own array, on the stream."""
    cupy = FakeCupy()
    device = _device(cupy)
    x = Argument("float32", (4,))
    call = native_call(Signature("Relu", (), (x,), (x,), 21))
    assert call is not None
    copies = tuple((Filling(f"a{k}", TensorProto.FLOAT, (4,)),) for k in range(3))
    session = device.native(NativeProgram(call, copies, frozenset({"a1"})), device.stream())
    cupy.calls.clear()
    session.run()
    session.touch()
    runs = [entry for entry in cupy.calls if entry[0] == "maximum"]
    assert len({address for _, address, _ in runs}) == 3
    assert {stream for _, _, stream in runs} == {7001}
    assert cupy.calls[3:] == [("touch", 16, 7001)]


def test_closing_gives_memory_back() -> None:
    """A closed session leaves nothing in the pool."""
    cupy = FakeCupy()
    device = _device(cupy)
    session = device.load(KERNEL, device.stream(), Settings())
    session.close()
    assert cupy.calls[-1] == ("free",)


def test_nodes_that_only_the_cpu_runs_are_allowed_and_told() -> None:
    """The first try forbids the CPU; the second allows it, and the session says so."""
    ort = FakeRuntime(needs_cpu=True)
    device = _device(ort=ort)
    session = device.load(KERNEL, device.stream(), Settings())
    assert session.on_host
    assert ort.sessions[0][0].entries == {}
    ours = FakeRuntime()
    device = _device(ort=ours)
    assert not device.load(KERNEL, device.stream(), Settings()).on_host
    assert ours.sessions[0][0].entries == {"session.disable_cpu_ep_fallback": "1"}


def test_a_session_without_the_provider_is_an_error() -> None:
    """The runtime falls back in silence; it is not taken for a GPU."""
    device = _device(ort=FakeRuntime(loaded=("CPUExecutionProvider",)))
    with pytest.raises(
        DeviceError, match="asked for CUDAExecutionProvider, got CPUExecutionProvider"
    ) as e:
        device.load(KERNEL, device.stream(), Settings())
    assert e.value.refused.trouble is Trouble.BROKEN


def test_a_full_memory_is_told() -> None:
    """What CuPy raises then is our own error of that kind."""
    cupy = FakeCupy(full=True)
    device = _device(cupy)
    with pytest.raises(DeviceError, match="out of device memory: MemoryError: Out of"):
        device.load(KERNEL, device.stream(), Settings())


def test_an_error_of_a_run_is_ours() -> None:
    """What the runtime raises while running is translated, too."""
    error = RuntimeError(
        "[ONNXRuntimeError] : 6 : BFCArena Failed to allocate memory for x"
    )
    device = _device(ort=FakeRuntime(run_error=error))
    session = device.load(KERNEL, device.stream(), Settings())
    with pytest.raises(DeviceError, match="Failed to allocate memory") as raised:
        session.run()
    assert raised.value.refused.trouble is Trouble.NO_MEMORY


@pytest.mark.parametrize("kind", ["STRING", "INT4", "FLOAT4E2M1"])
def test_types_without_buffers_are_refused(kind: str) -> None:
    """Strings and elements below one byte have no device buffer."""
    filling = Filling("x", TensorProto.DataType.Value(kind), (2,))
    device = _device()
    with pytest.raises(DeviceError, match=f"tensor x of {kind.lower()} has no device buf"):
        device.load(replace(KERNEL, inputs=(filling,)), device.stream(), Settings())


def test_large_weights_lie_around_zero() -> None:
    """Weights are small and of both signs, everything else is positive; all are finite."""
    large = Filling("w", TensorProto.FLOAT, (64, 64))
    small = Filling("b", TensorProto.FLOAT, (64,))
    rng = np.random.default_rng(0)
    weights = host_array(large, rng, weights=True)
    assert (weights.min() < 0 < weights.max(), np.abs(weights).max() <= 0.05) == (True,) * 2
    assert weights.dtype == np.float32
    for one in (host_array(large, rng), host_array(small, rng, weights=True)):
        assert 0.25 <= one.min() < one.max() < 1.25


def test_facts_come_from_the_driver() -> None:
    """Name, versions and sizes as told; peaks from clocks, bus and cores."""
    facts = _device().facts
    assert (facts.name, facts.compute_capability) == ("NVIDIA Fake", "9.0")
    assert (facts.driver, facts.cuda, facts.onnxruntime) == ("13.0", "13.0", "1.99.0")
    assert (facts.l2_bytes, facts.memory_bytes) == (1 << 20, 1 << 34)
    assert facts.bytes_per_second == 2 * 1e9 * 4096 / 8
    assert facts.flops == 2 * 2e9 * 100 * 128


def _install(monkeypatch: pytest.MonkeyPatch, cupy: object, ort: FakeRuntime) -> None:
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "onnxruntime", ort)


def test_a_device_opens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With both libraries and a GPU it opens, tries a session, and prints nothing."""
    ort, cupy = FakeRuntime(), FakeCupy(devices=2)
    _install(monkeypatch, cupy, ort)
    device = open_device(Settings(device_id=1))
    assert device.facts.name == "NVIDIA Fake"
    assert ("use", 1) in cupy.calls
    assert ort.sessions[0][2]["device_id"] == "1"
    assert ort.preloaded == 1
    assert capsys.readouterr().out == ""


INSUFFICIENT = RuntimeError(
    "cudaErrorInsufficientDriver: CUDA driver version is insufficient"
)


@pytest.mark.parametrize(
    ("cupy", "ort", "text"),
    [
        (None, FakeRuntime(), r"need CuPy, which cannot be imported .*; install the extra"),
        (
            FakeCupy(),
            FakeRuntime(available=("AzureExecutionProvider", "CPUExecutionProvider")),
            r"onnxruntime 1\.99\.0 has AzureEx.*, CPUEx.*; uninstall onnxruntime and",
        ),
        (FakeCupy(INSUFFICIENT), FakeRuntime(), r"need a GPU .* CUDA says cudaErrorInsuff"),
        (FakeCupy(0), FakeRuntime(), "need a GPU; the driver finds none"),
        (FakeCupy(2), FakeRuntime(), "there is no GPU 5; possible: 0, 1"),
        (
            FakeCupy(6),
            FakeRuntime(loaded=("CPUExecutionProvider",)),
            r"cannot use its CUDA provider .* built for CUDA 13\.0 and needs that toolkit",
        ),
        (
            FakeCupy(6),
            FakeRuntime(run_error=RuntimeError("CUDA error: no kernel image is available")),
            "cannot use its CUDA provider",
        ),
    ],
    ids=["cupy", "provider", "driver", "none", "number", "libraries", "first run"],
)
def test_what_is_missing_is_said(
    monkeypatch: pytest.MonkeyPatch, cupy: object, ort: FakeRuntime, text: str
) -> None:
    """Each thing that can be missing is one line that says what to do."""
    _install(monkeypatch, cupy, ort)
    with pytest.raises(UsageError, match=text) as raised:
        open_device(Settings(device_id=5))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find", Trouble.NO_KERNEL),
        ("[ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid", Trouble.NO_KERNEL),
        ("Type Error: Type 'tensor(bool)' of input", Trouble.NO_KERNEL),
        ("CUDA failure 2: out of memory ; GPU=0", Trouble.NO_MEMORY),
        ("cudaErrorMemoryAllocation: out of memory", Trouble.NO_MEMORY),
        ("CUDA failure 700: an illegal memory access was encountered", Trouble.BROKEN),
        ("cudaErrorLaunchFailure: unspecified launch failure", Trouble.BROKEN),
        ("CUDNN_FE failure 11: CUDNN_BACKEND_API_FAILED", Trouble.ERROR),
    ],
    ids=["kernel", "graph", "type", "memory", "cupy memory", "access", "launch", "other"],
)
def test_error_texts_are_sorted(text: str, trouble: Trouble) -> None:
    """Texts of ONNX Runtime, CuPy and CUDA name the kind of trouble."""
    device = _device(ort=FakeRuntime(run_error=RuntimeError(text)))
    session = device.load(KERNEL, device.stream(), Settings())
    with pytest.raises(DeviceError) as raised:
        session.run()
    assert raised.value.refused == Refused(trouble, f"RuntimeError: {text}")

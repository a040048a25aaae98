"""The source that measures on a GPU, on a simulated one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tensat.costs.cost import Origin
from tensat.costs.cuda import (
    CudaCosts,
    CudaOptions,
    machine_of,
    open_cuda,
    setting_of,
)
from tensat.costs.roofline import Machine
from tensat.costs.source import Argument, CostSource, Signature
from tensat.costs.store import CostStore
from tensat.cuda.bench import LocalBench
from tensat.cuda.child import ChildBench
from tensat.cuda.clock import Patience
from tensat.cuda.provider import Settings
from tensat.cuda.trouble import Trouble
from tensat.errors import UsageError
from tensat.kernels.settle import LazySource
from tests.tensat.cuda.simulated import FACTS, Costs, SimulatedDevice

F = "float32"
BARE = CudaOptions(crosscheck=False)


@pytest.fixture
def store() -> Iterator[CostStore]:
    """An empty table."""
    with CostStore.in_memory() as made:
        yield made


def _source(
    store: CostStore, device: SimulatedDevice, options: CudaOptions = BARE
) -> CudaCosts:
    """Return the source over a device in this process."""
    bench = LocalBench(device, options.settings, options.patience)
    return CudaCosts(store, bench, options)


def _relu(size: int) -> Signature:
    x = Argument(F, (size,))
    return Signature("Relu", (), (x,), (x,), 21)


def _softmax(size: int) -> Signature:
    x = Argument(F, (2, size))
    return Signature("Softmax", (("axis", 1),), (x,), (x,), 21)


def _matmul(rows: int) -> Signature:
    x, w = Argument(F, (rows, 256)), Argument(F, (256, 512), True)
    return Signature("MatMul", (), (x, w), (Argument(F, (rows, 512)),), 21)


def test_it_is_a_cost_source(store: CostStore) -> None:
    """It answers in seconds, in order, duplicates looked at once, progress told."""
    told: list[tuple[int, int]] = []
    source: CostSource = _source(store, SimulatedDevice())
    asked = [_relu(64), _matmul(1), _relu(64)]
    answers = source.seconds(asked, progress=lambda *step: told.append(step))
    assert source.name == "cuda"
    assert answers[0] == answers[2]
    assert 0 < answers[0] < answers[1] < 1e-3
    assert told[-1] == (2, 2)
    assert len(store) == 2


def test_costs_are_measured_once(store: CostStore) -> None:
    """A second source on the same kind of device takes all from the store."""
    first = _source(store, SimulatedDevice())
    measured = first.costs([_relu(64), _matmul(8)])
    device = SimulatedDevice()
    second = _source(store, device)
    known = second.costs([_relu(64), _matmul(8)])
    assert known == [replace(cost, origin=Origin.KNOWN) for cost in measured]
    assert min(cost.runs for cost in known) >= 9
    assert first.counts == {Origin.MEASURED: 2}
    assert second.counts == {Origin.KNOWN: 2}
    assert device.loads == []


@pytest.mark.parametrize(
    ("facts", "settings"),
    [
        (replace(FACTS, name="Other"), Settings()),
        (replace(FACTS, compute_capability="8.0"), Settings()),
        (replace(FACTS, driver="12.0"), Settings()),
        (replace(FACTS, cuda="12.8"), Settings()),
        (replace(FACTS, onnxruntime="1.98.0"), Settings()),
        (FACTS, Settings(tf32=True)),
        (FACTS, Settings(prefer_nhwc=True)),
        (FACTS, Settings(conv_search="HEURISTIC")),
        (FACTS, Settings(level="ORT_ENABLE_ALL")),
    ],
    ids=["name", "compute", "driver", "cuda", "runtime", "tf32", "nhwc", "search", "level"],
)
def test_the_key_tells_settings_apart(facts, settings) -> None:  # type: ignore[no-untyped-def]
    """Whatever changes a kernel's time is part of the key; the number of the GPU is not."""
    assert setting_of(facts, settings) != setting_of(FACTS, Settings())
    assert setting_of(FACTS, Settings(device_id=3)) == setting_of(FACTS, Settings())


def test_the_key_is_readable() -> None:
    """The key names device, compute capability, versions and options."""
    key = setting_of(FACTS, Settings())
    assert (key.device, key.threads) == ("Simulated compute 9.9", 1)
    assert key.runtime == (
        "onnxruntime 1.99.0 CUDA 13.0 driver 13.0, "
        "tf32 off, NCHW, exhaustive, ORT_DISABLE_ALL, kernels 1"
    )


def test_an_operator_without_a_kernel_is_infinite(store: CostStore) -> None:
    """What the runtime refuses by kind costs infinity, is stored, and says why."""
    device = SimulatedDevice(refuse={"Relu": Trouble.NO_KERNEL})
    source = _source(store, device)
    (cost,) = source.costs([_relu(64)])
    assert (cost.seconds, cost.origin) == (math.inf, Origin.REFUSED)
    assert cost.note == "no kernel: Relu was refused"
    (known,) = _source(store, SimulatedDevice()).costs([_relu(64)])
    assert (known.seconds, known.origin) == (math.inf, Origin.KNOWN)


def test_the_blocked_layout_of_the_cpu_is_refused(store: CostStore) -> None:
    """Operators of the CPU's blocked layout are never loaded for a GPU."""
    x = Argument(F, (1, 16, 8, 8))
    signature = Signature("com.microsoft.nchwc:ReorderInput", (), (x,), (x,), 21)
    device = SimulatedDevice()
    (cost,) = _source(store, device).costs([signature])
    assert (cost.seconds, cost.origin) == (math.inf, Origin.REFUSED)
    assert "is a layout of the CPU" in cost.note
    assert device.loads == []


@pytest.mark.parametrize("trouble", [Trouble.NO_MEMORY, Trouble.ERROR], ids=str)
def test_trouble_that_says_nothing_is_estimated(store: CostStore, trouble: Trouble) -> None:
    """Such a cost is estimated, scaled by what was measured, and not stored."""
    device = SimulatedDevice(refuse={"Softmax": trouble})
    source = _source(store, device)
    softmax, relu = source.costs([_softmax(1000), _relu(2000)])
    assert (softmax.origin, relu.origin) == (Origin.SCALED, Origin.MEASURED)
    assert source.troubles == {trouble: 1}
    assert len(store) == 1
    device.costs = replace(device.costs, kernel=30 * device.costs.kernel)
    with CostStore.in_memory() as other:
        slower = _source(other, device).costs([_softmax(1000), _relu(2000)])
    ratio = slower[1].seconds / relu.seconds
    assert slower[0].seconds == pytest.approx(softmax.seconds * ratio)
    assert ratio > 5


def test_unsteady_measurements_are_refused(store: CostStore) -> None:
    """A spread that stays wide leaves no cost behind."""
    device = SimulatedDevice(noise=lambda run: 1.0 + run % 7)
    options = CudaOptions(patience=Patience(attempts=2), crosscheck=False)
    source = _source(store, device, options)
    (cost,) = source.costs([_matmul(64)])
    assert cost.origin is Origin.SCALED
    assert source.troubles == {Trouble.UNSTEADY: 1}
    assert len(store) == 0


def test_a_device_that_is_lost_is_not_asked_again(store: CostStore) -> None:
    """After an error that outlives its operator nothing else is loaded, ever."""
    device = SimulatedDevice(refuse={"Relu": Trouble.BROKEN})
    source = _source(store, device)
    costs = source.costs([_relu(10**6), _softmax(4)])
    assert {cost.origin for cost in costs} == {Origin.SCALED}
    source.costs([_matmul(1)])
    assert device.loads == ["Identity", "Relu"]


def test_a_deadline_is_kept(store: CostStore) -> None:
    """After the deadline nothing is timed; all costs are estimates."""
    device = SimulatedDevice()
    source = _source(store, device)
    (cost,) = source.costs([_relu(64)], deadline=time.monotonic())
    assert (cost.origin, device.loads) == (Origin.SCALED, [])


def test_each_measurement_is_saved_at_once(store: CostStore) -> None:
    """An interruption loses nothing that was measured."""

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    source = _source(store, SimulatedDevice())
    with pytest.raises(KeyboardInterrupt):
        source.costs([_relu(64), _softmax(64)], progress=stop)
    assert len(store) == 1


@pytest.mark.parametrize(
    "signature",
    [
        Signature("Input", (), (), (Argument(F, (4,)),), 21),
        Signature("Opaque", (), (Argument(F, (4,)),), (Argument(F, (4,)),), 21),
        Signature("Relu", (), (Argument(F, (0,)),), (Argument(F, (0,)),), 21),
        Signature(
            "Equal", (), (Argument("string", (4,)),) * 2, (Argument("bool", (4,)),), 21
        ),
        Signature("Relu", (), (Argument(F, (1 << 30,)),), (Argument(F, (1 << 30,)),), 21),
    ],
    ids=["input", "opaque", "empty", "strings", "too large"],
)
def test_what_cannot_be_measured_is_estimated(
    store: CostStore, signature: Signature
) -> None:
    """Nodes that are kept, empty tensors, strings and giants are never loaded."""
    device = SimulatedDevice()
    (cost,) = _source(store, device).costs([signature])
    assert (cost.origin, device.loads) == (Origin.ESTIMATED, [])
    assert cost.seconds < math.inf


def test_an_operator_on_the_cpu_is_noted(store: CostStore) -> None:
    """What falls back to the CPU is measured as a model pays it, and says so."""
    device = SimulatedDevice(host_types={"Softmax": 0})
    (cost,) = _source(store, device).costs([_softmax(64)])
    assert (cost.origin, cost.note) == (Origin.MEASURED, "runs on the CPU, with copies")


def test_an_older_opset_that_runs_on_the_device_is_taken(store: CostStore) -> None:
    """Where only an operator's newest version lacks a kernel, an older one is timed."""
    device = SimulatedDevice(host_types={"Softmax": 17})
    (cost,) = _source(store, device).costs([_softmax(64)])
    assert (cost.origin, cost.note) == (Origin.MEASURED, "timed in opset 17")
    assert device.loads == ["Identity", "Softmax", "Softmax"]


def _scale(op: str, value: float) -> Signature:
    x = Argument(F, (4, 8))
    return Signature(op, (), (x, Argument(F, (), True, value)), (x,), 21)


def test_the_value_of_a_scalar_decides_powers_only(store: CostStore) -> None:
    """Factors of any value are timed once; each exponent by itself."""
    device = SimulatedDevice()
    source = _source(store, device)
    source.costs([_scale(op, value) for op in ("Mul", "Pow") for value in (2.0, 3.0, 0.5)])
    assert sorted(device.loads) == ["Identity", "Mul", "Pow", "Pow", "Pow"]


def test_a_disagreement_is_stored_beside_the_cost(store: CostStore) -> None:
    """Where CuPy takes far less, the note of the record says so; the cost stays."""
    device = SimulatedDevice(costs=Costs(kernel=1e-5, native=0.1))
    source = _source(store, device, CudaOptions())
    relu, softmax = source.costs([_relu(64), _softmax(64)])
    assert relu.note.startswith("disagrees with CuPy: 10.0 us here, 1.0 us there")
    assert softmax.note == ""
    assert [check.signature for check in source.checks] == [_relu(64)]
    record = store.find(source.setting, [_relu(64).text()])[_relu(64).text()]
    assert (record.seconds, record.note) == (relu.seconds, relu.note)


def test_expensive_operators_come_first(store: CostStore) -> None:
    """Each kind of operator in turn, the largest of each first."""
    device = SimulatedDevice()
    _source(store, device).costs([_relu(8), _relu(10**7), _softmax(10**6)])
    assert device.loads[1:] == ["Relu", "Softmax", "Relu"]


def test_estimates_use_the_devices_peaks() -> None:
    """Bandwidth, arithmetic and cache are the device's where it tells them."""
    machine = machine_of(FACTS)
    assert (machine.dram, machine.flops, machine.near_bytes) == (1e12, 1e13, 1 << 20)
    silent = machine_of(replace(FACTS, bytes_per_second=0.0, flops=0.0))
    assert (silent.dram, silent.flops) == (Machine().dram, Machine().flops)


# ------------------------------------------------------------- in a process of its own
@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ChildBench]:
    """Make benches whose child has a simulated device; they are closed by the test."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    return partial(ChildBench, worker=SIMULATED)


SIMULATED = "tests.tensat.cuda.simulated_worker"
"""See there which operators do what."""


def _unary(op: str, size: int = 64) -> Signature:
    return replace(_relu(size), op=op)


def test_a_child_measures_the_same(
    store: CostStore, child: Callable[..., ChildBench]
) -> None:
    """Costs, notes and comparisons come over the pipe as they are made there."""
    asked = [_relu(64), _matmul(1), _scale("Pow", 2.0)]
    with child() as bench:
        source = CudaCosts(store, bench)
        found = source.costs(asked)
    with CostStore.in_memory() as other:
        local = _source(other, SimulatedDevice(), CudaOptions())
        assert found == local.costs(asked)
    assert source.setting == setting_of(FACTS, Settings())
    assert {check.signature for check in source.checks} == set(asked)


@pytest.mark.parametrize(
    ("op", "trouble"),
    [("Erf", Trouble.CRASHED), ("Tanh", Trouble.HUNG), ("Sign", Trouble.BROKEN)],
    ids=["crash", "hang", "spoiled"],
)
def test_what_ends_the_child_costs_one_measurement(
    store: CostStore, child: Callable[..., ChildBench], op: str, trouble: Trouble
) -> None:
    """Its cost is an estimate that is not stored; a new child measures the others."""
    with child(timing=2.0) as bench:
        source = CudaCosts(store, bench, BARE)
        bad, softmax, relu = source.costs([_unary(op), _softmax(64), _relu(64)])
    assert bad.origin is Origin.SCALED
    assert 0 < bad.seconds < math.inf
    assert {softmax.origin, relu.origin} == {Origin.MEASURED}
    assert source.troubles == {trouble: 1}
    assert len(store) == 2


def test_children_are_not_lost_for_ever(
    store: CostStore, child: Callable[..., ChildBench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some in a row nothing is asked any more; all else is estimated."""
    monkeypatch.setattr("tensat.cuda.child.MOST_LOST", 2)
    lost = []
    with child() as bench:
        source = CudaCosts(store, bench, BARE)
        for signature in (_unary("Erf", 1), _relu(1), _unary("Erf", 2), _unary("Erf", 3)):
            source.costs([signature])
            lost.append(bench.lost)
        (cost,) = source.costs([_softmax(64)])
    assert lost == [False, False, False, True]
    assert cost.origin is Origin.SCALED
    assert source.troubles == {Trouble.CRASHED: 3}


def test_without_a_gpu_there_is_no_source(
    store: CostStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the child says of it is the error, on one line."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    with (
        pytest.raises(UsageError, match=r"^costs of CUDA need a GPU; there is none$"),
        open_cuda(store, worker="tests.tensat.cuda.worker_without_gpu"),
    ):
        pass
    with (
        pytest.raises(UsageError, match="the GPU cannot be opened: crashed: exit status 1"),
        open_cuda(store, worker="tests.tensat.cuda.no_worker"),
    ):
        pass


# ------------------------------------------------------------------ measuring what matters
def test_bounds_are_below_what_is_measured(store: CostStore) -> None:
    """Known costs need no device; the others have a bound until they are asked for."""
    device = SimulatedDevice()
    source = _source(store, device)
    assert isinstance(source, LazySource)
    asked = [_relu(10**6), _matmul(64), _softmax(1000)]
    assert source.known(asked) == [None] * 3
    floors = [source.floor(signature) for signature in asked]
    assert device.loads == []
    measured = source.seconds(asked)
    assert all(0 < low < cost for low, cost in zip(floors, measured, strict=True))
    assert source.known(asked) == measured
    half = replace(asked[1], outputs=(Argument("float16", (64, 512)),))
    assert source.floor(half) < 0.1 * source.floor(asked[1])

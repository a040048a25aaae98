"""The procedure of timing, on a device that keeps exact time itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from onnx import TensorProto, helper

from tensat.cuda.clock import FLUSHED, CudaClock, Measured, Patience
from tensat.cuda.device import NativeProgram
from tensat.cuda.provider import Settings
from tensat.cuda.trouble import Refused, Trouble
from tensat.runtime.messages import Filling, Kernel
from tests.tensat.cuda.simulated import FACTS, Costs, SimulatedDevice

ROWS, INNER, COLUMNS, COPIES = 64, 64, 256, 8
INPUT, WEIGHTS = 4 * ROWS * INNER, 4 * INNER * COLUMNS  # bytes
COSTS = Costs()
WANTED = COSTS.kernel + WEIGHTS * COSTS.cold + INPUT * COSTS.warm / COPIES


def _kernel(op_type: str = "MatMul", copies: int = COPIES) -> Kernel:
    """Return products of one input with distinct weights, which are none of its inputs."""
    nodes = [helper.make_node(op_type, ["x", f"w{k}"], [f"y{k}"]) for k in range(copies)]
    model = helper.make_model(helper.make_graph(nodes, "kernel", [], []))
    kind = TensorProto.FLOAT
    return Kernel(
        model.SerializeToString(),
        (Filling("x", kind, (ROWS, INNER)),),
        tuple(Filling(f"w{k}", kind, (INNER, COLUMNS)) for k in range(copies)),
        tuple(Filling(f"y{k}", kind, (ROWS, COLUMNS)) for k in range(copies)),
        copies=copies,
    )


def _measured(device: SimulatedDevice, patience: Patience | None = None) -> Measured:
    answer = CudaClock(device, patience=patience).time(_kernel())
    assert isinstance(answer, Measured)
    return answer


def test_weights_are_cold_and_inputs_warm() -> None:
    """A cost holds weights from memory and inputs from L2, and not the runtime's entry."""
    assert _measured(SimulatedDevice()).seconds == pytest.approx(WANTED, rel=0.1)


def test_inputs_cost_what_they_cost_in_l2() -> None:
    """However slow the memory is, an operator on what was just computed takes the same."""
    sizes = (256, 512)
    node = helper.make_node("Relu", ["x"], ["y"])
    model = helper.make_model(helper.make_graph([node], "kernel", [], []))
    x, y = (Filling(name, TensorProto.FLOAT, sizes) for name in "xy")
    for cold in (8e-12, 8e-9):
        device = SimulatedDevice(costs=replace(COSTS, cold=cold, enter=0.0, start=0.0))
        answer = CudaClock(device).device_seconds(
            Kernel(model.SerializeToString(), (x,), (), (y,))
        )
        timed = CudaClock(device).time(Kernel(model.SerializeToString(), (x,), (), (y,)))
        assert isinstance(timed, Measured)
        assert answer == pytest.approx(COSTS.kernel + 4 * 256 * 512 * COSTS.warm)
        assert timed.seconds == pytest.approx(4 * 256 * 512 * COSTS.warm, rel=1e-3)


@pytest.mark.parametrize("enter", [0.0, 1e-5, 1e-4], ids=str)
def test_entering_the_runtime_is_subtracted(enter: float) -> None:
    """However long it takes to enter the runtime, the cost is the same."""
    device = SimulatedDevice(costs=replace(COSTS, enter=enter))
    reference = _measured(SimulatedDevice(costs=replace(COSTS, enter=0.0))).seconds
    assert _measured(device).seconds == pytest.approx(reference, rel=1e-6)


def test_first_runs_do_not_count() -> None:
    """Slow first runs neither enter the median nor cost a second attempt."""
    measured = _measured(SimulatedDevice(), Patience(budget=1e-9, least=9))
    assert measured.seconds == pytest.approx(WANTED, rel=0.1)
    assert (measured.runs, measured.spread) == (9, pytest.approx(0.0, abs=1e-9))


def test_every_flush_is_large_enough() -> None:
    """A flush writes at least twice the size of L2, as the device tells it."""
    device = SimulatedDevice(facts=replace(FACTS, l2_bytes=5 << 20))
    _measured(device)
    assert min(device.flushed) >= 2 * 5 << 20


def test_a_flush_of_one_size_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated L2 shows it when too little is flushed: this test is no tautology."""
    monkeypatch.setattr("tensat.cuda.clock.FLUSHED", 1)
    assert FLUSHED == 2
    assert _measured(SimulatedDevice()).seconds < 0.8 * WANTED


def test_work_and_events_share_one_stream() -> None:
    """All sessions and events of a clock use the one stream that it makes."""
    device = SimulatedDevice()
    clock = CudaClock(device)
    first, again = clock.time(_kernel()), clock.time(_kernel())
    assert isinstance(first, Measured)
    assert first == again
    assert len(device.streams) == 1


def test_starts_that_take_longer_than_kernels_are_the_cost() -> None:
    """Where the host starts kernels more slowly than they run, a model pays for that."""
    start = 10 * WANTED
    measured = _measured(SimulatedDevice(costs=replace(COSTS, start=start)))
    assert measured.seconds == pytest.approx(start * (COPIES - 1) / COPIES, rel=0.1)


@pytest.mark.parametrize("start", [0.0, 1e-5, 1e-3], ids=str)
def test_the_devices_part_has_no_starts(start: float) -> None:
    """However slowly the host starts kernels, the device's part is the same."""
    device = SimulatedDevice(costs=replace(COSTS, start=start))
    seconds = CudaClock(device).device_seconds(_kernel())
    assert seconds == pytest.approx(WANTED, rel=1e-6)


@pytest.mark.parametrize("start", [0.0, 1e-3], ids=str)
def test_another_librarys_part_has_no_starts(start: float) -> None:
    """Calls of another library are timed in the same way."""
    weights = [Filling(f"w{k}", TensorProto.FLOAT, (INNER, COLUMNS)) for k in range(COPIES)]
    x = Filling("x", TensorProto.FLOAT, (ROWS, INNER))
    program = NativeProgram(
        lambda module, arrays: None, tuple((x, w) for w in weights), frozenset("x")
    )
    device = SimulatedDevice(costs=replace(COSTS, start=start))
    assert CudaClock(device).native_seconds(program) == pytest.approx(WANTED, rel=1e-6)


def _wild_until(runs: int) -> Callable[[int], float]:
    return lambda run: 1.0 + (run % 5 if run < runs else 0)


def test_a_wide_spread_is_tried_again() -> None:
    """Runs that lie far apart are thrown away, and twice as many are made."""
    patience = Patience(budget=1e-9, least=9, attempts=3)
    measured = _measured(SimulatedDevice(noise=_wild_until(14)), patience)
    assert measured.seconds == pytest.approx(WANTED, rel=0.1)
    assert measured.runs == 18


def test_single_slow_runs_do_not_count() -> None:
    """One run in ten that is interrupted changes neither the cost nor its spread."""
    device = SimulatedDevice(noise=lambda run: 9.0 if run % 10 == 0 else 1.0)
    assert _measured(device) == _measured(SimulatedDevice())


def test_the_spread_is_that_of_the_kernel() -> None:
    """A kernel that varies is not believed because entering the runtime takes longer."""
    costs = replace(COSTS, enter=2e-4)
    device = SimulatedDevice(costs=costs, noise=lambda run: 1.0 + 0.4 * (run % 2))
    answer = CudaClock(device).time(_kernel())
    assert isinstance(answer, Refused)
    assert answer.trouble is Trouble.UNSTEADY


def test_a_spread_that_stays_wide_is_refused() -> None:
    """After the last attempt there is no time, and the text has the figures."""
    device = SimulatedDevice(noise=_wild_until(10**9))
    answer = CudaClock(device, patience=Patience(attempts=2)).time(_kernel())
    assert isinstance(answer, Refused)
    assert answer.trouble is Trouble.UNSTEADY
    assert "in the best of 2 attempts; at most 10% is believed" in answer.text
    assert device.opened == 0


def test_a_spread_below_the_resolution_of_events_is_no_spread() -> None:
    """Kernels shorter than events can tell apart are not refused for a step's jump."""
    tiny = Costs(enter=0.0, kernel=2e-7, warm=0.0, cold=0.0, start=0.0)
    device = SimulatedDevice(costs=tiny, noise=lambda run: 1.0 + 0.2 * (run % 2))
    answer = CudaClock(device).time(_kernel(copies=1))
    assert isinstance(answer, Measured)
    assert answer.spread > 0.1


def test_an_unsteady_entry_refuses_nothing() -> None:
    """The empty model may vary widely: its median is subtracted all the same."""
    device = SimulatedDevice(empty_noise=lambda run: (1.0, 1.0, 9.0, 0.1, 1.0)[run % 5])
    assert _measured(device) == _measured(SimulatedDevice())


def test_the_empty_model_is_timed_once() -> None:
    """What it takes to enter the runtime is measured once for all kernels."""
    device = SimulatedDevice()
    clock = CudaClock(device)
    for _ in range(3):
        clock.time(_kernel())
    assert device.loads == ["Identity", "MatMul", "MatMul", "MatMul"]
    assert device.opened == 0


@pytest.mark.parametrize("trouble", list(Trouble), ids=str)
def test_trouble_is_answered(trouble: Trouble) -> None:
    """What the device refuses comes back as it said it; later kernels are not affected."""
    device = SimulatedDevice(refuse={"Conv": trouble})
    clock = CudaClock(device)
    assert clock.time(_kernel("Conv")) == Refused(trouble, "Conv was refused")
    assert clock.device_seconds(_kernel("Conv")) == Refused(trouble, "Conv was refused")
    assert isinstance(clock.time(_kernel()), Measured)


def test_settings_reach_every_session() -> None:
    """The empty model runs under the same options as the kernels."""
    device = SimulatedDevice(host_types={"MatMul": 0})
    settings = Settings(tf32=True)
    answer = CudaClock(device, settings).time(_kernel())
    assert device.settings == [settings, settings]
    assert isinstance(answer, Measured)
    assert answer.on_host

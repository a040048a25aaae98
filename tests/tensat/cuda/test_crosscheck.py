"""Both libraries are timed alike, and a disagreement is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensat.costs.kernel_model import kernel
from tensat.costs.source import Argument, Signature
from tensat.cuda.clock import CudaClock
from tensat.cuda.crosscheck import FACTOR, Check, crosscheck, table
from tensat.cuda.provider import Settings
from tensat.cuda.trouble import Refused, Trouble
from tests.tensat.cuda.simulated import Costs, SimulatedDevice

F = "float32"


def _matmul(rows: int = 8) -> Signature:
    x, w = Argument(F, (rows, 256)), Argument(F, (256, 512), True)
    return Signature("MatMul", (), (x, w), (Argument(F, (rows, 512)),), 21)


def _softmax() -> Signature:
    x = Argument(F, (8, 8))
    return Signature("Softmax", (("axis", 1),), (x,), (x,), 21)


def _check(
    device: SimulatedDevice, signature: Signature, settings: Settings | None = None
) -> Check | Refused | None:
    small = kernel(signature, 1e-5, 0.01, 1)
    assert small is not None
    settings = settings or Settings()
    return crosscheck(signature, small, CudaClock(device, settings), settings)


def test_equal_kernels_agree() -> None:
    """Kernels that take the same time on the device have ratio 1, however they start."""
    device = SimulatedDevice(costs=Costs(start=3e-5, enter=1e-4))
    check = _check(device, _matmul())
    assert isinstance(check, Check)
    assert check.ratio == pytest.approx(1.0, rel=0.02)
    assert (check.agrees, check.note()) == (True, "")
    assert device.opened == 0


@pytest.mark.parametrize("native", [0.02, 50.0], ids=["faster", "slower"])
def test_kernels_far_apart_disagree(native: float) -> None:
    """More than the stated factor in either direction is noted, with both times."""
    costs = Costs(kernel=1e-5, native=native, cold=0.0, warm=0.0)
    check = _check(SimulatedDevice(costs=costs), _matmul())
    assert isinstance(check, Check)
    assert check.ratio == pytest.approx(1 / native, rel=0.05)
    assert not check.agrees
    assert f"{1e6 * check.native:.1f} us there, more than 1.5 times apart" in check.note()


def test_the_factor_is_the_boundary() -> None:
    """Exactly the factor still agrees, both ways."""
    assert Check(_matmul(), FACTOR, 1.0).agrees
    assert Check(_matmul(), 1.0, FACTOR).agrees
    assert not Check(_matmul(), 1.01 * FACTOR, 1.0).agrees
    assert not Check(_matmul(), 1.0, 1.01 * FACTOR).agrees


def test_what_has_no_counterpart_is_not_compared() -> None:
    """An operator without one kernel in CuPy is not loaded at all."""
    device = SimulatedDevice()
    assert _check(device, _softmax()) is None
    assert device.loads == []


def test_products_in_tf32_are_not_compared() -> None:
    """CuPy does not round to TF32 by itself, so that products would differ rightly."""
    settings = Settings(tf32=True)
    x = Argument(F, (64,))
    relu = Signature("Relu", (), (x,), (x,), 21)
    assert _check(SimulatedDevice(), _matmul(), settings) is None
    assert isinstance(_check(SimulatedDevice(), relu, settings), Check)


def test_trouble_is_passed_on() -> None:
    """Where one of the times does not come, the reason does."""
    device = SimulatedDevice(refuse={"MatMul": Trouble.NO_MEMORY})
    answer = _check(device, _matmul())
    assert answer == Refused(Trouble.NO_MEMORY, "MatMul was refused")


def test_weights_are_distinct_and_inputs_shared() -> None:
    """CuPy's calls read as many distinct weights as ONNX Runtime's copies do."""
    warm = replace(Costs(), kernel=0.0, warm=0.0)
    check = _check(SimulatedDevice(costs=warm), _matmul())
    assert isinstance(check, Check)
    weights = 4 * 256 * 512 * warm.cold
    assert check.native == pytest.approx(weights, rel=0.02)
    assert check.runtime == pytest.approx(weights, rel=0.02)


def test_the_table_has_the_worst_first() -> None:
    """One line per operator, sorted by ratio, disagreements flagged."""
    checks = [Check(_matmul(1), 1e-5, 1e-5), Check(_matmul(64), 4e-5, 1e-5)]
    head, worst, best = table(checks).splitlines()
    assert head.split() == ["operator", "runtime", "us", "CuPy", "us", "ratio"]
    assert worst.startswith("MatMul float32 64x256, 256x512  ")
    assert worst.endswith("40.00    10.00   4.00  more than 1.5 times apart")
    assert best.startswith("MatMul float32 1x256, 256x512   ")
    assert best.endswith("10.00    10.00   1.00")

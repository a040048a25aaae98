"""The measuring source measures once, keeps the result, and estimates what is left."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tensat.costs.cpu import CpuCosts, Origin
from tensat.costs.kernel_model import kernel
from tensat.costs.roofline import Roofline
from tensat.costs.source import Argument, Signature
from tensat.costs.store import CostStore
from tensat.runtime import Failure, FailureKind, Kernel, Runtime, Timing

F = "float32"


class FakeRuntime(Runtime):
    """Answers every kernel with the next of some prepared answers."""

    def __init__(self, *answers: Timing | Failure) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked = 0

    def version(self, timeout: float | None = None) -> str | Failure:
        """Return a version without starting anything."""
        return "1.0"

    def time(self, kernel: Kernel, timeout: float | None = None) -> Timing | Failure:
        """Return the next answer, the last one again and again."""
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def store() -> Iterator[CostStore]:
    """An empty table."""
    with CostStore.in_memory() as made:
        yield made


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """A real child."""
    with Runtime() as made:
        yield made


def _relu(size: int) -> Signature:
    return Signature("Relu", (), (Argument(F, (size,)),), (Argument(F, (size,)),), 17)


def _scale(value: float) -> Signature:
    x = Argument(F, (4, 8))
    return Signature("Mul", (), (x, Argument(F, (), True, value)), (x,), 17)


def _matmul(rows: int, inner: int, columns: int) -> Signature:
    x, w = Argument(F, (rows, inner)), Argument(F, (inner, columns), True)
    return Signature("MatMul", (), (x, w), (Argument(F, (rows, columns)),), 17)


def _gather(rows: int) -> Signature:
    table, index = Argument(F, (rows, 4), True), Argument("int64", (3,))
    out = Argument(F, (3, 4))
    return Signature("Gather", (("axis", 0),), (table, index), (out,), 17)


def _reshape(rows: int) -> Signature:
    x, y = Argument(F, (rows, 6)), Argument(F, (6 * rows,))
    return Signature("Reshape", (("shape", (6 * rows,)),), (x,), (y,), 17)


FAST = Timing(2e-6, 0.01, 50)


def test_equal_signatures_are_timed_once(store: CostStore) -> None:
    """Duplicates, other numbers in constants and views of any size share one timing."""
    runtime = FakeRuntime(FAST)
    source = CpuCosts(store, runtime)
    same = [_relu(3), _relu(3), _scale(0.1), _scale(0.2), _reshape(2), _reshape(900)]
    assert source.seconds(same) == [2e-6] * 6
    assert runtime.asked == 3
    assert len(store) == 3


def test_known_costs_are_not_timed_again(store: CostStore) -> None:
    """Another source on the same table asks its runtime nothing."""
    CpuCosts(store, FakeRuntime(FAST)).seconds([_relu(3)])
    later = FakeRuntime(Timing(9.0, 0.0, 5))
    source = CpuCosts(store, later)
    assert source.seconds([_relu(3)]) == [2e-6]
    assert later.asked == 0
    assert source.counts[Origin.KNOWN] == 1


def test_other_threads_are_another_cost(store: CostStore) -> None:
    """A cost holds for its number of threads only."""
    CpuCosts(store, FakeRuntime(FAST)).seconds([_relu(3)])
    later = FakeRuntime(Timing(1e-6, 0.0, 5))
    assert CpuCosts(store, later, threads=2).seconds([_relu(3)]) == [1e-6]


@pytest.mark.parametrize(
    ("failure", "stored"),
    [
        pytest.param(
            Failure(FailureKind.ERROR, "9 : NOT_IMPLEMENTED : no Relu(13)"),
            True,
            id="kernel",
        ),
        pytest.param(Failure(FailureKind.CRASHED, "SIGSEGV"), True, id="crash"),
        pytest.param(Failure(FailureKind.TIMED_OUT, ""), False, id="timeout"),
        pytest.param(Failure(FailureKind.ERROR, "bad values"), False, id="our values"),
    ],
)
def test_failures(store: CostStore, failure: Failure, stored: bool) -> None:
    """What cannot run costs infinity; what merely did not run this time is estimated."""
    source = CpuCosts(store, FakeRuntime(failure))
    cost = source.costs([_relu(3)])[0]
    assert math.isinf(cost.seconds) is stored
    assert len(store) == int(stored)
    assert cost.origin is (Origin.REFUSED if stored else Origin.SCALED)


def test_an_operator_newer_than_the_opset_costs_infinity(store: CostStore) -> None:
    """Erf exists from opset 9 on."""
    x = Argument(F, (4,))
    asked = [Signature("Erf", (), (x,), (x,), 8)]
    cost = CpuCosts(store, FakeRuntime(FAST)).costs(asked)[0]
    assert math.isinf(cost.seconds)
    assert cost.note == "Erf cannot be written in opset 8"


def test_the_rest_is_estimated_after_the_deadline(store: CostStore) -> None:
    """Nothing is timed, known costs of the same operator scale the estimate."""
    signatures = [_relu(size) for size in (1000, 50_000, 10_000_000)]
    estimates = Roofline().seconds(signatures)
    timings = (Timing(3 * estimates[1], 0.0, 5), Timing(3 * estimates[0], 0.0, 5))
    CpuCosts(store, FakeRuntime(*timings)).seconds(signatures[:2])
    late = FakeRuntime(FAST)
    source = CpuCosts(store, late)
    costs = source.seconds(signatures, deadline=time.monotonic() - 1)
    assert costs == pytest.approx([3 * estimate for estimate in estimates])
    assert late.asked == 0
    assert source.counts[Origin.SCALED] == 1


def test_opaque_nodes_and_strings_are_estimated(store: CostStore) -> None:
    """They are never timed and never stored."""
    text = Argument("string", (4,))
    runtime = FakeRuntime(FAST)
    signatures = [
        replace(_relu(3), op="Opaque"),
        Signature("Reshape", (("shape", (4,)),), (text,), (text,), 17),
        Signature("Relu", (), (Argument(F, (0,)),), (Argument(F, (0,)),), 17),
    ]
    assert all(0 < s < 1e-4 for s in CpuCosts(store, runtime).seconds(signatures))
    assert len(store) == 0


@pytest.mark.parametrize(
    "signature",
    [
        pytest.param(_relu(64), id="elementwise"),
        pytest.param(_matmul(1, 512, 512), id="weights"),
        pytest.param(_gather(7), id="indices"),
        pytest.param(_reshape(5), id="view"),
        pytest.param(
            Signature(
                "Split",
                (("axis", 1), ("parts", (2, 6))),
                (Argument(F, (4, 8)),),
                (Argument(F, (4, 2)), Argument(F, (4, 6))),
                17,
            ),
            id="two outputs",
        ),
        pytest.param(
            Signature(
                "Clip",
                (("max", 6.0), ("min", 0.0)),
                (Argument("float16", (4, 8)),),
                (Argument("float16", (4, 8)),),
                17,
            ),
            id="parameters as inputs",
        ),
        pytest.param(
            Signature(
                "Equal",
                (),
                (Argument("int64", (4,)), Argument("int64", (4,))),
                (Argument("bool", (4,)),),
                17,
            ),
            id="integers",
        ),
    ],
)
def test_real_kernels_are_timed(
    store: CostStore, runtime: Runtime, signature: Signature
) -> None:
    """The single-operator model is one that the runtime runs."""
    cost = CpuCosts(store, runtime, budget=0.0).costs([signature])[0]
    assert cost.origin is Origin.MEASURED, cost.note
    assert 0 < cost.seconds < 1


def test_weights_are_distinct_and_larger_than_a_cache() -> None:
    """A product bound by memory gets copies with 64 MB of weights in all."""
    made = kernel(_matmul(1, 512, 512), 55e-6, 0.01, 1)
    assert made is not None
    assert made.copies == 64
    assert len(made.constants) == 64
    assert len(made.inputs) == 1
    assert len(made.model) < 100_000


def test_copies_without_weights_have_inputs_of_their_own() -> None:
    """The runtime would merge equal nodes."""
    made = kernel(_relu(64), 1e-6, 0.01, 1)
    assert made is not None
    assert made.copies == len(made.inputs) == 8

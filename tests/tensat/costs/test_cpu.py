"""The measuring source measures once, keeps the result, and estimates what is left."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from tensat.costs.cost import Origin
from tensat.costs.cpu import CpuCosts
from tensat.costs.roofline import Roofline
from tensat.costs.source import Argument, Signature
from tensat.costs.store import CostStore
from tensat.runtime import Failure, FailureKind, Kernel, Pace, Runtime, Timing
from tests.tensat.costs.signatures import F, gather, matmul, relu

USUAL = Pace(product=1e-4, stream=1e-10)


class FakeRuntime(Runtime):
    """Answers every kernel with the next of some prepared answers."""

    def __init__(self, *answers: Timing | Failure) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked = 0
        self.looks = 0

    def version(self, timeout: float | None = None) -> str | Failure:
        """Return a version without starting anything."""
        return "1.0"

    def best(
        self, threads: int, known: Mapping[str, float], timeout: float | None = None
    ) -> dict[str, float] | Failure:
        """Return that nothing better was seen."""
        return dict(known)

    def paces(
        self, threads: int, seconds: float, between: int, timeout: float | None = None
    ) -> list[Pace] | Failure:
        """Return a machine that is undisturbed at first, and later a slow one."""
        self.looks += 1
        return [USUAL if self.looks == 1 else Pace(9.0, 9.0)] * 9

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


def _scale(value: float) -> Signature:
    x = Argument(F, (4, 8))
    return Signature("Mul", (), (x, Argument(F, (), True, value)), (x,), 17)


def _reshape(rows: int) -> Signature:
    x, y = Argument(F, (rows, 6)), Argument(F, (6 * rows,))
    return Signature("Reshape", (("shape", (6 * rows,)),), (x,), (y,), 17)


FAST = Timing(2e-6, 0.01, 50)


def test_equal_signatures_are_timed_once(store: CostStore) -> None:
    """Duplicates, other numbers in constants and views of any size share one timing."""
    runtime = FakeRuntime(FAST)
    source = CpuCosts(store, runtime)
    same = [relu(3), relu(3), _scale(0.1), _scale(0.2), _reshape(2), _reshape(900)]
    assert source.seconds(same) == [2e-6] * 6
    assert runtime.asked == 3
    assert len(store) == 3


def test_known_costs_are_not_timed_again(store: CostStore) -> None:
    """Another source on the same table asks its runtime nothing."""
    CpuCosts(store, FakeRuntime(FAST)).seconds([relu(3)])
    later = FakeRuntime(Timing(9.0, 0.0, 5))
    source = CpuCosts(store, later)
    assert source.seconds([relu(3)]) == [2e-6]
    assert later.asked == 0
    assert source.counts[Origin.KNOWN] == 1


def test_other_threads_are_another_cost(store: CostStore) -> None:
    """A cost holds for its number of threads only."""
    CpuCosts(store, FakeRuntime(FAST)).seconds([relu(3)])
    later = FakeRuntime(Timing(1e-6, 0.0, 5))
    assert CpuCosts(store, later, threads=2).seconds([relu(3)]) == [1e-6]


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
    cost = source.costs([relu(3)])[0]
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
    signatures = [relu(size) for size in (1000, 50_000, 10_000_000)]
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
        replace(relu(3), op="Opaque"),
        Signature("Reshape", (("shape", (4,)),), (text,), (text,), 17),
        Signature("Relu", (), (Argument(F, (0,)),), (Argument(F, (0,)),), 17),
    ]
    assert all(0 < s < 1e-4 for s in CpuCosts(store, runtime).seconds(signatures))
    assert len(store) == 0


@pytest.mark.parametrize(
    "signature",
    [
        pytest.param(relu(64), id="elementwise"),
        pytest.param(matmul(1, 512, 512), id="weights"),
        pytest.param(gather(7), id="indices"),
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
    assert cost.origin in (Origin.MEASURED, Origin.UNSTEADY), cost.note
    assert 0 < cost.seconds < 1


def _blocked_conv() -> Signature:
    """A convolution of the runtime's own domain, without bias, that adds a tensor."""
    x, w = Argument(F, (1, 16, 9, 9)), Argument(F, (16, 16, 3, 3), True)
    attributes = (("kernel_shape", (3, 3)), ("pads", (1, 1, 1, 1)))
    return Signature(
        "com.microsoft:FusedConv", attributes, (x, w, Argument(F, (16,), True), x), (x,), 21
    )


def test_an_operator_of_another_domain_is_timed_as_that_node(
    store: CostStore, runtime: Runtime
) -> None:
    """The runtime runs it with its attributes and all its inputs."""
    cost = CpuCosts(store, runtime, budget=0.0).costs([_blocked_conv()])[0]
    assert cost.origin in (Origin.MEASURED, Origin.UNSTEADY), cost.note
    assert 0 < cost.seconds < 1


def test_a_disturbed_measurement_is_made_again_later(store: CostStore) -> None:
    """After all others; the better second one counts and is kept."""
    answers = (Timing(9e-3, 0.9, 9), Timing(2e-6, 0.0, 9), Timing(3e-3, 0.01, 9))
    runtime = FakeRuntime(*answers)
    costs = CpuCosts(store, runtime).costs([relu(10_000_000), relu(3)])
    assert [cost.seconds for cost in costs] == [3e-3, 2e-6]
    assert {cost.origin for cost in costs} == {Origin.MEASURED}
    assert len(store) == 2


def test_the_better_of_several_measurements_counts(store: CostStore) -> None:
    """The last one is not better for being the last."""
    answers = [Timing(9e-3, 0.3, 9), Timing(8e-3, 0.2, 9), Timing(7e-3, 0.4, 9)]
    cost = CpuCosts(store, FakeRuntime(*answers)).costs([relu(3)])[0]
    assert (cost.seconds, cost.origin) == (8e-3, Origin.MEASURED)
    assert CpuCosts(store, FakeRuntime(FAST)).seconds([relu(3)]) == [8e-3]


@pytest.mark.parametrize(
    "timing",
    [
        pytest.param(Timing(9e-3, 0.9, 9), id="spread"),
        pytest.param(Timing(9e-3, 0.0, 9, pace=4.5), id="slow machine"),
    ],
)
def test_what_stays_unsteady_is_used_but_not_kept(store: CostStore, timing: Timing) -> None:
    """It is measured some times, and asked for again by the next source."""
    runtime = FakeRuntime(timing)
    cost = CpuCosts(store, runtime).costs([relu(3)])[0]
    assert (cost.seconds, cost.origin, runtime.asked) == (9e-3, Origin.UNSTEADY, 4)
    assert len(store) == 0


def test_a_spread_that_is_nothing_beside_a_small_kernel_is_no_matter(
    store: CostStore,
) -> None:
    """Half of a microsecond may well spread by half."""
    runtime = FakeRuntime(Timing(5e-7, 0.5, 9))
    cost = CpuCosts(store, runtime).costs([relu(3)])[0]
    assert (cost.origin, runtime.asked) == (Origin.MEASURED, 1)


def test_each_measurement_is_saved_at_once(store: CostStore) -> None:
    """What was measured before the runtime broke is there."""

    class Breaking(FakeRuntime):
        def time(self, kernel: Kernel, timeout: float | None = None) -> Timing | Failure:
            if self.asked == 1:
                raise KeyboardInterrupt
            return super().time(kernel, timeout)

    with pytest.raises(KeyboardInterrupt):
        CpuCosts(store, Breaking(FAST)).costs([relu(3), relu(4)])
    assert len(store) == 1


def test_spread_and_runs_are_kept(store: CostStore) -> None:
    """They come back with the known cost."""
    CpuCosts(store, FakeRuntime(Timing(2e-6, 0.02, 47))).costs([relu(3)])
    cost = CpuCosts(store, FakeRuntime(FAST)).costs([relu(3)])[0]
    assert (cost.origin, cost.spread, cost.runs) == (Origin.KNOWN, 0.02, 47)


def test_given_kernels_are_timed_as_they_are(store: CostStore) -> None:
    """A signature that does not tell what to time comes with its kernel, and is kept."""
    signature = Signature("as-is:Loop", (("digest", "1"),), (), (Argument(F, (1,)),), 17)
    mine = Kernel(b"mine", (), (), ())

    class Seeing(FakeRuntime):
        def time(self, kernel: Kernel, timeout: float | None = None) -> Timing | Failure:
            assert kernel is mine
            return super().time(kernel, timeout)

    given = {signature: mine}
    assert CpuCosts(store, Seeing(FAST)).costs([signature], given=given)[0].seconds == 2e-6
    late = FakeRuntime(Timing(9.0, 0.0, 9))
    assert CpuCosts(store, late).costs([signature], given=given)[0].seconds == 2e-6
    assert late.asked == 0


def test_dispatch_is_measured_once(store: CostStore) -> None:
    """What a node costs besides its kernel is kept, for the usual pace."""

    class Dispatching(FakeRuntime):
        def dispatch(
            self, threads: int, resident: bool, timeout: float | None = None
        ) -> tuple[float, Pace] | Failure:
            self.asked += 1
            return 4e-6, Pace(2 * USUAL.product)

    runtime = Dispatching(FAST)
    assert CpuCosts(store, runtime).dispatch() == pytest.approx(2e-6)
    assert CpuCosts(store, runtime).dispatch() == pytest.approx(2e-6)
    assert runtime.asked == 1


def test_weights_that_stay_in_the_cache_are_another_cost(store: CostStore) -> None:
    """Costs of small models are kept apart from those of large ones."""
    CpuCosts(store, FakeRuntime(FAST)).seconds([matmul(1, 256, 256)])
    small = CpuCosts(store, FakeRuntime(Timing(1e-6, 0.0, 9)), resident=True)
    assert small.seconds([matmul(1, 256, 256)]) == [1e-6]


def test_the_best_pace_is_kept(store: CostStore) -> None:
    """A later process judges the machine by the best that an earlier one saw."""

    class Paced(FakeRuntime):
        def best(
            self, threads: int, known: Mapping[str, float], timeout: float | None = None
        ) -> dict[str, float] | Failure:
            seen = {"product": 2e-4, "memory": 1e-3}
            self.told = dict(known)
            return {name: min(known.get(name, 1.0), best) for name, best in seen.items()}

    CpuCosts(store, Paced(FAST)).learn_pace()
    later = Paced(FAST)
    CpuCosts(store, later).learn_pace()
    assert later.told == {"product": 2e-4, "memory": 1e-3}


def test_costs_are_restated_for_the_usual_pace(store: CostStore) -> None:
    """Some waiting and some computing, both measured while they were slow."""
    weights = 1024 * 1024 * 4
    waiting, computing = weights * 3 * USUAL.stream, 5e-4
    at = Pace(2 * USUAL.product, 3 * USUAL.stream)
    runtime = FakeRuntime(Timing(waiting + computing, 0.01, 9, at=at))
    source = CpuCosts(store, runtime)
    product = matmul(1, 1024, 1024)
    expected = waiting / 3 + computing / 2
    assert source.seconds([product]) == pytest.approx([expected])
    assert source.restated(product, expected, at) == pytest.approx(waiting + computing)
    assert source.restated(product, math.inf, at) == math.inf


def test_the_usual_pace_is_that_of_the_first_look(store: CostStore) -> None:
    """Later sources, and later looks at a slower machine, do not change it."""
    runtime = FakeRuntime(FAST)
    assert CpuCosts(store, runtime).usual() == USUAL
    assert CpuCosts(store, runtime).usual() == USUAL
    assert runtime.looks == 1


def test_close_costs_are_measured_again_in_turn(store: CostStore) -> None:
    """The mean by runs is kept; a disturbed repetition does not count."""
    answers = [Timing(2e-6, 0.01, 10), Timing(8e-6, 0.02, 10), Timing(5e-6, 0.03, 20)]
    disturbed = Timing(9e-3, 0.9, 10)
    runtime = FakeRuntime(*answers, disturbed)
    source = CpuCosts(store, runtime)
    assert source.seconds([relu(3), relu(4)]) == [8e-6, 2e-6]
    refined = source.refine([relu(3), relu(3), relu(4)], 1)
    assert [cost.seconds for cost in refined] == pytest.approx([6e-6, 6e-6, 2e-6])
    assert runtime.asked == 4
    later = CpuCosts(store, FakeRuntime(FAST)).seconds([relu(3), relu(4)])
    assert later == pytest.approx([6e-6, 2e-6])


def test_what_cannot_be_measured_is_not_refined(store: CostStore) -> None:
    """Text is estimated, and stays so."""
    text = Argument("string", (4,))
    runtime = FakeRuntime(FAST)
    asked = [Signature("Reshape", (("shape", (4,)),), (text,), (text,), 17)]
    source = CpuCosts(store, runtime)
    assert [cost.seconds for cost in source.refine(asked, 2)] == source.seconds(asked)
    assert runtime.asked == 0

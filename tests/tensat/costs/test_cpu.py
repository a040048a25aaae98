"""The measuring source measures once, keeps the result, and estimates what is left."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import onnx
import pytest

from tensat.costs.cost import Origin
from tensat.costs.cpu import CpuCosts
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

    def best(
        self, threads: int, known: Mapping[str, float], timeout: float | None = None
    ) -> dict[str, float] | Failure:
        """Return that nothing better was seen."""
        return dict(known)

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
    costs = CpuCosts(store, runtime).costs([_relu(10_000_000), _relu(3)])
    assert [cost.seconds for cost in costs] == [3e-3, 2e-6]
    assert {cost.origin for cost in costs} == {Origin.MEASURED}
    assert len(store) == 2


def test_the_better_of_several_measurements_counts(store: CostStore) -> None:
    """The last one is not better for being the last."""
    answers = [Timing(9e-3, 0.3, 9), Timing(8e-3, 0.2, 9), Timing(7e-3, 0.4, 9)]
    cost = CpuCosts(store, FakeRuntime(*answers)).costs([_relu(3)])[0]
    assert (cost.seconds, cost.origin) == (8e-3, Origin.MEASURED)
    assert CpuCosts(store, FakeRuntime(FAST)).seconds([_relu(3)]) == [8e-3]


@pytest.mark.parametrize(
    "timing",
    [
        pytest.param(Timing(9e-3, 0.9, 9), id="spread"),
        pytest.param(Timing(9e-3, 0.0, 9, pace=1.9), id="slow machine"),
    ],
)
def test_what_stays_unsteady_is_used_but_not_kept(store: CostStore, timing: Timing) -> None:
    """It is measured some times, and asked for again by the next source."""
    runtime = FakeRuntime(timing)
    cost = CpuCosts(store, runtime).costs([_relu(3)])[0]
    assert (cost.seconds, cost.origin, runtime.asked) == (9e-3, Origin.UNSTEADY, 4)
    assert len(store) == 0


def test_a_spread_that_is_nothing_beside_a_small_kernel_is_no_matter(
    store: CostStore,
) -> None:
    """Half of a microsecond may well spread by half."""
    runtime = FakeRuntime(Timing(5e-7, 0.5, 9))
    cost = CpuCosts(store, runtime).costs([_relu(3)])[0]
    assert (cost.origin, runtime.asked) == (Origin.MEASURED, 1)


def test_each_measurement_is_saved_at_once(store: CostStore) -> None:
    """What was measured before the runtime broke is there."""

    class Breaking(FakeRuntime):
        def time(self, kernel: Kernel, timeout: float | None = None) -> Timing | Failure:
            if self.asked == 1:
                raise KeyboardInterrupt
            return super().time(kernel, timeout)

    with pytest.raises(KeyboardInterrupt):
        CpuCosts(store, Breaking(FAST)).costs([_relu(3), _relu(4)])
    assert len(store) == 1


def test_spread_and_runs_are_kept(store: CostStore) -> None:
    """They come back with the known cost."""
    CpuCosts(store, FakeRuntime(Timing(2e-6, 0.02, 47))).costs([_relu(3)])
    cost = CpuCosts(store, FakeRuntime(FAST)).costs([_relu(3)])[0]
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
    """What a node costs besides its kernel is kept like any other cost."""

    class Dispatching(FakeRuntime):
        def dispatch(
            self, threads: int, resident: bool, timeout: float | None = None
        ) -> float | Failure:
            self.asked += 1
            return 2e-6

    runtime = Dispatching(FAST)
    assert CpuCosts(store, runtime).dispatch() == 2e-6
    assert CpuCosts(store, runtime).dispatch() == 2e-6
    assert runtime.asked == 1


def test_weights_that_stay_in_the_cache_are_another_cost(store: CostStore) -> None:
    """Costs of small models are kept apart from those of large ones."""
    CpuCosts(store, FakeRuntime(FAST)).seconds([_matmul(1, 256, 256)])
    small = CpuCosts(store, FakeRuntime(Timing(1e-6, 0.0, 9)), resident=True)
    assert small.seconds([_matmul(1, 256, 256)]) == [1e-6]


def test_weights_are_distinct_and_larger_than_a_cache() -> None:
    """A product bound by memory gets copies with 64 MB of weights in all."""
    made = kernel(_matmul(1, 512, 512), 55e-6, 0.01, 1)
    assert made is not None
    assert made.copies == 64
    assert len(made.constants) == 64
    assert len(made.inputs) == 1
    assert len(made.model) < 100_000


@pytest.mark.parametrize(("columns", "copies"), [(64, 8), (256, 2), (2048, 1)])
def test_weights_of_small_models_stay_in_the_cache(columns: int, copies: int) -> None:
    """Those of all copies together fit a core's own cache, where they can."""
    made = kernel(_matmul(1, 512, columns), 55e-6, 0.01, 1, resident=True)
    assert made is not None
    assert made.copies == copies == len(made.constants)


def test_copies_feed_one_another_where_they_can() -> None:
    """So the runtime computes in place, and only the last result is kept."""
    made = kernel(_relu(64), 1e-6, 0.01, 1)
    assert made is not None
    graph = onnx.load_model_from_string(made.model).graph
    assert made.copies == len(graph.node) == 8
    assert [node.input[0] for node in graph.node[1:]] == [
        node.output[0] for node in graph.node[:-1]
    ]
    assert [filling.name for filling in made.outputs] == [graph.node[-1].output[0]]


def test_copies_of_another_type_read_the_same_input() -> None:
    """A Gather's rows are not its table."""
    made = kernel(_gather(7), 1e-6, 0.01, 1)
    assert made is not None
    graph = onnx.load_model_from_string(made.model).graph
    assert {node.input[1] for node in graph.node} == {made.inputs[0].name}


def test_an_expensive_kernel_is_not_repeated() -> None:
    """One run of 64 ms is enough."""
    made = kernel(_relu(64), 64e-3, 0.01, 1)
    assert made is not None
    assert made.copies == 1


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

"""The yardsticks are models that the runtime runs, of the operators that they say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import onnx
import pytest

from tensat.runtime import Demand, Failure, Kernel, Runtime
from tensat.runtime.yardsticks import (
    KINDS,
    STREAMED,
    assorted,
    nothing,
    product,
    stream,
    uniform,
)


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """A real child."""
    with Runtime() as made:
        yield made


def _types(kernel: Kernel) -> list[str]:
    graph = onnx.load_model_from_string(kernel.model).graph
    return [node.op_type for node in graph.node]


def test_assorted_operators_come_in_turn() -> None:
    """Each kind once, then again; no kind stands beside itself."""
    found = _types(assorted(2 * KINDS, 1))
    assert found[:KINDS] == found[KINDS:]
    assert len(set(found)) == KINDS


def test_uniform_operators_are_one_kind_of_these() -> None:
    """All kinds together are the assorted ones."""
    kinds = [_types(uniform(place, 3, 1)) for place in range(KINDS)]
    assert all(len(found) == 3 and len(set(found)) == 1 for found in kinds)
    assert [found[0] for found in kinds] == _types(assorted(KINDS, 1))


@pytest.mark.parametrize(
    "kernel",
    [nothing(1), product(1), stream(1), assorted(KINDS, 1), uniform(0, 2, 1)],
    ids=["nothing", "product", "stream", "assorted", "uniform"],
)
def test_the_runtime_runs_them(runtime: Runtime, kernel: Kernel) -> None:
    """They can be timed like any kernel."""
    timing = runtime.time(kernel)
    assert not isinstance(timing, Failure), timing
    assert timing.seconds > 0
    assert timing.pace >= 1


def test_a_run_of_nothing_takes_time(runtime: Runtime) -> None:
    """That is what starting a run costs."""
    overhead = runtime.overhead(1)
    assert not isinstance(overhead, Failure), overhead
    assert 0 < overhead < 1


@pytest.mark.parametrize("resident", [True, False], ids=["in cache", "flooded"])
def test_dispatch_is_a_time(runtime: Runtime, resident: bool) -> None:
    """It is never negative, whatever the clock says; the pace comes with it."""
    found = runtime.dispatch(1, resident)
    assert not isinstance(found, Failure), found
    seconds, pace = found
    assert 0 <= seconds < 1
    assert pace.product > 0


def test_the_pace_is_that_of_the_best(runtime: Runtime) -> None:
    """A better one that others saw makes this machine slow."""
    best = runtime.best(1, {})
    assert not isinstance(best, Failure), best
    assert sorted(best) == ["memory", "product"]
    better = {name: seconds / 100 for name, seconds in best.items()}
    assert runtime.best(1, better) == better
    timing = runtime.time(product(1))
    assert not isinstance(timing, Failure), timing
    assert timing.pace > 10


def test_the_stream_reads_what_it_says() -> None:
    """Its weights, all different tensors, are that many bytes."""
    kernel = stream(1)
    assert len({each.name for each in kernel.constants}) == len(kernel.constants)
    assert sum(4 * each.dims[0] * each.dims[1] for each in kernel.constants) == STREAMED


def test_both_yardsticks_are_looked_at(runtime: Runtime) -> None:
    """Nine times at least, though no time is given."""
    found = runtime.paces(1, 0.0, 1 << 20)
    assert not isinstance(found, Failure), found
    assert len(found) >= 9
    assert all(0 < each.product < 1 and 0 < each.stream < 1 for each in found)


@pytest.mark.parametrize("streamed", [0, 1 << 20], ids=["no weights", "weights"])
def test_a_timing_knows_the_pace_it_was_made_at(runtime: Runtime, streamed: int) -> None:
    """The stream is looked at only beside kernels that wait for it."""
    kernel = replace(product(1), demand=Demand(streamed))
    timing = runtime.time(kernel)
    assert not isinstance(timing, Failure), timing
    assert timing.at is not None
    assert timing.at.product > 0
    assert (timing.at.stream > 0) is (streamed > 0)

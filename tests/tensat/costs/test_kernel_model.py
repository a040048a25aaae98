"""A kernel to time: copies of one operator, as many as its cost and its weights ask for."""

from __future__ import annotations

import onnx
import pytest

from tensat.costs.kernel_model import kernel
from tensat.costs.source import Argument, Signature
from tests.tensat.costs.signatures import F, gather, matmul, relu


def test_weights_are_distinct_and_larger_than_a_cache() -> None:
    """A product bound by memory gets copies with 64 MB of weights in all."""
    made = kernel(matmul(1, 512, 512), 55e-6, 0.01, 1)
    assert made is not None
    assert made.copies == 64
    assert len(made.constants) == 64
    assert len(made.inputs) == 1
    assert len(made.model) < 100_000


@pytest.mark.parametrize(("columns", "copies"), [(64, 8), (256, 2), (2048, 1)])
def test_weights_of_small_models_stay_in_the_cache(columns: int, copies: int) -> None:
    """Those of all copies together fit a core's own cache, where they can."""
    made = kernel(matmul(1, 512, columns), 55e-6, 0.01, 1, resident=True)
    assert made is not None
    assert made.copies == copies == len(made.constants)


def test_copies_feed_one_another_where_they_can() -> None:
    """So the runtime computes in place, and only the last result is kept."""
    made = kernel(relu(64), 1e-6, 0.01, 1)
    assert made is not None
    graph = onnx.load_model_from_string(made.model).graph
    assert made.copies == len(graph.node) == 8
    assert [node.input[0] for node in graph.node[1:]] == [
        node.output[0] for node in graph.node[:-1]
    ]
    assert [filling.name for filling in made.outputs] == [graph.node[-1].output[0]]


def test_copies_of_another_type_read_the_same_input() -> None:
    """A Gather's rows are not its table."""
    made = kernel(gather(7), 1e-6, 0.01, 1)
    assert made is not None
    graph = onnx.load_model_from_string(made.model).graph
    assert {node.input[1] for node in graph.node} == {made.inputs[0].name}


def test_an_expensive_kernel_is_not_repeated() -> None:
    """One run of 64 ms is enough."""
    made = kernel(relu(64), 64e-3, 0.01, 1)
    assert made is not None
    assert made.copies == 1


def test_copies_of_a_power_do_not_feed_one_another() -> None:
    """Squared eight times, numbers below 1 would be denormal."""
    x, power = Argument(F, (4, 8)), Argument(F, (), True, 2.0)
    made = kernel(Signature("Pow", (), (x, power), (x,), 17), 1e-6, 0.01, 1)
    assert made is not None
    graph = onnx.load_model_from_string(made.model).graph
    assert made.copies == len(graph.node) == 8
    assert {node.input[0] for node in graph.node} == {made.inputs[0].name}

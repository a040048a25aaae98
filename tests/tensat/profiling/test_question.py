"""Each kind of node is asked for in the way that tells what it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto, helper

from rulesets.ops import OPERATORS, complete
from tensat.costs.cost import Origin
from tensat.costs.cpu import CpuCosts
from tensat.costs.source import PRICED_OPSET, Argument, Signature
from tensat.costs.store import CostStore
from tensat.profiling.as_is import AsIs
from tensat.profiling.question import AS_IS, question
from tensat.profiling.running_graph import RunningGraph, running_graph
from tensat.runtime import Feeds, Level, Program, Runtime
from tests.tensat.profiling.graphs import Arrays, branch, random, save, value

F = "float32"
X = {"x": random(2, 8)}


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """A real child."""
    with Runtime() as made:
        yield made


def _graph(
    runtime: Runtime,
    folder: Path,
    nodes: Sequence[NodeProto],
    weights: Arrays | None = None,
    feeds: Feeds = X,
) -> RunningGraph:
    """Return the running graph of a model with float inputs and one output y."""
    inputs = [value(name, *array.shape) for name, array in feeds.items()]
    output = helper.make_empty_tensor_value_info("y")
    path = save(folder, nodes, (inputs, [output]), weights or {})
    return running_graph(runtime, Program(str(path)), feeds, folder / "running.onnx")


def _asked(graph: RunningGraph) -> list[Signature]:
    found = [question(graph, node) for node in graph.nodes]
    assert None not in found
    return [each for each in found if each is not None]


def test_a_standard_node_is_a_canonical_operator(runtime: Runtime, tmp_path: Path) -> None:
    """The signature is the one that the optimizer asks for, whatever the opset."""
    node = helper.make_node("Softmax", ["x"], ["y"], axis=-1)
    x = Argument(F, (2, 8))
    attributes = complete(OPERATORS["Softmax"], {"axis": 1})
    pairs = tuple(sorted(attributes.items()))
    wanted = Signature("Softmax", pairs, (x,), (x,), PRICED_OPSET)
    assert _asked(_graph(runtime, tmp_path, [node])) == [wanted]


def test_a_shape_that_is_computed_is_known(runtime: Runtime, tmp_path: Path) -> None:
    """A Reshape to what another node computes is a view like any other."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["n"]),
        helper.make_node("Shape", ["n"], ["s"]),
        helper.make_node("Reshape", ["n", "s"], ["y"]),
    ]
    operators = [each.op for each in _asked(_graph(runtime, tmp_path, nodes))]
    assert operators[-1] == "Reshape"


def test_a_node_of_the_runtime_is_asked_for_as_it_is(
    runtime: Runtime, tmp_path: Path
) -> None:
    """With its attributes, and inputs that are not there."""
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"]),
        helper.make_node("Mul", ["x", "s"], ["y"]),
    ]
    (asked,) = _asked(_graph(runtime, tmp_path, nodes))
    assert asked.op == "com.microsoft:QuickGelu"
    assert dict(asked.attributes) == {"alpha": 1.0}
    assert asked.inputs == (Argument(F, (2, 8)),)


def _if(then: str) -> NodeProto:
    return helper.make_node(
        "If", ["c"], ["y"],
        then_branch=branch("t", then, "v"), else_branch=branch("e", "Mul", "v"),
    )  # fmt: skip


def _conditional(then: str) -> list[NodeProto]:
    """Return nodes that take a branch, and only the run says which."""
    return [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
        helper.make_node("Cast", ["m"], ["c"], to=9),
        _if(then),
    ]


LSTM = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=3)
SEQUENCE = {"x": random(4, 1, 8)}
CELLS = {"w": random(1, 12, 8), "r": random(1, 12, 3)}
TINY = np.full((8, 8), 1e-40, np.float32)
MASKED = {"x": np.where(random(4, 8) > 0, np.float32(-1e9), np.float32(0.5))}


@pytest.mark.parametrize(
    ("nodes", "weights", "feeds", "operator"),
    [
        pytest.param(_conditional("Add"), {"v": random(2, 8)}, X, "If", id="control flow"),
        pytest.param([LSTM], CELLS, SEQUENCE, "LSTM", id="recurrent"),
        pytest.param(
            [helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": TINY}, X, "MatMul",
            id="denormal weights",
        ),
        pytest.param(
            [helper.make_node("Softmax", ["x"], ["y"], axis=-1)], {}, MASKED, "Softmax",
            id="masked scores",
        ),
        pytest.param(
            [helper.make_node("NonZero", ["x"], ["y"])], {}, X, "NonZero", id="data",
        ),
    ],
)  # fmt: skip
def test_what_depends_on_more_is_timed_as_it_is(
    runtime: Runtime,
    tmp_path: Path,
    nodes: list[NodeProto],
    weights: Arrays,
    feeds: Feeds,
    operator: str,
) -> None:
    """With the values of a run, in a model that the runtime runs."""
    graph = _graph(runtime, tmp_path, nodes, weights, feeds)
    asked = _asked(graph)
    own = {
        signature: node
        for signature, node in zip(asked, graph.nodes, strict=True)
        if signature.op == AS_IS + operator
    }
    assert len(own) == 1
    given = AsIs(graph, own, {}, runtime, feeds, 1)
    assert list(given) == list(own)
    assert len(given) == 1
    with CostStore.in_memory() as store:
        costs = CpuCosts(store, runtime).costs(list(own), given=given)
    assert costs[0].origin in (Origin.MEASURED, Origin.UNSTEADY), costs[0].note
    assert costs[0].seconds > 0


def test_what_is_not_the_same_is_asked_for_apart(runtime: Runtime, tmp_path: Path) -> None:
    """Other branches and other constants give other digests, equal models equal ones."""
    found = []
    for place, (then, seed) in enumerate([("Add", 0), ("Add", 0), ("Sub", 0), ("Add", 1)]):
        folder = tmp_path / str(place)
        folder.mkdir()
        weights = {"v": random(2, 8, seed=seed)}
        asked = _asked(_graph(runtime, folder, _conditional(then), weights))
        found.append(asked[-1])
    assert found[0] == found[1]
    assert len(set(found)) == 3


def test_what_is_no_tensor_is_not_asked_for(runtime: Runtime, tmp_path: Path) -> None:
    """A sequence has no size."""
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
        helper.make_node("SequenceAt", ["s", "i"], ["y"]),
    ]
    graph = _graph(runtime, tmp_path, nodes, {"i": np.array(1)})
    assert [question(graph, node) for node in graph.nodes] == [None, None]


@pytest.mark.parametrize(("opset", "asked"), [(17, 18), (19, PRICED_OPSET)])
def test_an_average_pool_is_asked_for_as_the_kernel_that_it_is(
    runtime: Runtime, tmp_path: Path, opset: int, asked: int
) -> None:
    """From opset 19 on it has another one, whether it has dilations or not."""
    x = random(1, 3, 8, 8)
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3])
    output = helper.make_empty_tensor_value_info("y")
    path = save(tmp_path, [node], ([value("x", *x.shape)], [output]), {}, opset)
    program = Program(str(path), Level.EXTENDED)
    graph = running_graph(runtime, program, {"x": x}, tmp_path / "running.onnx")
    assert [(each.op, each.opset) for each in _asked(graph)] == [("AveragePool", asked)]

"""Only a valid, equal and faster candidate passes the guard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from tensat.check.guard import Reason, judge, race_of
from tensat.runtime import Runtime

FEEDS = [
    {"x": np.random.default_rng(seed).standard_normal((2, 3)).astype(np.float32)}
    for seed in (0, 1)
]


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """One child for all tests of this file."""
    with Runtime() as made:
        yield made


def _model(*nodes: NodeProto, name: str = "x", output: str = "y") -> ModelProto:
    shape = [2, 3]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        [
            helper.make_tensor("two", TensorProto.FLOAT, [], [2.0]),
            helper.make_tensor("off", TensorProto.FLOAT, [], [2.01]),
            helper.make_tensor("near", TensorProto.FLOAT, [], [2.0 + 1e-6]),
        ],
    )
    opset = [helper.make_opsetid("", 13), helper.make_opsetid("nowhere", 1)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def _node(op: str, inputs: Sequence[str], output: str = "y", **more: object) -> NodeProto:
    return helper.make_node(op, inputs, [output], **more)


ORIGINAL = _model(_node("Mul", ["x", "two"]))


def _paths(folder: Path, candidate: ModelProto, original: ModelProto) -> tuple[str, str]:
    paths = folder / "original.onnx", folder / "candidate.onnx"
    onnx.save(original, paths[0])
    onnx.save(candidate, paths[1])
    return str(paths[0]), str(paths[1])


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        pytest.param(_model(_node("Add", ["x", "x"])), Reason.UNMEASURED, id="equal"),
        pytest.param(_model(_node("Mul", ["x", "near"])), Reason.UNMEASURED, id="rounding"),
        pytest.param(_model(_node("Mul", ["x", "off"])), Reason.DIFFERENT, id="value"),
        pytest.param(_model(_node("Sqrt", ["x"])), Reason.DIFFERENT, id="NaN"),
        pytest.param(_model(_node("Sum", [])), Reason.INVALID, id="checker"),
        pytest.param(
            _model(_node("Foo", ["x"], domain="nowhere")), Reason.NOT_LOADED, id="no kernel"
        ),
        pytest.param(
            _model(_node("Add", ["q", "q"]), name="q"), Reason.INTERFACE, id="input name"
        ),
        pytest.param(
            _model(_node("Add", ["x", "x"], "z"), output="z"),
            Reason.INTERFACE,
            id="output name",
        ),
    ],
)
def test_reasons(
    runtime: Runtime, tmp_path: Path, candidate: ModelProto, reason: Reason
) -> None:
    """Each fault has a reason of its own; equal but unmeasured is accepted."""
    paths = _paths(tmp_path, candidate, ORIGINAL)
    verdict = judge(runtime, *paths, FEEDS, measure=False)
    assert verdict.reason is reason, verdict.text
    assert verdict.accepted is (reason is Reason.UNMEASURED)
    assert verdict.text


def test_a_candidate_that_fails_when_it_runs(runtime: Runtime, tmp_path: Path) -> None:
    """Loading is not enough: an index out of range shows only in a run."""
    indices = helper.make_node(
        "Constant", [], ["i"], value=helper.make_tensor("", TensorProto.INT64, [2], [0, 9])
    )
    shape = helper.make_node("Shape", ["x"], ["s"])
    sizes = helper.make_node("Gather", ["s", "i"], ["t"])
    bad = _model(indices, shape, sizes, _node("Expand", ["x", "t"]))
    paths = _paths(tmp_path, bad, ORIGINAL)
    verdict = judge(runtime, *paths, FEEDS, measure=False)
    assert verdict.reason in (Reason.NOT_RUN, Reason.NOT_LOADED), verdict.text


def test_an_original_that_does_not_run_is_said_so(runtime: Runtime, tmp_path: Path) -> None:
    """Then nothing can be compared, and the candidate is not accepted."""
    unknown = _model(_node("Foo", ["x"], domain="nowhere"))
    verdict = judge(runtime, *_paths(tmp_path, ORIGINAL, unknown), FEEDS, measure=False)
    assert verdict.reason is Reason.ORIGINAL
    assert not verdict.accepted


def test_random_outputs_are_compared_by_type_and_shape(
    runtime: Runtime, tmp_path: Path
) -> None:
    """A model whose output the original does not repeat cannot differ in values."""
    random = _model(_node("RandomNormalLike", ["x"], "r"), _node("Add", ["x", "r"]))
    verdict = judge(runtime, *_paths(tmp_path, random, random), FEEDS, measure=False)
    assert verdict.accepted, verdict.text


def test_the_race_is_reported(runtime: Runtime, tmp_path: Path) -> None:
    """Whoever wins, both latencies and the spread are there and decide."""
    paths = _paths(tmp_path, _model(_node("Add", ["x", "x"])), ORIGINAL)
    verdict = judge(runtime, *paths, FEEDS, seconds=0.1)
    assert verdict.race is not None
    assert verdict.race.original > 0
    assert verdict.race.candidate > 0
    assert verdict.accepted is verdict.race.faster
    assert verdict.reason is (Reason.FASTER if verdict.accepted else Reason.NOT_FASTER)


@pytest.mark.parametrize(
    ("first", "candidate", "second", "faster"),
    [
        pytest.param([2.0] * 9, [1.0] * 9, [2.0] * 9, True, id="clear"),
        pytest.param([1.0] * 9, [1.0] * 9, [1.0] * 9, False, id="equal"),
        pytest.param([1.0] * 9, [1.002] * 9, [1.0] * 9, False, id="slower"),
        pytest.param([1.0] * 9, [0.997] * 9, [1.0] * 9, False, id="within the clock"),
        pytest.param(
            [1.1] * 9, [0.98] * 9, [1.0] * 9, False, id="original is as far apart"
        ),
        pytest.param(
            [1, 9] * 5, [0.9, 8.1] * 5, [1, 9] * 5, True, id="shared noise cancels"
        ),
        pytest.param([1, 2] * 5, [1.9, 0.9] * 5, [1, 2] * 5, False, id="noise"),
    ],
)
def test_a_gain_counts_beyond_the_spread(
    first: list[float], candidate: list[float], second: list[float], faster: bool
) -> None:
    """The rounds' ratios decide against what the original differs from itself by."""
    assert race_of([(first, candidate, second)]).faster is faster

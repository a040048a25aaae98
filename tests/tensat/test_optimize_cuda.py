"""Results for a GPU, made from recorded costs: no GPU is needed to make them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from tensat.costs.cuda import setting_of
from tensat.costs.source import PRICED_OPSET, Argument, Signature
from tensat.costs.store import CostStore, Record, Setting
from tensat.cuda.provider import Settings
from tensat.errors import ModelError, UsageError
from tensat.model.onnx_read import read
from tensat.optimize import Result, optimize
from tensat.options import Options
from tensat.target import portable_path, target_of
from tensat.taso.measure import operator_seconds
from tests.tensat.cuda.nhwc_reference import NhwcConv
from tests.tensat.cuda.simulated import FACTS
from tests.tensat.model.onnx_models import model, node, ops, random, run, value

GPU = setting_of(FACTS, Settings())
CONV = 1e-4


def _conv(last: bool) -> Signature:
    """Return one convolution, plain or channels-last."""
    given = {"dilations": (1, 1), "group": 1, "pads": (1,) * 4, "strides": (1, 1)}
    dims, weights = ((1, 56, 56, 64), (64, 3, 3, 64)) if last else (
        (1, 64, 56, 56), (64, 64, 3, 3)
    )  # fmt: skip
    if last:
        given["kernel_shape"] = (3, 3)
    x, w = Argument("float32", dims), Argument("float32", weights, constant=True)
    name = "com.microsoft:NhwcConv" if last else "Conv"
    return Signature(name, tuple(sorted(given.items())), (x, w), (x,), PRICED_OPSET)


def _table(path: Path, last: float | None, setting: Setting = GPU) -> Options:
    """Return options with recorded costs: those of convolutions, all others scaled.

    Args:
        path: Of the table.
        last: Seconds of a channels-last convolution for one of a plain one; none if None.
        setting: Where they were measured.
    """
    records = {_conv(False).text(): Record(CONV)}
    if last is not None:
        records[_conv(True).text()] = Record(last * CONV)
    gelu = Signature("com.microsoft:Gelu", (), *[(Argument("float32", (64,)),)] * 2, 23)
    with CostStore.open(path) as store:
        store.save(setting, records | {gelu.text(): Record(1e-6)})
    return Options(cost="table", cost_table=path, target="ort-cuda")


NETWORK = model(
    [
        node("Conv", "x k", "a", pads=[1] * 4),
        node("BatchNormalization", "a s t m v", "b"), node("Relu", "b", "c"),
        node("Conv", "c l", "d", pads=[1] * 4), node("Sigmoid", "d", "e"),
        node("GlobalAveragePool", "e", "f"), node("Conv", "f g", "h"),
        node("Mul", "e h", "i"), node("Add", "i c", "j"),
        node("Concat", "j c", "p", axis=1), node("Conv", "p o", "y"),
    ],
    [value("x", ["n", 8, "h", "w"])],
    [value("y", ["n", 12, "h", "w"])],
    {
        "k": random(32, 8, 3, 3) / 8, "l": random(32, 32, 3, 3, seed=1) / 16,
        "g": random(32, 32, 1, 1, seed=2), "o": random(12, 64, 1, 1, seed=3),
        "s": random(32, seed=4), "t": random(32, seed=5), "m": random(32, seed=6),
        "v": np.abs(random(32, seed=7)) + np.float32(0.5),
    },
)  # fmt: skip
SHAPES = {"x": (1, 8, 20, 20)}


def _value(proto: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    """Return what a model computes, by ONNX's own evaluator."""
    (found,) = ReferenceEvaluator(proto, new_ops=[NhwcConv]).run(None, {"x": x})
    return np.asarray(found)


@pytest.fixture(scope="module")
def targeted(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The network for a GPU on which channels-last convolutions are fast."""
    options = _table(tmp_path_factory.mktemp("costs") / "t", 0.4)
    return optimize(NETWORK, replace(options, input_shapes=SHAPES))


@pytest.mark.parametrize("sizes", [(1, 20, 20), (3, 7, 5), (2, 1, 1)], ids=str)
def test_a_result_computes_the_same_at_all_sizes(
    targeted: Result, sizes: tuple[int, ...]
) -> None:
    """Optimized for one image of one size, right for others: sizes stay symbols."""
    assert targeted.report.improved, targeted.report.reason
    assert targeted.portable is not None
    assert "NhwcConv" in ops(targeted.model)
    x = random(sizes[0], 8, *sizes[1:], seed=9)
    (want,) = run(NETWORK, {"x": x})
    found = _value(targeted.model, x)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


def test_layout_is_chosen_for_the_whole(targeted: Result) -> None:
    """Between the first and the last convolution nothing is transposed."""
    found = Counter(ops(targeted.model))
    assert found["NhwcConv"] == 4
    assert found["Transpose"] == 2
    assert found["Conv"] == found["BatchNormalization"] == 0
    domains = {(one.domain, one.version) for one in targeted.model.opset_import}
    assert ("com.microsoft", 1) in domains


def test_weights_are_packed(targeted: Result) -> None:
    """The operator takes initializers only, with their channels last."""
    stored = {one.name: tuple(one.dims) for one in targeted.model.graph.initializer}
    convs = [one for one in targeted.model.graph.node if one.op_type == "NhwcConv"]
    shapes = {stored[one.input[1]] for one in convs}
    assert shapes == {(32, 3, 3, 8), (32, 3, 3, 32), (32, 1, 1, 32), (12, 1, 1, 64)}


def test_a_file_says_what_it_is_for(targeted: Result, tmp_path: Path) -> None:
    """With its portable form beside it, and it is not optimized again."""
    targeted.save(tmp_path / "a.onnx")
    target = target_of(targeted.ir_model)
    assert target is not None
    assert (target.name, target.layout) == ("ort-cuda", "channels-last")
    assert (target.processor, target.runtime) == ("Simulated compute 9.9", "1.99.0")
    portable = onnx.load(portable_path(tmp_path / "a.onnx"))
    assert {one.domain for one in portable.graph.node} == {""}
    assert "for Simulated compute 9.9; it was checked" in targeted.report.notes[-1]
    with pytest.raises(ModelError, match=r"cannot be optimized again; optimize .*portable"):
        optimize(tmp_path / "a.onnx", Options(cost="roofline"))


def test_races_on_the_processor_say_nothing(targeted: Result) -> None:
    """The result is judged by prediction."""
    assert targeted.report.ratio is None
    assert targeted.report.reason.startswith("Improved by prediction: ")
    assert targeted.report.deviation is not None


@pytest.mark.parametrize("last", [1.0, None], ids=["no faster", "not recorded"])
def test_what_is_not_faster_stays_plain(tmp_path: Path, last: float | None) -> None:
    """Transpositions have a cost; a layout of which nothing is recorded is none."""
    options = replace(_table(tmp_path / "t", last), input_shapes=SHAPES)
    result = optimize(NETWORK, options)
    assert "NhwcConv" not in ops(result.model)
    assert target_of(result.ir_model) is None
    assert result.portable is None


def test_a_portable_result_of_the_same_costs(tmp_path: Path) -> None:
    """It has standard operators only, and no race is run for it either."""
    options = replace(_table(tmp_path / "t", 0.4), target="portable", input_shapes=SHAPES)
    result = optimize(NETWORK, options)
    assert {one.domain for one in result.model.graph.node} == {""}
    assert result.report.ratio is None
    assert result.found is not None


def test_transpositions_of_the_model_are_used(tmp_path: Path) -> None:
    """A model that was channels-last before has none left."""
    proto = model(
        [
            node("Transpose", "x", "a", perm=[0, 3, 1, 2]),
            node("Conv", "a k", "b", pads=[1] * 4), node("Relu", "b", "c"),
            node("Transpose", "c", "y", perm=[0, 2, 3, 1]),
        ],
        [value("x", [1, 20, 20, 16])],
        [value("y", [1, 20, 20, 16])],
        {"k": random(16, 16, 3, 3)},
    )  # fmt: skip
    result = optimize(proto, _table(tmp_path / "t", 0.9))
    assert ops(result.model) == ["NhwcConv", "Relu"]
    x = random(1, 20, 20, 16, seed=3)
    (want,) = run(proto, {"x": x})
    np.testing.assert_allclose(_value(result.model, x), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float16], ids=["float16"])
def test_half_precision(tmp_path: Path, dtype: type) -> None:
    """The operator has it, too."""
    proto = model(
        [node("Conv", "x k", "a", pads=[1] * 4), node("Relu", "a", "y")],
        [value("x", [1, 16, 20, 20], onnx.TensorProto.FLOAT16)],
        [value("y", [1, 16, 20, 20], onnx.TensorProto.FLOAT16)],
        {"k": random(16, 16, 3, 3).astype(dtype)},
    )
    result = optimize(proto, _table(tmp_path / "t", 0.1))
    assert "NhwcConv" in ops(result.model)
    x = random(1, 16, 20, 20, seed=3).astype(dtype)
    want = _value(proto, x)
    np.testing.assert_allclose(_value(result.model, x), want, rtol=1e-2, atol=1e-2)


def test_costs_of_a_processor_are_refused(tmp_path: Path) -> None:
    """They say nothing of layouts on a GPU."""
    options = _table(tmp_path / "t", None, Setting("a processor", "onnxruntime 1.32", 1))
    with pytest.raises(UsageError, match="'ort-cuda' needs costs of a GPU; these"):
        optimize(NETWORK, options)


def test_every_way_to_a_prediction_has_the_same_kernels(tmp_path: Path) -> None:
    """Costs of a GPU are those of its kernels for the TASO-shaped interface, too."""
    options = replace(_table(tmp_path / "t", 0.4), target="portable", input_shapes=SHAPES)
    proto = model(
        [node("Conv", "x k", "a", pads=[1] * 4), node("Relu", "a", "y")],
        [value("x", [1, 8, 20, 20])],
        [value("y", [1, 32, 20, 20])],
        {"k": random(32, 8, 3, 3)},
    )
    graph, seconds = operator_seconds(read(proto), options)
    result = optimize(proto, options)
    predicted = result.report.before.predicted_seconds
    assert predicted is not None
    assert sum(seconds.values()) == pytest.approx(predicted)
    assert np.isfinite(predicted)
    assert len(graph.nodes) == 4

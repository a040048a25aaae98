"""The published networks: operators as counted in the papers' scripts, sizes, and runs."""

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import tensat
from tensat.errors import UsageError
from tensat.model.onnx_write import write
from tensat.networks import NETWORKS, build
from tensat.runtime import Failure, Program, Runtime
from tests.tensat.model.onnx_models import random, run

COUNTS: dict[str, dict[str, int]] = {
    "bert": {"Relu": 1, "MatMul": 48, "Reshape": 32, "Transpose": 32},
    "inception_v3": {"Conv": 94, "Relu": 94, "MaxPool": 5, "AveragePool": 9, "Concat": 11},
    "mobilenet_v2": {
        "Conv": 54,
        "BatchNormalization": 53,
        "Relu": 36,
        "Add": 10,
        "AveragePool": 1,
    },
    "nasnet_a": {
        "Conv": 217,
        "Relu": 37,
        "Add": 90,
        "AveragePool": 51,
        "MaxPool": 7,
        "Concat": 18,
    },
    "nasrnn": {
        "MatMul": 80,
        "Add": 55,
        "Mul": 20,
        "Relu": 10,
        "Sigmoid": 25,
        "Tanh": 40,
    },
    "resnet50": {"Conv": 52, "Relu": 52, "Add": 16},
    "resnext50": {"Conv": 53, "Relu": 53, "Add": 16, "MaxPool": 1},
    "squeezenet1_1": {
        "Conv": 26,
        "Relu": 26,
        "MaxPool": 3,
        "Concat": 8,
        "Dropout": 1,
        "AveragePool": 1,
    },
    "vgg19": {
        "Conv": 16,
        "Relu": 18,
        "MaxPool": 5,
        "Reshape": 1,
        "MatMul": 3,
        "Dropout": 2,
    },
}
SIZES: dict[str, tuple[list[int], list[list[int]]]] = {
    "bert": ([64, 1024], [[64, 1024]] * 9),
    "inception_v3": ([1, 3, 299, 299], [[1, 2048, 1, 1]]),
    "mobilenet_v2": ([1, 3, 224, 224], [[1, 1000, 1, 1]]),
    "nasnet_a": ([1, 3, 224, 224], [[1, 5120, 7, 7]]),
    "nasrnn": ([1, 512], [[1, 512]]),
    "resnet50": ([1, 64, 56, 56], [[1, 2048, 7, 7]]),
    "resnext50": ([1, 3, 224, 224], [[1, 2048, 7, 7]]),
    "squeezenet1_1": ([1, 3, 224, 224], [[1, 1000, 1, 1]]),
    "vgg19": ([1, 3, 224, 224], [[1, 1000]]),
}
HEAVY = {"vgg19"}


def names() -> list[object]:
    """Names of the networks; those that take seconds are marked slow."""
    return [
        pytest.param(name, marks=pytest.mark.slow) if name in HEAVY else name
        for name in NETWORKS
    ]


def shape(value: ir.Value) -> list[object]:
    """Declared sizes."""
    assert value.shape is not None
    return list(value.shape)


@pytest.mark.parametrize("name", names())
def test_operators_and_sizes(name: str) -> None:
    """Each operator is there as often as published; inputs and outputs have its sizes."""
    model = build(name).model()
    assert Counter(node.op_type for node in model.graph) == COUNTS[name]
    given, wanted = SIZES[name]
    assert all(shape(value) == given for value in model.graph.inputs)
    assert len(model.graph.inputs) == (5 if name == "nasrnn" else 1)
    assert [shape(value) for value in model.graph.outputs] == wanted


@pytest.mark.slow
@pytest.mark.parametrize("name", list(NETWORKS))
def test_valid_and_runs(name: str, tmp_path: Path) -> None:
    """The ONNX checker accepts it with full inference, and it gives finite numbers."""
    model = build(name).model()
    path = tmp_path / "network.onnx"
    write(model, path)
    onnx.checker.check_model(str(path), full_check=True)
    sizes = SIZES[name][0]
    feeds = {one.name or "": random(*sizes) for one in model.graph.inputs}
    with Runtime() as runtime:
        outputs = runtime.run(Program(str(path)), feeds)
    assert not isinstance(outputs, Failure), outputs
    assert all(np.isfinite(one).all() and np.std(one) > 0 for one in outputs)


@pytest.mark.parametrize("name", ["squeezenet1_1", "nasrnn", "bert"])
def test_small_ones_run(name: str) -> None:
    """Networks of little work run here and give finite numbers."""
    proto = tensat.export_onnx(build(name))
    onnx.checker.check_model(proto)
    sizes = SIZES[name][0]
    feeds = {one.name: random(*sizes, seed=k) for k, one in enumerate(proto.graph.input)}
    assert all(np.isfinite(one).all() for one in run(proto, feeds))


@pytest.mark.parametrize("name", ["bert", "nasrnn", "squeezenet1_1", "mobilenet_v2"])
def test_any_batch(name: str) -> None:
    """A batch multiplies the first size and changes no operator count."""
    model = build(name, 3).model()
    first, rest = SIZES[name][0][0], SIZES[name][0][1:]
    assert all(shape(value) == [3 * first, *rest] for value in model.graph.inputs)
    assert Counter(node.op_type for node in model.graph) == COUNTS[name]


def test_batched_bert_is_bert_on_each_sample() -> None:
    """Two samples at once give what each gives alone."""
    single, double = (tensat.export_onnx(build("bert", batch)) for batch in (1, 2))
    x = random(128, 1024)
    parts = [run(single, {"data": half}) for half in (x[:64], x[64:])]
    for whole, *halves in zip(run(double, {"data": x}), *parts, strict=True):
        want = np.concatenate(halves)
        np.testing.assert_allclose(whole, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())


def test_weights_come_from_the_seed() -> None:
    """Same seed, same bytes; another seed, other bytes."""
    first, again, other = (
        tensat.export_onnx(build("squeezenet1_1", seed=seed)).SerializeToString()
        for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other


def test_unknown_names_and_batches() -> None:
    """Errors list the networks there are."""
    with pytest.raises(UsageError, match="'alexnet' is unknown; possible: bert, inception"):
        build("alexnet")
    with pytest.raises(UsageError, match="batch must be at least 1, not 0"):
        build("bert", 0)

"""The two models of each pair compute the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from tensat.check.guard import Verdict, judge
from tensat.kernels.machine import block_size
from tensat.ordering.net import Net, Weights
from tensat.ordering.pair import Pair
from tensat.ordering.pairs import all_pairs
from tensat.runtime import Runtime

BLOCK = 16
NAMES = [pair.name for pair in all_pairs(BLOCK)]


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """A child that runs all pairs."""
    with Runtime() as child:
        yield child


@pytest.fixture(scope="module")
def block(runtime: Runtime) -> int:
    """Channels in a block of this machine."""
    return block_size(runtime)


def _pair(name: str, block: int) -> Pair:
    found = {pair.name: pair for pair in all_pairs(block)}
    if name not in found:
        pytest.skip("the runtime has no blocked layout here")
    return found[name]


def _judge(
    runtime: Runtime, folder: Path, one: onnx.ModelProto, other: onnx.ModelProto
) -> Verdict:
    paths = [str(folder / name) for name in ("one.onnx", "other.onnx")]
    for model, path in zip((one, other), paths, strict=True):
        onnx.save(model, path)
    random = np.random.default_rng(5)
    feeds = {
        value.name: random.standard_normal(
            [size.dim_value for size in value.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for value in one.graph.input
    }
    return judge(runtime, paths[0], paths[1], [feeds], measure=False)


@pytest.mark.parametrize("name", NAMES)
def test_both_models_compute_the_same(
    name: str, runtime: Runtime, block: int, tmp_path: Path
) -> None:
    """On random inputs, at the tolerances of the optimizer's own results."""
    verdict = _judge(runtime, tmp_path, *_pair(name, block).small_models())
    assert verdict.accepted, verdict.text


@pytest.mark.parametrize("name", NAMES)
def test_both_models_differ(name: str, block: int) -> None:
    """A pair has two graphs: other operators, sizes or groups."""
    one, other = _pair(name, block).small_models()
    assert one.graph != other.graph


def test_a_wrong_pair_would_be_seen(runtime: Runtime, tmp_path: Path) -> None:
    """The comparison refuses a pair whose second model leaves an operator out."""
    one, other = Net(), Net()
    x = one.op("MatMul", one.input(2, 4), one.weight(Weights(1).matrix(4, 4)))
    y = other.op("MatMul", other.input(2, 4), other.weight(Weights(2).matrix(4, 4)))
    models = one.model([x], [(2, 4)]), other.model([y], [(2, 4)])
    assert not _judge(runtime, tmp_path, *models).accepted


def test_there_are_enough_pairs() -> None:
    """More than twenty, all names differ, and blocked ones are only where that exists."""
    assert len(set(NAMES)) == len(NAMES) >= 26
    blocked = {name for name in NAMES if name.startswith("blocked")}
    assert {pair.name for pair in all_pairs(0)} == set(NAMES) - blocked


def test_weights_come_from_a_seed() -> None:
    """A pair made twice is the same, byte by byte."""
    pair = all_pairs(0)[0]
    assert pair.small_models() == pair.small_models()

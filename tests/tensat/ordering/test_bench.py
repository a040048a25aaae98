"""The run of pairs: real models in the runtime, times that decide nothing here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from tensat.check.guard import Race
from tensat.cost_sources import open_store
from tensat.errors import ExecutionError
from tensat.ordering.__main__ import chosen, main
from tensat.ordering.bench import BenchOptions, random_feeds, run, settle
from tensat.ordering.net import Net
from tensat.ordering.pair import Models, Pair
from tensat.ordering.pairs import all_pairs
from tensat.ordering.predict import predict
from tensat.ordering.result import Prediction
from tensat.profiling.question import AS_IS
from tensat.runtime import Program, Runtime


def _square(rows: int) -> Models:
    models = []
    for op in ("Pow", "Mul"):
        net = Net()
        x = net.input(rows, 3)
        y = net.op(op, x, x if op == "Mul" else net.number(2))
        models.append(net.model([y], [(rows, 3)]))
    return models[0], models[1]


_WIDE = ((2.0, 1.5), (1.5, 0.02), (1.2, 0.02))
PAIR = Pair("square", "Pow", "Mul", _square, {"rows": 64}, {"rows": 2})


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """A child of the module."""
    with Runtime() as child:
        yield child


def test_a_pair_is_made_in_two_sizes() -> None:
    """The small one where the pair has other sizes for it."""
    full, small = PAIR.models()[0], PAIR.small_models()[0]
    sizes = [
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value
        for model in (full, small)
    ]
    assert sizes == [64, 2]


def test_run(runtime: Runtime, tmp_path: Path) -> None:
    """A row has predictions that are sums of kernels, and times of both models."""
    options = BenchOptions(cost_db=tmp_path / "costs.sqlite", seconds=0.05)
    (row,) = run([PAIR], runtime, options)
    assert [kernel.name for kernel in row.predicted[0].kernels] == ["Pow"]
    assert [kernel.name for kernel in row.predicted[1].kernels] == ["Mul"]
    for prediction in row.predicted:
        inner = math.fsum(kernel.seconds for kernel in prediction.kernels)
        assert prediction.seconds > inner > 0
    assert all(seconds > 0 for seconds in row.measured)


def test_what_is_not_equal_is_refused(runtime: Runtime, tmp_path: Path) -> None:
    """No race between models that compute something else."""

    def wrong(rows: int) -> Models:
        one, other = Net(), Net()
        x, y = one.op("Relu", one.input(rows)), other.op("Abs", other.input(rows))
        return one.model([x], [(rows,)]), other.model([y], [(rows,)])

    options = BenchOptions(cost_db=tmp_path / "costs.sqlite")
    pair = Pair("wrong", "Relu", "Abs", wrong, {"rows": 8})
    with pytest.raises(ExecutionError, match=r"pair wrong: .*gives other outputs"):
        list(run([pair], runtime, options))


@pytest.mark.parametrize(
    ("ratios", "wanted", "spread"),
    [
        pytest.param([2.0], 2.0, 0.01, id="clear"),
        pytest.param([0.99], 0.99, 0.01, id="tie"),
        pytest.param([1.06, 0.98, 1.02], 1.02, 0.04, id="close"),
        pytest.param([0.92, 0.94, 0.93], 0.93, 0.01, id="close-and-repeated"),
    ],
)
def test_only_a_close_race_is_repeated(
    ratios: list[float], wanted: float, spread: float
) -> None:
    """The middle one counts, and how far the races are apart; whatever was predicted."""
    races = iter([Race(ratio * 1e-3, 1e-3, ratio, 0.01, 9) for ratio in ratios])
    row = settle(PAIR, (Prediction(1e-3), Prediction(2e-3)), lambda: next(races))
    assert next(races, None) is None
    assert (row.ratio, row.races) == (wanted, len(ratios))
    assert row.measured == (wanted * 1e-3, 1e-3)
    assert row.spread == pytest.approx(spread)


def test_a_race_that_spreads_is_repeated() -> None:
    """Even if the two models seem to differ by much."""
    races = iter([Race(2e-3, 1e-3, ratio, spread, 9) for ratio, spread in _WIDE])
    row = settle(PAIR, (Prediction(1e-3), Prediction(2e-3)), lambda: next(races))
    assert (row.ratio, row.races) == (1.5, 3)
    assert row.spread == pytest.approx(0.4)


def test_feeds_are_the_same_for_the_same_seed() -> None:
    """And of the sizes that the model states."""
    model = PAIR.small_models()[0]
    one, again, other = (random_feeds(model, seed)["x0"] for seed in (1, 1, 2))
    assert one.shape == (2, 3)
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_chosen() -> None:
    """All pairs, or those that are named."""
    pairs = all_pairs(0)
    assert chosen(pairs, None) is pairs
    assert [pair.name for pair in chosen(pairs, ["gelu", "fire"])] == ["gelu", "fire"]


def test_an_unknown_pair_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """In one line that says what is possible."""
    assert main(["--only", "nothing"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: pair 'nothing' is unknown; possible: qkv-1, ")
    assert said.count("\n") == 1


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints the table, writes JSON, and keeps costs in the given database."""
    files = [str(tmp_path / name) for name in ("out.json", "costs.sqlite")]
    options = ["--json", files[0], "--cost-db", files[1], "--seconds", "0.05"]
    status = main(["--only", "relu-and-pool", *options])
    assert status in (0, 1)
    assert "relu-and-pool" in capsys.readouterr().out
    assert all(Path(file).stat().st_size for file in files)


def test_a_kernel_of_both_models_has_one_cost(runtime: Runtime, tmp_path: Path) -> None:
    """Even where each measurement of it differs; also for one that is timed as it is."""

    def build(rows: int) -> Models:
        models = []
        for more in (False, True):
            net = Net()
            x = net.op("Hardmax", net.op("Exp", net.input(rows, 8)))
            x = net.op("Exp", x) if more else x
            models.append(net.model([net.op("Clip", x, "", net.number(1))], [(rows, 8)]))
        return models[0], models[1]

    pair = Pair("more", "less", "more", build, {"rows": 16})
    paths = []
    for place, model in enumerate(pair.models()):
        paths.append(tmp_path / f"{place}.onnx")
        onnx.save(model, paths[-1])
    feeds = random_feeds(pair.models()[0], 0)
    with open_store(tmp_path / "costs.sqlite") as store:
        programs = [Program(str(path)) for path in paths]
        less, more = predict(runtime, store, programs, feeds, tmp_path)
    first, second = ({k.name: k.seconds for k in each.kernels} for each in (less, more))
    assert first == second
    assert sorted(first) == ["Clip", "Exp", "Hardmax"]
    assert [kernel.name for kernel in more.kernels].count("Exp") == 2
    assert more.seconds > less.seconds
    assert {k.name for k in less.kernels if k.signature.startswith(AS_IS)} == {"Hardmax"}

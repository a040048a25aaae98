"""Predict and race pairs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto

from tensat.check.guard import Race, judge
from tensat.cost_sources import open_store
from tensat.costs.store import CostStore
from tensat.errors import ExecutionError
from tensat.ordering.pair import Pair
from tensat.ordering.predict import predict
from tensat.ordering.result import TIE, Prediction, Row, difference_of
from tensat.runtime import Feeds, Program, Runtime

_CLOSE = 0.15  # relative difference up to which a race is close


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """How pairs are raced.

    Attributes:
        threads: Threads that compute.
        cost_db: File of measured costs; None is the user's.
        seconds: Of a race, about; a close one is repeated.
        seed: For random inputs.
    """

    threads: int = 1
    cost_db: Path | None = None
    seconds: float = 1.5
    seed: int = 0


def run(
    pairs: Sequence[Pair], runtime: Runtime, options: BenchOptions | None = None
) -> Iterator[Row]:
    """Yield what each pair came to.

    Args:
        pairs: What to predict and to race.
        runtime: Where the models run.
        options: How; defaults if None.

    Raises:
        ExecutionError: A model does not run, or the two of a pair do not agree.
        UsageError: The database is refused.
    """
    options = options or BenchOptions()
    with open_store(options.cost_db) as store:
        for pair in pairs:
            with tempfile.TemporaryDirectory(prefix="tensat-") as folder:
                yield _row(pair, runtime, store, Path(folder), options)
            runtime.forget()


def _row(
    pair: Pair, runtime: Runtime, store: CostStore, folder: Path, options: BenchOptions
) -> Row:
    models = pair.models()
    paths = (folder / "one.onnx", folder / "other.onnx")
    for model, path in zip(models, paths, strict=True):
        onnx.save(model, path)
    feeds = random_feeds(models[0], options.seed)

    def raced() -> Race:
        runtime.forget()
        return _race(pair, runtime, paths, feeds, options)

    programs = [Program(str(path), threads=options.threads) for path in paths]
    first, second = predict(runtime, store, programs, feeds, folder)
    return settle(pair, (first, second), raced)


def settle(
    pair: Pair,
    predicted: tuple[Prediction, Prediction],
    raced: Callable[[], Race],
) -> Row:
    """Return the row of a pair after one race, or three if the first is a close one.

    Sessions differ by where their memory lies, by more than the runs of one session do. Of
    three races the middle one counts. Only the first race decides that there are more,
    never what was predicted.

    Args:
        pair: The pair.
        predicted: Of both models.
        raced: Races them, each time in new sessions.
    """
    races = [raced()]
    difference = difference_of(races[0].ratio)
    if TIE / 2 < difference <= max(_CLOSE, races[0].spread):
        races += [raced(), raced()]
    races.sort(key=lambda race: race.ratio)
    middle = races[len(races) // 2]
    return Row(
        name=pair.name,
        one=pair.one,
        other=pair.other,
        predicted=predicted,
        measured=(middle.original, middle.candidate),
        ratio=middle.ratio,
        spread=max(middle.spread, (races[-1].ratio - races[0].ratio) / 2),
        races=len(races),
    )


def random_feeds(model: ModelProto, seed: int) -> Feeds:
    """Return normally distributed values for every input of a model with fixed sizes."""
    random = np.random.default_rng(seed)
    found: Feeds = {}
    for value in model.graph.input:
        dims = [size.dim_value for size in value.type.tensor_type.shape.dim]
        found[value.name] = random.standard_normal(dims).astype(np.float32)
    return found


def _race(
    pair: Pair,
    runtime: Runtime,
    paths: tuple[Path, Path],
    feeds: Feeds,
    options: BenchOptions,
) -> Race:
    one, other = map(str, paths)
    verdict = judge(
        runtime, one, other, [feeds], threads=options.threads, seconds=options.seconds
    )
    if verdict.race is None:
        raise ExecutionError(f"pair {pair.name}: the second model {verdict.text}")
    return verdict.race

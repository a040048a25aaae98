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
from tensat.ordering.result import Agreement, Prediction, Row
from tensat.runtime import Feeds, Program, Runtime


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """How pairs are raced.

    Attributes:
        threads: Threads that compute.
        cost_db: File of measured costs; None is the user's.
        seconds: Of a race, about; one that is not clear is repeated for longer.
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

    def raced(seconds: float) -> Race:
        return _race(pair, runtime, paths, feeds, options.threads, seconds)

    programs = [Program(str(path), threads=options.threads) for path in paths]
    first, second = predict(runtime, store, programs, feeds, folder)
    runtime.forget()
    return settle(pair, (first, second), raced, options.seconds)


def settle(
    pair: Pair,
    predicted: tuple[Prediction, Prediction],
    raced: Callable[[float], Race],
    seconds: float,
) -> Row:
    """Return the row of a pair after one race, or after a longer one if it was not clear.

    Only what the race itself says decides that, never what was predicted.

    Args:
        pair: The pair.
        predicted: Of both models.
        raced: Races them for so many seconds.
        seconds: How long at first.
    """
    row = _made(pair, predicted, raced(seconds))
    if row.agreement is Agreement.UNCLEAR:
        row = _made(pair, predicted, raced(3 * seconds))
    return row


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
    threads: int,
    seconds: float,
) -> Race:
    one, other = map(str, paths)
    verdict = judge(runtime, one, other, [feeds], threads=threads, seconds=seconds)
    if verdict.race is None:
        raise ExecutionError(f"pair {pair.name}: the second model {verdict.text}")
    return verdict.race


def _made(pair: Pair, predicted: tuple[Prediction, Prediction], race: Race) -> Row:
    return Row(
        name=pair.name,
        one=pair.one,
        other=pair.other,
        predicted=predicted,
        measured=(race.original, race.candidate),
        ratio=race.ratio,
        spread=race.spread,
    )

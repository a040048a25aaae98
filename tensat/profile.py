"""Profile a model: the time of each kernel predicted, and the sum against the real time.

Reading order: `profile` is what people call; the parts are in `tensat.profiling`.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tensat.check.feeds import Inputs, find_inputs
from tensat.cost_sources import open_store
from tensat.costs.cost import Cost
from tensat.costs.cpu import CpuCosts, near_cache
from tensat.costs.signature_text import shorten
from tensat.costs.source import Signature
from tensat.costs.store import CostStore
from tensat.errors import ExecutionError
from tensat.model.onnx_read import ModelLike, read
from tensat.model.onnx_write import write
from tensat.profiling.prediction import (
    Predicted,
    Questions,
    predicted,
    questions,
)
from tensat.profiling.result import NOT_ASKED, NodeCost, Profile
from tensat.profiling.running_graph import RunningGraph, running_graph
from tensat.runtime import Failure, Feeds, Level, PacedRun, Program, Runtime
from tensat.runtime.pace import middle
from tensat.stages import Clock, Progress

_SLOW = 1.08  # times of runs while the machine was slower than this are left out
_AT_ONCE = 12  # kernels between two times at which the model itself runs
_BETWEEN = 0.2  # seconds of such a time


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """How to profile.

    Attributes:
        input_shapes: Sizes of inputs, by name; found by trying where not given.
        threads: Threads that compute.
        cost_db: File of measured costs; None is the user's.
        seconds: Time for measuring kernels; later ones are estimated.
        seed: For random inputs.
    """

    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    threads: int = 1
    cost_db: Path | None = None
    seconds: float = 60.0
    seed: int = 0


def profile(
    model: ModelLike,
    options: ProfileOptions | None = None,
    *,
    progress: Progress | None = None,
) -> Profile:
    """Predict and measure what a model takes in ONNX Runtime on this machine's CPU.

    The kernels are those of the graph that the runtime makes of the model at its highest
    level of optimization. Each is timed by itself, once for all models, and kept.

    Args:
        model: Path of an ONNX file, a ModelProto or an onnx_ir Model; it is not changed.
        options: How; defaults if None.
        progress: Told what happens.

    Raises:
        ModelError: The model cannot be read or is invalid.
        UsageError: A shape does not fit the model, or the database is refused.
        ExecutionError: The runtime cannot run the model.
    """
    options = options or ProfileOptions()
    original = read(model)
    with (
        tempfile.TemporaryDirectory(prefix="tensat-") as folder,
        Runtime() as runtime,
        open_store(options.cost_db) as store,
    ):
        path = Path(folder) / "original.onnx"
        if isinstance(model, str | os.PathLike):
            path = Path(model)
        else:
            write(original, path)
        job = _Job(options, runtime, store, path, Path(folder), Clock(progress))
        return job.run()


@dataclass
class _Job:
    """One profile under way."""

    options: ProfileOptions
    runtime: Runtime
    store: CostStore
    path: Path
    folder: Path
    clock: Clock
    runs: list[PacedRun] = field(default_factory=list)

    def run(self) -> Profile:
        """Do all of it; the model runs before, after and between its kernels."""
        options, runtime = self.options, self.runtime
        with self.clock.stage("inputs"):
            inputs = self._inputs()
            feeds = inputs.feeds(options.seed)
        program = Program(str(self.path), Level.ALL, options.threads)
        with self.clock.stage("graph"):
            graph = running_graph(runtime, program, feeds, self.folder / "running.onnx")
        resident = graph.weight_bytes <= near_cache()
        source = CpuCosts(
            self.store, runtime, threads=options.threads, resident=resident, careful=True
        )
        source.learn_pace()
        with self.clock.stage("model"):
            self._times(program, feeds, resident)
            profiled = self._profiled(graph, feeds)
        with self.clock.stage("kernels") as progress:
            asked = questions(
                graph,
                runtime,
                feeds,
                options.threads,
                profiled=profiled,
                resident=resident,
            )
            between = _Between(
                progress, lambda: self._times(program, feeds, resident, _BETWEEN)
            )
            start = time.monotonic()
            found = source.costs(
                asked.signatures, start + options.seconds, between, asked.kernels
            )
            measuring = time.monotonic() - start - between.seconds
            costs = dict(zip(asked.signatures, found, strict=True))
        with self.clock.stage("model"):
            self._times(program, feeds, resident)
            runs = _steady(self.runs)
            times = [each.seconds for each in runs]
            measured = statistics.median(times)
            pace = middle([each.pace for each in runs])
            sums = predicted(asked, costs, source, runtime, pace)
            scale = (measured - sums.overhead) / max(sum(profiled.values()), 1e-9)
            shares = {name: scale * seconds for name, seconds in profiled.items()}
        return Profile(
            nodes=_nodes(asked, costs, sums, shares),
            overhead=sums.overhead,
            dispatch=sums.dispatch,
            measured=measured,
            spread=_spread(times),
            runs=len(times),
            threads=options.threads,
            shapes=dict(inputs.shapes),
            measuring=measuring,
            counts={str(name): number for name, number in source.counts.items() if number},
        )

    def _inputs(self) -> Inputs:
        given = dict(self.options.input_shapes)
        return find_inputs(self.runtime, str(self.path), given, (self.options.seed,))

    def _times(
        self, program: Program, feeds: Feeds, resident: bool, seconds: float = 2.0
    ) -> None:
        """Run the model for some time, and look how fast the machine is meanwhile."""
        self.runs += _value(self.runtime.paced(program, feeds, seconds, not resident))

    def _profiled(self, graph: RunningGraph, feeds: Feeds) -> dict[str, float]:
        """Return what each node takes, after the runtime's own profile."""
        program = Program(str(graph.path), Level.NONE, self.options.threads)
        return _value(self.runtime.node_seconds(program, feeds, 1.0))


class _Between:
    """Runs the model now and then while its kernels are timed.

    Attributes:
        seconds: Wall time that this took in all.
    """

    def __init__(self, progress: Progress, run: Callable[[], None]) -> None:
        self.seconds = 0.0
        self._progress = progress
        self._run = run
        self._calls = 0

    def __call__(self, done: int, total: int) -> None:
        """Note that another kernel was timed."""
        self._progress.step(done, total)
        self._calls += 1
        if self._calls % _AT_ONCE == 0:
            start = time.monotonic()
            self._run()
            self.seconds += time.monotonic() - start


def _value[T](answer: T | Failure) -> T:
    if isinstance(answer, Failure):
        raise ExecutionError(f"the runtime cannot run the model: {answer}")
    return answer


def _steady(runs: Sequence[PacedRun]) -> list[PacedRun]:
    """Return the runs on a fast machine, but a third of all at least."""
    paces = sorted(each.slowness for each in runs)
    limit = max(_SLOW, paces[len(runs) // 3])
    return [each for each in runs if each.slowness <= limit]


def _spread(times: Sequence[float]) -> float:
    quartiles = statistics.quantiles(times, n=4)
    return (quartiles[2] - quartiles[0]) / 2 / quartiles[1]


def _nodes(
    asked: Questions,
    costs: Mapping[Signature, Cost],
    sums: Predicted,
    shares: Mapping[str, float],
) -> tuple[NodeCost, ...]:
    """Return what is known of each node."""
    found = []
    rows = zip(asked.graph.nodes, asked.by_node, sums.kernels, strict=True)
    for node, signature, seconds in rows:
        cost = None if signature is None else costs[signature]
        operator = f"{node.domain}:{node.op_type}" if node.domain else node.op_type
        text = "" if signature is None else signature.text()
        found.append(
            NodeCost(
                name=node.name,
                operator=operator,
                shapes=" ".join(shorten(text).split(" ")[1:]),
                signature=text,
                seconds=seconds,
                spread=cost.spread if cost else 0.0,
                runs=cost.runs if cost else 0,
                origin=str(cost.origin) if cost else NOT_ASKED,
                measured=shares.get(node.name),
            )
        )
    return tuple(found)

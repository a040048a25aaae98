"""TASO's alpha and budget: its own search beside that of the e-graph.

The backtracking search of `tensat.backtrack` runs on the same graph with the same rules and
costs. What it finds takes the place of the e-graph's result only if it is predicted to be
cheaper, passes the same guard and, where both were timed, was measured faster: asking for
it never makes a result worse.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import onnx_ir as ir

from rulesets.store import load
from tensat.backtrack import Backtracked, Bounds, backtrack
from tensat.check.feeds import Inputs, find_inputs
from tensat.check.guard import Verdict, judge
from tensat.costs.source import CostSource
from tensat.errors import ExecutionError, InternalError, UnsoundRuleError
from tensat.fold import fold
from tensat.model.graph import Graph
from tensat.model.onnx_export import to_model
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_write import write
from tensat.optimize import SAME, Result, select_rules
from tensat.options import Options
from tensat.report import Report, summarize
from tensat.runtime import Runtime
from tensat.sizes import bind_sizes
from tensat.stages import Clock, Progress
from tensat.taso.measure import cost_source, node_seconds


@dataclass(frozen=True, slots=True)
class Searched:
    """The better result of two searches.

    Attributes:
        model: The result; the original if neither search found anything better.
        report: How it came about; the last note says what backtracking did.
        backtracked: What backtracking found; None if it could not run.
    """

    model: ir.Model
    report: Report
    backtracked: Backtracked | None


def also_backtrack(
    model: ir.Model,
    result: Result,
    bounds: Bounds,
    options: Options,
    progress: Progress | None = None,
) -> Searched:
    """Search a model by backtracking, too, and keep the better result.

    Args:
        model: The original; it is not changed.
        result: What the search over the e-graph made of it.
        bounds: Alpha, budget and wall time.
        options: Those of the first search.
        progress: Told what happens.

    Returns:
        The result of backtracking if its predicted cost is lower, it computes the same and
        was not measured slower; else the result that was there.
    """
    clock = Clock(progress)
    with tempfile.TemporaryDirectory(prefix="tensat-") as folder, Runtime() as runtime:
        try:
            return _Second(model, result, options, clock, runtime, Path(folder)).run(bounds)
        except (ExecutionError, InternalError, UnsoundRuleError) as error:
            text = str(error).replace(folder, "")
            return Searched(
                result.ir_model, _noted(result.report, f"no backtracking: {text}"), None
            )


def _noted(report: Report, note: str) -> Report:
    return replace(report, notes=(*report.notes, note))


@dataclass(frozen=True, slots=True)
class _Second:
    """A second search under way."""

    original: ir.Model
    result: Result
    options: Options
    clock: Clock
    runtime: Runtime
    folder: Path

    def run(self, bounds: Bounds) -> Searched:
        options = self.options
        path = self.folder / "original.onnx"
        write(self.original, path)
        seeds = (options.seed, options.seed + 1)
        inputs = find_inputs(self.runtime, str(path), options.input_shapes, seeds)
        graph = to_graph(self.original)
        feeds = inputs.feeds(options.seed)
        sizes = bind_sizes(graph, inputs.shapes, str(path), feeds, self.runtime)
        with cost_source(options, self.runtime) as source:
            with self.clock.stage("backtrack"):
                found = self.search(graph, source, sizes, bounds)
            with self.clock.stage("rebuild"):
                decoded = found.decoded
                candidate = to_model(
                    fold(decoded.graph, self.runtime, decoded.constants).graph
                )
            # The same measure for both: a sum over whole graphs, not what searches add up.
            costs = [
                sum(node_seconds(to_graph(each), source, sizes).values())
                for each in (self.original, self.result.ir_model, candidate)
            ]
        report = _noted(self.result.report, _told(found, bounds, costs))
        kept = Searched(self.result.ir_model, report, found)
        if costs[2] >= costs[1] * (1 - SAME):
            return kept
        return self.decide(kept, path, candidate, inputs, costs)

    def search(
        self,
        graph: Graph,
        source: CostSource,
        sizes: Mapping[str, int],
        bounds: Bounds,
    ) -> Backtracked:
        rules = select_rules(load(), self.options.skip, self.options.only_proved)
        return backtrack(graph, rules, source, sizes, bounds)

    def decide(
        self,
        kept: Searched,
        path: Path,
        candidate: ir.Model,
        inputs: Inputs,
        costs: list[float],
    ) -> Searched:
        """The candidate if it is equal to the original and faster than what is kept."""
        with self.clock.stage("check"):
            target = self.folder / "candidate.onnx"
            write(candidate, target)
            seeds = range(self.options.seed, self.options.seed + 3)
            verdict = judge(
                self.runtime, str(path), str(target), [inputs.feeds(seed) for seed in
                seeds], measure=self.options.measure, threads=self.options.threads,
            )  # fmt: skip
        if not verdict.accepted or _slower(verdict, kept.report):
            note = (
                f"backtracking's graph was predicted cheaper, but not kept: {verdict.text}"
            )
            return replace(kept, report=_noted(kept.report, note))
        report = _report(kept, verdict, candidate, costs, self.clock)
        return replace(kept, model=candidate, report=report)


def _slower(verdict: Verdict, report: Report) -> bool:
    """Whether the result that is there was measured to gain more."""
    if verdict.race is None or not report.improved or report.ratio is None:
        return False
    return verdict.race.ratio <= report.ratio


def _told(found: Backtracked, bounds: Bounds, costs: list[float]) -> str:
    """What backtracking did, in one line."""
    before, egraph, after = (f"{1e3 * cost:.4g} ms" for cost in costs)
    return (
        f"backtracking, alpha {bounds.alpha:g}, budget {bounds.budget}: {found.taken} "
        f"graphs rewritten, {found.graphs} seen, ended by {found.stop}; predicted {before} "
        f"before, {after} after, {egraph} by the e-graph"
    )


def _report(
    kept: Searched,
    verdict: Verdict,
    candidate: ir.Model,
    costs: list[float],
    clock: Clock,
) -> Report:
    """The report of a result that backtracking found."""
    race, before = verdict.race, kept.report.before
    after = summarize(candidate, costs[2], race.candidate if race else None)
    reason = f"Improved by backtracking: {verdict.text}."
    if race is None:
        gain = costs[0] / max(costs[2], 1e-9)
        reason = (
            f"Improved by backtracking, by prediction: {gain:.3f} times faster; "
            f"{verdict.text}."
        )
    assert kept.backtracked is not None, "it found the candidate"
    stages = {**kept.report.stages}
    for stage, seconds in clock.seconds.items():
        stages[stage] = stages.get(stage, 0.0) + seconds
    return replace(
        kept.report,
        improved=True,
        reason=reason,
        before=replace(
            before,
            predicted_seconds=costs[0],
            measured_seconds=race.original if race else before.measured_seconds,
        ),
        after=after,
        candidate=after,
        ratio=race.ratio if race else None,
        deviation=verdict.deviation,
        rules=kept.backtracked.applied,
        stages=stages,
    )

"""TASO's alpha and budget: its own search beside that of the e-graph.

The backtracking search of `tensat.backtrack` runs on the same graph with the same rules and
costs. What it finds takes the place of the e-graph's result only if it is predicted to be
cheaper, passes the same guard and, where both were timed, was measured faster: asking for
it never makes a result worse.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import onnx_ir as ir

from rulesets.rule import Rule
from rulesets.store import load
from tensat.aim import aim_of
from tensat.backtrack import Backtracked, Bounds, backtrack
from tensat.check.feeds import Inputs, find_inputs
from tensat.check.guard import Verdict, judge
from tensat.errors import ExecutionError, InternalError, UnsoundRuleError
from tensat.extension import own_operators, own_rules
from tensat.fold import fold
from tensat.job import SAME
from tensat.model.onnx_export import to_model
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_write import write
from tensat.optimize import Result, select_rules
from tensat.options import Options
from tensat.report import Report, summarize
from tensat.runtime import Runtime
from tensat.sizes import bind_sizes
from tensat.stages import Clock, Progress
from tensat.taso.measure import as_it_is, source_of


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
    shipped = load()
    rules = (*shipped, *own_rules(options.rules, shipped))
    rules = select_rules(rules, options.skip, options.only_proved, options.cost)
    with (
        tempfile.TemporaryDirectory(prefix="tensat-") as folder,
        Runtime() as runtime,
        own_operators(options.operators),
    ):
        second = _Second(model, result, options, rules, clock, runtime, Path(folder))
        try:
            return second.run(bounds)
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
    rules: tuple[Rule, ...]
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
        with source_of(options, self.runtime, self.original) as source:
            with self.clock.stage("backtrack"):
                found = backtrack(graph, self.rules, source, sizes, bounds)
            with self.clock.stage("rebuild"):
                decoded = found.decoded
                folded = fold(decoded.graph, self.runtime, decoded.constants)
                candidate = to_model(folded.graph)
            # As the runtime runs them, which no search over graphs of operators knows.
            known = self.result.portable or self.result.ir_model
            aim = aim_of(options, source, self.runtime, sizes)
            costs = [
                as_it_is(to_graph(each), source, aim, options).original_seconds
                for each in (self.original, known, candidate)
            ]
        report = _noted(self.result.report, _told(found, bounds, costs))
        kept = Searched(self.result.ir_model, report, found)
        if costs[2] >= costs[1] * (1 - SAME):
            return kept
        return self.decide(kept, path, candidate, inputs, costs)

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

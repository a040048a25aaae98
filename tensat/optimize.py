"""The main job: a model in, an equal and faster model out, or the original.

Reading order: `optimize` runs the stages in the order in which they stand here. Each is a
function of its own module: read, find inputs, improve (encode, saturate, price, extract,
decode), fold, write, judge.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import onnx
import onnx_ir as ir

from extraction import ExtractionError
from rulesets.rule import TIERS, Rule
from rulesets.store import load
from tensat.check.feeds import Inputs, find_inputs
from tensat.check.guard import Verdict, judge
from tensat.cost_sources import cost_source, counts_of
from tensat.costs.source import CostSource
from tensat.egraph.saturate import Limits
from tensat.errors import ExecutionError, InternalError, UnsoundRuleError, UsageError
from tensat.explain import explain
from tensat.explanation import Explanation
from tensat.extension import own_operators, own_rules
from tensat.fold import fold
from tensat.improve import Aim, Budget, Plan, improve
from tensat.kernels.machine import ALL_FUSIONS, block_size, cpu_machine
from tensat.model.graph import OPAQUE, Graph
from tensat.model.onnx_export import to_model
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_read import ModelLike, read
from tensat.model.onnx_write import to_proto, write
from tensat.options import Options
from tensat.report import Report, summarize
from tensat.runtime import Runtime
from tensat.sizes import bind_sizes
from tensat.stages import Clock, Progress

SAME = 1e-6
"""Relative difference below which two predicted costs are one."""

VISIBLE = 2e-3
"""Relative gain below which timing cannot show anything."""

PROVED = frozenset(TIERS[:2])
"""Verdicts that are proofs."""

SMALL = 1e-3
"""Seconds below which nodes count in themselves."""


@dataclass(frozen=True, slots=True)
class Result:
    """An optimized model.

    Attributes:
        ir_model: The result; the original itself if nothing better was found.
        report: What was done.
        found: The original graph and what was found for it; None if the search failed.
    """

    ir_model: ir.Model
    report: Report
    found: tuple[Graph, Plan] | None = field(default=None, repr=False, compare=False)

    def explain(self) -> Explanation:
        """Which rules fired, what they changed, and why each new node is there."""
        if self.found is None:
            return Explanation(self.report.improved, self.report.reason)
        return explain(*self.found, self.report.improved, self.report.reason)

    @property
    def model(self) -> onnx.ModelProto:
        """The result as a ModelProto.

        Raises:
            WriteError: It is larger than 2 GB; use ``save``.
        """
        return to_proto(self.ir_model)

    def save(self, path: str | Path) -> None:
        """Write the result to a file, all or nothing."""
        write(self.ir_model, path)


def optimize(
    model: ModelLike, options: Options | None = None, *, progress: Progress | None = None
) -> Result:
    """Optimize a model.

    Args:
        model: Path of an ONNX file, a ModelProto or an onnx_ir Model; it is not changed.
        options: How; defaults if None.
        progress: Told what happens.

    Returns:
        A model that computes the same and was measured faster, or the original; the report
        says which and why.

    Raises:
        ModelError: The model cannot be read or is invalid.
        UsageError: An option makes no sense for this model.
    """
    options = options or Options()
    with own_operators(options.operators):
        return _optimized(model, options, Clock(progress))


def _optimized(model: ModelLike, options: Options, clock: Clock) -> Result:
    shipped = load()
    rules = (*shipped, *own_rules(options.rules, shipped))
    rules = select_rules(rules, options.skip, options.only_proved)
    with clock.stage("read"):
        original = read(model)
        graph = to_graph(original)
    with tempfile.TemporaryDirectory(prefix="tensat-") as folder, Runtime() as runtime:
        path = Path(folder) / "original.onnx"
        if isinstance(model, str | os.PathLike):
            path = Path(model)
        else:
            write(original, path)
        job = _Job(options, rules, clock, original, graph, runtime, Path(folder), path)
        return job.run()


def select_rules(
    rules: Sequence[Rule], skip: Sequence[str] = (), only_proved: bool = False
) -> tuple[Rule, ...]:
    """The rules without those named and, if asked, without those that are not proved.

    Raises:
        UsageError: A name is no rule's.
    """
    for name in skip:
        named(rules, name)
    return tuple(
        rule
        for rule in rules
        if rule.name not in set(skip) and not (only_proved and rule.verdict not in PROVED)
    )


def named(rules: Sequence[Rule], name: str) -> Rule:
    """The rule with a name.

    Raises:
        UsageError: There is none; the error names the most similar ones.
    """
    for rule in rules:
        if rule.name == name:
            return rule
    names = [rule.name for rule in rules]
    close = get_close_matches(name, names, 5, 0.5)
    close = close or [each for each in names if name in each][:5]
    like = f"similar: {', '.join(close)}" if close else f"there are {len(names)} others"
    raise UsageError(f"no rule is called {name!r}; {like}")


@dataclass(frozen=True, slots=True)
class _Job:
    """One optimization under way."""

    options: Options
    rules: tuple[Rule, ...]
    clock: Clock
    original: ir.Model
    graph: Graph
    runtime: Runtime
    folder: Path
    path: Path
    counts: dict[str, int] = field(default_factory=dict)

    def run(self) -> Result:
        """Run the stages."""
        path = self.path
        with self.clock.stage("inputs"):
            try:
                inputs = find_inputs(
                    self.runtime, str(path), self.options.input_shapes,
                    (self.options.seed, self.options.seed + 1),
                )  # fmt: skip
            except ExecutionError as error:
                text = str(error).replace(str(path), "the file")
                return self.keep(f"The original is kept: {text}")
            feeds = inputs.feeds(self.options.seed)
            sizes = bind_sizes(self.graph, inputs.shapes, str(path), feeds, self.runtime)
        try:
            plan = self.improve(sizes)
            candidate = self.rebuild(plan)
        except (ExecutionError, ExtractionError, InternalError, UnsoundRuleError) as error:
            return self.keep(f"The original is kept: {error}", inputs)
        return self.decide(path, candidate, plan, inputs)

    def improve(self, sizes: dict[str, int]) -> Plan:
        options = self.options
        limits = Limits(
            options.max_nodes,
            options.seconds * 0.25,
            options.iterations,
            options.multi_iterations,
        )
        budget = Budget(limits, options.seconds * 0.5, options.seconds * 0.25, options.seed)
        with self.costs() as source:
            aim = self.aim(sizes)
            return improve(self.graph, self.rules, source, aim, budget, self.clock)

    def aim(self, sizes: dict[str, int]) -> Aim:
        """What the result is for: the kernels of this machine, or operators as they are."""
        if self.options.cost == "roofline":
            return Aim(sizes)
        machine = cpu_machine(block_size(self.runtime))
        return Aim(sizes, machine, ALL_FUSIONS)

    @contextmanager
    def costs(self) -> Iterator[CostSource]:
        """The cost source that the options name; what it did is noted afterwards."""
        options = self.options
        with cost_source(
            options.cost, self.runtime, database=options.cost_db,
            table=options.cost_table, threads=options.threads,
        ) as source:  # fmt: skip
            try:
                yield source
            finally:
                self.counts.update(counts_of(source))

    def rebuild(self, plan: Plan) -> ir.Model:
        """The planned graph as a model, constant parts computed."""
        with self.clock.stage("rebuild"):
            folded = fold(plan.decoded.graph, self.runtime, plan.decoded.constants)
            return to_model(folded.graph)

    def decide(self, path: Path, candidate: ir.Model, plan: Plan, inputs: Inputs) -> Result:
        """The candidate if it is valid, equal and faster, else the original."""
        if not self.promising(candidate, plan):
            return self.keep(
                "The original is kept: nothing cheaper was found.", inputs, plan
            )
        with self.clock.stage("check"):
            target = self.folder / "candidate.onnx"
            write(candidate, target)
            seeds = range(self.options.seed, self.options.seed + 3)
            verdict = judge(
                self.runtime, str(path), str(target), [inputs.feeds(seed) for seed in
                seeds], measure=self.options.measure, threads=self.options.threads,
            )  # fmt: skip
        if verdict.accepted:
            reason = f"Improved: {verdict.text}."
            if verdict.race is None:
                gain = plan.original_seconds / max(plan.seconds, 1e-9)
                reason = f"Improved by prediction: {gain:.3f} times faster; {verdict.text}."
            return self.result(reason, inputs, plan, verdict, candidate, True)
        reason = f"The original is kept: the candidate is {verdict.text}."
        return self.result(reason, inputs, plan, verdict, candidate, False)

    def promising(self, candidate: ir.Model, plan: Plan) -> bool:
        """Whether the candidate is worth checking.

        It is if it is predicted to be faster by more than nothing; if it is to be timed, by
        enough to be seen. Small models are timed for fewer nodes alone: what a node costs
        besides its kernel is not predicted.
        """
        gain = plan.original_seconds - plan.seconds
        timed = self.options.measure and plan.original_seconds > SMALL
        if gain > plan.original_seconds * (VISIBLE if timed else SAME):
            return True
        return not timed and summarize(candidate).nodes < summarize(self.original).nodes

    def keep(
        self, reason: str, inputs: Inputs | None = None, plan: Plan | None = None
    ) -> Result:
        """The original, with the reason."""
        return self.result(reason, inputs, plan, None, None, False)

    def result(
        self,
        reason: str,
        inputs: Inputs | None,
        plan: Plan | None,
        verdict: Verdict | None,
        candidate: ir.Model | None,
        improved: bool,
    ) -> Result:
        """The candidate or the original, with the report of all that is known."""
        race = verdict.race if verdict else None
        before = summarize(
            self.original,
            plan.original_seconds if plan else None,
            race.original if race else None,
        )
        found = None
        if candidate is not None and plan is not None:
            found = summarize(candidate, plan.seconds, race.candidate if race else None)
        opaque = Counter(
            self.graph.opaque[node.key].operator
            for node in self.graph.nodes
            if node.op == OPAQUE
        )
        report = Report(
            improved=improved,
            reason=reason,
            before=before,
            after=found if improved and found else before,
            candidate=found,
            ratio=race.ratio if race else None,
            deviation=verdict.deviation if verdict else None,
            input_shapes=dict(inputs.shapes) if inputs else {},
            saturation=plan.saturation_record() if plan else {},
            extraction=plan.extraction_record() if plan else {},
            rules=plan.rules if plan else {},
            opaque=dict(opaque.most_common()),
            costs={"source": self.options.cost, **self.counts},
            stages=dict(self.clock.seconds),
            versions=versions(),
        )
        best = candidate if improved and candidate else self.original
        return Result(best, report, (self.graph, plan) if plan else None)


def versions() -> dict[str, str]:
    """Versions of this package and of those that decide what it gives."""
    found = {}
    for name in ("tensat", "egglog", "ortools", "onnx", "onnx-ir", "onnxruntime", "numpy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found

"""One optimization under way: the stages, in the order in which they stand here.

Read, find inputs, improve (encode, saturate, settle on kernels, emit), fold, write, judge.
Each is a function of its own module; what is here is their order, and what happens when
one of them cannot go on: the original is kept.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import onnx_ir as ir

from extraction import ExtractionError
from rulesets.rule import Rule
from tensat.aim import aim_of
from tensat.check.feeds import Inputs, find_inputs
from tensat.check.guard import Verdict, judge
from tensat.cost_sources import cost_source, counts_of
from tensat.costs.cpu import CpuCosts, near_cache
from tensat.costs.cuda import Gpu
from tensat.costs.source import CostSource
from tensat.cuda.nhwc import as_standard, is_last
from tensat.denormals import flush_denormals
from tensat.egraph.saturate import Limits
from tensat.errors import ExecutionError, InternalError, UnsoundRuleError
from tensat.fold import fold
from tensat.improve import Budget, Plan, improve
from tensat.kernels.emit import Decoded
from tensat.model.graph import OPAQUE, Graph
from tensat.model.onnx_export import to_model
from tensat.model.onnx_write import write
from tensat.options import ORT_CUDA, Options
from tensat.profiling.kept_nodes import kept_seconds
from tensat.report import Report, summarize
from tensat.runtime import Feeds, Program, Runtime
from tensat.sizes import bind_sizes
from tensat.stages import Clock
from tensat.target import (
    Target,
    check_portable,
    for_gpu,
    gpu_for,
    stamp,
    this_machine,
)

SAME = 1e-6
"""Relative difference below which two predicted costs are one."""

VISIBLE = 2e-3
"""Relative gain below which timing cannot show anything."""

SMALL = 1e-3
"""Seconds below which nodes count in themselves."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that may take the original's place.

    Attributes:
        model: The model.
        denormals: How many numbers of its weights became zero.
        targeted: How many kernels of it only the runtime of one kind of machine knows.
        made_for: That machine, once it is accepted.
        checked: The same for the processor of this machine, where the model is for another
            device; None for the model itself.
    """

    model: ir.Model
    denormals: int = 0
    targeted: int = 0
    made_for: Target | None = None
    checked: ir.Model | None = None

    def notes(self) -> tuple[str, ...]:
        """What is worth knowing of it."""
        found = []
        if self.denormals:
            found.append(f"{self.denormals} denormal numbers in weights became zero")
        if self.made_for is not None:
            kind = f"ONNX Runtime's own, for {self.made_for.kind}"
            where = "this kind of machine"
            if self.checked is not None:
                where = f"{self.made_for.processor}; it was checked in standard operators"
            found.append(f"{self.targeted} kernels are {kind}: the result is for {where}")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an optimization ended.

    Attributes:
        best: The candidate that was accepted; None where the original is kept.
        report: What was done.
        plan: What was found; None if the search failed.
        portable: The candidate in standard operators, of a targeted one.
    """

    best: Candidate | None
    report: Report
    plan: Plan | None
    portable: Candidate | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One optimization.

    Attributes:
        options: How.
        rules: Rewrites.
        clock: Measures the stages.
        original: The model.
        graph: The same as a graph.
        runtime: Where models run.
        folder: For candidates.
        path: Where the original lies.
    """

    options: Options
    rules: tuple[Rule, ...]
    clock: Clock
    original: ir.Model
    graph: Graph
    runtime: Runtime
    folder: Path
    path: Path
    counts: dict[str, int] = field(default_factory=dict)

    def run(self) -> Outcome:
        """Run the stages."""
        with self.clock.stage("inputs"):
            try:
                inputs = find_inputs(
                    self.runtime, str(self.path), self.options.input_shapes,
                    (self.options.seed, self.options.seed + 1),
                )  # fmt: skip
            except ExecutionError as error:
                text = str(error).replace(str(self.path), "the file")
                return self._keep(f"The original is kept: {text}")
            feeds, path = inputs.feeds(self.options.seed), str(self.path)
            sizes = bind_sizes(self.graph, inputs.shapes, path, feeds, self.runtime)
        try:
            plan, gpu = self._improve(sizes, feeds)
            candidates = self._candidates(plan)
        except (ExecutionError, ExtractionError, InternalError, UnsoundRuleError) as error:
            return self._keep(f"The original is kept: {error}", inputs)
        return self._decide(candidates, plan, inputs, gpu)

    def _improve(self, sizes: dict[str, int], feeds: Feeds) -> tuple[Plan, Gpu | None]:
        """What was found, and the GPU that it is for, if it is for one."""
        options = self.options
        limits = Limits(
            options.max_nodes,
            options.seconds * 0.25,
            options.iterations,
            options.multi_iterations,
        )
        start = time.monotonic()
        with self._costs() as source:
            gpu = gpu_for(options.target, getattr(source, "setting", None))
            aim = aim_of(options, source, self.runtime, sizes)
            aim = replace(aim, kept=self._kept(source, feeds))
            pricing = max(0.0, options.seconds * 0.5 - (time.monotonic() - start))
            budget = Budget(limits, pricing, options.seconds * 0.25, options.seed)
            plan = improve(self.graph, self.rules, source, aim, budget, self.clock)
            return plan, gpu

    def _kept(self, source: CostSource, feeds: Feeds) -> dict[int, float]:
        """What nodes take that are kept as they are, where that can be measured."""
        if not isinstance(source, CpuCosts):
            return {}
        with self.clock.stage("kept nodes"):
            return kept_seconds(
                self.graph,
                Program(str(self.path), threads=self.options.threads),
                feeds,
                self.runtime,
                source,
                folder=self.folder,
                deadline=time.monotonic() + self.options.seconds * 0.25,
                resident=self._weights <= near_cache(),
            )

    @property
    def _weights(self) -> int:
        """Bytes of the model's weights."""
        return sum(tensor.nbytes for tensor in self.graph.constants.values())

    @contextmanager
    def _costs(self) -> Iterator[CostSource]:
        """The cost source that the options name; what it did is noted afterwards."""
        options = self.options
        with cost_source(
            options.cost, self.runtime, database=options.cost_db,
            table=options.cost_table, threads=options.threads,
            weights=self._weights,
        ) as source:  # fmt: skip
            try:
                yield source
            finally:
                self.counts.update(counts_of(source))

    def _candidates(self, plan: Plan) -> list[Candidate]:
        """What was planned, as models: the targeted one first, the portable one last."""
        with self.clock.stage("rebuild"):
            portable = self._rebuild(plan.decoded)
            check_portable(self.original, portable.model)
            if plan.targeted is None or not plan.targeted.targeted:
                return [portable]
            return [self._rebuild(plan.targeted), portable]

    def _rebuild(self, decoded: Decoded) -> Candidate:
        """A planned graph as a model, constant parts computed."""
        folded = fold(decoded.graph, self.runtime, decoded.constants)
        flushed = flush_denormals(folded.graph)
        model = to_model(flushed.graph)
        if self.options.target != ORT_CUDA:
            return Candidate(model, flushed.numbers, decoded.targeted)
        # Whatever else lies channels-last is standard, and runs everywhere.
        targeted = sum(map(is_last, model.graph))
        checked = as_standard(model) if targeted else None
        return Candidate(model, flushed.numbers, targeted, checked=checked)

    def _decide(
        self,
        candidates: list[Candidate],
        plan: Plan,
        inputs: Inputs,
        gpu: Gpu | None = None,
    ) -> Outcome:
        """The first candidate that is valid, equal and faster, else the original."""
        refused: tuple[Candidate, Verdict] | None = None
        # Races are run on the processor: they say nothing about another device.
        measure = self.options.measure and gpu is None
        for candidate in candidates:
            if not self._promising(candidate, plan, measure=measure):
                continue
            verdict = self._judge(candidate, inputs, measure=measure)
            if verdict.accepted:
                reason = f"Improved: {verdict.text}."
                if verdict.race is None:
                    gain = plan.original_seconds / max(plan.seconds, 1e-9)
                    reason = (
                        f"Improved by prediction: {gain:.3f} times faster; {verdict.text}."
                    )
                portable = candidates[-1] if candidate.targeted else None
                if portable and not self._judge(portable, inputs, measure=False).accepted:
                    portable = None
                if candidate.targeted:
                    here = for_gpu(gpu) if gpu else this_machine(self.runtime)
                    twin = portable.model if portable else None
                    stamped = stamp(candidate.model, twin, here)
                    candidate = replace(candidate, model=stamped, made_for=here)
                return self._outcome(
                    reason, inputs, plan, verdict, candidate, True, portable
                )
            refused = (candidate, verdict)
        if refused is None:
            return self._keep(
                "The original is kept: nothing cheaper was found.", inputs, plan
            )
        candidate, verdict = refused
        reason = f"The original is kept: the candidate is {verdict.text}."
        return self._outcome(reason, inputs, plan, verdict, candidate, False)

    def _judge(self, candidate: Candidate, inputs: Inputs, *, measure: bool) -> Verdict:
        with self.clock.stage("check"):
            target = self.folder / "candidate.onnx"
            write(candidate.checked or candidate.model, target)
            seeds = range(self.options.seed, self.options.seed + 3)
            return judge(
                self.runtime, str(self.path), str(target), [inputs.feeds(seed) for seed in
                seeds], measure=measure, threads=self.options.threads,
            )  # fmt: skip

    def _promising(self, candidate: Candidate, plan: Plan, *, measure: bool) -> bool:
        """Whether a candidate is worth checking.

        It is if it is predicted to be faster by more than nothing; if it is to be timed, by
        enough to be seen. Small models are timed for fewer nodes alone: what a node costs
        besides its kernel is not predicted, and neither is what denormal weights cost.
        """
        gain = plan.original_seconds - plan.seconds
        timed = measure and plan.original_seconds > SMALL
        if candidate.denormals or gain > plan.original_seconds * (
            VISIBLE if timed else SAME
        ):
            return True
        fewer = summarize(candidate.model).nodes < summarize(self.original).nodes
        return not timed and fewer

    def _keep(
        self, reason: str, inputs: Inputs | None = None, plan: Plan | None = None
    ) -> Outcome:
        """The original, with the reason."""
        return self._outcome(reason, inputs, plan, None, None, False)

    def _outcome(
        self,
        reason: str,
        inputs: Inputs | None,
        plan: Plan | None,
        verdict: Verdict | None,
        candidate: Candidate | None,
        improved: bool,
        portable: Candidate | None = None,
    ) -> Outcome:
        """The candidate or the original, with the report of all that is known."""
        race = verdict.race if verdict else None
        before = summarize(
            self.original,
            plan.original_seconds if plan else None,
            race.original if race else None,
        )
        found = None
        if candidate is not None and plan is not None:
            measured = race.candidate if race else None
            found = summarize(candidate.model, plan.seconds, measured)
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
            notes=candidate.notes() if candidate and improved else (),
        )
        return Outcome(candidate if improved else None, report, plan, portable)


def versions() -> dict[str, str]:
    """Versions of this package and of those that decide what it gives."""
    found = {}
    for name in ("tensat", "egglog", "ortools", "onnx", "onnx-ir", "onnxruntime", "numpy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found

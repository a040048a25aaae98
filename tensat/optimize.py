"""The main job: a model in, an equal and faster model out, or the original.

`optimize` is what people call; the stages of one optimization are in `tensat.job`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

import onnx
import onnx_ir as ir

from rulesets.rule import TIERS, Rule
from rulesets.store import load
from tensat.errors import UsageError
from tensat.explain import explain
from tensat.explanation import Explanation
from tensat.extension import own_operators, own_rules
from tensat.improve import Plan
from tensat.job import Job
from tensat.model.graph import Graph
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_read import ModelLike, read
from tensat.model.onnx_write import to_proto, write
from tensat.options import Options
from tensat.report import Report
from tensat.runtime import Runtime
from tensat.stages import Clock, Progress
from tensat.target import portable_path, refuse_targeted

PROVED = frozenset(TIERS[:2])
"""Verdicts that are proofs."""


@dataclass(frozen=True, slots=True)
class Result:
    """An optimized model.

    Attributes:
        ir_model: The result; the original itself if nothing better was found.
        report: What was done.
        found: The original graph and what was found for it; None if the search failed.
        portable: Where the result is for this machine only: the same in standard operators.
    """

    ir_model: ir.Model
    report: Report
    found: tuple[Graph, Plan] | None = field(default=None, repr=False, compare=False)
    portable: ir.Model | None = field(default=None, repr=False, compare=False)

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
        """Write the result to a file, all or nothing.

        A result for this kind of machine only has the same in standard operators beside
        it, as `tensat.target.portable_path` names it; that is written first.
        """
        if self.portable is not None:
            write(self.portable, portable_path(path))
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
    rules = select_rules(rules, options.skip, options.only_proved, options.cost)
    with clock.stage("read"):
        original = read(model)
        refuse_targeted(original, model if isinstance(model, str | os.PathLike) else None)
        graph = to_graph(original)
    with tempfile.TemporaryDirectory(prefix="tensat-") as folder, Runtime() as runtime:
        path = Path(folder) / "original.onnx"
        if isinstance(model, str | os.PathLike):
            path = Path(model)
        else:
            write(original, path)
        job = Job(options, rules, clock, original, graph, runtime, Path(folder), path)
        outcome = job.run()
    best = outcome.best.model if outcome.best else original
    found = (graph, outcome.plan) if outcome.plan else None
    portable = outcome.portable.model if outcome.portable else None
    return Result(best, outcome.report, found, portable)


def select_rules(
    rules: Sequence[Rule],
    skip: Sequence[str] = (),
    only_proved: bool = False,
    cost: str = "cpu",
) -> tuple[Rule, ...]:
    """The rules that a search uses: not those named, nor those that can gain nothing.

    Args:
        rules: All of them.
        skip: Names of rules that are not wanted.
        only_proved: Whether those without a proof are left out, and those with one keep to
            the ranks of their proofs.
        cost: Name of the cost source; with estimated costs no rule is used that only
            changes what a runtime makes of the same work.

    Raises:
        UsageError: A name is no rule's.
    """
    for name in skip:
        named(rules, name)
    return tuple(
        replace(rule, bounded=only_proved)
        for rule in rules
        if rule.name not in set(skip)
        and not (only_proved and rule.verdict not in PROVED)
        and not (rule.measured_only and cost == "roofline")
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

"""The optimizer without its guard: what it would give if nobody checked, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from rulesets.rule import Rule
from rulesets.store import load
from tensat.costs.roofline import Roofline
from tensat.costs.source import CostSource, Progress, Signature
from tensat.egraph.saturate import Limits
from tensat.fold import fold
from tensat.improve import Aim, Budget, Plan, improve
from tensat.model.onnx_export import to_model
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_read import read
from tensat.model.onnx_write import to_proto
from tensat.runtime import Runtime
from tensat.stages import Clock

RULES = load()
LIMITS = Limits(nodes=2_000, seconds=20.0, iterations=6)


@dataclass(frozen=True)
class RandomCosts:
    """Costs that mean nothing, so that any of the equal graphs may be chosen."""

    salt: int
    name: str = "random"

    def seconds(
        self,
        signatures: Sequence[Signature],
        deadline: float | None = None,
        progress: Progress | None = None,
    ) -> list[float]:
        """A number between 1 and 101 for each signature; the same for equal ones."""
        return [
            1.0 + 100.0 * np.random.default_rng([self.salt, each.seed()]).random() ** 3
            for each in signatures
        ]


def improved(
    model: onnx.ModelProto,
    runtime: Runtime,
    source: CostSource | None = None,
    *,
    rules: Sequence[Rule] = RULES,
    sizes: Mapping[str, int] | None = None,
    limits: Limits = LIMITS,
) -> tuple[onnx.ModelProto, Plan]:
    """The cheapest model found, folded and written, and how it was found."""
    graph = to_graph(read(model))
    budget = Budget(limits, 20.0, 10.0)
    plan = improve(graph, rules, source or Roofline(), Aim(sizes or {}), budget, Clock())
    folded = fold(plan.decoded.graph, runtime, plan.decoded.constants)
    assert not folded.refused, folded.refused
    return to_proto(to_model(folded.graph)), plan

"""Equality saturation in steps, under limits, with the reason it stopped.

One step runs every join once, applies the matches and refreshes the e-graph. Multi-pattern
rules, which make nearly all of the growth, run in the first ``multi_iterations`` steps only
(as in the tensat paper, section 4). egglog has no limit inside a run, so limits are
checked between the joins' matches, where a step spends its time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tensat.egraph.apply_rules import Applier, Firing
from tensat.egraph.compile_rules import MULTI, SINGLE, Pattern
from tensat.egraph.tensor_egraph import ENodeKey, TensorEGraph

MOST_SPREAD = 10_000
"""Matches of a spread pattern above which it is not looked for any more: they grow with a
power of the size of classes, and egglog counts them all before anything can be stopped."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Where saturation ends at the latest.

    Attributes:
        nodes: E-nodes.
        seconds: Wall time.
        iterations: Steps.
        multi_iterations: Steps in which multi-pattern rules run.
    """

    nodes: int = 50_000
    seconds: float = 20.0
    iterations: int = 40
    multi_iterations: int = 1


@dataclass(frozen=True, slots=True)
class Growth:
    """The e-graph after a step.

    Attributes:
        nodes: E-nodes.
        classes: E-classes.
        seconds: Wall time since the start.
    """

    nodes: int
    classes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Saturation:
    """What saturation did.

    Attributes:
        stop: ``saturated``, ``matches`` (saturated, but for patterns that were given up
            because they had too many matches), ``nodes``, ``seconds`` or ``iterations``.
        growth: Sizes before the first step and after each step.
        fired: How often each rule changed the e-graph, most often first.
        history: Each of these changes, in order.
        encoded: The e-nodes before the first step, in order of their handles.
    """

    stop: str
    growth: tuple[Growth, ...]
    fired: dict[str, int] = field(default_factory=dict)
    history: tuple[Firing, ...] = ()
    encoded: tuple[ENodeKey, ...] = ()


def saturate(
    egraph: TensorEGraph,
    patterns: Sequence[Pattern],
    limits: Limits,
    progress: Callable[[Growth], None] | None = None,
) -> Saturation:
    """Grow the e-graph until nothing changes or a limit is met.

    Args:
        egraph: The e-graph, holding the graph.
        patterns: The compiled rules.
        limits: Where to end.
        progress: Called after each step.

    Returns:
        Why it ended and how the e-graph grew.

    Raises:
        UnsoundRuleError: Two values of different type became equal.
    """
    start = time.monotonic()
    applier = Applier(egraph)
    encoded = tuple(egraph.key_of)
    egraph.refresh()
    growth = [_growth(egraph, start)]
    spread = [pattern for pattern in patterns if pattern.spread]
    stop = "iterations"

    def limit() -> str | None:
        if egraph.size() >= limits.nodes:
            return "nodes"
        return "seconds" if time.monotonic() - start >= limits.seconds else None

    for step in range(limits.iterations):
        multi = step < limits.multi_iterations
        changed = False
        egraph.engine.run(SINGLE)
        spread = [p for p in spread if egraph.engine.run_limited(p.ruleset, MOST_SPREAD)]
        if multi:
            egraph.engine.run(MULTI)
        tables = egraph.refresh()
        for pattern in patterns:
            if multi or pattern.ruleset != MULTI:
                rows = tables.matches(pattern.relation)
                changed |= applier.apply(pattern, rows, lambda: limit() is not None)
        egraph.refresh()
        growth.append(_growth(egraph, start))
        if progress is not None:
            progress(growth[-1])
        given_up = len(spread) < sum(pattern.spread for pattern in patterns)
        still = "matches" if given_up else "saturated"
        reason = limit() or (None if changed else still)
        if reason is not None:
            stop = reason
            break
    fired = dict(applier.fired.most_common())
    return Saturation(stop, tuple(growth), fired, tuple(applier.history), encoded)


def _growth(egraph: TensorEGraph, start: float) -> Growth:
    classes = sum(handle == canonical for handle, canonical in enumerate(egraph.canonical))
    return Growth(egraph.size(), classes, time.monotonic() - start)

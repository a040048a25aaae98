"""One graph in, the cheapest equal graph out: encode, saturate, price, extract, emit."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from extraction import Choice
from rulesets.rule import Rule
from rulesets.store import relevant
from tensat.costs.source import CostSource
from tensat.egraph.compile_rules import compile_rules, literals_of
from tensat.egraph.constant_forms import constant_forms
from tensat.egraph.encode import Encoded, encode
from tensat.egraph.engine import ENodeRow, Tables
from tensat.egraph.saturate import Growth, Limits, Saturation, saturate
from tensat.kernels.collect import PLAIN_MACHINE, Machine, collect
from tensat.kernels.emit import Decoded, emit
from tensat.kernels.kernel import Fusion
from tensat.kernels.matching import Matcher
from tensat.kernels.problem import Problem
from tensat.kernels.settle import Candidates, Settled, settle
from tensat.model.graph import Graph, Ref
from tensat.stages import Clock


@dataclass(frozen=True, slots=True)
class Plan:
    """The cheapest graph found, and how it was found.

    Attributes:
        decoded: The graph in standard operators, constant parts not computed yet, and the
            rules behind its nodes.
        targeted: The same in the runtime's own operators; None for a portable aim.
        saturation: How the e-graph grew.
        settled: The kernels that could be chosen, and what was chosen.
        original_seconds: Predicted cost of the original graph, as the runtime runs it:
            equal nodes once.
        seconds: Predicted cost of the graph found; the choice's own cost has a surcharge.
        encoded: The e-graph itself.
    """

    decoded: Decoded
    targeted: Decoded | None
    saturation: Saturation
    settled: Settled
    original_seconds: float
    seconds: float
    encoded: Encoded

    @property
    def choice(self) -> Choice:
        """What extraction chose and what it proved."""
        return self.settled.choice

    @property
    def problem(self) -> Problem:
        """The e-graph of kernels that extraction saw."""
        return self.settled.problem

    def chosen_rows(self) -> dict[int, ENodeRow]:
        """The e-node that computes each class of the choice, constants left out."""
        found = {}
        for node in self.choice.node_of.values():
            kernel = self.problem.behind[node]
            if kernel is not None:
                found.update({row.eclass: row for row in kernel.rows})
        return found

    def seconds_before(self) -> dict[int, float]:
        """Predicted cost by e-node of the original; of fused ones the last has it all."""
        egraph, settled = self.encoded.egraph, self.settled
        found: dict[int, float] = {}
        for node in settled.original_choice.node_of.values():
            kernel = settled.original.behind[node]
            if kernel is not None and kernel.rows:
                key = egraph.key_of[kernel.handle]
                handle = egraph.handle_of(key.operator, key.attributes, key.arguments)
                cost = settled.original.seconds[node]
                found[handle] = found.get(handle, 0.0) + cost
        return found

    @property
    def rules(self) -> dict[str, int]:
        """Rules behind the chosen nodes, most frequent first."""
        return dict(Counter(self.decoded.rules.values()).most_common())

    def extraction_record(self) -> dict[str, Any]:
        """The extraction's outcome as plain values; costs in seconds."""
        return {
            "status": self.choice.status,
            "cost": self.choice.cost,
            "bound": self.choice.bound,
            "seconds": self.seconds,
            "gap": self.choice.gap,
            "nodes": len(self.problem.egraph.nodes),
            "classes": len(self.problem.egraph.ids),
            "method": self.choice.method,
            "turns": self.settled.turns,
            "signatures": self.settled.asked,
            "needed": self.settled.measured,
        }

    def saturation_record(self) -> dict[str, Any]:
        """The saturation's outcome as plain values."""
        last = self.saturation.growth[-1]
        return {
            "stop": self.saturation.stop,
            "iterations": len(self.saturation.growth) - 1,
            "nodes": last.nodes,
            "classes": last.classes,
            "growth": [(step.nodes, step.classes) for step in self.saturation.growth],
            "fired": self.saturation.fired,
        }


@dataclass(frozen=True, slots=True)
class Budget:
    """Wall time for each part, in seconds, and the size of the e-graph."""

    limits: Limits
    pricing: float
    extraction: float
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Aim:
    """What the result is for.

    Attributes:
        sizes: Value of each symbolic dimension, for costs.
        machine: Kernels besides plain ones, of the result.
        fusions: Operators that the runtime computes as one kernel.
        own_machine: As `machine`, for the model as it is; None for the same.
        everything: Whether every kernel is measured, needed or not.
        kept: Seconds of nodes of the graph that are kept as they are, by index, as far as
            they are known.
    """

    sizes: Mapping[str, int]
    machine: Machine = PLAIN_MACHINE
    fusions: Sequence[Fusion] = ()
    own_machine: Machine | None = None
    everything: bool = False
    kept: Mapping[int, float] = field(default_factory=dict)


def improve(
    graph: Graph,
    rules: Sequence[Rule],
    source: CostSource,
    aim: Aim,
    budget: Budget,
    clock: Clock,
) -> Plan:
    """The cheapest graph that the rules make of a graph.

    Args:
        graph: The graph.
        rules: Proved rewrites.
        source: What operators cost.
        aim: Sizes and machine.
        budget: Limits.
        clock: Measures the stages.

    Returns:
        The plan; its graph may be the original one.
    """
    with clock.stage("saturate") as progress:
        rules = relevant(rules, {node.op for node in graph.nodes})
        literals = literals_of(rules)
        encoded = encode(graph, literals)
        as_it_is = replace(aim, machine=aim.own_machine or aim.machine)
        opset = graph.header.opset
        known = _handles(encoded, graph, aim.kept)
        own = candidates(encoded, encoded.egraph.refresh(), as_it_is, opset, known)
        patterns = compile_rules(rules, encoded.egraph, literals)

        def show(growth: Growth) -> None:
            progress.note(f"{growth.nodes} e-nodes, {growth.classes} e-classes")

        saturation = saturate(encoded.egraph, patterns, budget.limits, show)
        tables = encoded.egraph.refresh()
    with clock.stage("extract") as progress:
        whole = candidates(encoded, tables, aim, opset, known)
        settled = settle(
            whole,
            own,
            source,
            deadline=time.monotonic() + budget.pricing,
            seconds=budget.extraction,
            seed=budget.seed,
            everything=aim.everything,
            progress=progress.step,
        )
        choice = settled.choice
        progress.note(f"{choice.status}, gap {choice.gap:.2%}")
    parts = (graph, encoded, whole.forms, settled.problem, choice)
    return Plan(
        emit(*parts),
        emit(*parts, targeted=True) if aim.machine.targeted else None,
        saturation,
        settled,
        _seconds(settled.original, settled.original_choice),
        _seconds(settled.problem, choice),
        encoded,
    )


def candidates(
    encoded: Encoded,
    tables: Tables,
    aim: Aim,
    opset: int,
    known: Mapping[int, float] | None = None,
) -> Candidates:
    """All kernels of an e-graph as it is now.

    Args:
        encoded: The e-graph.
        tables: Its tables.
        aim: Sizes and machine.
        opset: The model's version of the default operator set.
        known: Seconds of e-nodes, by handle, that need not be asked for.
    """
    egraph = encoded.egraph
    forms = constant_forms(egraph, tables, opset)
    rows = [row for row in tables.enodes() if row.eclass not in forms]
    roots = [egraph.find(root) for root in encoded.roots]
    matcher = Matcher(
        egraph, rows, forms, aim.sizes, aim.fusions, opset, roots, known or {}
    )
    return Candidates(collect(matcher, aim.machine), forms, roots)


def _handles(
    encoded: Encoded, graph: Graph, seconds: Mapping[int, float]
) -> dict[int, float]:
    """What is known of nodes, by the handles of their e-nodes."""
    found = {}
    for index, each in seconds.items():
        handle = encoded.handle_of[Ref(index)]
        if len(graph.nodes[index].outputs) > 1:
            handle = encoded.egraph.key_of[handle].arguments[0]
        found[handle] = each
    return found


def _seconds(problem: Problem, choice: Choice) -> float:
    """Predicted cost of a choice, without surcharges."""
    return math.fsum(problem.seconds[node] for node in choice.node_of.values())

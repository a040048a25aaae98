"""One graph in, the cheapest equal graph out: encode, saturate, price, extract, decode."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from extraction import Choice, EGraph, extract
from rulesets.rule import Rule
from rulesets.store import relevant
from tensat.costs.source import CostSource
from tensat.egraph.compile_rules import compile_rules, literals_of
from tensat.egraph.constant_forms import constant_forms
from tensat.egraph.decode import Decoded, decode, extraction_problem
from tensat.egraph.encode import Encoded, encode
from tensat.egraph.engine import Tables
from tensat.egraph.price import PricedENode, price
from tensat.egraph.saturate import Growth, Limits, Saturation, saturate
from tensat.model.graph import CONSTANT, INPUT, Graph
from tensat.stages import Clock


@dataclass(frozen=True, slots=True)
class Plan:
    """The cheapest graph found, and how it was found.

    Attributes:
        decoded: The graph, constant parts not computed yet, and the rules behind its nodes.
        saturation: How the e-graph grew.
        choice: What extraction chose and what it proved.
        problem: The e-graph that extraction saw.
        original_seconds: Predicted cost of the original graph.
        seconds: Predicted cost of the graph found; the choice's own cost has a surcharge.
        encoded: The e-graph itself.
        priced: Its e-nodes with their costs.
        behind: The e-node behind each node of the problem; None for constants.
    """

    decoded: Decoded
    saturation: Saturation
    choice: Choice
    problem: EGraph
    original_seconds: float
    seconds: float
    encoded: Encoded
    priced: tuple[PricedENode, ...]
    behind: tuple[PricedENode | None, ...]

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
            "nodes": len(self.problem.nodes),
            "classes": len(self.problem.ids),
            "method": self.choice.method,
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


def improve(
    graph: Graph,
    rules: Sequence[Rule],
    source: CostSource,
    sizes: Mapping[str, int],
    budget: Budget,
    clock: Clock,
) -> Plan:
    """The cheapest graph that the rules make of a graph.

    Args:
        graph: The graph.
        rules: Proved rewrites.
        source: What operators cost.
        sizes: Value of each symbolic dimension, for costs.
        budget: Limits.
        clock: Measures the stages.

    Returns:
        The plan; its graph may be the original one.
    """
    with clock.stage("saturate") as progress:
        rules = relevant(rules, {node.op for node in graph.nodes})
        literals = literals_of(rules)
        encoded = encode(graph, literals)
        patterns = compile_rules(rules, encoded.egraph, literals)

        def show(growth: Growth) -> None:
            progress.note(f"{growth.nodes} e-nodes, {growth.classes} e-classes")

        saturation = saturate(encoded.egraph, patterns, budget.limits, show)
        tables = encoded.egraph.refresh()
    with clock.stage("costs") as progress:
        deadline = time.monotonic() + budget.pricing
        opset = graph.header.opset
        forms = constant_forms(encoded.egraph, tables, opset)
        priced = price(
            encoded.egraph, tables, source, sizes, opset, deadline, progress.step, forms
        )
    with clock.stage("extract") as progress:
        problem, behind = extraction_problem(encoded, priced, forms)
        choice = extract(
            problem, method="ilp", seconds=budget.extraction, seed=budget.seed, workers=1
        )
        progress.note(f"{choice.status}, gap {choice.gap:.2%}")
    decoded = decode(graph, encoded, forms, choice, behind)
    original = original_seconds(graph, encoded, tables, priced)
    chosen = (behind[node] for node in choice.node_of.values())
    found = math.fsum(enode.seconds for enode in chosen if enode is not None)
    return Plan(
        decoded, saturation, choice, problem, original, found, encoded, priced, behind
    )


def original_seconds(
    graph: Graph, encoded: Encoded, tables: Tables, priced: Sequence[PricedENode]
) -> float:
    """Predicted cost of the graph as it was: each of its nodes once, equal ones too."""
    seconds = {enode.handle: enode.seconds for enode in priced}
    egraph = encoded.egraph
    total = 0.0
    for ref, handle in encoded.handle_of.items():
        node = graph.nodes[ref.node]
        if ref.output or node.op in {CONSTANT, INPUT}:
            continue
        first = egraph.key_of[handle].arguments[0] if len(node.outputs) > 1 else handle
        key = egraph.key_of[first]
        total += seconds.get(
            egraph.handle_of(key.operator, key.attributes, key.arguments), 0.0
        )
    return total

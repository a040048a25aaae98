"""Running one search of a comparison.

All searches get the same rules and the same cost source, and none of them the surcharge on
new nodes with which `optimize` guards against noise: what differs is the search.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from extraction import Choice, extract
from rulesets.rule import Rule
from rulesets.store import relevant
from tensat.backtrack import Bounds, backtrack
from tensat.comparison.memory import Gauge
from tensat.comparison.row import BACKTRACKING, ILP, ORIGINAL, Row
from tensat.costs.source import CostSource, Progress, Signature
from tensat.egraph.compile_rules import compile_rules, literals_of
from tensat.egraph.constant_forms import constant_forms
from tensat.egraph.encode import Encoded, encode
from tensat.egraph.engine import ENodeRow, Tables
from tensat.egraph.saturate import Limits, saturate
from tensat.kernels.collect import PLAIN_MACHINE, collect
from tensat.kernels.emit import Decoded, emit
from tensat.kernels.matching import Matcher
from tensat.kernels.problem import Problem, kernel_problem
from tensat.model.graph import Graph

LEAST_SHARE = 0.25
"""Share of the time that is left to extraction whatever happened before."""

GREEDY_SECONDS = 10.0
"""Time limit for adding up the original, of which there is one way only."""


@dataclass(frozen=True, slots=True)
class Task:
    """A search to be run; or several that share an e-graph.

    Attributes:
        methods: ``backtracking`` alone, or methods of extraction.
        alpha: Of backtracking.
        budget: Of backtracking.
        rounds: Steps in which multi-pattern rules run, of an e-graph.
        seconds: Wall time.
        max_nodes: E-nodes.
        iterations: Steps of saturation.
        seed: For the solver.
    """

    methods: tuple[str, ...]
    alpha: float = 1.0
    budget: int = 1000
    rounds: int = 1
    seconds: float = 20.0
    max_nodes: int = 50_000
    iterations: int = 15
    seed: int = 0

    def rows(self) -> tuple[Row, ...]:
        """Rows that say which searches these are, and nothing of what they found."""
        if self.methods == (BACKTRACKING,):
            return (Row(BACKTRACKING, {"alpha": self.alpha, "budget": self.budget}),)
        return tuple(Row(method, {"rounds": self.rounds}) for method in self.methods)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: its row, and the graph with its constant parts not folded."""

    row: Row
    decoded: Decoded


class TimedCosts:
    """A cost source that knows how long it was asked."""

    def __init__(self, source: CostSource) -> None:
        self.name = source.name
        self.spent = 0.0
        self._source = source

    def seconds(
        self,
        signatures: Sequence[Signature],
        deadline: float | None = None,
        progress: Progress | None = None,
    ) -> list[float]:
        """As the source itself."""
        start = time.monotonic()
        try:
            return self._source.seconds(signatures, deadline, progress)
        finally:
            self.spent += time.monotonic() - start


def run_task(
    task: Task,
    graph: Graph,
    rules: Sequence[Rule],
    source: CostSource,
    sizes: Mapping[str, int],
) -> tuple[Found, ...]:
    """Run the searches of a task.

    Args:
        task: What to do.
        graph: The graph.
        rules: Proved rewrites.
        source: What operators cost.
        sizes: Value of each symbolic dimension.
    """
    timed = TimedCosts(source)
    if task.methods == (BACKTRACKING,):
        return (_backtrack(task, graph, rules, timed, sizes),)
    return _extract(task, graph, rules, timed, sizes)


def original_row(
    graph: Graph, source: CostSource, sizes: Mapping[str, int]
) -> tuple[Row, int]:
    """The row of the graph as it is, and the number of its operators."""
    encoded = encode(graph)
    cost = _original_cost(encoded, source, sizes, graph.header.opset)
    operators = sum(node.op not in {"Input", "Constant"} for node in graph.nodes)
    return Row(ORIGINAL, {}, cost, record=((0.0, cost),), seen=1, unit="graphs"), operators


def _backtrack(
    task: Task,
    graph: Graph,
    rules: Sequence[Rule],
    timed: TimedCosts,
    sizes: Mapping[str, int],
) -> Found:
    gauge = Gauge()
    start, processor = time.monotonic(), time.process_time()
    bounds = Bounds(task.alpha, task.budget, task.seconds)
    found = backtrack(graph, rules, timed, sizes, bounds)
    seconds = time.monotonic() - start - timed.spent
    (row,) = task.rows()
    row = replace(
        row,
        cost=found.seconds,
        stop=found.stop,
        seconds=seconds,
        processor=time.process_time() - processor,
        seen=found.graphs,
        unit="graphs",
        memory=gauge.grown(),
        record=found.record,
        stages={"taken": found.taken},
    )
    return Found(row, found.decoded)


def _extract(
    task: Task,
    graph: Graph,
    rules: Sequence[Rule],
    timed: TimedCosts,
    sizes: Mapping[str, int],
) -> tuple[Found, ...]:
    gauge = Gauge()
    start, processor = time.monotonic(), time.process_time()
    limits = Limits(
        task.max_nodes, task.seconds * (1 - LEAST_SHARE), task.iterations, task.rounds
    )
    chosen = relevant(rules, {node.op for node in graph.nodes})
    literals = literals_of(chosen)
    encoded = encode(graph, literals)
    first = _original_cost(encoded, timed, sizes, graph.header.opset)
    patterns = compile_rules(chosen, encoded.egraph, literals)
    saturation = saturate(encoded.egraph, patterns, limits)
    tables = encoded.egraph.refresh()
    saturated = time.monotonic() - start
    opset = graph.header.opset
    forms = constant_forms(encoded.egraph, tables, opset)
    problem = _problem(encoded, tables, forms, timed, sizes, opset)
    before = time.monotonic() - start - timed.spent
    processor_before = time.process_time() - processor
    found = []
    for row in task.rows():
        begin, processor = time.monotonic(), time.process_time()
        left = max(task.seconds - before, task.seconds * LEAST_SHARE)
        choice = extract(
            problem.egraph, row.method, seconds=left, seed=task.seed, workers=1
        )
        took = time.monotonic() - begin
        row = replace(
            row,
            cost=choice.cost,
            bound=choice.bound if row.method == ILP else None,
            stop=_stop(saturation.stop, choice),
            seconds=before + took,
            processor=processor_before + time.process_time() - processor,
            seen=saturation.growth[-1].nodes,
            unit="e-nodes",
            memory=gauge.grown(),
            record=((0.0, first), (before + took, choice.cost)),
            stages={
                "saturate": saturated,
                "costs": before - saturated,
                "extract": took,
            },
        )
        found.append(Found(row, emit(graph, encoded, forms, problem, choice)))
    return tuple(found)


def _stop(saturation: str, choice: Choice) -> str:
    """Why the e-graph stopped to grow, and whether extraction ran out of time."""
    return f"{saturation}, timed out" if choice.status == "timed out" else saturation


def _problem(
    encoded: Encoded,
    tables: Tables,
    forms: Mapping[int, ENodeRow],
    source: CostSource,
    sizes: Mapping[str, int],
    opset: int,
) -> Problem:
    """What extraction chooses from: operators one by one, without any surcharge."""
    egraph = encoded.egraph
    rows = [row for row in tables.enodes() if row.eclass not in forms]
    kernels = collect(Matcher(egraph, rows, forms, sizes, (), opset), PLAIN_MACHINE)
    asked = dict.fromkeys(each for kernel in kernels for each in kernel.signatures)
    costs = dict(zip(asked, source.seconds(list(asked)), strict=True))
    seconds = [k.fixed + sum(costs[each] for each in k.signatures) for k in kernels]
    roots = [egraph.find(root) for root in encoded.roots]
    return kernel_problem(kernels, seconds, forms, roots, 0.0, 0.0)


def _original_cost(
    encoded: Encoded, source: CostSource, sizes: Mapping[str, int], opset: int
) -> float:
    """The cost of a graph that no rule was applied to, equal nodes once."""
    tables = encoded.egraph.refresh()
    forms = constant_forms(encoded.egraph, tables, opset)
    problem = _problem(encoded, tables, forms, source, sizes, opset)
    return extract(problem.egraph, "greedy-dag", seconds=GREEDY_SECONDS).cost

"""TASO's backtracking against extraction from e-graphs, greedy and exact, on one model."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx_ir as ir

from rulesets.size import Poly
from rulesets.store import load
from tensat.check.feeds import Inputs, find_inputs
from tensat.check.guard import Race, time_in_turn
from tensat.comparison.row import (
    BACKTRACKING,
    GREEDY_DAG,
    GREEDY_TREE,
    ILP,
    Comparison,
    Row,
)
from tensat.comparison.search import Task
from tensat.comparison.worker import Answer, Request, answers, ask
from tensat.errors import UsageError
from tensat.job import versions
from tensat.model.graph import Graph
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_read import ModelLike, read
from tensat.model.onnx_write import write
from tensat.optimize import select_rules
from tensat.options import Options
from tensat.runtime import Failure, Feeds, Runtime
from tensat.sizes import bind_sizes
from tensat.stages import Progress, Silent

SEARCHES = ((1.0, 1000), (1.05, 100), (1.05, 1000))
"""Alpha and budget of the backtracking searches: TASO's defaults, and its examples'."""


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """How to compare.

    Attributes:
        input_shapes: Sizes to optimize and measure for, by input name.
        seconds: Wall time of each search.
        searches: Alpha and budget of each backtracking search.
        rounds: For each ILP the steps in which multi-pattern rules run.
        greedy_rounds: That of the e-graph from which greedy extraction chooses; one of
            the others.
        max_nodes: E-nodes at which saturation stops.
        iterations: Steps of saturation at most.
        cost: ``roofline`` (estimated), ``cpu`` (operators measured in ONNX Runtime) or
            ``table`` (recorded, of any device).
        cost_db: File of measured costs; None is the user's cache folder.
        cost_table: File of recorded costs, or a database; for ``table`` only.
        measure: Whether to time each result against the original.
        skip: Names of rules that no search uses.
        seed: For random inputs and the solver.
        threads: Threads for measuring.
        isolated: Whether each search has a process of its own; without, memory is that of
            this process.
    """

    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    seconds: float = 20.0
    searches: tuple[tuple[float, int], ...] = SEARCHES
    rounds: tuple[int, ...] = (0, 1, 2)
    greedy_rounds: int = 1
    max_nodes: int = 50_000
    iterations: int = 15
    cost: str = "roofline"
    cost_db: Path | None = None
    cost_table: Path | None = None
    measure: bool = False
    skip: tuple[str, ...] = ()
    seed: int = 0
    threads: int = 1
    isolated: bool = True

    def __post_init__(self) -> None:
        # What both have in common has one meaning, and one place where it is checked.
        Options(
            seconds=self.seconds,
            max_nodes=self.max_nodes,
            iterations=self.iterations,
            cost=self.cost,
            cost_table=self.cost_table,
            seed=self.seed,
            threads=self.threads,
        )
        if self.rounds and self.greedy_rounds not in self.rounds:
            raise UsageError(
                f"greedy_rounds is {self.greedy_rounds}; possible: {self.rounds}"
            )

    def tasks(self) -> tuple[Task, ...]:
        """The searches; those on e-graphs first, which ask for most costs."""
        common = Task((), seconds=self.seconds, max_nodes=self.max_nodes, seed=self.seed)
        common = replace(common, iterations=self.iterations)
        greedy = (GREEDY_TREE, GREEDY_DAG, ILP)
        on_egraphs = [
            replace(common, methods=greedy if k == self.greedy_rounds else (ILP,), rounds=k)
            for k in self.rounds
        ]
        backtracking = [
            replace(common, methods=(BACKTRACKING,), alpha=alpha, budget=budget)
            for alpha, budget in self.searches
        ]
        return (*on_egraphs, *backtracking)


def compare(
    model: ModelLike,
    options: CompareOptions | None = None,
    *,
    progress: Progress | None = None,
    name: str | None = None,
) -> Comparison:
    """Run every search on a model, with the same rules and the same costs.

    Args:
        model: Path of an ONNX file, a ModelProto or an onnx_ir Model; it is not changed.
        options: How; defaults if None.
        progress: Told what happens.
        name: What the comparison calls the model; the file's name if None.

    Returns:
        A row for the original and one for each search: predicted cost, proven gap, search
        time, size, memory, and cost over time.

    Raises:
        ModelError: The model cannot be read or is invalid.
        UsageError: An option makes no sense for this model.
        ExecutionError: Open dimensions need a run of the model, and it does not run.
    """
    options = options or CompareOptions()
    used = {rule.name for rule in select_rules(load(), options.skip, cost=options.cost)}
    unused = tuple(rule.name for rule in load() if rule.name not in used)
    options = replace(options, skip=unused)
    progress = progress or Silent()
    progress.stage("read")
    original = read(model)
    with tempfile.TemporaryDirectory(prefix="tensat-") as folder:
        path = Path(folder) / "original.onnx"
        write(original, path)
        found, source = _answers(original, path, options, progress)
    title = name or _title(model) or original.graph.name or "model"
    rows = tuple(answer.row for answer in found)
    operators = found[0].operators
    return Comparison(title, source, operators, _ordered(rows), versions())


def _title(model: ModelLike) -> str | None:
    """The name of a file."""
    if isinstance(model, str | os.PathLike):
        return Path(model).stem
    return None


def _ordered(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """The rows with backtracking right after the original."""
    first = [row for row in rows[1:] if row.method == BACKTRACKING]
    return (rows[0], *first, *(row for row in rows[1:] if row.method != BACKTRACKING))


def _answers(
    original: ir.Model, path: Path, options: CompareOptions, progress: Progress
) -> tuple[list[Answer], str]:
    tasks = options.tasks()
    graph = to_graph(original)
    with Runtime() as runtime:
        inputs, sizes = _inputs(graph, path, options, runtime)
        request = Request(
            str(path),
            tasks,
            sizes,
            options.skip,
            options.cost,
            None if options.cost_db is None else str(options.cost_db),
            None if options.cost_table is None else str(options.cost_table),
            options.threads,
            str(path.parent) if options.measure else None,
        )
        progress.stage("search")
        total = 1 + sum(len(task.methods) for task in tasks)
        found = []
        stream = ask(request) if options.isolated else answers(request, fork=False)
        for answer in stream:
            found.append(answer)
            progress.note(answer.row.name)
            progress.step(len(found), total)
        if inputs is not None and options.measure:
            progress.stage("measure")
            feeds = inputs.feeds(options.seed)
            found = _measured(found, path, feeds, options, runtime, progress)
    return found, options.cost


def _inputs(
    graph: Graph, path: Path, options: CompareOptions, runtime: Runtime
) -> tuple[Inputs | None, Mapping[str, int]]:
    """Inputs and the values of open dimensions; none if they are not needed."""
    dims = [s for node in graph.nodes for t in node.outputs for s in t.shape or ()]
    opened = any(isinstance(dim, Poly) for dim in dims)
    if not (options.measure or options.input_shapes or opened):
        return None, {}
    inputs = find_inputs(runtime, str(path), options.input_shapes, (options.seed,))
    feeds = inputs.feeds(options.seed)
    return inputs, bind_sizes(graph, inputs.shapes, str(path), feeds, runtime)


def _measured(
    found: list[Answer],
    path: Path,
    feeds: Feeds,
    options: CompareOptions,
    runtime: Runtime,
    progress: Progress,
) -> list[Answer]:
    """The answers with ratios of latencies; equal graphs run once and share theirs."""
    races: dict[bytes, Race | Failure] = {}
    timed = []
    for at, answer in enumerate(found):
        if answer.path is not None:
            with Path(answer.path).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").digest()
            if digest not in races:
                races[digest] = time_in_turn(
                    runtime, str(path), answer.path, feeds, threads=options.threads
                )
            answer = replace(answer, row=_raced(answer.row, races[digest]))
        timed.append(answer)
        progress.step(at + 1, len(found))
    return timed


def _raced(row: Row, race: Race | Failure) -> Row:
    """The row with the measured ratio of latencies."""
    if isinstance(race, Failure):
        return replace(row, note=str(race))
    return replace(row, ratio=race.ratio, spread=race.spread)

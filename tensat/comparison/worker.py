"""Each search in a process of its own: nothing that one leaves behind helps another.

The process reads a `Request` from standard input, loads the model once, and forks for each
task, so that the memory of a search is that of its process. Rows go to standard output as
they come. Where processes cannot fork, searches share one.
"""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from rulesets.rule import Rule
from rulesets.store import load
from tensat.comparison.one_table import Known, OneTable
from tensat.comparison.row import Row
from tensat.comparison.search import Found, Task, original_row, run_task
from tensat.cost_sources import cost_source
from tensat.costs.source import CostSource
from tensat.errors import ExecutionError, UsageError
from tensat.fold import fold
from tensat.model.graph import Graph
from tensat.model.onnx_export import to_model
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_read import read
from tensat.model.onnx_write import write
from tensat.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Request:
    """What a worker is asked for.

    Attributes:
        model: Path of the model.
        tasks: The searches.
        sizes: Value of each symbolic dimension.
        skip: Rules that are not used.
        cost: Name of the cost source.
        cost_db: File of measured costs; None is the user's.
        cost_table: File of recorded costs, for ``table`` only.
        threads: Threads for measuring operators.
        folder: Where the graphs found are written; None if nowhere.
    """

    model: str
    tasks: tuple[Task, ...]
    sizes: Mapping[str, int]
    skip: tuple[str, ...] = ()
    cost: str = "roofline"
    cost_db: str | None = None
    cost_table: str | None = None
    threads: int = 1
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A row, and where its graph was written; None if it was not.

    Attributes:
        row: The row.
        path: The file of the graph.
        operators: Operators of the graph; 0 if unknown.
    """

    row: Row
    path: str | None = None
    operators: int = 0


type Outcome = tuple[list[Answer], Known]
"""The answers of one search, and all costs that are known after it."""


def ask(request: Request) -> Iterator[Answer]:
    """The answers of a worker, the original's first, as they come.

    Raises:
        ExecutionError: The worker ended before its work did.
        UsageError: The costs that are asked for cannot be had.
    """
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, "-c", f"from {__name__} import main; main()"]
    wanted = 1 + sum(len(task.methods) for task in request.tasks)
    path = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **one, "PYTHONPATH": os.pathsep.join(filter(None, path))},
    )
    assert process.stdin is not None, "it was asked for"
    assert process.stdout is not None, "it was asked for"
    with process:
        try:
            pickle.dump(request, process.stdin)
            process.stdin.close()
            for done in range(wanted):
                try:
                    answer = pickle.load(process.stdout)
                except EOFError:
                    raise ExecutionError(
                        f"the process that searches ended after {done} of {wanted} rows"
                    ) from None
                if isinstance(answer, UsageError):
                    raise answer
                yield answer
        finally:
            process.kill()


def main() -> None:
    """Answer one request."""
    request: Request = pickle.load(sys.stdin.buffer)
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else prints must not get between the rows
    try:
        for answer in answers(request, fork=hasattr(os, "fork")):
            pickle.dump(answer, target)
            target.flush()
    except UsageError as error:
        pickle.dump(error, target)
        target.flush()


def answers(request: Request, *, fork: bool) -> Iterator[Answer]:
    """The answers to a request, each search in a fork of this process if wanted."""
    graph = to_graph(read(request.model))
    rules = tuple(rule for rule in load() if rule.name not in set(request.skip))
    known: Known = {}
    with _costs(request) as source:
        row, operators = original_row(graph, OneTable(source, known), request.sizes)
    yield Answer(row, None, operators)
    for number, task in enumerate(request.tasks):

        def run(number: int = number, task: Task = task) -> Outcome:
            return _run(request, number, task, graph, rules, known), known

        found, costs = _forked(run, task) if fork else run()
        known.update(costs)
        yield from found


def _run(
    request: Request,
    number: int,
    task: Task,
    graph: Graph,
    rules: Sequence[Rule],
    known: Known,
) -> list[Answer]:
    try:
        with _costs(request) as source:
            table = OneTable(source, known)
            found = run_task(task, graph, rules, table, request.sizes)
        return [_written(request, number, each) for each in found]
    except Exception as error:  # one search that fails must not take the others with it
        return failed(task, f"{type(error).__name__}: {error}")


def failed(task: Task, text: str) -> list[Answer]:
    """Answers that say what went wrong."""
    return [Answer(replace(row, cost=math.nan, note=text)) for row in task.rows()]


def _forked(run: Callable[[], Outcome], task: Task) -> Outcome:
    """What a function returns, called in a fork."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(run(), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        result = _received(pipe)
    _, status = os.waitpid(child, 0)
    if result is None:
        code = os.waitstatus_to_exitcode(status)
        return failed(task, f"the process of the search ended with {code}"), {}
    return result


def _received(pipe: BinaryIO) -> Outcome | None:
    try:
        result: Outcome = pickle.load(pipe)
    except (EOFError, pickle.UnpicklingError):
        return None
    return result


def _written(request: Request, number: int, found: Found) -> Answer:
    nodes = found.decoded.graph.nodes
    operators = sum(node.op not in {"Input", "Constant"} for node in nodes)
    operators -= len(found.decoded.constants)
    if request.folder is None:
        return Answer(found.row, None, operators)
    path = str(Path(request.folder) / f"{number}.{found.row.method}.onnx")
    with Runtime() as runtime:
        folded = fold(found.decoded.graph, runtime, found.decoded.constants)
    write(to_model(folded.graph), path)
    return Answer(found.row, path, operators)


@contextmanager
def _costs(request: Request) -> Iterator[CostSource]:
    """The cost source that a request names; each search measures in a child of its own."""
    with (
        Runtime() as runtime,
        cost_source(
            request.cost,
            runtime,
            database=_file(request.cost_db),
            table=_file(request.cost_table),
            threads=request.threads,
        ) as source,
    ):
        yield source


def _file(name: str | None) -> Path | None:
    return None if name is None else Path(name)

"""Run an extractor over folders of e-graphs; one JSON line per file.

Every file gets its own deadline that starts before the file is read, so times are end to
end. Proven means optimal by the extractor's word and checked by `Choice.check`.
"""

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from extraction.deadline import Deadline
from extraction.egraph_json import read
from extraction.errors import ExtractionError
from extraction.extractor import Limits
from extraction.registry import find_method

SUFFIXES = (".json", ".json.gz")


@dataclass(frozen=True, slots=True)
class Result:
    """One file's result.

    Attributes:
        suite: The folder's name.
        name: The file's name without suffix.
        status: The choice's status, or `error`.
        cost: Its cost; NaN for an error.
        bound: Its bound.
        greedy: The better greedy cost.
        seconds: Wall time from opening the file to the checked choice.
        cpu_seconds: Processor time of the same.
        nodes: E-nodes in the file.
        error: The error's text, or nothing.
    """

    suite: str
    name: str
    status: str
    cost: float
    bound: float
    greedy: float
    seconds: float
    cpu_seconds: float
    nodes: int
    error: str = ""


def find_files(folders: Iterable[str | Path]) -> list[Path]:
    """Return the e-graph files of some folders, sorted; a file stands for itself."""
    found: set[Path] = set()
    for folder in map(Path, folders):
        if folder.is_file():
            found.add(folder)
        found.update(p for p in folder.rglob("*") if p.name.endswith(SUFFIXES))
    return sorted(found)


def run(
    files: Iterable[Path],
    seconds: float,
    method: str = "ilp",
    seed: int = 0,
    workers: int = 1,
) -> Iterator[Result]:
    """Yield the result of one file after another.

    Args:
        files: The files.
        seconds: Time limit of each.
        method: A name of the registry.
        seed: Random seed.
        workers: Threads a solver may use.
    """
    extractor = find_method(method).extractor
    greedy = find_method("greedy").extractor
    for path in files:
        start, cpu = time.monotonic(), time.process_time()
        limits = Limits(Deadline(start + seconds), seed, workers)
        suite, name = path.parent.name, path.name.removesuffix(".gz").removesuffix(".json")
        nan = float("nan")
        try:
            graph = read(path)
            choice = extractor(graph, limits)
            choice.check(graph)
        except ExtractionError as error:
            passed, used = time.monotonic() - start, time.process_time() - cpu
            yield Result(suite, name, "error", nan, nan, nan, passed, used, 0, str(error))
            continue
        passed, used = time.monotonic() - start, time.process_time() - cpu
        first = greedy(graph, Limits(Deadline.after(seconds))).cost
        yield Result(
            suite,
            name,
            choice.status,
            choice.cost,
            choice.bound,
            first,
            passed,
            used,
            len(graph.nodes),
        )


def to_line(result: Result) -> str:
    """Return a result as one line of JSON."""
    return json.dumps(asdict(result))


def summarize(results: Iterable[Result]) -> list[tuple[str, int, int, int, float, float]]:
    """Return per suite and for all: files, proven, below greedy, seconds, slowest."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.suite, []).append(result)
        groups.setdefault("all", []).append(result)
    groups["all"] = groups.pop("all", [])
    return [
        (
            suite,
            len(group),
            sum(result.status == "optimal" for result in group),
            sum(result.cost < result.greedy * (1 - 1e-9) for result in group),
            sum(result.seconds for result in group),
            max((result.seconds for result in group), default=0.0),
        )
        for suite, group in groups.items()
    ]

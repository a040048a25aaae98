"""The command line: extract from one file, bench folders, fuzz.

    python -m extraction GRAPH [--method NAME] [--seconds S] [--seed N] [--json]
    python -m extraction bench FOLDER… --seconds S --out results.jsonl --plot out.svg
    python -m extraction fuzz --count N
    python -m extraction methods

Exit codes: 0 done, 1 mismatches or files with errors, 2 a fault of the input.
"""

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from extraction.bench import Result, find_files, run, summarize, to_line
from extraction.choice import Choice
from extraction.deadline import Deadline
from extraction.egraph import EGraph
from extraction.egraph_json import load, lost_roots, parse
from extraction.errors import ExtractionError
from extraction.extractor import Limits
from extraction.fuzz import fuzz
from extraction.plot import draw
from extraction.registry import METHODS, find_method


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    commands = {"bench": _bench, "fuzz": _fuzz, "methods": _methods}
    try:
        if given and given[0] in commands:
            return commands[given[0]](given[1:])
        return _extract(given)
    except (ExtractionError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _parser(command: str, description: str) -> argparse.ArgumentParser:
    program = f"python -m extraction {command}".rstrip()
    return argparse.ArgumentParser(prog=program, description=description)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(method.name for method in METHODS)
    parser.add_argument("--method", default="ilp", help=f"one of {names} (default ilp)")
    parser.add_argument("--seconds", type=float, default=30.0, help="time limit (30)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (0)")
    parser.add_argument("--workers", type=int, default=1, help="solver threads (1)")


def _extract(given: Sequence[str]) -> int:
    start = time.monotonic()
    parser = _parser("", "Extract the roots of a serialized e-graph at least cost.")
    parser.epilog = "other commands: bench, fuzz, methods"
    parser.add_argument("graph", help="a JSON file, gzip or not")
    parser.add_argument("--root", action="append", help="a root e-class; repeatable")
    parser.add_argument("--json", action="store_true", help="print the choice as JSON")
    _add_limits(parser)
    asked = parser.parse_args(given)
    method = find_method(asked.method)
    document = load(asked.graph)
    graph = parse(document, asked.graph, asked.root)
    if asked.root is None and (lost := lost_roots(document)):
        print(f"note: roots {lost} were merged into others", file=sys.stderr)
    limits = Limits(Deadline(start + asked.seconds), asked.seed, asked.workers)
    choice = method.extractor(graph, limits)
    choice.check(graph)
    choice = dataclasses.replace(choice, seconds=time.monotonic() - start)
    print(_as_json(graph, choice) if asked.json else _as_text(graph, choice))
    return 0


def _as_json(graph: EGraph, choice: Choice) -> str:
    document = {
        "status": choice.status,
        "cost": choice.cost,
        "bound": choice.bound,
        "gap": choice.gap,
        "method": choice.method,
        "seconds": round(choice.seconds, 3),
        "statistics": dict(choice.statistics),
        "choice": {
            str(eclass): {"node": node, "op": graph.nodes[node].op}
            for eclass, node in choice.node_of.items()
        },
    }
    return json.dumps(document, indent=1)


def _as_text(graph: EGraph, choice: Choice) -> str:
    lines = [
        f"status   {choice.status}",
        f"cost     {choice.cost:.9g}",
        f"bound    {choice.bound:.9g}  (gap {100 * choice.gap:.3g} %)",
        f"e-nodes  {len(choice.node_of)} chosen of {len(graph.nodes)}",
        f"seconds  {choice.seconds:.2f}  ({choice.method})",
    ]
    return "\n".join(lines)


def _bench(given: Sequence[str]) -> int:
    parser = _parser("bench", "Extract from every e-graph of some folders.")
    parser.add_argument("folders", nargs="+", help="folders or files")
    parser.add_argument("--out", default="results.jsonl", help="where results go")
    parser.add_argument("--plot", help="where a plot goes (svg, png, pdf)")
    _add_limits(parser)
    asked = parser.parse_args(given)
    files = find_files(asked.folders)
    if not files:
        raise ExtractionError(f"no .json or .json.gz file under {asked.folders}")
    results = _run_with_progress(files, asked)
    _print_summary(results)
    if asked.plot:
        draw([result for result in results if result.status != "error"], asked.plot)
    return int(any(result.status == "error" for result in results))


def _run_with_progress(files: list[Path], asked: argparse.Namespace) -> list[Result]:
    from rich.progress import Progress

    results = []
    stream = run(files, asked.seconds, asked.method, asked.seed, asked.workers)
    with Progress(transient=True) as progress, Path(asked.out).open("w") as out:
        task = progress.add_task("extracting", total=len(files))
        for result in stream:
            results.append(result)
            out.write(to_line(result) + "\n")
            out.flush()
            progress.update(
                task, advance=1, description=f"{result.suite}/{result.name}"[:40]
            )
    return results


def _print_summary(results: list[Result]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("suite", "files", "proven", "below greedy", "seconds", "slowest")
    for suite, files, proven, better, seconds, slowest in summarize(results):
        cells = (f"{files}", f"{proven}", f"{better}", f"{seconds:.1f}", f"{slowest:.2f}")
        table.add_row(suite, *cells)
    Console().print(table)


def _fuzz(given: Sequence[str]) -> int:
    parser = _parser("fuzz", "Hold everything against brute force on random e-graphs.")
    parser.add_argument("--count", type=int, default=1000, help="e-graphs (1000)")
    parser.add_argument("--seed", type=int, default=0, help="first seed (0)")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this long")
    asked = parser.parse_args(given)
    start, done, wrong, batch = time.monotonic(), 0, 0, 500
    while done < asked.count and time.monotonic() - start < asked.seconds:
        size = min(batch, asked.count - done)
        for mismatch in fuzz(size, asked.seed + done):
            wrong += 1
            print(mismatch)
        done += size
    print(f"{done} e-graphs from seed {asked.seed}: {wrong} mismatches")
    return int(wrong > 0)


def _methods(given: Sequence[str]) -> int:
    _parser("methods", "List the extractors and what they guarantee.").parse_args(given)
    for method in METHODS:
        print(f"{method.name:12} {method.guarantee}")
    return 0

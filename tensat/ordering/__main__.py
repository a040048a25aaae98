"""``python -m tensat.ordering``: predict and race all pairs, and print who was right."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tensat.errors import TensatError, UsageError
from tensat.kernels.machine import block_size
from tensat.model.put_file import put_file
from tensat.ordering.bench import BenchOptions, run
from tensat.ordering.pair import Pair
from tensat.ordering.pairs import all_pairs
from tensat.ordering.result import Agreement, Row, count, to_json
from tensat.ordering.table import render
from tensat.runtime import Runtime


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if no prediction was wrong, 1 if one was, 2 on errors.

    Args:
        arguments: Of the command line; those of this process if None.
    """
    given = _parser().parse_args(arguments)
    options = BenchOptions(given.threads, given.cost_db, given.seconds, given.seed)
    rows: list[Row] = []
    try:
        with Runtime() as runtime:
            pairs = chosen(all_pairs(block_size(runtime)), given.only)
            for row in run(pairs, runtime, options):
                rows.append(row)
                progress = f"{len(rows)}/{len(pairs)} {row.name}: {row.agreement}"
                print(progress, file=sys.stderr, flush=True)
    except TensatError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    Console(width=max(160, Console().width)).print(render(rows))
    if given.json is not None:
        text = to_json(rows, options.threads)
        put_file(given.json, lambda file: file.write(f"{text}\n".encode()))
    return 1 if count(rows, Agreement.DISAGREE) else 0


def chosen(pairs: Sequence[Pair], names: Sequence[str] | None) -> Sequence[Pair]:
    """Return the pairs of these names, all of them if None.

    Raises:
        UsageError: There is no such pair.
    """
    if not names:
        return pairs
    known = {pair.name: pair for pair in pairs}
    for name in names:
        if name not in known:
            raise UsageError(f"pair {name!r} is unknown; possible: {', '.join(known)}")
    return [known[name] for name in names]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tensat.ordering", description=__doc__)
    parser.add_argument("--threads", type=int, default=1, help="threads that compute")
    parser.add_argument("--cost-db", type=Path, metavar="FILE", help="measured costs")
    parser.add_argument("--only", action="append", metavar="NAME", help="this pair")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all of it as JSON")
    parser.add_argument("--seconds", type=float, default=1.5, help="of one race")
    parser.add_argument("--seed", type=int, default=0, help="for random inputs")
    return parser


if __name__ == "__main__":
    sys.exit(main())

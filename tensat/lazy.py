"""Whether measuring only what matters leads to the plan of measuring everything.

``python -m tensat.lazy MODEL …`` measures every kernel that a model could be computed with
(as ``tensat costs measure --all`` does, into the same database), and plans with all of
these costs. Then it plans once more from nothing: what the lazy search asks for is looked
up among the same numbers, and counted. Both plans are made with equal costs, so a kernel
that is timed twice cannot be what tells them apart.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tensat.costs.floor import least_seconds
from tensat.costs.representative import representative
from tensat.costs.roofline import Roofline
from tensat.costs.source import Progress, Signature
from tensat.errors import ModelError, TensatError
from tensat.improve import Plan
from tensat.kernels.collect import Kernel
from tensat.kernels.settle import Settled, settle
from tensat.optimize import optimize
from tensat.options import TARGETS, Options

EXTRACTION = 60.0
"""Seconds for all extractions of one search."""

_NEVER = 1e9


class Replayed:
    """A cost source that knows only what it was asked for already.

    Attributes:
        timed: The kernels that would have been timed, each once.
    """

    name = "replayed"

    def __init__(
        self, costs: Mapping[Signature, float], dispatch: float, threads: int = 1
    ) -> None:
        """Remember costs.

        Args:
            costs: Seconds of every signature that can be asked for.
            dispatch: Seconds that a node takes besides its kernel.
            threads: Threads that the costs are for.
        """
        self.timed: set[Signature] = set()
        self._costs, self._dispatch, self._threads = costs, dispatch, threads
        self._roofline = Roofline()

    def seconds(
        self,
        signatures: Sequence[Signature],
        deadline: float | None = None,
        progress: Progress | None = None,
    ) -> list[float]:
        """Return the cost of each signature; it is known from now on."""
        self.timed.update(representative(each) for each in signatures)
        return [self._costs[each] for each in signatures]

    def known(self, signatures: Sequence[Signature]) -> list[float | None]:
        """Return the costs that were asked for before, None for the others."""
        return [
            self._costs[each] if representative(each) in self.timed else None
            for each in signatures
        ]

    def floor(self, signature: Signature) -> float:
        """Return what the kernel is not expected to be faster than."""
        return least_seconds(signature, self._roofline, self._threads)

    def dispatch(self) -> float:
        """Return the seconds of a node besides its kernel."""
        return self._dispatch


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one model.

    Attributes:
        model: Its name.
        kernels: Different kernels that could be timed.
        timed: How many of them the lazy search asks for.
        own: How many of them the model as it is is made of.
        everything: Predicted seconds of the plan from all costs.
        lazy: The same of the lazy search's plan.
        equal: Whether both are made of the same kernels, of the same values.
        low: Kernels that are faster than their floor.
        gap: Of the plan from all costs, as extraction proved it.
        turns: How often the lazy search looked for a plan.
        seconds: Wall time of both searches.
        missing: Kernels that were not measured in time, but estimated.
    """

    model: str
    kernels: int
    timed: int
    own: int
    everything: float
    lazy: float
    equal: bool
    low: int
    gap: float
    turns: int
    seconds: tuple[float, float]
    missing: int = 0


def compare(name: str, found: Settled, dispatch: float, threads: int, seed: int) -> Row:
    """Plan with all costs, and once more lazily.

    Args:
        name: Of the model.
        found: What can be chosen, and all costs.
        dispatch: Seconds of a node besides its kernel.
        threads: Threads that the costs are for.
        seed: For the solver.
    """
    settled: list[Settled] = []
    sources: list[Replayed] = []
    seconds: list[float] = []
    for everything in (True, False):
        start = time.monotonic()
        sources.append(Replayed(found.costs, dispatch, threads))
        settled.append(
            settle(
                found.whole, found.own, sources[-1], deadline=_NEVER + start,
                seconds=EXTRACTION, seed=seed, everything=everything,
            )
        )  # fmt: skip
        seconds.append(time.monotonic() - start)
    whole, lazy = settled
    return Row(
        name,
        kernels=len(sources[0].timed),
        timed=len(sources[1].timed),
        own=len({representative(s) for k in found.own.kernels for s in k.signatures}),
        everything=whole.choice.cost,
        lazy=lazy.choice.cost,
        equal=chosen(whole) == chosen(lazy),
        low=sum(sources[0].floor(s) > cost for s, cost in found.costs.items()),
        gap=whole.choice.gap,
        turns=lazy.turns,
        seconds=(seconds[0], seconds[1]),
    )


def chosen(settled: Settled) -> set[Kernel]:
    """Return the kernels of a plan."""
    behind = settled.problem.behind
    kernels = (behind[node] for node in settled.choice.node_of.values())
    return {kernel for kernel in kernels if kernel is not None}


def measured(model: Path, options: Options) -> tuple[Plan, int]:
    """Measure all kernels of a model; return the plan and how many were not in time.

    Raises:
        ModelError: The model cannot be read, or nothing can be planned for it.
    """
    result = optimize(model, options)
    if result.found is None:
        raise ModelError(f"'{model}': nothing was measured: {result.report.reason}")
    return result.found[1], int(result.report.costs.get("scaled", 0))


def render(rows: Sequence[Row]) -> Table:
    """Return rows as a table; times in milliseconds."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("model", no_wrap=True)
    titles = (
        "kernels", "timed", "of its own", "turns", "plan from all", "lazy plan",
        "difference", "plans", "gap", "below floor", "estimated", "search s",
    )  # fmt: skip
    for title in titles:
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(
            row.model, str(row.kernels), str(row.timed), str(row.own), str(row.turns),
            f"{1e3 * row.everything:.4f}", f"{1e3 * row.lazy:.4f}",
            f"{row.lazy / row.everything - 1:.3%}", "equal" if row.equal else "differ",
            f"{row.gap:.1%}", str(row.low), str(row.missing),
            " / ".join(f"{each:.1f}" for each in row.seconds),
        )  # fmt: skip
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if all plans cost the same, 1 if not, 2 on errors.

    Args:
        arguments: Of the command line; those of this process if None.
    """
    given = _parser().parse_args(arguments)
    rows: list[Row] = []
    try:
        options = Options(
            seconds=given.seconds, cost_db=given.cost_db, measure_all=True, measure=False,
            target=given.target, threads=given.threads, seed=given.seed,
        )  # fmt: skip
        for model in given.models:
            plan, missing = measured(model, options)
            row = compare(
                model.stem, plan.settled, plan.settled.dispatch, given.threads, given.seed
            )
            rows.append(replace(row, missing=missing))
            print(
                f"{model.stem}: {row.timed} of {row.kernels}", file=sys.stderr, flush=True
            )
    except TensatError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    Console(width=max(170, Console().width)).print(render(rows))
    return int(any(row.lazy > row.everything * (1 + 1e-9) for row in rows))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tensat.lazy", description=__doc__)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--target", choices=TARGETS, default=TARGETS[0])
    parser.add_argument("--cost-db", type=Path, metavar="FILE", help="measured costs")
    parser.add_argument("--threads", type=int, default=1, help="threads that compute")
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="of one model; half is for measuring"
    )
    parser.add_argument("--seed", type=int, default=0, help="for the solver")
    return parser


if __name__ == "__main__":
    sys.exit(main())

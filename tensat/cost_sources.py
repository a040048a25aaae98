"""The cost source that options name, opened and closed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tensat.costs.cpu import CpuCosts, near_cache
from tensat.costs.roofline import Roofline
from tensat.costs.source import CostSource
from tensat.costs.store import CostStore
from tensat.costs.table import TableCosts
from tensat.errors import UsageError
from tensat.options import COSTS
from tensat.runtime import Runtime


@contextmanager
def cost_source(
    name: str,
    runtime: Runtime,
    *,
    database: Path | None = None,
    table: Path | None = None,
    threads: int = 1,
    weights: int | None = None,
) -> Iterator[CostSource]:
    """Open a cost source for as long as the block lasts.

    Args:
        name: One of `COSTS`.
        runtime: The child process that measures.
        database: File of measured costs; None is the user's.
        table: File of recorded costs, where the name is `table`.
        threads: Threads that compute.
        weights: Bytes of the model's weights, since few stay near a core; None for many.

    Raises:
        UsageError: There is no such source, or its file is refused.
        ExecutionError: The runtime does not start.
    """
    if name == "roofline":
        yield Roofline()
    elif name == "table" and table is not None:
        yield TableCosts.read(table, threads)
    elif name == "cuda":
        from tensat.costs.cuda import open_cuda  # only where it is asked for

        with open_store(database) as store, open_cuda(store) as source:
            yield source
    elif name == "cpu":
        with open_store(database) as store:
            resident = weights is not None and weights <= near_cache()
            yield CpuCosts(store, runtime, threads=threads, resident=resident)
    else:
        raise UsageError(f"cost {name!r} is unknown; possible: {', '.join(COSTS)}")


def open_store(file: Path | None) -> CostStore:
    """Open a database of measured costs; None is the user's.

    Raises:
        UsageError: The file is refused.
    """
    return CostStore.open_default() if file is None else CostStore.open(file)


def counts_of(source: CostSource) -> dict[str, int]:
    """Return how many costs were known, measured, refused, scaled, … where it counts."""
    counts = getattr(source, "counts", {})
    return {str(name): number for name, number in counts.items() if number}

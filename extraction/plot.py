"""Draw bench results: how many files are proven after how long, and what was gained."""

from collections.abc import Sequence
from pathlib import Path

from extraction.bench import Result


def draw(results: Sequence[Result], path: str | Path) -> None:
    """Write a plot of two panels; the file's suffix decides the format.

    Args:
        results: The results of a bench run.
        path: Where to write.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "extraction", "svg.fonttype": "none"}):
        figure = Figure(figsize=(9, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        for suite in sorted({result.suite for result in results}):
            group = [result for result in results if result.suite == suite]
            times = sorted(r.seconds for r in group if r.status == "optimal")
            share = [100 * (at + 1) / len(group) for at in range(len(times))]
            left.step(times, share, where="post", label=suite, marker=".", markersize=3)
            right.scatter(
                [result.nodes for result in group],
                [100 * (1 - r.cost / r.greedy) if r.greedy else 0.0 for r in group],
                s=12,
                label=suite,
            )
        left.set(xscale="log", xlabel="seconds, end to end", ylabel="proven optimal (%)")
        right.set(xscale="log", xlabel="e-nodes", ylabel="below better greedy (%)")
        left.legend(fontsize=7)
        for axes in (left, right):
            axes.grid(alpha=0.3)
        metadata = {"Date": None} if str(path).endswith(".svg") else None
        figure.savefig(path, metadata=metadata)

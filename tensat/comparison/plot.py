"""Comparisons as pictures: cost over time, for each model a panel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tensat.comparison.row import (
    BACKTRACKING,
    GREEDY_DAG,
    GREEDY_TREE,
    ILP,
    Comparison,
    Row,
)
from tensat.errors import UsageError

SUFFIXES = (".svg", ".png", ".pdf")

_COLORS = {
    BACKTRACKING: ("#d95f02", "#e6ab02", "#b2182b", "#e7298a"),
    ILP: ("#1b9e77", "#1f78b4", "#7570b3", "#17becf"),
    GREEDY_TREE: ("#777777",),
    GREEDY_DAG: ("#111111",),
}
_MARKERS = {ILP: "o", GREEDY_TREE: "^", GREEDY_DAG: "v"}
_PER_ROW = 3


def check_plot(path: Path) -> None:
    """Make sure that a plot can be drawn into a file of that name.

    Raises:
        UsageError: The suffix is unknown, or matplotlib is not installed.
    """
    if path.suffix not in SUFFIXES:
        raise UsageError(
            f"plot '{path}' ends with {path.suffix!r}; possible: {', '.join(SUFFIXES)}"
        )
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError("a plot needs matplotlib: pip install matplotlib") from None


def draw(comparisons: Sequence[Comparison], path: Path) -> None:
    """Draw cost over time, a panel for each model.

    Curves are backtracking: the best graph so far. Points are extraction: the time covers
    building the e-graph, and a filled circle is a proof that nothing in it is cheaper.

    Args:
        comparisons: At least one.
        path: Where to; the suffix decides the format.
    """
    check_plot(path)
    import matplotlib as mpl
    from matplotlib.figure import Figure

    columns = min(_PER_ROW, len(comparisons))
    lines = math.ceil(len(comparisons) / columns)
    with mpl.rc_context({"svg.hashsalt": "tensat", "svg.fonttype": "none"}):
        figure = Figure(figsize=(4.4 * columns, 3.1 * lines + 1.1), layout="constrained")
        panels = figure.subplots(lines, columns, squeeze=False).ravel()
        entries: dict[str, Any] = {}
        for comparison, axes in zip(comparisons, panels, strict=False):
            for row in comparison.rows[1:]:
                if not row.note:
                    entries.setdefault(row.name, _draw_row(axes, comparison, row))
            _finish(axes, comparison)
        for axes in panels[len(comparisons) :]:
            axes.set_visible(False)
        figure.legend(
            entries.values(), entries.keys(), loc="outside lower center", ncols=3,
            fontsize=8, frameon=False,
        )  # fmt: skip
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, metadata=metadata, dpi=130)


def _draw_row(axes: Any, comparison: Comparison, row: Row) -> Any:
    """Draw a row; what its entry of the legend shows."""
    start = comparison.rows[0].cost or 1.0
    color = _color(comparison, row)
    if row.method == BACKTRACKING:
        times = [max(seconds, 1e-3) for seconds, _ in row.record] + [row.seconds]
        costs = [100 * cost / start for _, cost in row.record]
        costs.append(costs[-1])
        (line,) = axes.plot(
            times, costs, drawstyle="steps-post", color=color, lw=1.6, alpha=0.85
        )
        axes.plot(times[-1:], costs[-1:], marker="|", ms=9, color=color)
        return line
    proved = row.gap is not None and row.gap <= 1e-9
    (points,) = axes.plot(
        [row.seconds], [100 * row.cost / start], ls="none", marker=_MARKERS[row.method],
        ms=8 if row.method == ILP else 6, color=color, alpha=0.85,
        mfc=color if proved or row.method != ILP else "none",
    )  # fmt: skip
    return points


def _color(comparison: Comparison, row: Row) -> str:
    colors = _COLORS[row.method]
    return colors[comparison.of(row.method).index(row) % len(colors)]


def _finish(axes: Any, comparison: Comparison) -> None:
    axes.axhline(100, color="#bbbbbb", lw=0.8, ls="--", zorder=0)
    start = comparison.rows[0].cost or 1.0
    shares = [100 * row.cost / start for row in comparison.rows]
    least = min(share for share in shares if not math.isnan(share))
    room = max(100 - least, 0.02)
    axes.set_ylim(least - 0.12 * room, 100 + 0.12 * room)
    axes.set(xscale="log", title=comparison.model)
    axes.set_xlabel("search time, seconds", fontsize=8)
    axes.set_ylabel("predicted cost, % of original", fontsize=8)
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.tick_params(labelsize=8)
    axes.tick_params(axis="x", which="minor", labelbottom=False)
    axes.grid(alpha=0.25)

"""A profile as a table for terminals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tensat.profiling.result import NodeCost, Profile

MOST_ROWS = 24
"""Kernels shown at most, unless all nodes are asked for; the others are summed up."""

_WIDEST = 72


@dataclass(frozen=True, slots=True)
class _Row:
    """Nodes that are one kernel at the same sizes.

    Attributes:
        nodes: These nodes.
    """

    nodes: tuple[NodeCost, ...]

    @property
    def seconds(self) -> float:
        return math.fsum(node.seconds for node in self.nodes)

    @property
    def measured(self) -> float | None:
        known = [node.measured for node in self.nodes if node.measured is not None]
        return math.fsum(known) if known else None


def render(profile: Profile, every_node: bool = False) -> RenderableType:
    """Return the table of kernels, the largest first, and the sums.

    Args:
        profile: What to show.
        every_node: One row for each node, in the order of the graph, instead.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("kernel", no_wrap=True)
    table.add_column("sizes", overflow="fold", max_width=_WIDEST)
    for title in ("n", "us each", "spread", "us", "share", "profiled us"):
        table.add_column(title, justify="right")
    if every_node:
        rows = [_Row((node,)) for node in profile.nodes]
    else:
        rows = _by_kernel(profile.nodes)
    shown = rows if every_node or len(rows) <= MOST_ROWS else rows[: MOST_ROWS - 1]
    for row in shown:
        table.add_row(*_cells(row, profile.predicted))
    if len(shown) < len(rows):
        table.add_row(*_rest(rows[len(shown) :], profile.predicted))
    return Group(table, Text(), *_sums(profile))


def _by_kernel(nodes: Sequence[NodeCost]) -> list[_Row]:
    groups: dict[str, list[NodeCost]] = {}
    for node in nodes:
        groups.setdefault(node.signature or node.name, []).append(node)
    rows = [_Row(tuple(group)) for group in groups.values()]
    return sorted(rows, key=lambda row: -row.seconds)


def _cells(row: _Row, whole: float) -> list[str]:
    node = row.nodes[0]
    mark = "" if node.origin in ("known", "measured") else f" ({node.origin})"
    return [
        node.operator.removeprefix("com.microsoft.").removeprefix("com.microsoft:") + mark,
        node.shapes,
        str(len(row.nodes)),
        f"{node.seconds * 1e6:.1f}",
        f"{node.spread:.0%}",
        f"{row.seconds * 1e6:.0f}",
        f"{row.seconds / whole:.1%}",
        _microseconds(row.measured),
    ]


def _rest(rows: Sequence[_Row], whole: float) -> list[str]:
    seconds = math.fsum(row.seconds for row in rows)
    known = [row.measured for row in rows if row.measured is not None]
    count = sum(len(row.nodes) for row in rows)
    name = f"{len(rows)} others"
    return [
        name, "", str(count), "", "", f"{seconds * 1e6:.0f}", f"{seconds / whole:.1%}",
        _microseconds(math.fsum(known) if known else None),
    ]  # fmt: skip


def _microseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:.0f}"


def _sums(profile: Profile) -> list[Text]:
    """Return the last lines: what was predicted, what was measured, and their ratio."""
    threads = f"{profile.threads} thread{'s' if profile.threads > 1 else ''}"
    ratio, spread = profile.ratio, profile.spread
    counts = ", ".join(f"{number} {name}" for name, number in profile.counts.items())
    style = "green" if 0.93 <= ratio <= 1.07 else "yellow"
    return [
        Text(
            f"kernels    {profile.kernels * 1e3:10.3f} ms  {len(profile.nodes)} nodes; "
            f"distinct kernels: {counts}; measured in {profile.measuring:.1f} s"
        ),
        Text(f"dispatch   {profile.dispatch * 1e3:10.3f} ms  of nodes, besides kernels"),
        Text(f"overhead   {profile.overhead * 1e3:10.3f} ms  of a run"),
        Text(f"predicted  {profile.predicted * 1e3:10.3f} ms"),
        Text(
            f"measured   {profile.measured * 1e3:10.3f} ms  end to end, {threads}, median "
            f"of {profile.runs} runs, spread {spread:.1%}"
        ),
        Text(f"ratio      {ratio:10.3f}     predicted / measured", style=style),
        Text(
            "profiled: the runtime's own profile, scaled to the time measured end to end",
            style="dim",
        ),
    ]

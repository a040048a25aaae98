"""What a comparison says: one row for each search."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

SAME = 1e-9
"""Relative difference below which two predicted costs are one."""

USUAL_ROUNDS = 1
"""Steps with multi-pattern rules in `optimize`, if nothing else is said."""

ORIGINAL, BACKTRACKING, GREEDY_TREE, GREEDY_DAG, ILP = (
    *("original", "backtracking", "greedy-tree", "greedy-dag"),
    "ilp",
)
"""Methods of rows."""


@dataclass(frozen=True, slots=True)
class Row:
    """One search.

    Attributes:
        method: ``original``, ``backtracking``, ``greedy-tree``, ``greedy-dag`` or ``ilp``.
        settings: Numbers that the search was given: alpha and budget, or the rounds of
            multi-pattern rules.
        cost: Predicted seconds of the best graph.
        bound: No graph in the e-graph costs less; None if the method proves nothing.
        stop: Why the search ended.
        seconds: Wall time of the search, without the time for measuring operators.
        processor: Processor seconds of the search, which other programs disturb less.
        seen: Different graphs, or e-nodes, that it made.
        unit: ``graphs`` or ``e-nodes``.
        memory: Bytes by which the process of the search grew at most; None if unknown.
        record: Wall time and cost of each improvement.
        stages: Wall time of each part of the search.
        ratio: Latency of the original over that of the best graph, measured in turn; None
            if it was not measured.
        spread: What the ratio is uncertain by, relative.
        note: What went wrong, or "".
    """

    method: str
    settings: Mapping[str, float] = field(default_factory=dict)
    cost: float = math.nan
    bound: float | None = None
    stop: str = ""
    seconds: float = 0.0
    processor: float = 0.0
    seen: int = 0
    unit: str = ""
    memory: int | None = None
    record: tuple[tuple[float, float], ...] = ()
    stages: Mapping[str, float] = field(default_factory=dict)
    ratio: float | None = None
    spread: float | None = None
    note: str = ""

    @property
    def name(self) -> str:
        """The method with its settings: backtrack alpha/budget, or k rounds."""
        if self.method == BACKTRACKING:
            alpha, budget = self.settings["alpha"], self.settings["budget"]
            return f"backtrack {alpha:g}/{budget:g}"
        if self.method == ILP or self.method.startswith("greedy"):
            name = {ILP: "ILP"}.get(self.method, self.method.replace("-", " "))
            return f"{name} k={self.settings['rounds']:g}"
        return self.method

    @property
    def gap(self) -> float | None:
        """Share of the cost that is not proved to be necessary; None without a bound."""
        if self.bound is None:
            return None
        return max(0.0, 1 - self.bound / self.cost) if self.cost > 0 else 0.0

    def reached(self, cost: float) -> float | None:
        """Wall time after which a graph of this cost, or cheaper, was known."""
        for seconds, value in self.record:
            if value <= cost * (1 + SAME):
                return seconds
        return None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Searches side by side.

    Attributes:
        model: Name of the network, or of the file.
        source: Name of the cost source.
        operators: Operators of the original graph.
        rows: The original first.
        versions: Versions of this package and of those that decide what it finds.
    """

    model: str
    source: str
    operators: int
    rows: tuple[Row, ...]
    versions: Mapping[str, str] = field(default_factory=dict)

    def of(self, method: str) -> tuple[Row, ...]:
        """The rows of a method."""
        return tuple(row for row in self.rows if row.method == method)

    @property
    def ilp(self) -> Row | None:
        """The ILP's row that others are compared with: that of `optimize`'s defaults.

        Without one of those, the cheapest one; None if there is none.
        """
        rows = self.of(ILP)
        usual = [row for row in rows if row.settings["rounds"] == USUAL_ROUNDS]
        return _best(usual) or _best(rows)

    @property
    def backtracking(self) -> Row | None:
        """Backtracking's row of least cost, and of those the fastest one."""
        return _best(self.of(BACKTRACKING))

    def worse_than(self, row: Row) -> tuple[Row, ...]:
        """Rows with a cheaper graph than a row: the row is worse than these."""
        return tuple(
            each
            for each in self.rows
            if each.cost < row.cost * (1 - SAME) and not each.note
        )

    def as_dict(self) -> dict[str, Any]:
        """The comparison as plain values, names and gaps of rows included."""
        rows = [
            {"name": row.name, **asdict(row), "gap": row.gap, "record": list(row.record)}
            for row in self.rows
        ]
        return {
            "model": self.model,
            "source": self.source,
            "operators": self.operators,
            "rows": [{k: _plain(v) for k, v in row.items()} for row in rows],
            "versions": dict(self.versions),
        }

    def to_json(self) -> str:
        """The comparison as JSON."""
        return json.dumps(self.as_dict(), indent=1, allow_nan=False) + "\n"


def _best(rows: Sequence[Row]) -> Row | None:
    """The cheapest row, and of those the fastest one."""
    known = [row for row in rows if not row.note]
    if not known:
        return None
    least = min(row.cost for row in known) * (1 + SAME)
    return min((row for row in known if row.cost <= least), key=lambda row: row.seconds)


def _plain(value: Any) -> Any:
    """The value, or None where JSON has no number for it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

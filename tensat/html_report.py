"""The report as one page that needs no network: what changed, why, and what it cost.

The page is `report_page/page.html` with style, script and data put into it; the data is
JSON. Text from the model reaches the page as text only, never as markup.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from importlib.resources import files
from typing import Any

from tensat.explanation import Change, Explanation, NodeView
from tensat.report import ModelSummary, Report
from tensat.report_page.picture import picture


def html_report(report: Report, explanation: Explanation, title: str = "model") -> str:
    """The page.

    Args:
        report: What was done.
        explanation: What changed and why.
        title: Name of the model.
    """
    folder = files("tensat.report_page")
    page = folder.joinpath("page.html").read_text(encoding="utf-8")
    parts = {
        "/*STYLE*/": folder.joinpath("page.css").read_text(encoding="utf-8"),
        "/*SCRIPT*/": folder.joinpath("page.js").read_text(encoding="utf-8"),
        "/*DATA*/": _script_json(page_data(report, explanation, title)),
    }
    before, *rest = page.split("/*")
    pieces = [before]
    for piece in rest:
        name, text = piece.split("*/", 1)
        pieces += [parts[f"/*{name}*/"], text]
    return "".join(pieces)


def page_data(report: Report, explanation: Explanation, title: str) -> dict[str, Any]:
    """What the page's script shows."""
    rules = [
        [name, count, explanation.used.get(name, 0), explanation.proofs.get(name, "")]
        for name, count in explanation.fired.items()
    ]
    names = {name: at for at, name in enumerate(explanation.proofs)}
    return {
        "title": title,
        "reason": report.reason,
        "improved": report.improved,
        "facts": _facts(report, explanation),
        "operators": operator_costs(explanation),
        "growth": report.saturation.get("growth", ()),
        "stages": list(report.stages.items()),
        "rules": rules,
        "names": list(names),
        "proofs": list(explanation.proofs.values()),
        "links": [
            [names[link.rule], list(link.before), list(link.after)]
            for link in explanation.links
        ],
        "before": _side(explanation.before, explanation.gone, explanation.new),
        "after": _side(explanation.after, explanation.new, explanation.gone),
        "versions": dict(report.versions),
    }


def operator_costs(explanation: Explanation) -> list[list[Any]]:
    """Operator, number and predicted seconds before and after; the dearest first."""
    numbers = [Counter(n.operator for n in side) for side in _both(explanation)]
    seconds: list[dict[str, float]] = [{}, {}]
    for table, side in zip(seconds, _both(explanation), strict=True):
        for node in side:
            table[node.operator] = table.get(node.operator, 0.0) + node.seconds
    rows = [
        [
            op,
            numbers[0][op],
            numbers[1][op],
            seconds[0].get(op, 0.0),
            seconds[1].get(op, 0.0),
        ]
        for op in {**seconds[0], **seconds[1]}
        if op != "Input"
    ]
    return sorted(rows, key=lambda row: (-max(row[3], row[4]), row[0]))


def _both(explanation: Explanation) -> tuple[tuple[NodeView, ...], tuple[NodeView, ...]]:
    return explanation.before, explanation.after


def _side(
    nodes: tuple[NodeView, ...], changes: tuple[Change, ...], opposite: tuple[Change, ...]
) -> dict[str, Any]:
    """Nodes as [operator, name, shape, attributes, constants, seconds, state]."""
    return {
        "nodes": [
            [n.operator, n.name, n.shape, n.attributes, n.constants, n.seconds, n.state[0]]
            for n in nodes
        ],
        "changes": {c.node: [list(c.others), list(c.chain), c.why] for c in changes},
        "picture": picture(nodes, {n for c in opposite for n in c.others}),
    }


def _facts(report: Report, explanation: Explanation) -> list[list[str]]:
    """Title, value and a remark for each of the figures at the top."""
    best = report.candidate or report.after
    extraction, saturation = report.extraction, report.saturation
    facts = [
        ["nodes", f"{report.before.nodes} → {best.nodes}", "as ONNX writes them"],
        _times("predicted", report.before, best, "predicted_seconds"),
        _times("measured", report.before, best, "measured_seconds", report.ratio),
        ["weights", f"{_bytes(report.before.bytes)} → {_bytes(best.bytes)}", ""],
    ]
    if saturation:
        size = f"{saturation['nodes']:,} e-nodes"
        steps = f"{saturation['classes']:,} e-classes, {saturation['iterations']} steps"
        facts.append(["e-graph", size, f"{steps}, ended by: {saturation['stop']}"])
    if extraction:
        gap = float(extraction["gap"])
        text = "proved optimal" if gap == 0 else f"gap {gap:.2%}"
        facts.append(
            ["extraction", text, f"{extraction['method']}, {extraction['status']}"]
        )
    if report.deviation is not None:
        facts.append(
            ["largest deviation", f"{report.deviation:.1e}", "of the outputs' range"]
        )
    facts.append(["new nodes", str(len(explanation.new)), f"{len(explanation.gone)} gone"])
    return facts


def _times(
    title: str,
    before: ModelSummary,
    after: ModelSummary,
    key: str,
    ratio: float | None = None,
) -> list[str]:
    """Title, both times and their ratio, where that of pairs of runs is not known."""
    old, new = getattr(before, key), getattr(after, key)
    if old is None or new is None:
        return [title, _time(old), "" if old is None else "the original alone"]
    ratio = ratio or (old / new if new > 0 else None)
    remark = "" if ratio is None else f"{ratio:.2f} times faster"
    return [title, f"{_time(old)} → {_time(new)}", remark]


def _time(seconds: float | None) -> str:
    if seconds is None or not math.isfinite(seconds):
        return "-"
    return f"{seconds * 1e3:.4g} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.3g} µs"


def _bytes(number: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number} B"


def _script_json(data: object) -> str:
    """JSON that may stand inside a script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(letter, code)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")

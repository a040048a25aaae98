"""The e-graph of a search for other programs and for the eye.

JSON as extraction-gym and egraph-serialize read it, each e-node with the rule that made it;
SVG for e-graphs small enough to be looked at: classes as dashed boxes around their e-nodes,
the chosen e-nodes filled.
"""

from __future__ import annotations

import gzip
import json
from typing import Any
from xml.sax.saxutils import escape

from extraction.egraph_json import document_of
from tensat.egraph.price import handle_of_row, operator_of
from tensat.errors import UsageError
from tensat.explain import Namer, attributes_words, shape_text
from tensat.improve import Plan
from tensat.kernels.places import eclass_of
from tensat.model.graph import Graph
from tensat.report_page.layered_layout import lay_out

MOST_CLASSES = 120
"""Classes in a picture."""

LETTER, ROW, PAD = 6.9, 20, 8


def egraph_json(graph: Graph, plan: Plan, *, compress: bool = False) -> bytes:
    """The e-graph that extraction saw, as JSON.

    Besides the fields of the format each e-node has ``attributes``, ``name`` (of the node
    of the original that it is, or "") and ``rule`` (that made it, or null); ``class_data``
    says the type of each class; ``chosen`` lists the e-nodes of the choice.

    Args:
        graph: The original graph.
        plan: What was found for it.
        compress: Whether to write gzip.
    """
    document: dict[str, Any] = document_of(plan.problem.egraph)
    egraph, namer = plan.encoded.egraph, Namer(graph, plan)
    chosen = set(plan.choice.node_of.values())
    types: dict[str, dict[str, str]] = {}
    picked = []
    for name, node in document["nodes"].items():
        index = int(name.rsplit("__", 1)[1])
        kernel = plan.problem.behind[index]
        eclass = eclass_of(plan.problem.egraph.nodes[index].eclass)
        types[node["eclass"]] = {"type": shape_text(egraph.tensor(eclass))}
        if index in chosen:
            picked.append(name)
        if kernel is None or not kernel.rows:
            node.update(attributes="", name="", rule=None)
            continue
        row = kernel.rows[0]
        handle = handle_of_row(egraph, row)
        source = namer.first.get(namer.same(handle))
        attributes = egraph.attributes(row.attributes)
        node["attributes"] = attributes_words(operator_of(row.symbol), attributes)
        node["name"] = "" if source is None else namer.word(handle)
        node["rule"] = egraph.rule_of[handle]
    document["class_data"] = types
    document["chosen"] = picked
    data = json.dumps(document, indent=1).encode()
    return gzip.compress(data, mtime=0) if compress else data


def egraph_svg(graph: Graph, plan: Plan) -> str:
    """A picture of a small e-graph, classes of constants left out.

    Raises:
        UsageError: It has more classes than a picture can show.
    """
    members: dict[object, list[int]] = {}
    for index, (enode, kernel) in enumerate(
        zip(plan.problem.egraph.nodes, plan.problem.behind, strict=True)
    ):
        if kernel is not None and enode.cost < float("inf"):
            members.setdefault(enode.eclass, []).append(index)
    if len(members) > MOST_CLASSES:
        raise UsageError(
            f"the e-graph has {len(members)} classes; a picture shows up to "
            f"{MOST_CLASSES}; possible: --json FILE"
        )
    return _Drawing(graph, plan, members).text()


class _Drawing:
    """Classes in layers, what they compute below what they need."""

    def __init__(self, graph: Graph, plan: Plan, members: dict[object, list[int]]) -> None:
        self.plan, self.members = plan, members
        self.namer = Namer(graph, plan)
        self.chosen = set(plan.choice.node_of.values())
        self.words = {i: self._words(i) for group in members.values() for i in group}
        self.number = {eclass: at for at, eclass in enumerate(members)}
        sizes = [self._size(group) for group in members.values()]
        edges = dict.fromkeys(
            (self.number[child], at)
            for at, group in enumerate(members.values())
            for index in group
            for child in plan.problem.egraph.nodes[index].children
            if child in self.number and self.number[child] != at
        )
        self.sizes, self.edges = sizes, list(edges)
        self.layout = lay_out(sizes, self.edges)

    def text(self) -> str:
        width, height = self.layout.width + 2 * PAD, self.layout.height + 2 * PAD
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
            f'height="{height:.0f}" viewBox="{-PAD} {-PAD} {width:.0f} {height:.0f}" '
            'font-family="sans-serif" font-size="11">',
            '<rect x="-8" y="-8" width="100%" height="100%" fill="#fff"/>',
        ]
        for route in self.layout.routes:
            points = " ".join(f"{x:.0f},{y:.0f}" for x, y in route)
            parts.append(f'<polyline points="{points}" fill="none" stroke="#9aa4b5"/>')
        for group, size, centre in zip(
            self.members.values(), self.sizes, self.layout.centres, strict=True
        ):
            parts += self._class(group, size, centre)
        return "\n".join([*parts, "</svg>\n"])

    def _class(
        self, group: list[int], size: tuple[float, float], centre: tuple[float, float]
    ) -> list[str]:
        left, top = centre[0] - size[0] / 2, centre[1] - size[1] / 2
        parts = [
            f'<rect x="{left:.0f}" y="{top:.0f}" width="{size[0]:.0f}" '
            f'height="{size[1]:.0f}" rx="6" fill="#f7f8fa" stroke="#9aa4b5" '
            'stroke-dasharray="4 3"/>'
        ]
        for at, index in enumerate(group):
            y = top + PAD / 2 + at * ROW
            fill = "#cdeed6" if index in self.chosen else "#fff"
            edge = "#23834a" if index in self.chosen else "#c3cad6"
            parts.append(
                f'<rect x="{left + 4:.0f}" y="{y:.0f}" width="{size[0] - 8:.0f}" '
                f'height="{ROW - 3}" rx="3" fill="{fill}" stroke="{edge}"/>'
                f'<text x="{left + 9:.0f}" y="{y + 12.5:.0f}">'
                f"{escape(self.words[index])}</text>"
            )
        return parts

    def _size(self, group: list[int]) -> tuple[float, float]:
        width = max(len(self.words[index]) for index in group) * LETTER + 18
        return width, len(group) * ROW + PAD / 2

    def _words(self, index: int) -> str:
        kernel = self.plan.problem.behind[index]
        assert kernel is not None, "constants are left out"
        seconds = self.plan.problem.seconds[index]
        cost = f" {seconds * 1e6:.3g} µs" if seconds else ""
        if not kernel.rows:
            return f"reorder{cost}"
        egraph, row = self.plan.encoded.egraph, kernel.rows[0]
        rule = egraph.rule_of[handle_of_row(egraph, row)]
        operator = kernel.name or operator_of(row.symbol)
        plain = rule is None and not kernel.name
        name = self.namer.word(handle_of_row(egraph, row)) if plain else operator
        return f"{name}{cost}" + (f" ({rule})" if rule else "")

"""One of the two graphs as boxes and lines, whole and with its unchanged parts folded.

Nodes that are kept, hang together, and have the same changed nodes above them are folded
into one box. No cycle arises: whatever lies between two of them has the same changed nodes
above it, and so belongs to the same box.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from tensat.explanation import KEPT, NodeView
from tensat.report_page.layered_layout import Layout, lay_out

LETTER = 6.6
"""Width of a letter in pixels, about."""

NARROW, WIDE, TALL, LOW = 84, 225, 36, 22

FEWEST = 3
"""Kept nodes that are worth folding."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box: one node, or several that are kept.

    Attributes:
        nodes: Numbers of the nodes.
        width: In pixels.
        height: In pixels.
    """

    nodes: tuple[int, ...]
    width: int
    height: int


def picture(
    nodes: Sequence[NodeView], shown: AbstractSet[int] = frozenset()
) -> dict[str, Any]:
    """Boxes and lines of a graph, for the page's script.

    Args:
        nodes: The nodes, arguments first.
        shown: Nodes that are kept but must not be folded.

    Returns:
        ``whole`` and ``folded``, each with ``size`` [width, height], ``boxes``
        [x, y, width, height, node, …] (x and y of the upper left corner) and ``lines``
        [from, to, x, y, …], from and to being numbers of boxes.
    """
    alone = [(index,) for index in range(len(nodes))]
    return {"whole": _drawn(nodes, alone), "folded": _drawn(nodes, folded(nodes, shown))}


def folded(
    nodes: Sequence[NodeView], shown: AbstractSet[int] = frozenset()
) -> list[tuple[int, ...]]:
    """The nodes in groups, in the order of their first ones."""
    may = [
        node.state == KEPT and node.operator != "Input" and index not in shown
        for index, node in enumerate(nodes)
    ]
    above = _others_above(nodes, may)
    leader = list(range(len(nodes)))
    for index, node in enumerate(nodes):
        for source in node.inputs:
            if may[index] and may[source] and above[source] == above[index]:
                first, second = sorted((_lead(leader, index), _lead(leader, source)))
                leader[second] = first
    groups: dict[int, list[int]] = {}
    for index in range(len(nodes)):
        groups.setdefault(_lead(leader, index), []).append(index)
    parts: list[tuple[int, ...]] = []
    for group in groups.values():
        enough = len(group) >= FEWEST
        parts.extend([tuple(group)] if enough else [(index,) for index in group])
    return sorted(parts)


def _others_above(nodes: Sequence[NodeView], may: Sequence[bool]) -> list[int]:
    """For each node the set of those at or above it that may not be folded, as bits."""
    above: list[int] = []
    for index, node in enumerate(nodes):
        mine = 0 if may[index] else 1 << index
        for source in node.inputs:
            mine |= above[source]
        above.append(mine)
    return above


def _lead(leader: list[int], index: int) -> int:
    while leader[index] != index:
        leader[index] = leader[leader[index]]
        index = leader[index]
    return index


def _drawn(nodes: Sequence[NodeView], groups: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    boxes = [_box(nodes, group) for group in groups]
    home = {index: at for at, box in enumerate(boxes) for index in box.nodes}
    edges = dict.fromkeys(
        (home[source], home[index])
        for index, node in enumerate(nodes)
        for source in node.inputs
        if home[source] != home[index]
    )
    layout = lay_out([(box.width, box.height) for box in boxes], list(edges))
    return {
        "size": [round(layout.width), round(layout.height)],
        "boxes": [_placed(box, *at) for box, at in zip(boxes, layout.centres, strict=True)],
        "lines": _lines(list(edges), layout),
    }


def _placed(box: Box, x: float, y: float) -> list[int]:
    corner = [round(x - box.width / 2), round(y - box.height / 2)]
    return [*corner, box.width, box.height, *box.nodes]


def _lines(edges: list[tuple[int, int]], layout: Layout) -> list[list[int]]:
    return [
        [*edge, *(round(number) for point in route for number in point)]
        for edge, route in zip(edges, layout.routes, strict=True)
    ]


def _box(nodes: Sequence[NodeView], group: tuple[int, ...]) -> Box:
    if len(group) > 1:
        return Box(group, NARROW + 30, LOW)
    node = nodes[group[0]]
    cost = 10 if node.seconds > 0 else 2
    letters = max(1.25 * len(node.operator) + cost, min(len(node.name), 26) + 1)
    width = min(WIDE, max(NARROW, round(letters * LETTER)))
    return Box(group, width, LOW if node.operator == "Input" else TALL)

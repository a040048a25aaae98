"""Boxes in layers: where to draw the nodes of a directed graph, from top to bottom.

The usual four steps (Sugiyama, Tagawa, Toda 1981): turn edges that close a cycle, put each
node below all it depends on, order each layer by the mean of its neighbours, and move
nodes towards the mean of their neighbours as far as boxes leave room. That last step is an
isotonic regression for each layer: the best places in the least-squares sense. Edges over
several layers bend at points that take part in all steps like thin boxes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

GAP = 18.0
"""Pixels between two boxes of a layer."""

THIN = 4.0
"""Width of the place that a passing edge takes, in pixels."""

SWEEPS = 6
"""How often all layers are ordered, and how often they are moved."""

type Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything goes, in pixels, from (0, 0) on.

    Attributes:
        centres: The centre of each node's box.
        routes: For each edge the points through which it goes, from the lower edge of one
            box to the upper edge of another.
        width: Of all.
        height: Of all.
    """

    centres: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float


def lay_out(
    sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]],
    between: float = 34.0,
) -> Layout:  # fmt: skip
    """Place boxes in layers.

    Args:
        sizes: Width and height of each box.
        edges: Pairs (from, to); ``from`` goes above ``to`` except where that is a cycle.
        between: Pixels between two layers.
    """
    return _Placer(sizes, edges, between).run()


class _Placer:
    """The graph with a thin node wherever an edge passes through a layer."""

    def __init__(self, sizes: Sequence[tuple[float, float]],
                 edges: Sequence[tuple[int, int]], between: float) -> None:  # fmt: skip
        self.sizes, self.count = list(sizes), len(sizes)
        self.edges, self.between = list(edges), between
        self.down = _without_cycles(len(sizes), edges)
        self.layer = _layers(len(sizes), self.down)
        self.above: list[list[int]] = [[] for _ in sizes]
        self.below: list[list[int]] = [[] for _ in sizes]
        self.chains = [self._chain(first, last) for first, last in self.down]
        depth = max(self.layer, default=-1) + 1
        self.rows: list[list[int]] = [[] for _ in range(depth)]
        for node in self._from_the_left():
            self.rows[self.layer[node]].append(node)
        self.x = [0.0] * len(self.sizes)

    def run(self) -> Layout:
        for sweep in range(SWEEPS):
            self._order(downwards=sweep % 2 == 0)
        for sweep in range(SWEEPS + 1):
            self._move(downwards=sweep % 2 == 0)
        tops, heights = self._heights()
        left = min(
            (x - s[0] / 2 for x, s in zip(self.x, self.sizes, strict=True)), default=0
        )
        self.x = [x - left for x in self.x]
        centre = [tops[layer] + heights[layer] / 2 for layer in self.layer]
        centres = tuple((self.x[node], centre[node]) for node in range(self.count))
        width = max(
            (x + s[0] / 2 for x, s in zip(self.x, self.sizes, strict=True)), default=0
        )
        height = tops[-1] + heights[-1] if tops else 0.0
        return Layout(centres, tuple(self._routes(centre, tops, heights)), width, height)

    def _chain(self, first: int, last: int) -> list[int]:
        """Thin nodes for the layers between two nodes."""
        chain = []
        previous = first
        for layer in range(self.layer[first] + 1, self.layer[last]):
            node = len(self.sizes)
            self.sizes.append((THIN, 0.0))
            self.layer.append(layer)
            self.above.append([])
            self.below.append([])
            self._connect(previous, node)
            chain.append(node)
            previous = node
        if first != last:
            self._connect(previous, last)
        return chain

    def _connect(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)

    def _from_the_left(self) -> list[int]:
        """Nodes in the order of a walk from the sources: neighbours come out together."""
        seen = [False] * len(self.sizes)
        order: list[int] = []
        for source in (n for n in range(len(self.sizes)) if not self.above[n]):
            stack = [source]
            while stack:
                node = stack.pop()
                if not seen[node]:
                    seen[node] = True
                    order.append(node)
                    stack.extend(reversed(self.below[node]))
        return order

    def _order(self, downwards: bool) -> None:
        place = {node: i for row in self.rows for i, node in enumerate(row)}
        for row in self.rows if downwards else self.rows[::-1]:
            near = self.above if downwards else self.below
            mean = {
                node: sum(place[n] for n in near[node]) / len(near[node])
                if near[node]
                else float(place[node])
                for node in row
            }
            row.sort(key=lambda node: (mean[node], place[node]))
            place.update((node, i) for i, node in enumerate(row))

    def _move(self, downwards: bool) -> None:
        for row in self.rows if downwards else self.rows[::-1]:
            first, second = (
                (self.above, self.below) if downwards else (self.below, self.above)
            )
            wanted = []
            for node in row:
                near = first[node] or second[node]
                mean = sum(self.x[n] for n in near) / len(near) if near else self.x[node]
                wanted.append(mean)
            weights = [4.0 if self.sizes[node][0] == THIN else 1.0 for node in row]
            offsets = self._offsets(row)
            shifted = [w - o for w, o in zip(wanted, offsets, strict=True)]
            for node, x, offset in zip(
                row, ascending(shifted, weights), offsets, strict=True
            ):
                self.x[node] = x + offset

    def _offsets(self, row: list[int]) -> list[float]:
        """The smallest distance of each node from the first one."""
        offsets = [0.0]
        for left, right in pairwise(row):
            room = (self.sizes[left][0] + self.sizes[right][0]) / 2 + GAP
            offsets.append(offsets[-1] + room)
        return offsets[: len(row)]

    def _heights(self) -> tuple[list[float], list[float]]:
        heights = [max(self.sizes[node][1] for node in row) for row in self.rows]
        tops, top = [], 0.0
        for height in heights:
            tops.append(top)
            top += height + self.between
        return tops, heights

    def _routes(self, centre: list[float], tops: list[float],
                heights: list[float]) -> list[tuple[Point, ...]]:  # fmt: skip
        routes = []
        pairs = zip(self.edges, self.down, self.chains, strict=True)
        for edge, (first, last), chain in pairs:
            points = [(self.x[first], centre[first] + self.sizes[first][1] / 2)]
            for node in chain:
                layer = self.layer[node]
                points.append((self.x[node], tops[layer]))
                points.append((self.x[node], tops[layer] + heights[layer]))
            points.append((self.x[last], centre[last] - self.sizes[last][1] / 2))
            routes.append(tuple(points if edge == (first, last) else points[::-1]))
        return routes


def ascending(wanted: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The ascending numbers nearest to those wanted: isotonic regression by pooling."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(wanted, weights, strict=True):
        block = (value, weight, 1)
        while blocks and blocks[-1][0] > block[0]:
            mean, other, count = blocks.pop()
            total = other + block[1]
            joint = (mean * other + block[0] * block[1]) / total
            block = (joint, total, count + block[2])
        blocks.append(block)
    return [mean for mean, _, count in blocks for _ in range(count)]


def _without_cycles(count: int, edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The edges, those turned that lead back to a node under way."""
    below: list[list[int]] = [[] for _ in range(count)]
    for first, last in edges:
        below[first].append(last)
    state = [0] * count
    back: set[tuple[int, int]] = set()
    for start in range(count):
        stack = [(start, iter(below[start]))] if not state[start] else []
        state[start] = state[start] or 1
        while stack:
            node, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                state[node] = 2
                stack.pop()
            elif state[following] == 1:
                back.add((node, following))
            elif state[following] == 0:
                state[following] = 1
                stack.append((following, iter(below[following])))
    return [
        (last, first) if (first, last) in back else (first, last) for first, last in edges
    ]


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The longest way from a source to each node; sources stand next to a user."""
    below: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for first, last in edges:
        if first != last:
            below[first].append(last)
            waiting[last] += 1
    sources = [node for node in range(count) if not waiting[node]]
    layer = [0] * count
    queue = deque(sources)
    while queue:
        node = queue.popleft()
        for following in below[node]:
            layer[following] = max(layer[following], layer[node] + 1)
            waiting[following] -= 1
            if not waiting[following]:
                queue.append(following)
    for node in sources:
        if below[node]:
            layer[node] = min(layer[following] for following in below[node]) - 1
    return layer

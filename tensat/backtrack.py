"""TASO's cost-based backtracking search, on our rules and our costs.

A queue of graphs, cheapest first. Each graph that is taken out is rewritten by every rule
at every match; what comes out is put in if it costs less than ``alpha`` times the best
graph so far, is new, and has fewer than twice the operators of the original. With ``alpha``
1 only improvements are followed; above 1 the search goes through dearer graphs, too.

Source: Jia et al., SOSP 2019, section 5 and the released code. Differences: a rewrite is
judged by the difference it makes before the new graph is built, equal parts of graphs are
shared, and matches are carried over from graph to graph, so that a graph is only built when
its turn comes. The results are those of the search that does none of this.
"""

from __future__ import annotations

import gc
import heapq
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rulesets.rule import Rule
from rulesets.store import relevant
from tensat.costs.source import CostSource
from tensat.egraph.compile_rules import arities_of, written_out
from tensat.egraph.encode import encode
from tensat.errors import UsageError
from tensat.kernels.emit import Decoded
from tensat.model.graph import Graph
from tensat.search.neighbours import Neighbours
from tensat.search.rebuild import rebuild
from tensat.search.sites import Sites
from tensat.search.state import (
    Rewrite,
    State,
    difference,
    hash_after,
    hash_of,
    keeps_facts,
    may_merge,
    rewritten,
    state_of,
)
from tensat.search.terms import Terms

SAME = 1e-9
"""Relative difference below which two costs are one: sums round."""

GROWTH = 2
"""A graph has fewer operators than the original, times this."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far the search goes.

    Attributes:
        alpha: A graph is kept if it costs less than this times the best.
        budget: Graphs that are rewritten at most.
        seconds: Wall time.
    """

    alpha: float = 1.0
    budget: int = 1000
    seconds: float = math.inf

    def __post_init__(self) -> None:
        for name in ("alpha", "seconds"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} must be positive, not {getattr(self, name)}")
        if not self.budget >= 0:
            raise UsageError(f"budget must be >= 0, not {self.budget}")


@dataclass(frozen=True, slots=True)
class Backtracked:
    """What a backtracking search found.

    Attributes:
        decoded: The best graph, its constant parts not folded yet.
        seconds: Its predicted cost.
        original_seconds: Predicted cost of the graph at the start, equal nodes once.
        stop: ``exhausted``, ``budget`` or ``seconds``.
        graphs: Different graphs seen.
        taken: Graphs that were rewritten.
        record: Wall time and cost of each improvement; the start first.
        applied: Rules on the way from the original to the best graph.
    """

    decoded: Decoded = field(repr=False)
    seconds: float
    original_seconds: float
    stop: str
    graphs: int
    taken: int
    record: tuple[tuple[float, float], ...]
    applied: Mapping[str, int]


def backtrack(
    graph: Graph,
    rules: Sequence[Rule],
    source: CostSource,
    sizes: Mapping[str, int],
    bounds: Bounds | None = None,
) -> Backtracked:
    """The cheapest graph that backtracking finds.

    Args:
        graph: The graph.
        rules: Proved rewrites.
        source: What operators cost.
        sizes: Value of each symbolic dimension, for costs.
        bounds: How far to go; TASO's defaults if None.

    Returns:
        The best graph, which may be the original one.
    """
    start = time.monotonic()
    bounds = bounds or Bounds()
    encoded = encode(graph)
    arities = arities_of(encoded.egraph)
    chosen = relevant(rules, {node.op for node in graph.nodes})
    instances = [each for rule in chosen for each in written_out(rule, arities)]
    terms = Terms(encoded, source, sizes, graph.header.opset)
    first = state_of(terms, _canonical(terms, encoded.roots))
    neighbours = Neighbours(terms, Sites(terms, instances))
    search = _Search(terms, neighbours, bounds, start, first)
    with _uncollected():
        stop = search.run()
    best = search.best
    return Backtracked(
        rebuild(graph, encoded, terms, best),
        best.cost,
        first.cost,
        stop,
        len(search.seen),
        search.taken,
        tuple(search.record),
        _applied(best),
    )


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without looking for garbage in cycles: millions of objects here, and no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _canonical(terms: Terms, roots: Sequence[int]) -> list[int]:
    """The roots over terms in which equal constants are one."""
    now: list[int] = []
    for handle in range(len(terms.nodes)):
        arguments = tuple(now[argument] for argument in terms.nodes[handle].arguments)
        now.append(terms.over(handle, arguments))
    return [now[root] for root in roots]


def _applied(state: State) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    at: State | None = state
    while at is not None:
        if at.rewrite is not None:
            found[at.rewrite.rule] += 1
        at = at.parent
    return dict(found.most_common())


@dataclass(slots=True)
class _Search:
    """A search under way."""

    terms: Terms
    neighbours: Neighbours
    bounds: Bounds
    start: float
    best: State
    taken: int = 0
    pushed: int = 0
    limit: float = math.inf
    most: int = 0
    queue: list[tuple[float, int, State, Rewrite]] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    record: list[tuple[float, float]] = field(default_factory=list)

    def run(self) -> str:
        """Search; the reason why it ended."""
        self.most = GROWTH * self.best.operators
        self.seen.add(hash_of(self.terms, self.best.roots))
        self.note()
        state: State | None = self.best
        while state is not None:
            if self.taken >= self.bounds.budget:
                return "budget"
            self.taken += 1
            self.limit = self.best.cost * self.bounds.alpha * (1 - SAME)
            for rewrite in self.neighbours.of_state(state):
                self.consider(state, rewrite)
                if self.late():
                    self.take()
                    return "seconds"
            state = self.take()
        return "exhausted"

    def late(self) -> bool:
        return time.monotonic() - self.start >= self.bounds.seconds

    def take(self) -> State | None:
        """The cheapest graph of the queue, built; the best one so far if it is cheaper."""
        if not self.queue:
            return None
        _, _, parent, rewrite = heapq.heappop(self.queue)
        state = rewritten(self.terms, parent, rewrite)
        if state.cost < self.best.cost * (1 - SAME):
            self.best = state
            self.note()
        return state

    def note(self) -> None:
        """Write down when the best graph was found."""
        self.record.append((time.monotonic() - self.start, self.best.cost))

    def consider(self, state: State, rewrite: Rewrite) -> None:
        """Put what a rewrite makes into the queue, if it is new, small and cheap."""
        terms = self.terms
        merged = not keeps_facts(terms, rewrite)
        if not merged:
            cost, operators = difference(terms, state, rewrite)
            cost += state.cost
            operators += state.operators
            dear = cost >= self.limit or operators >= self.most
            if dear and not may_merge(state, rewrite):
                return
            mark, merged = hash_after(terms, state, rewrite)
        if merged:
            new = rewritten(terms, state, rewrite)
            cost, mark = new.cost, hash_of(terms, new.roots)
            dear = cost >= self.limit or new.operators >= self.most
        if dear:
            return
        if mark not in self.seen:
            self.seen.add(mark)
            self.pushed += 1
            heapq.heappush(self.queue, (cost, self.pushed, state, rewrite))

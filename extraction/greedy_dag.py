"""Greedy by DAG cost: each e-class takes the e-node whose whole derivation is cheapest.

Beside each e-class's best e-node stands its *bill*: what it pays, e-class by e-class. The
bill of an e-node is the union of its children's bills and its own cost, so shared e-classes
are paid once *within* one derivation; sharing between derivations is not seen, which is why
this is greedy. Bills are remade until nothing improves.

An e-class changes only for a strictly cheaper bill, and a bill costs at least as much as
each bill it contains. So around a cycle of chosen e-nodes all bills would cost the same and
each be older than the one above it, which cannot close: choices are acyclic without a test.
Free e-classes never appear on a bill, which keeps bills short.

The order matters for the result. *Cheapest first* (a heap) makes nearly every bill once;
*as they arrive* (a queue) remakes many and often ends better. Both are run, the second
only as far as a fixed amount of work goes, and the better is taken.
"""

import heapq
from collections import deque
from dataclasses import dataclass, field

from extraction.choice import Choice, close
from extraction.clean import clean
from extraction.deadline import Deadline
from extraction.egraph import EGraph
from extraction.extractor import Limits, require_roots
from extraction.greedy_tree import cheapest_trees
from extraction.problem import Problem, class_of, cost_of, from_egraph, parents_of

CHECK_EVERY = 256
"""E-nodes between two looks at the clock."""

MOST_WORK = 800_000
"""Bill entries the second order may write."""

LEAST_GAIN = 1e-9
"""Relative gain that counts; less is rounding and could close a cycle."""


@dataclass(slots=True)
class _Bills:
    """Best e-node, bill and bill total of each e-class derived so far."""

    problem: Problem
    owner: dict[int, int]
    parents: dict[int, list[int]]
    missing: dict[int, int]
    node: dict[int, int] = field(default_factory=dict)
    items: dict[int, dict[int, float]] = field(default_factory=dict)
    total: dict[int, float] = field(default_factory=dict)
    work: int = 0

    def improve(self, node: int) -> bool:
        """Give an e-node's e-class its bill if that is cheaper; say whether it was."""
        number, own, total = self.owner[node], self.problem.cost[node], self.total
        children = self.problem.children[node]
        limit = total.get(number, float("inf")) * (1.0 - LEAST_GAIN)
        largest = max(children, key=total.__getitem__, default=None)
        items: dict[int, float] = {}
        value = own
        if largest is not None:
            items, value = self.items[largest], own + total[largest]
        if value >= limit:
            return False
        if own or len(children) > 1:
            items = dict(items)
            self.work += len(items)
        if len(children) > 1:
            for child in children:
                items.update(self.items[child])
            value = own + sum(items.values())
            if value >= limit:
                return False
        if own:
            items[number] = own
        self.node[number], self.items[number], total[number] = node, items, value
        return True

    def spread(self, node: int, *, first: bool) -> list[int]:
        """Return the e-nodes above a new bill that have bills for all children."""
        missing, ready = self.missing, []
        for parent in self.parents[self.owner[node]]:
            if first:
                missing[parent] -= 1
            if not missing[parent]:
                ready.append(parent)
        return ready


def cheapest_bills(
    problem: Problem, deadline: Deadline | None = None
) -> tuple[dict[int, int], bool]:
    """Return an e-node for each derivable e-class, and whether time sufficed.

    A deadline that comes before all roots have a bill leaves the choice to tree cost.
    """
    owner, parents = class_of(problem), parents_of(problem)
    found: list[dict[int, int]] = []
    finished = True
    for order in (_cheapest_first, _as_they_arrive):
        missing = {node: len(children) for node, children in problem.children.items()}
        bills = _Bills(problem, owner, parents, missing)
        in_time = order(bills, deadline or Deadline())
        if problem.members.keys() == bills.node.keys():
            found.append(bills.node)
        finished = finished and in_time
    if not found:
        found.append(cheapest_trees(problem)[0])
    return min(found, key=lambda chosen: cost_of(problem, chosen)), finished


def _cheapest_first(bills: _Bills, deadline: Deadline) -> bool:
    cost, owner, total = bills.problem.cost, bills.owner, bills.total
    heap = [(cost[node], node) for node, count in bills.missing.items() if not count]
    heapq.heapify(heap)
    steps = 0
    while heap:
        steps += 1
        if steps % CHECK_EVERY == 0 and deadline.passed:
            return False
        node = heapq.heappop(heap)[1]
        number = owner[node]
        first = number not in bills.node
        if bills.improve(node):
            value = total[number]
            for parent in bills.spread(node, first=first):
                key = cost[parent] + value
                if key < total.get(owner[parent], float("inf")):
                    heapq.heappush(heap, (key, parent))
    return True


def _as_they_arrive(bills: _Bills, deadline: Deadline) -> bool:
    queue = deque(node for node, count in bills.missing.items() if not count)
    queued = set(queue)
    steps = 0
    while queue and bills.work < MOST_WORK:
        steps += 1
        if steps % CHECK_EVERY == 0 and deadline.passed:
            return False
        node = queue.popleft()
        queued.discard(node)
        first = bills.owner[node] not in bills.node
        if bills.improve(node):
            for parent in bills.spread(node, first=first):
                if parent not in queued:
                    queue.append(parent)
                    queued.add(parent)
    return True


def extract_greedy_dag(graph: EGraph, limits: Limits) -> Choice:
    """Return the choice greedy by DAG cost."""
    problem = clean(from_egraph(graph)).problem
    require_roots(graph, problem)
    chosen, finished = cheapest_bills(problem, limits.deadline)
    return close(graph, chosen, bound=0.0, method="greedy-dag", timed_out=not finished)

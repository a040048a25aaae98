"""Greedy by DAG cost: each e-class takes the e-node whose whole derivation is cheapest.

Beside each e-class's best e-node stands its *bill*: what it pays, e-class by e-class. The
bill of an e-node is the union of its children's bills and its own cost, so shared e-classes
are paid once *within* one derivation; sharing between derivations is not seen, which is why
this is greedy. Bills are remade until nothing improves.

An e-class changes only for a strictly cheaper bill, and a bill costs at least as much as
each bill it contains. So around a cycle of chosen e-nodes all bills would cost the same and
each be older than the one above it, which cannot close: choices are acyclic without a test.
Free e-classes never appear on a bill, which keeps bills short.
"""

from collections import deque
from dataclasses import dataclass, field

from extraction.choice import TOLERANCE, Choice, close
from extraction.clean import clean
from extraction.deadline import Deadline
from extraction.egraph import EGraph
from extraction.extractor import Limits, require_roots
from extraction.greedy_tree import cheapest_trees
from extraction.problem import Problem, class_of, from_egraph, parents_of

CHECK_EVERY = 256
"""E-nodes between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class _Bills:
    """Best e-node, bill and bill total of each e-class derived so far."""

    node: dict[int, int] = field(default_factory=dict)
    items: dict[int, dict[int, float]] = field(default_factory=dict)
    total: dict[int, float] = field(default_factory=dict)


def cheapest_bills(
    problem: Problem, deadline: Deadline | None = None
) -> tuple[dict[int, int], bool]:
    """Return an e-node for each derivable e-class, and whether time sufficed.

    At the deadline, e-classes without a bill get the e-node of least tree cost; mixing is
    safe only when no e-class has a bill yet, so then all of them do.
    """
    owner, parents = class_of(problem), parents_of(problem)
    missing = {node: len(children) for node, children in problem.children.items()}
    queue = deque(node for node, count in missing.items() if count == 0)
    queued = set(queue)
    bills = _Bills()
    steps = 0
    while queue:
        steps += 1
        if deadline and steps % CHECK_EVERY == 0 and deadline.passed:
            return _unfinished(problem, bills), False
        node = queue.popleft()
        queued.discard(node)
        number = owner[node]
        first = number not in bills.node
        if not _improve(problem, bills, number, node):
            continue
        for parent in parents[number]:
            if first:
                missing[parent] -= 1
            if missing[parent] == 0 and parent not in queued:
                queue.append(parent)
                queued.add(parent)
    return bills.node, True


def _improve(problem: Problem, bills: _Bills, number: int, node: int) -> bool:
    """Give an e-class the bill of `node` if that is cheaper; say whether it was."""
    own, total = problem.cost[node], bills.total
    best = total.get(number, float("inf"))
    children = problem.children[node]
    limit = best - TOLERANCE * best if best < float("inf") else best
    largest = max(children, key=total.__getitem__, default=None)
    if largest is None:
        value, items = own, {}
    elif own + total[largest] >= limit:
        return False
    else:
        items = bills.items[largest]
        if len(children) > 1:
            items = dict(items)
            for child in children:
                items.update(bills.items[child])
        value = own + sum(items.values())
    if value >= limit:
        return False
    if own > 0:
        items = {**items, number: own}
    bills.node[number], bills.items[number], bills.total[number] = node, items, value
    return True


def _unfinished(problem: Problem, bills: _Bills) -> dict[int, int]:
    if all(root in bills.node for root in problem.roots):
        return bills.node
    return cheapest_trees(problem)[0]


def extract_greedy_dag(graph: EGraph, limits: Limits) -> Choice:
    """Return the choice greedy by DAG cost."""
    problem = clean(from_egraph(graph)).problem
    require_roots(graph, problem)
    chosen, finished = cheapest_bills(problem, limits.deadline)
    return close(graph, chosen, bound=0.0, method="greedy-dag", timed_out=not finished)

"""Greedy by tree cost: each e-class takes the e-node whose term is cheapest as a tree.

Optimal for tree cost, found in order of cost (Knuth's generalization of Dijkstra's
algorithm), so a choice can never be cyclic. Shared subterms are paid at every use, which
is what makes it lose on graphs with sharing.
"""

import heapq

from extraction.choice import Choice, close
from extraction.clean import clean
from extraction.egraph import EGraph
from extraction.extractor import Limits, require_roots
from extraction.problem import Problem, class_of, from_egraph, parents_of


def cheapest_trees(problem: Problem) -> tuple[dict[int, int], dict[int, float]]:
    """Return the e-node of least tree cost for each derivable e-class, and that cost."""
    owner, parents = class_of(problem), parents_of(problem)
    missing = {node: len(children) for node, children in problem.children.items()}
    total: dict[int, float] = {}
    chosen: dict[int, int] = {}
    heap = [(problem.cost[node], node) for node, count in missing.items() if count == 0]
    heapq.heapify(heap)
    while heap:
        value, node = heapq.heappop(heap)
        number = owner[node]
        if number in chosen:
            continue
        chosen[number], total[number] = node, value
        for parent in parents[number]:
            missing[parent] -= 1
            if missing[parent] == 0 and owner[parent] not in chosen:
                below = sum([total[child] for child in problem.children[parent]])
                heapq.heappush(heap, (problem.cost[parent] + below, parent))
    return chosen, total


def extract_greedy_tree(graph: EGraph, limits: Limits) -> Choice:
    """Return the choice of least tree cost (each child e-class paid once per e-node)."""
    problem = clean(from_egraph(graph)).problem
    require_roots(graph, problem)
    chosen, _ = cheapest_trees(problem)
    return close(graph, chosen, bound=0.0, method="greedy-tree")

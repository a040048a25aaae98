"""Both greedy extractors, the better choice of the two; neither dominates the other."""

from extraction.choice import Choice, close
from extraction.clean import clean
from extraction.egraph import EGraph
from extraction.extractor import Limits, require_roots
from extraction.incumbent import better_greedy
from extraction.problem import from_egraph


def extract_greedy(graph: EGraph, limits: Limits) -> Choice:
    """Return the better of greedy by tree cost and greedy by DAG cost."""
    problem = clean(from_egraph(graph)).problem
    require_roots(graph, problem)
    chosen = better_greedy(problem, limits.deadline)
    return close(graph, chosen, bound=0.0, method="greedy")

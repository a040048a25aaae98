"""Hold reductions and extractors against exhaustive search on random e-graphs.

For each e-graph: every reduction alone, all together, and all together without an upper
bound, must keep the optimum and lift to a valid choice of that cost; every extractor must
return a valid choice, never below the optimum, and the exact one must meet it.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from extraction.choice import close
from extraction.clean import clean
from extraction.egraph import EGraph
from extraction.errors import UnderivableRootError
from extraction.exhaustive import extract_exhaustive, search
from extraction.extractor import Limits
from extraction.incumbent import better_greedy
from extraction.problem import Problem, cost_of, from_egraph
from extraction.random_graph import random_egraph
from extraction.reduce import ALL, choose_reductions, reduce, solvable
from extraction.registry import METHODS
from extraction.scaling import find_scale

TOLERANCE = 1e-7
SMALL, LARGE = 8, 11
"""The most e-classes without and with solvers, which small e-graphs would never reach."""

SOLVER_EVERY = 20
"""One e-graph in this many also goes through the solvers, which are slow to start."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A disagreement with exhaustive search.

    Attributes:
        seed: The seed of the e-graph.
        what: Which reduction or extractor.
        found: Its cost, or the error's text.
        optimum: The least cost.
    """

    seed: int
    what: str
    found: float | str
    optimum: float


def fuzz(count: int, seed: int = 0, solver_every: int = SOLVER_EVERY) -> Iterator[Mismatch]:
    """Yield the mismatches of `count` random e-graphs, seeds from `seed` on."""
    for number in range(seed, seed + count):
        solvers = bool(solver_every) and number % solver_every == 0
        classes = LARGE if solvers else SMALL
        yield from check_graph(random_egraph(number, classes), number, solvers)


def check_graph(graph: EGraph, seed: int = 0, solvers: bool = True) -> list[Mismatch]:
    """Return the mismatches of one e-graph."""
    try:
        optimum = extract_exhaustive(graph, Limits()).cost
    except UnderivableRootError:
        return []
    found = [*_reductions(graph), *_extractors(graph, optimum, solvers)]
    return [
        Mismatch(seed, what, cost, optimum)
        for what, cost in found
        if isinstance(cost, str) or not math.isclose(cost, optimum, rel_tol=TOLERANCE)
    ]


def _reductions(graph: EGraph) -> Iterator[tuple[str, float | str]]:
    scale = find_scale([node.cost for node in graph.nodes])
    problem = clean(from_egraph(graph, scale)).problem
    known = better_greedy(problem)
    for what, names, bounded in _settings():
        upper = cost_of(problem, known) if bounded else math.inf
        reduced = reduce(problem, choose_reductions(names), upper, scale.step)
        try:
            if solvable(reduced.problem):
                lifted = reduced.lift(_oracle(reduced.problem))
                if bounded:
                    lifted = min(lifted, known, key=lambda one: cost_of(problem, one))
            else:
                lifted = known
            yield what, close(graph, lifted, bound=0.0, method=what).cost
        except (ValueError, KeyError) as error:
            yield what, repr(error)


def _settings() -> list[tuple[str, tuple[str, ...], bool]]:
    alone = [(name, (name,), name == "expensive") for name in ALL]
    return [*alone, ("all", ALL, True), ("all, unbounded", ALL, False)]


def _oracle(problem: Problem) -> Mapping[int, int]:
    return search(problem, Limits())[0]


def _extractors(
    graph: EGraph, optimum: float, solvers: bool
) -> Iterator[tuple[str, float | str]]:
    for method in METHODS:
        if method.slow_start and not solvers:
            continue
        try:
            choice = method.extractor(graph, Limits())
            choice.check(graph)
        except (ValueError, KeyError) as error:
            yield method.name, repr(error)
            continue
        if choice.cost < optimum * (1 - TOLERANCE) or choice.bound > optimum * (
            1 + TOLERANCE
        ):
            yield method.name, f"cost {choice.cost}, bound {choice.bound}"
        if choice.status == "optimal" or method.exact:
            yield method.name, choice.cost

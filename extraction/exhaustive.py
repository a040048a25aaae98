"""Exhaustive search: the oracle that tests hold everything else against.

Branch over the e-nodes of one open e-class at a time, with the cost so far as the only
bound. Exponential; meant for e-graphs of a dozen e-classes.
"""

from extraction.choice import Choice, close
from extraction.clean import clean
from extraction.egraph import EGraph
from extraction.extractor import Limits, require_roots
from extraction.greedy_tree import cheapest_trees
from extraction.problem import Problem, cost_of, from_egraph, needed

CHECK_EVERY = 4096


class _Search:
    """The state of one depth-first search."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self.problem = problem
        self.limits = limits
        start = needed(problem, cheapest_trees(problem)[0])
        self.best, self.best_cost = start, cost_of(problem, start)
        self.steps = 0
        self.stopped = False

    def run(self, chosen: dict[int, int], open_: list[int], paid: float) -> None:
        """Extend `chosen` by every e-node of the last open e-class."""
        self.steps += 1
        if self.steps % CHECK_EVERY == 0 and self.limits.deadline.passed:
            self.stopped = True
        if self.stopped or paid >= self.best_cost:
            return
        while open_ and open_[-1] in chosen:
            open_ = open_[:-1]
        if not open_:
            self.best, self.best_cost = dict(chosen), paid
            return
        number, rest = open_[-1], open_[:-1]
        for node in self.problem.members[number]:
            children = self.problem.children[node]
            if any(self.reaches(chosen, child, number) for child in children):
                continue
            chosen[number] = node
            self.run(chosen, rest + sorted(children), paid + self.problem.cost[node])
            del chosen[number]

    def reaches(self, chosen: dict[int, int], start: int, goal: int) -> bool:
        """Return whether the choice so far leads from one e-class to another."""
        stack, seen = [start], {start}
        while stack:
            number = stack.pop()
            if number == goal:
                return True
            if number in chosen:
                for child in self.problem.children[chosen[number]]:
                    if child not in seen:
                        seen.add(child)
                        stack.append(child)
        return False


def search(problem: Problem, limits: Limits) -> tuple[dict[int, int], bool]:
    """Return the best choice of a cleaned problem, and whether all were tried."""
    state = _Search(problem, limits)
    state.run({}, sorted(problem.roots), problem.constant)
    return state.best, not state.stopped


def extract_exhaustive(graph: EGraph, limits: Limits) -> Choice:
    """Return an optimal choice by trying all; for small e-graphs only."""
    problem = clean(from_egraph(graph)).problem
    require_roots(graph, problem)
    chosen, finished = search(problem, limits)
    bound = cost_of(problem, chosen) if finished else 0.0
    return close(graph, chosen, bound=bound, method="exhaustive", timed_out=not finished)

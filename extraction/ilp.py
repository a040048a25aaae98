"""Exact extraction by integer linear programming (first slice; the full one follows)."""

import datetime
import time
from collections.abc import Mapping

from extraction.choice import Choice, close
from extraction.clean import clean
from extraction.egraph import EGraph
from extraction.extractor import Limits, require_roots
from extraction.greedy_dag import cheapest_bills
from extraction.problem import Problem, from_egraph


def selected_loop(problem: Problem, chosen: Mapping[int, int]) -> frozenset[int]:
    """Return the needed e-classes that `chosen` does not derive; empty when acyclic."""
    done: set[int] = set()
    open_: set[int] = set()
    stack = sorted(problem.roots)
    seen: set[int] = set()
    while stack:
        number = stack[-1]
        if number in open_ or number in done:
            stack.pop()
            if number in open_:
                open_.discard(number)
                if all(child in done for child in problem.children[chosen[number]]):
                    done.add(number)
            continue
        open_.add(number)
        seen.add(number)
        stack.extend(
            child for child in problem.children[chosen[number]] if child not in seen
        )
    changed = True
    while changed:
        changed = False
        for number in sorted(seen - done):
            if all(child in done for child in problem.children[chosen[number]]):
                done.add(number)
                changed = True
    return frozenset(seen - done)


def extract_ilp(graph: EGraph, limits: Limits) -> Choice:
    """Return an optimal choice, or the best known at the deadline."""
    from ortools.math_opt.python import mathopt

    start = time.monotonic()
    problem = clean(from_egraph(graph)).problem
    require_roots(graph, problem)
    incumbent, _ = cheapest_bills(problem, limits.deadline)
    bound = 0.0
    model = mathopt.Model()
    x = {node: model.add_binary_variable() for node in problem.children}
    y = {number: sum(x[node] for node in nodes) for number, nodes in problem.members.items()}
    for number, nodes in problem.members.items():
        if number in problem.roots:
            model.add_linear_constraint(y[number] == 1)
        else:
            model.add_linear_constraint(y[number] <= 1)
        uses: dict[int, list[int]] = {}
        for node in nodes:
            for child in problem.children[node]:
                uses.setdefault(child, []).append(node)
        for child, users in uses.items():
            if child != number:
                model.add_linear_constraint(sum(x[node] for node in users) <= y[child])
    model.minimize(sum(problem.cost[node] * x[node] for node in x))
    while not limits.deadline.passed:
        params = mathopt.SolveParameters(
            time_limit=datetime.timedelta(seconds=min(limits.deadline.left, 1e6)),
            relative_gap_tolerance=0.0,
        )
        result = mathopt.solve(model, mathopt.SolverType.HIGHS, params=params)
        if result.termination.reason != mathopt.TerminationReason.OPTIMAL:
            break
        bound = max(bound, result.termination.objective_bounds.dual_bound)
        values = result.variable_values()
        chosen = {
            number: node
            for number, nodes in problem.members.items()
            for node in nodes
            if values[x[node]] > 0.5
        }
        loop = selected_loop(problem, chosen)
        if not loop:
            choice = close(graph, chosen, bound=0.0, method="ilp")
            return close(
                graph,
                chosen,
                bound=choice.cost,
                method="ilp",
                seconds=time.monotonic() - start,
            )
        outside = sum(
            x[node]
            for number in loop
            for node in problem.members[number]
            if not problem.children[node] & loop
        )
        for number in loop:
            model.add_linear_constraint(y[number] <= outside)
    return close(
        graph,
        incumbent,
        bound=bound,
        method="ilp",
        timed_out=True,
        seconds=time.monotonic() - start,
    )

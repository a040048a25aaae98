"""Model, back ends and relaxation on parts that the reductions would have solved."""

from collections.abc import Mapping

import pytest

from extraction.clean import clean
from extraction.deadline import Deadline
from extraction.exhaustive import search
from extraction.extractor import Limits
from extraction.facts import Facts
from extraction.incumbent import better_greedy, repair
from extraction.landmarks import Separator
from extraction.local_search import improve
from extraction.model import build, supports_of
from extraction.portfolio import carry, solve_part
from extraction.problem import Problem, Reduced, cost_of, from_egraph
from extraction.random_graph import random_egraph
from extraction.reduce import solvable
from extraction.relax import relax
from extraction.solve_cpsat import solve_cpsat
from extraction.solve_highs import find_loops, loop_cuts, solve_highs
from extraction.solver import Task

TRIANGLE = (
    "r: f a b c = 0; a: g b = 1; a: x = 9; b: g c = 1; b: x = 9; c: g a = 1; c: x = 9"
)
"""Three e-classes that derive each other for 3, or honestly for 11."""


def _random(seed: int) -> Problem | None:
    problem = clean(from_egraph(random_egraph(seed, classes=12))).problem
    return problem if solvable(problem) and len(problem.members) > 3 else None


PROBLEMS = [
    pytest.param(problem, id=str(seed))
    for seed in range(2000, 2040)
    if (problem := _random(seed)) is not None
]


def _task(problem: Problem, step: float = 0.0) -> Task:
    hint = better_greedy(problem)
    return Task(build(problem), hint, cost_of(problem, hint), step, Deadline.after(20.0))


def _optimum(problem: Problem) -> float:
    return cost_of(problem, search(problem, Limits())[0])


@pytest.mark.parametrize("solve", [solve_highs, solve_cpsat])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_back_ends_prove_the_optimum(problem, solve):
    """Both reach what exhaustive search finds, unreduced cycles and all."""
    answer = solve(_task(problem))
    assert answer.proven
    assert cost_of(problem, answer.chosen) == pytest.approx(_optimum(problem))
    assert answer.bound == pytest.approx(_optimum(problem))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_relaxation_bounds_and_keeps_an_optimum(problem):
    """Its value is a lower bound, and what it deletes is not needed for a better choice."""
    relaxed = relax(_task(problem))
    optimum = _optimum(problem)
    assert relaxed.bound <= optimum * (1 + 1e-6)
    known = cost_of(problem, relaxed.chosen)
    best = search(problem, Limits())[0]
    assert known == pytest.approx(optimum) or relaxed.keep >= set(best.values())


@pytest.mark.parametrize("problem", PROBLEMS[:12])
def test_taking_turns_proves_the_optimum(problem):
    """All together do too."""
    hint = better_greedy(problem)
    upper = cost_of(problem, hint)
    answer = solve_part(problem, hint, upper, 0.0, Deadline.after(20.0))
    assert answer.proven
    assert cost_of(problem, answer.chosen) == pytest.approx(_optimum(problem))


def test_lazy_cuts_are_needed_and_enough(pose):
    """A loop of three is no two-cycle: HiGHS needs a second round, then is right."""
    problem = pose(TRIANGLE)
    answer = solve_highs(_task(problem))
    assert (answer.proven, answer.bound) == (True, 11.0)
    assert answer.rounds > 1
    assert answer.cuts


def test_dropped_cuts_are_noticed(pose):
    """With one round only, the loop is reported and not taken for a choice."""
    answer = solve_highs(_task(pose(TRIANGLE)), most_rounds=1)
    assert not answer.proven
    assert answer.bound <= 3.0
    assert len(answer.candidates) == 1


def test_loops_and_their_cuts(pose):
    """A selected loop becomes one cut per e-class, over the same supports."""
    problem = pose(TRIANGLE)
    loops = find_loops(problem, {0: 0, 1: 1, 2: 3, 3: 5})
    assert loops == [frozenset({1, 2, 3})]
    assert {cut.number for cut in loop_cuts(problem, loops[0])} == {1, 2, 3}
    assert supports_of(problem, loops[0]) == (2, 4, 6)


def test_two_cycles_are_cut_by_the_rows(pose):
    """The need row counts the child's e-nodes that lead back."""
    problem = pose("r: f a = 0; a: g b = 0; a: x = 9; b: h a = 0; b: y = 7")
    rows = [(row.nodes, row.minus) for row in build(problem).rows if not row.equal]
    assert ((1, 3), 2) in rows
    assert solve_highs(_task(problem)).rounds == 1


def test_separation_finds_what_local_rows_miss(pose):
    """Two halves over one shared e-class: it must be needed wholly."""
    text = "r: f a = 0; r: f b = 0; a: g s = 0; a: x = 9; b: g s = 0; b: x = 9; s: z = 1"
    problem = pose(text)
    x = {0: 0.5, 1: 0.5, 2: 0.5, 3: 0.0, 4: 0.5, 5: 0.0, 6: 0.5}
    cuts = Separator(problem).find(x, Deadline())
    assert any(cut.number == 0 and set(cut.supports) == {3, 5, 6} for cut in cuts)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_cuts_hold_for_every_choice(problem):
    """A cut found for any fractional point is true for the optimum."""
    best = set(search(problem, Limits())[0].values())
    x = {node: 1.0 / len(nodes) for nodes in problem.members.values() for node in nodes}
    needed = search(problem, Limits())[0]
    for cut in Separator(problem).find(x, Deadline()):
        assert cut.number not in needed or best & set(cut.supports)


def test_carry_keeps_cuts_true(pose):
    """Deleted supports leave a cut; a forced support drops it."""
    problem = pose(TRIANGLE)
    cuts = loop_cuts(problem, frozenset({1, 2, 3}))
    smaller = pose("r: f a b c = 0; a: g b = 1; a: x = 9; b: g c = 1; b: x = 9; c: g a = 1")
    assert {cut.supports for cut in carry(cuts, Reduced(smaller))} == {(2, 4)}
    assert carry(cuts, Reduced(smaller, {3: 6})) == ()


@pytest.mark.parametrize("problem", PROBLEMS[:10])
def test_repair_and_search_stay_valid(problem):
    """Whatever is wanted, a complete acyclic choice comes back, and search never loses."""
    wanted: Mapping[int, int] = {c: nodes[-1] for c, nodes in problem.members.items()}
    fixed = repair(problem, wanted)
    better = improve(problem, fixed, Deadline(), seed=1, patience=3)
    assert not find_loops(problem, fixed)
    assert cost_of(problem, better) <= cost_of(problem, fixed)
    assert cost_of(problem, better) >= _optimum(problem) - 1e-9


def test_facts_are_computed_once(pose):
    """Tables are shared between reductions."""
    facts = Facts(pose(TRIANGLE))
    assert facts.must is facts.must

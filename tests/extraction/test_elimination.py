"""Elimination finds the optimum without a solver, or says that the e-graph is too wide."""

import math

import pytest

from extraction import UnderivableRootError, extract
from extraction.choice import close
from extraction.clean import clean
from extraction.derivations import Bits, derivations
from extraction.elimination import solve_narrow, solve_wide
from extraction.errors import TooWideError
from extraction.facts import Facts
from extraction.greedy_tree import cheapest_trees
from extraction.incumbent import better_greedy
from extraction.partial import Effort, undominated
from extraction.problem import cost_of, from_egraph
from extraction.random_graph import random_egraph
from extraction.served import drop_served, serve

SHARED = "r: f p q = 0; p: a s = 1; p: b = 5; q: a s = 1; q: b = 5; s: x = 7; s: y = 8"
"""Greedy takes both for 10, since s looks dear from each side; together it is 9."""


@pytest.mark.parametrize("block", range(6))
def test_elimination_agrees_with_brute_force(block):
    """On hundreds of small e-graphs, cyclic ones included, the costs are the same."""
    compared = 0
    for seed in range(40 * block, 40 * (block + 1)):
        graph = random_egraph(seed, 8)
        try:
            best = extract(graph, "exhaustive", seconds=60)
        except UnderivableRootError:
            continue
        problem = clean(from_egraph(graph)).problem
        hint = better_greedy(problem)
        upper = math.inf if seed % 2 else cost_of(problem, hint)
        chosen = solve_narrow(problem, hint, upper, 0.0)
        assert chosen is not None, seed
        found = close(graph, chosen, bound=0.0, method="elimination")
        assert found.cost == pytest.approx(best.cost), seed
        compared += 1
    assert compared > 10


def test_elimination_sees_what_two_share(pose):
    """What greedy cannot see, the price of a shared e-class, decides."""
    problem = pose(SHARED)
    hint = better_greedy(problem)
    chosen = solve_narrow(problem, hint, math.inf, 0.0)
    assert chosen is not None
    assert cost_of(problem, chosen) == 9.0


def test_elimination_gives_up_by_counting(pose):
    """Too few pairs allowed: no answer, and no other one than the last time."""
    text = "; ".join(
        f"c{k}: f c{k + 1} c{k + 2} = {k % 3 + 1}; c{k}: g c{k + 2} c{k + 3} = {k % 2 + 1}"
        for k in range(12)
    )
    text += "; c12: x = 1; c12: y c13 = 0; c13: x = 1; c13: y c14 = 0; c14: x = 3"
    problem = pose(text, "c0")
    hint = better_greedy(problem)
    assert solve_narrow(problem, hint, math.inf, 0.0, most_pairs=3) is None
    chosen = solve_narrow(problem, hint, math.inf, 0.0)
    assert chosen is not None
    assert chosen == solve_narrow(problem, hint, math.inf, 0.0)


@pytest.mark.parametrize("beam", [1, 3])
def test_cut_tables_give_a_choice_no_worse_than_the_hint(beam):
    """However short the tables, what the hint is made of stays; now and then it helps."""
    better = 0
    for seed in range(200):
        graph = random_egraph(seed, 9)
        problem = clean(from_egraph(graph)).problem
        if not problem.roots <= problem.members.keys():
            continue
        hint = cheapest_trees(problem)[0]
        chosen = solve_wide(problem, hint, beam=beam)
        found = close(graph, chosen, bound=0.0, method="elimination")
        assert found.cost <= cost_of(problem, hint) * (1 + 1e-9), seed
        better += found.cost < cost_of(problem, hint) * (1 - 1e-9)
    assert better > 0


def test_a_component_is_derived_in_some_order(pose):
    """Two e-classes that need each other are made only from one that does not."""
    problem = pose("r: f a b = 0; a: g b = 1; a: x = 5; b: h a = 1; b: y = 6")
    facts = Facts(problem)
    bits = Bits.of(sorted(problem.members))
    best = derivations(facts, [1, 2], bits, Effort(1e6))
    absent = bits.withheld[1] | bits.withheld[2]
    costs = {made & absent: cost for made, (cost, _) in best.items()}
    assert costs == {
        absent: 0.0,
        bits.withheld[2]: 5.0,
        bits.withheld[1]: 6.0,
        0: 6.0,
    }


def test_a_large_component_is_left_to_solvers(pose):
    """Fifteen e-classes in a circle have too many orders."""
    text = "; ".join(f"c{k}: f c{(k + 1) % 15} = 1; c{k}: x = {k + 2}" for k in range(15))
    problem = pose(text, "c0")
    with pytest.raises(TooWideError, match="15 e-classes need each other; possible: 14"):
        derivations(Facts(problem), range(15), Bits.of(range(15)), Effort(1e9))


def test_of_two_partial_choices_the_one_that_asks_for_more_and_costs_more_goes():
    """Bits are demands: a superset that is no cheaper is never needed."""
    best = {0b01: (2.0, None), 0b11: (2.0, None), 0b10: (1.0, None), 0b100: (9.0, None)}
    kept = undominated(best, 5.0, Effort(100))
    assert [(bits, cost) for bits, cost, _ in kept] == [(0b10, 1.0), (0b01, 2.0)]


def test_a_served_demand_goes_and_comes_back(pose):
    """Who asks for p need not ask for `any`, which p serves; the choice gets it back."""
    problem = pose("r: f p any = 1; any: same p = 0; any: same q = 0; p: x = 2; q: y = 1")
    bare = drop_served(problem)
    assert bare.children[0] == {2}
    chosen = serve(problem, {0: 0, 2: 3})
    assert chosen == {0: 0, 1: 1, 2: 3}


def test_who_serves_closes_no_cycle(pose):
    """`any` was served by what needs it: p, made first, takes over."""
    problem = pose("r: f q = 0; q: g p any = 1; any: same q = 0; any: same p = 0; p: x = 2")
    chosen = serve(problem, {0: 0, 1: 1, 2: 2, 3: 4})
    assert chosen == {0: 0, 1: 1, 2: 3, 3: 4}

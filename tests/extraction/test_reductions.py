"""Each reduction does what it says on the smallest e-graph that shows it."""

import math

import pytest

from extraction import ExtractionError
from extraction.clean import clean
from extraction.components import split
from extraction.dominance import drop_dominated, drop_dominated_must
from extraction.facts import Facts
from extraction.free import drop_free
from extraction.problem import cost_of, needed
from extraction.reduce import ALL, REDUCTIONS, choose_reductions, reduce, solvable
from extraction.required import drop_implied, drop_impossible, root_required
from extraction.single import inline_single
from extraction.upper_bound import drop_expensive, required_bound, worthwhile


def test_clean_drops_loops_dead_and_unreachable(pose):
    """Self loops, underivable children and unreachable e-classes go."""
    problem = pose("r: f a = 1; r: f r = 0; r: f d = 0; a: x = 1; d: g d = 1; u: x = 1")
    assert sorted(clean(problem).problem.children) == [0, 3]


def test_clean_can_lose_a_root(pose):
    """A root that only derives itself is missing afterwards."""
    assert not solvable(clean(pose("r: f r = 1")).problem)


def test_free_classes_vanish_upwards(pose):
    """A free e-class makes its free parents free; the lift puts both back."""
    problem = pose("r: f b = 1; b: g a = 0; a: x = 0; a: y = 3")
    reduced = drop_free(Facts(problem))
    assert reduced.problem.size == (1, 1)
    assert needed(problem, reduced.lift({0: 0})) == {0: 0, 1: 1, 2: 2}


def test_single_roots_are_paid_for_good(pose):
    """A root with one e-node becomes a constant and its children roots."""
    problem = pose("r: f a = 7; a: x = 1; a: y = 2")
    reduced = inline_single(Facts(problem)).problem
    assert (reduced.constant, reduced.roots) == (7.0, {1})


def test_single_class_moves_its_cost_into_one_parent_class(pose):
    """Both e-nodes of the only parent e-class take the cost."""
    problem = pose("r: f a = 1; r: g a = 2; a: h b = 5; b: x = 1; b: y = 1")
    reduced = inline_single(Facts(problem)).problem
    assert dict(reduced.cost) == {0: 6.0, 1: 7.0, 3: 1.0, 4: 1.0}


def test_single_class_with_a_cost_and_two_parent_classes_stays(pose):
    """Its cost would be paid twice."""
    text = "r: f p q = 0; r: z = 99; p: f a = 1; p: x = 9; q: f a = 1; q: x = 9; a: g = 5"
    reduced = inline_single(Facts(pose(text))).problem
    assert 3 in reduced.members


def test_dominance_keeps_the_cheaper_and_less_demanding(pose):
    """More children at no less cost go; cheaper or incomparable stay."""
    text = "r: f a b = 2; r: g a = 2; r: h b = 1; r: k a b = 0; a: x = 1; b: y = 1"
    assert sorted(drop_dominated(Facts(pose(text))).problem.children) == [1, 2, 3, 4, 5]


def test_equal_nodes_leave_the_first(pose):
    """Of two e-nodes alike the first stays."""
    kept = drop_dominated(Facts(pose("r: f a = 1; r: g a = 1; a: x = 1"))).problem
    assert sorted(kept.children) == [0, 2]


def test_dominance_looks_through_must_sets(pose):
    """What a child needs anyway counts as asked for."""
    text = "r: f b = 2; r: g a = 2; b: h a = 1; b: k a = 1; a: x = 1"
    facts = Facts(pose(text))
    assert drop_dominated(facts).problem.size == (4, 3)
    assert sorted(drop_dominated_must(facts).problem.children) == [1, 2, 4]


def test_impossible_nodes_need_their_own_class(pose):
    """An e-node all of whose ways lead back goes."""
    text = "r: f a = 0; r: x = 9; a: g b = 0; a: h b = 1; b: k r = 1"
    assert 0 not in drop_impossible(Facts(pose(text))).problem.children


def test_implied_children_go(pose):
    """A child below another child is not asked for twice."""
    reduced = drop_implied(Facts(pose("r: f a b = 1; a: g b = 1; a: h b = 2; b: x = 1")))
    assert reduced.problem.children[0] == {1}


def test_required_classes_become_roots(pose):
    """They are roots, and edges to them say nothing more."""
    text = "r: f a = 1; r: g a c = 0; a: x = 1; a: y = 2; c: z = 1"
    reduced = root_required(Facts(pose(text))).problem
    assert reduced.roots == {0, 1}
    assert reduced.children[0] == frozenset()
    assert len(split(reduced)) == 2


def test_required_edges_within_a_component_stay(pose):
    """An edge that could close a cycle is kept."""
    text = "r: f a b = 1; a: g b = 0; a: x = 5; b: h a = 0; b: y = 5"
    reduced = root_required(Facts(pose(text))).problem
    assert reduced.children[1] == {2}
    assert reduced.children[3] == {1}


def test_expensive_nodes_go(pose):
    """An e-node whose must set alone reaches the known cost goes."""
    problem = pose("r: f a = 1; r: g b = 1; a: x = 9; b: y = 2")
    assert sorted(drop_expensive(Facts(problem, upper=5.0)).problem.children) == [1, 3]
    assert required_bound(Facts(problem)) == 1.0


def test_known_optimum_leaves_nothing(pose):
    """When no choice can be better the root loses its e-nodes."""
    problem = pose("r: f a = 1; r: g b = 1; a: x = 9; b: y = 2")
    assert not solvable(reduce(problem, upper=3.0, step=1.0).problem)


@pytest.mark.parametrize(
    ("upper", "step", "limit"), [(10.0, 1.0, 9.5), (10.0, 0.0, 10.0 - 1e-8)]
)
def test_worthwhile(upper, step, limit):
    """Whole costs must be better by a step, others by more than noise."""
    assert worthwhile(upper, step) == pytest.approx(limit, rel=1e-12)


def test_reductions_never_change_their_input(pose):
    """The problem given is the problem kept."""
    problem = pose("r: f a = 1; r: g b c = 1; a: x = 9; b: y = 2; c: z = 0")
    before = (dict(problem.members), dict(problem.children), dict(problem.cost))
    for reduction in REDUCTIONS:
        reduction.apply(Facts(problem, upper=4.0))
    assert before == (dict(problem.members), dict(problem.children), dict(problem.cost))


def test_lifts_compose(pose):
    """A choice lifted through all reductions has the cost the small problem says."""
    text = (
        "r: f a b = 1; a: g c = 2; b: h c = 3; b: k d = 1; c: x = 4; c: y e = 1;"
        "d: z c = 2; e: w = 0"
    )
    problem = pose(text)
    reduced = reduce(problem)
    chosen = {number: nodes[0] for number, nodes in reduced.problem.members.items()}
    assert cost_of(problem, reduced.lift(chosen)) == cost_of(reduced.problem, chosen)


def test_unknown_reductions_are_refused():
    """The text lists what exists."""
    with pytest.raises(ExtractionError, match="'magic' was asked for; known: free, single"):
        choose_reductions(["magic"])
    assert [one.name for one in choose_reductions(ALL)] == list(ALL)


def test_no_upper_bound_prunes_nothing(pose):
    """Infinity is no bound."""
    problem = pose("r: f = 1; r: g = 2")
    assert drop_expensive(Facts(problem, upper=math.inf)).problem is problem

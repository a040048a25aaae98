"""A choice checks itself and computes its own cost."""

import pytest

from extraction import (
    Choice,
    CyclicChoiceError,
    EGraph,
    ENode,
    IncompleteChoiceError,
    WrongClassError,
)
from extraction.choice import close

SHARED = "r: f a b = 1; a: g c = 2; b: h c c = 3; c: x = 10; c: y = 20; a: loop r = 0"


@pytest.mark.parametrize(
    ("node_of", "error", "text"),
    [
        (
            {"r": 0, "a": 1, "b": 2},
            IncompleteChoiceError,
            "'c' is needed but has no e-node",
        ),
        ({"r": 0, "a": 2, "b": 2, "c": 3}, WrongClassError, "'a' was given e-node 2"),
        ({"r": 0, "a": 9, "b": 2, "c": 3}, WrongClassError, "'a' was given e-node 9"),
        ({"r": 0, "a": 5, "b": 2, "c": 3}, CyclicChoiceError, "'r' needs itself"),
    ],
    ids=["incomplete", "wrong class", "no such node", "cyclic"],
)
def test_bad_choices_are_refused(make, node_of, error, text):
    """Each kind of fault has its own error."""
    with pytest.raises(error, match=text):
        Choice(node_of, 0.0).check(make(SHARED))


def test_infinite_nodes_are_refused(make):
    """An e-node of infinite cost cannot be chosen."""
    with pytest.raises(WrongClassError, match="finite"):
        Choice({"r": 0}, 0.0).check(make("r: f = inf; r: g = 1"))


def test_costs_count_sharing(make):
    """DAG cost pays a shared e-class once, tree cost at each use."""
    choice = Choice({"r": 0, "a": 1, "b": 2, "c": 3}, 16.0)
    assert choice.dag_cost(make(SHARED)) == 16.0
    assert choice.tree_cost(make(SHARED)) == 36.0


def test_terms_share_objects(make):
    """A term is nested pairs; shared e-classes are one object."""
    op, (left, right) = Choice({"r": 0, "a": 1, "b": 2, "c": 3}, 16.0).to_term(make(SHARED))
    assert (op, left) == ("f", ("g", (("x", ()),)))
    assert right[1][0] is left[1][0]


def test_deep_choices_need_no_recursion():
    """A chain of 50,000 e-classes is checked and priced."""
    count = 50_000
    nodes = [ENode("f", at, (at + 1,)) for at in range(count)] + [ENode("x", count)]
    choice = Choice({at: at for at in range(count + 1)}, 0.0)
    assert choice.dag_cost(EGraph(nodes, [0])) == count + 1


def test_close_keeps_only_what_is_needed(make):
    """E-classes the roots do not reach are dropped; cost meeting bound is optimal."""
    graph = make("r: f = 1; q: g = 5")
    choice = close(graph, {0: 0, 1: 1}, bound=1.0, method="test")
    assert dict(choice.node_of) == {"r": 0}
    assert (choice.status, choice.gap) == ("optimal", 0.0)


@pytest.mark.parametrize(("late", "status"), [(True, "timed out"), (False, "feasible")])
def test_open_gaps_say_why(make, late, status):
    """Without a proof the status tells whether time was the reason."""
    choice = close(make("r: f = 4"), {0: 0}, bound=1.0, method="test", timed_out=late)
    assert (choice.status, choice.gap) == (status, 0.75)

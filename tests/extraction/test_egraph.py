"""The e-graph checks itself when made."""

import dataclasses
import math

import pytest

from extraction import CostError, EGraph, ENode, MissingRootError


def test_classes_are_numbered_by_first_appearance():
    """Numbers follow the order of e-nodes, then of children without e-nodes."""
    graph = EGraph([ENode("f", "b", ("a", "z", "a")), ENode("x", "a")], ["b"])
    assert graph.ids == ("b", "a", "z")
    assert graph.children_of == ((1, 2), ())
    assert graph.members == ((0,), (1,), ())


@pytest.mark.parametrize("cost", [-1.0, -math.inf, math.nan], ids=str)
def test_bad_costs_are_refused(cost):
    """Negative and NaN costs name the e-node and the e-class."""
    with pytest.raises(CostError, match=r"e-node 0 \('f' in e-class 'r'\) has cost"):
        EGraph([ENode("f", "r", (), cost)], ["r"])


def test_infinite_cost_leaves_the_node_out():
    """An e-node of infinite cost keeps its position but is no member."""
    graph = EGraph([ENode("f", "r", (), math.inf), ENode("g", "r")], ["r"])
    assert graph.members == ((1,),)


def test_unknown_root_is_refused():
    """A root without e-nodes is an error that names known e-classes."""
    with pytest.raises(MissingRootError, match=r"root 'q' has no e-node.*'r'"):
        EGraph([ENode("f", "r")], ["q"])


def test_no_roots_are_refused():
    """Nothing to derive is an error."""
    with pytest.raises(MissingRootError, match="no roots"):
        EGraph([ENode("f", "r")], [])


def test_values_are_frozen(make):
    """Neither e-graphs nor e-nodes can be changed, and both have slots."""
    graph = make("r: f = 1")
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.roots = ()
    with pytest.raises(TypeError, match="item assignment"):
        graph.number_of["s"] = 3
    assert not hasattr(graph.nodes[0], "__dict__")


def test_repr_is_short(make):
    """The repr gives sizes only."""
    assert repr(make("r: f = 1")) == "EGraph(1 e-nodes, 1 e-classes, 1 roots)"

"""Saturation ends, says why, and grows no further than it may."""

from __future__ import annotations

import pytest

from tensat.egraph.saturate import Growth, Limits, saturate
from tensat.errors import UnsoundRuleError
from tests.tensat.egraph.lab import Lab, rule

GROWING = rule("(Relu ?x)", "(Relu (Identity (Identity (Relu ?x))))", name="growing")
ENDING = rule("(Neg (Neg ?x))", "?x", name="ending")


def _endless() -> Lab:
    """An e-graph that its rule lets grow without an end."""
    lab = Lab(rule("(Sub ?x ?y)", "(Sub (Neg (Neg ?x)) (Neg (Sub ?y ?x)))", name="endless"))
    lab.node("Sub", lab.input("x", 2), lab.input("y", 2))
    return lab


def test_saturated() -> None:
    """Where nothing changes any more, it says so."""
    lab = Lab(ENDING)
    x = lab.input("x", 2)
    lab.node("Neg", lab.node("Neg", x))
    result = lab.run()
    assert result.stop == "saturated"
    assert result.fired == {"ending": 1}


def test_no_rules_saturate_at_once() -> None:
    """An e-graph without rules is complete."""
    lab = Lab()
    lab.node("Relu", lab.input("x", 2))
    result = lab.run()
    assert (result.stop, result.fired) == ("saturated", {})
    assert {(step.nodes, step.classes) for step in result.growth} == {(2, 2)}


def test_a_rule_that_builds_into_its_own_class_ends() -> None:
    """A cycle in the e-graph is no endless growth."""
    lab = Lab(GROWING)
    lab.node("Relu", lab.input("x", 2))
    assert lab.run(iterations=30).stop in {"saturated", "iterations"}


@pytest.mark.parametrize(
    ("limits", "stop"),
    [
        pytest.param({"iterations": 3}, "iterations", id="iterations"),
        pytest.param({"nodes": 40}, "nodes", id="nodes"),
        pytest.param({"seconds": 0.0}, "seconds", id="seconds"),
        pytest.param({"nodes": 1}, "nodes", id="nodes at the start"),
    ],
)
def test_limits_are_the_reason(limits: dict[str, float], stop: str) -> None:
    """The limit that was met is the reason, as a value."""
    assert _endless().run(**limits).stop == stop


def test_iterations_are_counted() -> None:
    """Growth has the size before the first step and after each."""
    result = _endless().run(iterations=3)
    assert len(result.growth) == 4
    assert result.growth[0].nodes == 3
    sizes = [step.nodes for step in result.growth]
    assert sizes == sorted(sizes)


def test_the_node_limit_is_hardly_passed() -> None:
    """Limits are looked at before each match: one right side more at most."""
    for nodes in (10, 100, 1000):
        result = _endless().run(nodes=nodes, iterations=100)
        assert nodes <= result.growth[-1].nodes <= nodes + 4


def test_multi_pattern_rules_run_in_the_first_steps_only() -> None:
    """How many is a limit, too."""
    pair = rule(("(Relu ?x)", "(Tanh ?x)"), ("(Neg ?x)", "(Abs ?x)"), name="pair")
    for steps, fired in ((0, 0), (1, 1)):
        lab = Lab(pair)
        x = lab.input("x", 2)
        lab.node("Relu", x)
        lab.node("Tanh", x)
        assert lab.run(multi_iterations=steps).fired.get("pair", 0) == fired


def test_progress_is_told_after_each_step() -> None:
    """The same records as in the result."""
    lab = _endless()
    lab.run(iterations=1)
    told: list[Growth] = []
    result = saturate(lab.egraph, lab.patterns, Limits(iterations=2), told.append)
    assert tuple(told) == result.growth[1:]


def test_rules_that_fired_are_counted_most_frequent_first() -> None:
    """Matches that changed something count, others do not."""
    lab = Lab(ENDING, rule("(Abs (Neg ?x))", "(Abs ?x)", name="abs"))
    for k in range(3):
        lab.node("Neg", lab.node("Neg", lab.input(f"x{k}", 2)))
    lab.node("Abs", lab.node("Neg", lab.input("y", 2)))
    assert list(lab.run().fired.items()) == [("ending", 3), ("abs", 1)]


@pytest.mark.parametrize("lhs", ["(Sub ?x ?x)", "(Sub ?x ?y)"])
def test_a_wrong_rule_is_found_by_the_values_it_unites(lhs: str) -> None:
    """Beside a right rule it makes 0 and 1 the same: an error that names the rule."""
    wrong = rule(lhs, "(Fill[value=1, shape=(shape ?x)])", name="wrong")
    right = rule("(Sub ?x ?x)", "(Fill[value=0, shape=(shape ?x)])", name="right")
    lab = Lab(right, wrong)
    x = lab.input("x", 2, 3)
    lab.node("Sub", x, x)
    with pytest.raises(UnsoundRuleError, match=r"values differ; last rules: .*wrong"):
        lab.run()


def test_a_wrong_rule_is_found_by_the_types_it_unites() -> None:
    """A value made equal to one of another shape is an error."""
    lab = Lab(rule("(Neg (Neg ?x))", "?x", name="right"))
    x = lab.input("x", 2, 3)
    lab.egraph.union(lab.node("Neg", lab.node("Neg", x)), lab.input("z", 3, 2))
    with pytest.raises(UnsoundRuleError, match=r"became one; their types differ"):
        lab.run()


@pytest.mark.parametrize(("members", "fired"), [(20, True), (150, False)])
def test_patterns_that_explode_are_given_up(members: int, fired: bool) -> None:
    """A class of n functions beside itself matches n * n times: too often from 100 on."""
    spread = rule("(Concat[axis=0] (Neg ?xs...)...)", "(Neg (Concat[axis=0] ?xs...))")
    lab = Lab(spread)
    negatives = [lab.node("Neg", lab.input(f"x{k}", 2)) for k in range(members)]
    lab.node("Concat", negatives[0], negatives[0], axis=0)
    for other in negatives[1:]:
        lab.egraph.union(negatives[0], other)
    result = lab.run(iterations=2, nodes=10_000)
    assert bool(result.fired) is fired

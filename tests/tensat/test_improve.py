"""From a graph to the cheapest equal graph, and what is told about the way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tensat.egraph.saturate import Limits
from tensat.runtime import Runtime
from tests.tensat.egraph.lab import rule
from tests.tensat.model.onnx_models import FEEDS, X, Y, model, node, ops, random, run, value
from tests.tensat.pipeline import RULES, RandomCosts, improved


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """One child for all tests of this file."""
    with Runtime() as made:
        yield made


TWICE = model([node("Neg", "x", "a"), node("Neg", "a", "b"), node("Relu", "b", "y")], X, Y)


def test_the_plan_tells_what_was_done(runtime: Runtime) -> None:
    """Costs before and after, the rules behind the result, sizes and reasons."""
    result, plan = improved(TWICE, runtime)
    assert ops(result) == ["Relu"]
    assert 0 < plan.choice.cost < plan.original_seconds
    saturation = plan.saturation_record()
    assert saturation["stop"] == "saturated"
    assert saturation["fired"]["neg-of-neg"] == 1
    assert saturation["growth"][0] == (4, 4)
    assert (saturation["nodes"], saturation["classes"]) == saturation["growth"][-1]
    extraction = plan.extraction_record()
    assert extraction["status"] == "optimal"
    assert extraction["gap"] == 0
    assert extraction["cost"] == plan.choice.cost


def test_rules_of_the_result_are_counted(runtime: Runtime) -> None:
    """Only those behind nodes that were chosen."""
    nodes = [node("Sub", "x c", "a"), node("Sub", "a x", "y")]
    rules = [rule("(Sub ?x ?y)", "(Add ?x (Neg ?y))", "const ?y", name="sub")]
    chosen = {
        tuple(improved(model(nodes, X, Y, {"c": random(3)}), runtime, RandomCosts(salt),
                       rules=rules)[1].rules.items())
        for salt in range(8)
    }  # fmt: skip
    assert chosen <= {(), (("sub", 1),), (("sub", 2),)}
    assert len(chosen) > 1


def test_equal_nodes_of_the_original_count_once(runtime: Runtime) -> None:
    """The runtime merges them when it loads the model: nothing is gained by doing it."""
    twice = [node("Relu", "x", "a"), node("Relu", "x", "b"), node("Add", "a b", "y")]
    once = [node("Relu", "x", "a"), node("Add", "a a", "y")]
    _, two = improved(model(twice, X, Y), runtime, rules=())
    _, one = improved(model(once, X, Y), runtime, rules=())
    assert two.original_seconds == pytest.approx(one.original_seconds)
    assert two.seconds == pytest.approx(two.original_seconds)


def test_parts_of_several_results_count_once(runtime: Runtime) -> None:
    """A Split costs what it costs, however many parts are used."""
    nodes = [node("Split", "x sizes", "a b c", axis=1), node("Sum", "a b c", "y")]
    proto = model(nodes, X, [value("y", [2, 1])], {"sizes": np.array([1, 1, 1])})
    _, plan = improved(proto, runtime, rules=())
    assert plan.seconds == pytest.approx(plan.original_seconds)


def test_limits_hold(runtime: Runtime) -> None:
    """Where saturation was cut short, the result is right and the reason is there."""
    nodes = [node("Neg", "x", "v0")]
    nodes += [node("Neg", f"v{k}", f"v{k + 1}") for k in range(30)]
    nodes += [node("Relu", "v30", "y")]
    proto = model(nodes, X, Y)
    for limits, stop in (
        (Limits(nodes=33), "nodes"), (Limits(seconds=0.0), "seconds"),
        (Limits(iterations=1), "iterations"),
    ):  # fmt: skip
        result, plan = improved(proto, runtime, limits=limits)
        assert plan.saturation.stop == stop
        np.testing.assert_array_equal(run(result, FEEDS)[0], run(proto, FEEDS)[0])


def test_no_rule_of_the_other_kind_is_needed(runtime: Runtime) -> None:
    """All shipped rules on a model without any of their operators change nothing."""
    proto = model([node("CumSum", "x axis", "y")], X, Y, {"axis": np.array(1)})
    result, plan = improved(proto, runtime, rules=RULES)
    assert ops(result) == ["CumSum"]
    assert plan.saturation.fired == {}

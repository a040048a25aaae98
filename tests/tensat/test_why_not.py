"""Why a rule did not apply: how far its left side and its conditions got."""

from __future__ import annotations

import pytest

from rulesets.store import load
from tensat.optimize import Result, named, optimize
from tensat.why_not import APPLIED, why_not
from tests.tensat.model.onnx_models import model, node, random, value
from tests.tensat.small_search import CONV, FAST


@pytest.fixture(scope="module")
def result() -> Result:
    """A convolution and its norm that become one, and a Relu too many."""
    return optimize(CONV, FAST)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("transpose-of-transpose", "there is no Transpose, nor did a rule make one"),
        ("relu-of-clip", "there is no Clip"),
        ("relu-of-relu", APPLIED),
        ("conv-bias-is-add[Conv]", APPLIED),
        ("add-zero", "not true: every element of the constant"),
        ("pointwise-after-conv", "nothing looks like (Conv (Conv ?x ?v) ?w)"),
    ],
    ids=["operator", "other operator", "fired", "variant", "condition", "arrangement"],
)
def test_why_not(result: Result, rule: str, text: str) -> None:
    """The text says how far the rule got."""
    assert result.found is not None
    answer = str(why_not(*result.found, named(load(), rule)))
    assert text in answer
    assert answer.startswith(rule)


def test_why_not_names_places_and_values() -> None:
    """A Conv of groups is not a matter of attributes alone; the place has its name."""
    nodes = [
        node("Relu", "x", "a"),
        node("Conv", "a w", "b", name="first", strides=[2, 2]),
        node("Conv", "a v", "c", name="second"),
        node("GlobalAveragePool", "b", "d"), node("GlobalAveragePool", "c", "e"),
        node("Add", "d e", "y"),
    ]  # fmt: skip
    proto = model(
        nodes, [value("x", [1, 4, 9, 9])], [value("y", [1, 4, 1, 1])],
        {"w": random(4, 4, 1, 1), "v": random(4, 4, 1, 1, seed=1)},
    )  # fmt: skip
    result = optimize(proto, FAST)
    assert result.found is not None
    answer = why_not(*result.found, named(load(), "parallel-conv"))
    assert answer.fired == 0
    (obstacle,) = [each for each in answer.obstacles if "attributes of Conv" in each.text]
    assert any("Conv second has" in place for place in obstacle.places.values())

"""A match is applied only where conditions hold and the right side has the same type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rulesets.condition import WORDS
from rulesets.size import symbol
from tests.tensat.egraph.lab import Lab, rule

N, M = symbol("N"), symbol("M")


def _pair(second: Callable[[Lab], int], *shape: object) -> Callable[[Lab], int]:
    """An input and something else, as operands that cannot be exchanged."""

    def build(lab: Lab) -> int:
        return lab.node("Sub", lab.input("x", *(shape or (2, 3))), second(lab))  # type: ignore[arg-type]

    return build


def _input(*shape: object) -> Callable[[Lab], int]:
    return lambda lab: lab.input("y", *shape)  # type: ignore[arg-type]


def _constant(value: object) -> Callable[[Lab], int]:
    return lambda lab: lab.constant(value)


def _transposed(*shape: object) -> Callable[[Lab], int]:
    return lambda lab: lab.node("Transpose", lab.input("x", *shape), perm=(1, 0))  # type: ignore[arg-type]


def _clip(low: float, high: float) -> Callable[[Lab], int]:
    return lambda lab: lab.node("Clip", lab.input("x", 2, 3), min=low, max=high)


def _reduce(*axes: int) -> Callable[[Lab], int]:
    return lambda lab: lab.node("ReduceSum", lab.input("x", 2, 3), axes=axes, keepdims=1)


PAIR, CLIP = "(Sub ?x ?y)", "(Clip[min=?a, max=?b] ?x)"
TURN, REDUCE = "(Transpose[perm=?p] ?x)", "(ReduceSum[axes=?a, keepdims=1] ?x)"

ONES = _pair(_constant([1.0] * 3))
MIXED = _pair(_constant([1.0, 0.0, 1.0]))

CASES = [
    ("=", PAIR, "rank ?y = 2", _pair(_input(2, 3)), _pair(_input(3))),
    ("=", PAIR, "dim ?y 0 = 2", _pair(_input(2, 1)), _pair(_input(N, 1))),
    ("=", CLIP, "?a = 0", _clip(0.0, 1.0), _clip(1e-3, 1.0)),
    ("!=", CLIP, "?a != ?b", _clip(0.0, 1.0), _clip(1.0, 1.0)),
    ("!=", PAIR, "dim ?x 0 != 4", _pair(_input(2, 3)), _pair(_input(N, 3), N, 3)),
    ("<", CLIP, "?a < ?b", _clip(0.0, 1.0), _clip(1.0, 1.0)),
    ("<=", CLIP, "?a <= ?b", _clip(1.0, 1.0), _clip(2.0, 1.0)),
    ("<=", PAIR, "dim ?x 0 <= 4", _pair(_input(3)), _pair(_input(3), N, 3)),
    (">", CLIP, "?b > 0", _clip(0.0, 1.0), _clip(-1.0, 0.0)),
    (">=", CLIP, "?b >= 0", _clip(-1.0, 0.0), _clip(-2.0, -1.0)),
    ("const", PAIR, "const ?y", ONES, _pair(_input(3))),
    ("varying", PAIR, "varying ?y", _pair(_input(3)), ONES),
    ("scalar", PAIR, "scalar ?y", _pair(_constant([1.0])), ONES),
    ("positive", PAIR, "positive ?y", ONES, MIXED),
    ("nonzero", PAIR, "nonzero ?y", ONES, MIXED),
    ("nonzero", PAIR, "nonzero ?y", ONES, _pair(_input(3))),
    ("every", PAIR, "every ?y 1", ONES, MIXED),
    ("nested", PAIR, "nested ?x ?y", _pair(_input(3)), _pair(_input(3, 1), 1, 3)),
    ("fits", PAIR, "fits ?y ?x", _pair(_input(3)), _pair(_input(4, 2, 3))),
    ("fits", PAIR, "fits ?y ?x", _pair(_input(N, 1), N, 3), _pair(_input(M, 1), N, 3)),
    ("along", PAIR, "along ?y ?x 1", _pair(_input(3)), _pair(_input(2, 1))),
    ("moves-ones", TURN, "moves-ones ?x ?p", _transposed(1, 3), _transposed(2, 3)),
    ("moves-ones", TURN, "moves-ones ?x ?p", _transposed(N, 1), _transposed(N, 3)),
    ("zeros", REDUCE, "zeros ?a", _reduce(0), _reduce(1)),
    ("finite", CLIP, "finite ?b", _clip(0.0, 1.0), _clip(0.0, np.inf)),
]  # fmt: skip


def test_every_word_is_tried() -> None:
    """The table names every condition word."""
    assert {case[0] for case in CASES} == set(WORDS)


@pytest.mark.parametrize(
    ("lhs", "condition", "good", "bad"),
    [pytest.param(*case[1:], id=f"{k}: {case[2]}") for k, case in enumerate(CASES)],
)
def test_a_rule_fires_only_where_its_condition_holds(
    lhs: str,
    condition: str,
    good: Callable[[Lab], int],
    bad: Callable[[Lab], int],
) -> None:
    """One graph on which the rule fires, one on which its condition alone stops it."""
    test = rule(lhs, "(Relu ?z)".replace("?z", lhs), condition, name="test")
    for build, times in ((good, 1), (bad, 0)):
        lab = Lab(test)
        build(lab)
        assert lab.run(iterations=1).fired == ({"test": times} if times else {})


@pytest.mark.parametrize(
    ("rhs", "fires"),
    [
        pytest.param("?x", False, id="larger"),
        pytest.param("(Reshape[shape=[2, 3]] ?x)", True, id="same"),
        pytest.param("(Reshape[shape=[3, 2]] ?x)", False, id="other shape"),
        pytest.param("(Cast[to=\"float64\"] (Reshape[shape=[2, 3]] ?x))", False, id="type"),
        pytest.param("(Transpose[perm=[1, 1]] ?x)", False, id="ill-shaped"),
        pytest.param("(Reshape[shape=[(// 6 (- 1 1)), 3]] ?x)", False, id="no value"),
    ],
)  # fmt: skip
def test_a_right_side_must_have_the_type_of_the_left(rhs: str, fires: bool) -> None:
    """A match whose right side is of another type, or of none, leaves no trace."""
    lab = Lab(rule("(Squeeze[axes=?a] ?x)", rhs))
    lab.node("Squeeze", lab.input("x", 2, 1, 3), axes=(1,))
    lab.egraph.refresh()
    size = lab.egraph.size()
    assert bool(lab.run().fired) is fires
    assert (lab.egraph.size() > size) is fires


def test_a_right_side_that_folds_to_infinity_leaves_no_trace() -> None:
    """(x 1e30) 1e30 stays as it is."""
    lab = Lab(rule("(Mul (Mul ?x ?c) ?d)", "(Mul ?x (Mul ?c ?d))", "const ?c", "const ?d"))
    x = lab.input("x", 2, 3)
    lab.node("Mul", lab.node("Mul", x, lab.constant(1e30)), lab.constant(1e30))
    lab.egraph.refresh()
    size = lab.egraph.size()
    assert lab.run().fired == {}
    assert lab.egraph.size() == size


def test_known_constants_are_not_rewritten() -> None:
    """The value of a small constant is known: other ways to it are not looked for."""
    lab = Lab(rule("(Add ?x ?y)", "(Sub ?x (Neg ?y))"))
    lab.node("Add", lab.constant([1.0, 2.0]), lab.constant([3.0, 4.0]))
    assert lab.run().fired == {}


def test_tensors_of_unknown_rank_or_without_elements_are_left_alone() -> None:
    """Broadcasting is not what it seems there."""
    for shape in ((2, 0), (0,)):
        lab = Lab(rule("(Neg (Neg ?x))", "?x"))
        lab.node("Neg", lab.node("Neg", lab.input("x", *shape)))
        assert lab.run().fired == {}


def test_every_match_is_looked_at_once() -> None:
    """A second saturation of a saturated e-graph does nothing."""
    lab = Lab(rule("(Neg (Neg ?x))", "?x"))
    lab.node("Neg", lab.node("Neg", lab.input("x", 2)))
    assert lab.run().fired == {"r": 1}
    again = lab.run()
    assert again.fired == {}
    assert again.stop == "saturated"


def test_the_rule_behind_a_node_is_remembered() -> None:
    """Nodes of the model have none."""
    lab = Lab(rule("(Sub ?x ?y)", "(Add ?x (Neg ?y))", name="sub"))
    x, y = lab.input("x", 2), lab.input("y", 2)
    d = lab.node("Sub", x, y)
    lab.run()
    n = lab.known("Neg", y)
    assert n is not None
    assert lab.egraph.rule_of[n] == "sub"
    assert lab.egraph.rule_of[d] is None
    assert lab.egraph.rule_of[x] is None

"""Every shape that a left side can have finds its matches, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from rulesets.rule import Rule
from tensat.egraph.compile_rules import MULTI, SINGLE, compile_rules, guards, literals_of
from tests.tensat.egraph.lab import Lab, rule


def test_literals_are_the_numbers_of_left_sides() -> None:
    """Ascending, each once; numbers of right sides do not count."""
    rules = (
        rule("(Mul ?x 2)", "(Add ?x ?x)"),
        rule("(Add (Mul ?x 0.5) 2)", "(Mul ?x 7)"),
        rule("(Pow ?x -1)", "(Reciprocal ?x)"),
    )
    assert literals_of(rules) == (-1.0, 0.5, 2.0)


@pytest.mark.parametrize("swapped", [False, True], ids=["as written", "exchanged"])
@pytest.mark.parametrize(
    ("op", "fires"), [("Add", True), ("Mul", True), ("Sub", False), ("Div", False)]
)
def test_commutative_operators_match_in_both_orders(
    op: str, fires: bool, swapped: bool
) -> None:
    """Sums and products match either way round, differences only as written."""
    lab = Lab(rule(f"({op} (Relu ?x) ?y)", f"({op} (Abs ?x) ?y)"))
    x, y = lab.input("x", 2, 3), lab.input("y", 2, 3)
    pair = [lab.node("Relu", x), y]
    z = lab.node(op, *(reversed(pair) if swapped else pair))
    lab.run()
    assert lab.same(z, lab.node(op, lab.node("Abs", x), y)) is (fires or not swapped)


def test_nested_commutative_operators_match_in_all_orders() -> None:
    """Every level is tried both ways."""
    for first in (0, 1):
        for second in (0, 1):
            lab = Lab(rule("(Add (Mul (Relu ?x) ?y) ?z)", "?z"))
            x, y, z = (lab.input(name, 2, 3) for name in "xyz")
            inner = [lab.node("Relu", x), y]
            product = lab.node("Mul", *(inner if first else inner[::-1]))
            outer = [product, z]
            total = lab.node("Add", *(outer if second else outer[::-1]))
            lab.run()
            assert lab.same(total, z)


def test_the_two_orders_of_a_commutative_operator_are_one() -> None:
    """Both x + y and y + x are one class even if no rule speaks of sums."""
    lab = Lab(rule("(Relu (Relu ?x))", "(Relu ?x)"))
    x, y = lab.input("x", 2, 3), lab.input("y", 2, 3)
    pairs = {
        op: (lab.node(op, x, y), lab.node(op, y, x)) for op in ("Add", "Mul", "Max", "Sub")
    }
    lab.run()
    assert {op: lab.same(*pair) for op, pair in pairs.items()} == {
        "Add": True, "Mul": True, "Max": True, "Sub": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "dtype", "fires"),
    [
        pytest.param(2.0, "float32", True, id="scalar"),
        pytest.param([[2.0]], "float32", True, id="one element"),
        pytest.param(2.0, "float64", True, id="float64"),
        pytest.param(2.0, "float16", True, id="float16"),
        pytest.param([2.0, 2.0], "float32", False, id="two elements"),
        pytest.param(
            np.nextafter(np.float32(2), np.float32(3)), "float32", False, id="ulp"
        ),
        pytest.param(np.nextafter(2.0, 3.0), "float64", False, id="ulp of float64"),
        pytest.param(-2.0, "float32", False, id="sign"),
        pytest.param(np.nan, "float32", False, id="NaN"),
        pytest.param(2, "int64", False, id="rule for floats"),
    ],
)
def test_literals_match_constants_of_that_value(
    value: object, dtype: str, fires: bool
) -> None:
    """A number in a left side is a constant with one element of just that value."""
    lab = Lab(rule("(Mul ?x 2)", "(Add ?x ?x)"))
    x = lab.input("x", 1, 2, dtype=dtype)
    y = lab.node("Mul", x, lab.constant(value, dtype))
    lab.run()
    assert lab.same(y, lab.node("Add", x, x)) is fires


def test_a_literal_is_compared_in_the_precision_of_the_constant() -> None:
    """A tenth in float32 is the number 0.1 of a rule."""
    for dtype in ("float16", "float32", "float64"):
        lab = Lab(rule("(Mul ?x 0.1)", "(Relu ?x)"))
        x = lab.input("x", 2, dtype=dtype)
        y = lab.node("Mul", x, lab.constant(0.1, dtype))
        lab.run()
        assert lab.same(y, lab.node("Relu", x))


def test_a_literal_matches_a_constant_that_rules_made() -> None:
    """Values of folded constants count as those of stored ones."""
    lab = Lab(
        rule(
            "(Mul (Mul ?x ?c) ?d)", "(Mul ?x (Mul ?c ?d))", "const ?c", "const ?d", name="a"
        ),
        rule("(Mul ?x 1)", "?x", name="b"),
    )
    x = lab.input("x", 2, 3)
    y = lab.node("Mul", lab.node("Mul", x, lab.constant(4.0)), lab.constant(0.25))
    lab.run()
    assert lab.same(x, y)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 16])
def test_rest_variables_match_any_number(count: int) -> None:
    """A rule with a rest variable is written out for the numbers that occur."""
    lab = Lab(
        rule(
            "(Relu (Concat[axis=?a] ?xs...))",
            "(Concat[axis=?a] (Relu ?xs...)...)",
        )
    )
    parts = [lab.input(f"x{k}", 2, k + 1) for k in range(count)]
    y = lab.node("Relu", lab.node("Concat", *parts, axis=1))
    lab.run()
    relus = [lab.node("Relu", part) for part in parts]
    assert lab.same(y, lab.node("Concat", *relus, axis=1))


def test_rest_variables_stop_at_a_bound() -> None:
    """An operator with very many arguments is left alone."""
    lab = Lab(rule("(Relu (Sum ?xs...))", "(Sum ?xs...)"))
    parts = [lab.input(f"x{k}", 2) for k in range(17)]
    y = lab.node("Relu", lab.node("Sum", *parts))
    lab.run()
    assert not lab.same(y, lab.node("Sum", *parts))


def test_rest_variables_beside_fixed_arguments() -> None:
    """``?xs... ?y`` is everything but the last one."""
    nested = rule(
        "(Concat[axis=?a] (Concat[axis=?a] ?xs...) ?y)", "(Concat[axis=?a] ?xs... ?y)"
    )
    for axis, fires in ((1, True), (0, False)):
        lab = Lab(nested)
        x = [lab.input(f"x{k}", 2, 2) for k in range(3)]
        inner = lab.node("Concat", x[0], x[1], axis=1)
        if not fires:
            x[2] = lab.input("wide", 2, 4)
        outer = lab.node("Concat", inner, x[2], axis=axis)
        lab.run()
        flat = lab.known("Concat", *x, axis=1)
        assert (flat is not None and lab.same(flat, outer)) is fires


def test_positions_in_spreads() -> None:
    """``#`` tells the outputs of a Split in order from those in another order."""
    joined = rule(
        "(Concat[axis=?a] (Output[index=#] (Split[axis=?a, parts=?n] ?x))...)", "?x"
    )
    for order, fires in (((0, 1, 2), True), ((0, 2, 1), False), ((0, 0, 0), False)):
        lab = Lab(joined)
        x = lab.input("x", 2, 6)
        first = lab.node("Split", x, axis=1, parts=(2, 2, 2))
        node = lab.egraph.key_of[first].arguments[0]
        parts = [lab.output(node, index) for index in order]
        y = lab.node("Concat", *parts, axis=1)
        lab.run()
        assert lab.same(x, y) is fires


def test_labels_name_what_an_application_yields() -> None:
    """``?y:`` is the class of the application, inside and at the root."""
    lab = Lab(rule("?y:(Squeeze[axes=?a] ?x)", "(Reshape[shape=(shape ?y)] ?x)"))
    x = lab.input("x", 2, 1, 3)
    y = lab.node("Squeeze", x, axes=(1,))
    lab.run()
    assert lab.same(y, lab.node("Reshape", x, shape=(2, 3)))


def test_a_label_is_the_same_tensor_wherever_it_stands() -> None:
    """A label used again in the left side must be that very class."""
    lab = Lab(rule("(Mul ?d:(Sub ?x ?y) ?d)", "(Pow ?d 2)"))
    x, y = lab.input("x", 2, 3), lab.input("y", 2, 3)
    d, e = lab.node("Sub", x, y), lab.node("Sub", y, x)
    square, other = lab.node("Mul", d, d), lab.node("Mul", d, e)
    lab.run()
    two = lab.egraph.literal(2.0, "float32")
    power = lab.node("Pow", d, two)
    assert lab.same(square, power)
    assert not lab.same(other, power)


def test_shared_variables_are_one_tensor() -> None:
    """A variable twice matches one class twice, also after that class was made one."""
    lab = Lab(
        rule("(Max ?x ?x)", "?x", name="equal"),
        rule("(Neg (Neg ?x))", "?x", name="neg"),
    )
    x, y = lab.input("x", 2, 3), lab.input("y", 2, 3)
    twice = lab.node("Neg", lab.node("Neg", x))
    same, other = lab.node("Max", x, twice), lab.node("Max", x, y)
    lab.run()
    assert lab.same(same, x)
    assert not lab.same(other, x)


@pytest.mark.parametrize(
    ("axes", "fires"), [((1, 1), True), ((1, 0), False)], ids=["equal", "different"]
)
def test_attribute_parameters_are_shared_between_nodes(
    axes: tuple[int, int], fires: bool
) -> None:
    """``?a`` twice must be one value."""
    lab = Lab(rule("(Softmax[axis=?a] (LogSoftmax[axis=?a] ?x))", "(Relu ?x)"))
    x = lab.input("x", 2, 3)
    y = lab.node("Softmax", lab.node("LogSoftmax", x, axis=axes[1]), axis=axes[0])
    lab.run()
    assert lab.same(y, lab.node("Relu", x)) is fires


@pytest.mark.parametrize(
    ("alpha", "fires"),
    [(0.5, True), (0.25, False), (None, False)],
    ids=["stated", "other", "default"],
)
def test_attributes_may_be_stated(alpha: float | None, fires: bool) -> None:
    """A number in brackets is that value and no other."""
    lab = Lab(rule("(LeakyRelu[alpha=0.5] ?x)", "(Relu ?x)"))
    x = lab.input("x", 2, 3)
    y = lab.node("LeakyRelu", x, **({} if alpha is None else {"alpha": alpha}))
    lab.run()
    assert lab.same(y, lab.node("Relu", x)) is fires


@pytest.mark.parametrize(
    ("pattern", "fires"),
    [
        pytest.param("(LeakyRelu ?x)", False, id="default wanted"),
        pytest.param("(LeakyRelu[..k] ?x)", True, id="any"),
    ],
)
def test_attributes_not_mentioned_are_default_or_bundled(pattern: str, fires: bool) -> None:
    """Without ``..k`` what is not mentioned must have its default."""
    lab = Lab(rule(pattern, "(Relu ?x)"))
    x = lab.input("x", 2, 3)
    y = lab.node("LeakyRelu", x, alpha=0.7)
    lab.run()
    assert lab.same(y, lab.node("Relu", x)) is fires


@pytest.mark.parametrize(
    ("strides", "fires"), [((2, 2), True), ((1, 1), False)], ids=["equal", "different"]
)
def test_bundles_are_shared_between_nodes(strides: tuple[int, int], fires: bool) -> None:
    """``..k`` twice is one set of attributes, and is carried over to the right side."""
    lab = Lab(
        rule(
            "(Add (Conv[..k] ?x ?v) (Conv[..k] ?x ?w))",
            "(Conv[..k] ?x (Add ?v ?w))",
            "const ?v",
            "const ?w",
        )
    )
    x = lab.input("x", 1, 2, 2, 2)
    v, w = (lab.constant(np.full((3, 2, 1, 1), number)) for number in (1.0, 2.0))
    plain = {"pads": (0, 0, 0, 0), "dilations": (1, 1), "group": 1}
    one = lab.node("Conv", x, v, strides=(2, 2), **plain)
    two = lab.node("Conv", x, w, strides=strides, **plain)
    total = lab.node("Add", one, two)
    lab.run()
    joined = lab.node(
        "Conv", x, lab.egraph.node("Add", {}, [v, w]), strides=(2, 2), **plain
    )
    assert lab.same(total, joined) is fires


def test_rules_for_floats_leave_integers_alone() -> None:
    """Only rules for any type touch integers."""
    for dtypes, fires in (("float", False), ("any", True)):
        lab = Lab(rule("(Neg (Neg ?x))", "?x", dtypes=dtypes))
        x = lab.input("x", 2, dtype="int64")
        y = lab.node("Neg", lab.node("Neg", x))
        lab.run()
        assert lab.same(x, y) is fires


PARALLEL = rule(
    ("(MatMul ?x ?v)", "(MatMul ?x ?w)"),
    (
        "(Output[index=0] (Split[axis=1, parts=[(dim ?v 1), (dim ?w 1)]]"
        " (MatMul ?x (Concat[axis=1] ?v ?w))))",
        "(Output[index=1] (Split[axis=1, parts=[(dim ?v 1), (dim ?w 1)]]"
        " (MatMul ?x (Concat[axis=1] ?v ?w))))",
    ),
    "const ?v", "const ?w", "rank ?x = 2",
    name="parallel",
)  # fmt: skip


def _pair(lab: Lab, *, chained: bool) -> tuple[int, int]:
    """Two products: of one input, or the second of what the first gives."""
    x = lab.input("x", 4, 4)
    v, w = (lab.constant(np.full((4, 4), number)) for number in (1.0, 2.0))
    first = lab.node("MatMul", x, v)
    if not chained:
        return first, lab.node("MatMul", x, w)
    lab.egraph.union(lab.node("Relu", first), x)
    lab.egraph.refresh()
    return first, lab.node("MatMul", x, w)


def test_symmetric_pairs_match_once() -> None:
    """Of two roots that may be exchanged, only one order is built."""
    lab = Lab(PARALLEL)
    first, second = _pair(lab, chained=False)
    result = lab.run(multi_iterations=1)
    assert [p.symmetric for p in lab.patterns] == [True]
    assert result.fired == {"parallel": 1}
    assert sum(key.operator == "Split" for key in lab.egraph.key_of) == 1
    for root in (first, second):
        members = [h for h in range(lab.egraph.mark()) if lab.same(h, root)]
        assert {lab.egraph.key_of[h].operator for h in members} == {"MatMul", "Output"}


def test_multi_pattern_rules_take_two_different_roots() -> None:
    """One product is not merged with itself."""
    lab = Lab(PARALLEL)
    x = lab.input("x", 4, 4)
    lab.node("MatMul", x, lab.constant(np.ones((4, 4))))
    assert lab.run(multi_iterations=1).fired == {}


def test_dependent_roots_are_not_merged() -> None:
    """Where one root feeds the other, merging them would close a cycle."""
    lab = Lab(
        rule(("(Relu ?x)", "(Tanh ?y)"), ("(Neg ?x)", "(Neg ?y)"), "shape ?x = (shape ?y)")
    )
    x = lab.input("x", 2, 3)
    lab.node("Relu", lab.node("Tanh", lab.node("Abs", x)))
    assert lab.run(multi_iterations=1).fired == {}
    lab.node("Tanh", x)
    assert lab.run(multi_iterations=1).fired == {"r": 1}


def test_rulesets() -> None:
    """A rule with several roots is a multi-pattern rule, any other a single one."""
    lab = Lab(PARALLEL, rule("(Relu (Relu ?x))", "(Relu ?x)"))
    lab.run()
    assert [pattern.ruleset for pattern in lab.patterns] == [MULTI, SINGLE]


@pytest.mark.parametrize(
    ("condition", "guard"),
    [
        pytest.param("const ?x", "(constant v_x)", id="const"),
        pytest.param("positive ?x", "(constant v_x)", id="positive"),
        pytest.param("rank ?x = 2", "(= 2 (rank v_x))", id="rank"),
        pytest.param("rank ?x = (rank ?y)", "", id="two ranks"),
        pytest.param("varying ?x", "", id="varying"),
    ],
)
def test_guards_narrow_the_join(condition: str, guard: str) -> None:
    """What a table can tell is tested in the join."""
    (parsed,) = rule("(Add ?x ?y)", "?x", condition).where
    assert " ".join(guards(parsed)) == guard


def test_shipped_rules_compile() -> None:
    """Every shipped rule becomes at least one join, if its operators occur."""
    from rulesets.store import load

    rules: tuple[Rule, ...] = load()
    lab = Lab(*rules)
    x = lab.input("x", 2, 3)
    lab.node("Concat", x, lab.node("Concat", x, x, axis=0), axis=0)
    lab.node("Sum", x)
    lab.node("Sum", x, x)
    lab.egraph.refresh()
    patterns = compile_rules(rules, lab.egraph, lab.literals)
    assert {pattern.rule.name for pattern in patterns} == {each.name for each in rules}

"""Rules: attributes bound, rest variables written out, right sides built or refused."""

from dataclasses import replace

import numpy as np
import pytest

from rulesets.condition import parse_condition
from rulesets.errors import RuleError, ShapeError
from rulesets.rule import Match, Rule, bind, build, holds
from rulesets.term import Apply, parse_term
from rulesets.validate import check_rule
from tests.rulesets.term_graph import TermGraph, find, node_of


def rule(lhs: str, rhs: str, *where: str, dtypes: str = "float") -> Rule:
    """Make a rule of one pattern."""
    conditions = tuple(parse_condition(text) for text in where)
    return Rule("r", (parse_term(lhs),), (parse_term(rhs),), conditions, dtypes)


def pattern(text: str) -> Apply:
    """Read an application."""
    term = parse_term(text)
    assert isinstance(term, Apply)
    return term


CLIP = {"min": 0.0, "max": 6.0}
BOUND = {
    "(Clip[min=0, max=?m] ?x)": {"m": 6.0},
    "(Clip[..k] ?x)": {"..k": (("max", 6.0), ("min", 0.0))},
    "(Clip[min=0, ..k] ?x)": {"..k": (("max", 6.0),)},
}


@pytest.mark.parametrize(("text", "attributes"), BOUND.items(), ids=BOUND)
def test_attributes_are_bound(text: str, attributes: dict[str, object]) -> None:
    """Variables take values, bundles take what is not mentioned."""
    match = bind(pattern(text), CLIP, Match())
    assert match is not None
    assert match.attributes == attributes


UNBOUND = {
    "(Clip[min=1, max=?m] ?x)": {},
    "(Clip[min=?m, max=?m] ?x)": {},
    "(Clip[min=0] ?x)": {},
    "(Clip[min=0, max=?m] ?x)": {"m": 5.0},
    "(Clip[..k] ?x)": {"..k": ()},
}


@pytest.mark.parametrize(("text", "bound"), UNBOUND.items(), ids=UNBOUND)
def test_attributes_that_do_not_fit(text: str, bound: dict[str, object]) -> None:
    """Another value, an unmentioned one that is no default, a variable bound otherwise."""
    assert bind(pattern(text), CLIP, Match(attributes=bound)) is None  # type: ignore[arg-type]


def test_lists_are_taken_apart() -> None:
    """A list pattern binds its items if the length is the same."""
    found = {"starts": (1,), "ends": (4,), "axes": (2,), "steps": (1,)}
    text = "(Slice[starts=[?b], ends=[?e], axes=[?a], steps=[1]] ?x)"
    match = bind(pattern(text), found, Match())
    assert match is not None
    assert match.attributes == {"b": 1, "e": 4, "a": 2}
    two = {name: (*value, 3) for name, value in found.items()}
    assert bind(pattern(text), two, Match()) is None


def test_single_precision_attributes_match_numbers_written_out() -> None:
    """1/6 as a file keeps it equals 1/6 as a rule writes it; 0.2 does not."""
    alpha = pattern("(HardSigmoid[alpha=0.16666666666666666, beta=0.5] ?x)")
    assert bind(alpha, {"alpha": float(np.float32(1 / 6)), "beta": 0.5}, Match())
    assert bind(alpha, {"alpha": float(np.float32(0.2)), "beta": 0.5}, Match()) is None


def test_rest_variables_are_written_out() -> None:
    """``?xs...`` becomes one variable for each argument, in terms and in conditions."""
    spread = rule(
        "(Relu (Concat[axis=?a] ?xs...))",
        "(Concat[axis=?a] (Relu ?xs...)...)",
        "const ?xs...",
        "rank ?xs... = 2",
    )
    assert spread.variadic
    two = spread.at_arity(2)
    assert not two.variadic
    assert two.lhs == (parse_term("(Relu (Concat[axis=?a] ?xs.0 ?xs.1))"),)
    assert two.rhs == (parse_term("(Concat[axis=?a] (Relu ?xs.0) (Relu ?xs.1))"),)
    assert [c.tensors[0].name for c in two.where[:2]] == ["xs.0", "xs.1"]
    assert len(two.where) == 4


def test_positions_count_the_elements_of_a_spread() -> None:
    """``#`` is the position of the element."""
    spread = rule(
        "(Concat[axis=0] (Output[index=#] (Split[axis=0, parts=?n] ?x))...)", "?x"
    ).at_arity(2)
    (left,) = spread.lhs
    assert isinstance(left, Apply)
    assert [str(a.attributes[0][1].value) for a in left.arguments] == ["0", "1"]  # type: ignore[union-attr]


def graph_with(*shapes: tuple[int, ...], dtype: str = "float64") -> TermGraph:
    """Make a graph of input leaves."""
    graph = TermGraph()
    for shape in shapes:
        graph.leaf(np.ones(shape, dtype), constant=False)
    return graph


def test_the_right_side_must_have_the_shape_of_the_left() -> None:
    """A neutral element that broadcasts is not neutral."""
    drop = rule("(Mul ?x 1)", "?x")
    graph = graph_with((2, 3))
    one = graph.leaf(np.ones((1, 1, 1)), constant=True)
    (match,) = find(drop, graph, [node_of(graph, "Mul", 0, one)])
    assert holds(drop, match, graph)
    before = len(graph.nodes)
    with pytest.raises(ShapeError, match=r"rule 'r' would turn float64\[1,2,3\]"):
        build(drop, match, graph)
    assert len(graph.nodes) == before


def test_nothing_is_built_when_a_part_is_ill_shaped() -> None:
    """The whole right side is checked before its first node is made."""
    wrong = rule("(Add ?x ?y)", "(Transpose[perm=[0]] (Relu ?x))")
    graph = graph_with((2, 3), (2, 3))
    (match, *_) = find(wrong, graph, [node_of(graph, "Add", 0, 1)])
    before = len(graph.nodes)
    with pytest.raises(ShapeError, match="perm must be a permutation"):
        build(wrong, match, graph)
    assert len(graph.nodes) == before


def test_real_arithmetic_does_not_apply_to_integers() -> None:
    """A rule applies to float types unless it says ``any``."""
    real = rule("(Neg (Neg ?x))", "?x")
    graph = graph_with((2,), dtype="int64")
    root = node_of(graph, "Neg", node_of(graph, "Neg", 0))
    (match,) = find(real, graph, [root])
    assert not holds(real, match, graph)
    assert holds(replace(real, dtypes="any"), match, graph)


def test_unknown_ranks_and_empty_axes_are_left_alone() -> None:
    """A rule does not apply where a rank is unknown or an axis is empty."""
    twice = rule("(Relu (Relu ?x))", "(Relu ?x)")
    graph = graph_with((0, 3))
    (match,) = find(twice, graph, [node_of(graph, "Relu", node_of(graph, "Relu", 0))])
    assert not holds(twice, match, graph)


def test_computed_attributes_must_be_of_their_kind() -> None:
    """An attribute that is computed to a value of another kind means: does not apply."""
    half = rule("(Softmax[axis=?a] ?x)", "(Softmax[axis=(/ ?a 2)] ?x)")
    graph = graph_with((2, 3))
    (match,) = find(half, graph, [node_of(graph, "Softmax", 0, axis=1)])
    with pytest.raises(ShapeError, match=r"attribute 'axis' .* must be of kind int"):
        build(half, match, graph)


def test_an_element_is_selected_by_an_attribute() -> None:
    """``?xs[?i]`` is the element at that position; outside it does not apply."""
    chosen = rule(
        "(Clip[min=?i, max=9] (Concat[axis=0] ?xs...))", "?xs[(int ?i)]"
    ).at_arity(2)
    graph = graph_with((2,), (2,))
    match = Match({"xs.0": 0, "xs.1": 1}, {"i": 1.0}, (0,))
    assert build(chosen, match, graph) == (1,)
    with pytest.raises(ShapeError, match=r"\?xs has no element 2"):
        build(chosen, replace(match, attributes={"i": 2.0}), graph)


BAD = {
    "unknown operator 'Relux'; known: .*Relu": ("(Relux ?x)", "?x", ()),
    "Relu has no attribute 'alpha'; it has: none": ("(Relu[alpha=1] ?x)", "?x", ()),
    "Transpose needs attribute 'perm'": ("(Transpose ?x)", "?x", ()),
    "Add takes 2 arguments, found 1": ("(Add ?x)", "?x", ()),
    r"\?y is not bound by the left side; bound: x": ("(Relu ?x)", "?y", ()),
    r"\?k is not bound": ("(Relu ?x)", "(Relu ?x)", ("const ?k",)),
    r"\?a is not bound": ("(Relu ?x)", "(Softmax[axis=?a] ?x)", ()),
    "attribute 'min' of a left side is computed": ("(Clip[min=(+ 1 2)] ?x)", "?x", ()),
    "must be an operator application": ("?x", "(Relu ?x)", ()),
}


@pytest.mark.parametrize(("reason", "parts"), BAD.items(), ids=BAD)
def test_a_rule_that_cannot_be_is_refused(
    reason: str, parts: tuple[str, str, tuple[str, ...]]
) -> None:
    """Unknown operators, attributes and variables are errors that say what is possible."""
    lhs, rhs, where = parts
    conditions = tuple(parse_condition(text) for text in where)
    with pytest.raises(RuleError, match=reason):
        check_rule((parse_term(lhs),), (parse_term(rhs),), conditions)


PROVED = {
    "any rank": ("all-sizes", "any", False, {0, 1, 2, 3, 4, 5}),
    "above the tried ones": ("all-sizes", "2-3", False, {2, 3, 4, 5}),
    "not above if bounded": ("all-sizes", "2-3, 1-3 arguments", True, {2, 3}),
    "one rank": ("all-sizes", "4", True, {4}),
    "at given sizes": ("at-sizes", "3", False, {3}),
    "not asked": ("", "", False, {0, 1, 2, 3, 4, 5}),
}


@pytest.mark.parametrize(
    ("verdict", "ranks", "bounded", "wanted"), PROVED.values(), ids=PROVED
)
def test_a_rule_applies_at_proved_ranks(
    verdict: str, ranks: str, bounded: bool, wanted: set[int]
) -> None:
    """Below the ranks of its proof never, above only where nothing hinders it."""
    one = replace(
        rule("(Relu ?y:(Relu ?x))", "(Relu ?x)"),
        verdict=verdict,
        ranks=ranks,
        bounded=bounded,
    )
    found = set()
    for rank in range(6):
        graph = TermGraph()
        leaf = graph.leaf(np.ones((2,) * rank), constant=False)
        root = node_of(graph, "Relu", node_of(graph, "Relu", leaf))
        (match,) = find(one, graph, (root,))
        if holds(one, match, graph):
            found.add(rank)
    assert found == wanted


def test_what_a_label_stands_for_has_any_rank() -> None:
    """Proofs name the ranks of the tensors that a rule takes, not of those it makes."""
    one = replace(
        rule("(Relu ?y:(ReduceSum[axes=[0], keepdims=0] ?x))", "(Relu ?y)"),
        verdict="all-sizes",
        ranks="2",
    )
    graph = TermGraph()
    leaf = graph.leaf(np.ones((2, 3)), constant=False)
    inner = node_of(graph, "ReduceSum", leaf, axes=(0,), keepdims=0)
    (match,) = find(one, graph, (node_of(graph, "Relu", inner),))
    assert holds(one, match, graph)

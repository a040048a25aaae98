"""Verdicts: what is proved, what is refused, and what a proof takes for granted."""

from dataclasses import replace

import pytest

from rulesets.assume import READINGS
from rulesets.condition import WORDS
from rulesets.deadline import deadline_in
from rulesets.refused import load_refused
from rulesets.rule import TIERS, Rule
from rulesets.store import load, parse_file
from rulesets.verify import at_every_size, at_given_sizes, verify

SHIPPED = {rule.name: rule for rule in load()}
SAMPLE = list(SHIPPED)[::23]
REFUSED = [row.wrong for row in load_refused() if isinstance(row.wrong, Rule)]
ONLY_UNDER_A_SHAPE = {
    "bias-that-grows-into-gemm",
    "convs-of-different-inputs",
    "reshape-of-matmul-that-mixes-rows",
    "rms-norm-with-broadcasting-factor",
    "split-of-concat-at-other-places",
}
ONLY_OVER_THE_REALS = {"product-with-zero", "difference-with-itself", "quotient-by-itself"}

ROW = """
[[rule]]
name = "planted"
lhs = '{lhs}'
rhs = '{rhs}'
where = [{where}]
dtypes = "{dtypes}"
float = {{ tag = "exact" }}
instances = [{instance}]
"""


def planted(lhs: str, rhs: str, instance: str, *where: str, dtypes: str = "float") -> Rule:
    """Make one rule from texts."""
    conditions = ", ".join(f"'{each}'" for each in where)
    text = ROW.format(lhs=lhs, rhs=rhs, where=conditions, instance=instance, dtypes=dtypes)
    (rule,) = parse_file(text, "planted.toml")
    return rule


@pytest.mark.parametrize("name", SAMPLE)
def test_kept_verdicts_are_found_again(name: str) -> None:
    """The verdict of a shipped rule is at least the one its file keeps."""
    rule = SHIPPED[name]
    found = verify(rule, seconds=40)
    assert found.proved
    assert TIERS.index(found.tier) <= TIERS.index(rule.verdict)


def test_every_shipped_rule_is_proved() -> None:
    """No rule is shipped that was only tested."""
    assert {rule.verdict for rule in SHIPPED.values()} <= {"all-sizes", "at-sizes"}


@pytest.mark.parametrize("rule", REFUSED, ids=lambda rule: rule.name)
def test_wrong_rules_are_refused(rule: Rule) -> None:
    """A wrong rule of history has no proof, and mostly a counterexample."""
    assert not verify(rule, seconds=2).proved


@pytest.mark.parametrize("rule", REFUSED, ids=lambda rule: rule.name)
def test_no_proof_goes_through_by_itself(rule: Rule) -> None:
    """Without the counterexample the prover does not prove a wrong rule either."""
    if rule.name in ONLY_OVER_THE_REALS:
        return
    proof, _ = at_every_size(rule, deadline_in(2))
    if rule.name in ONLY_UNDER_A_SHAPE:
        assert not proof.holds or proof.needs
    else:
        assert not proof.holds
    assert not at_given_sizes(rule, deadline_in(2)).holds


WRONG = {
    "swapped concat": ("(Concat[axis=0] ?x ?y)", "(Concat[axis=0] ?y ?x)", '{x="2",y="2"}'),
    "softmax of another axis": (
        "(Softmax[axis=0] ?x)",
        "(Softmax[axis=1] ?x)",
        '{x="3,3"}',
    ),
    "mean of sum": (
        "(ReduceMean[axes=[0]] (Add ?x ?y))",
        "(Add (ReduceMean[axes=[0]] ?x) (ReduceSum[axes=[0]] ?y))",
        '{x="3",y="3"}',
    ),
    "blocks that do not meet": (
        "(MatMul (Concat[axis=1] ?a ?b) (Concat[axis=0] ?c ?d))",
        "(Add (MatMul ?a ?d) (MatMul ?b ?c))",
        '{a="2,3",b="2,3",c="3,2",d="3,2"}',
    ),
    "square of a sum": (
        "(Mul (Add ?x ?y) (Add ?x ?y))",
        "(Add (Mul ?x ?x) (Mul ?y ?y))",
        '{x="2",y="2"}',
    ),
    "exponential of a sum": (
        "(Exp (Add ?x ?y))",
        "(Add (Exp ?x) (Exp ?y))",
        '{x="2",y="2"}',
    ),
    "sum of exponentials": (
        "(Exp (ReduceSum[axes=[0]] ?x))",
        "(ReduceSum[axes=[0]] (Exp ?x))",
        '{x="3"}',
    ),
    "product of two sums": (
        "(Mul (ReduceSum[axes=[0]] ?x) (ReduceSum[axes=[0]] ?y))",
        "(ReduceSum[axes=[0]] (Mul ?x ?y))",
        '{x="3",y="3"}',
    ),
    "largest is not linear": (
        "(ReduceMax[axes=[0]] (Add ?x ?y))",
        "(Add (ReduceMax[axes=[0]] ?x) (ReduceMax[axes=[0]] ?y))",
        '{x="3",y="3"}',
    ),
    "gelu by tanh": (
        '(Gelu[approximate="none"] ?x)',
        '(Gelu[approximate="tanh"] ?x)',
        '{x="4"}',
    ),
    "transposed product": ("(MatMul ?x ?y)", "(MatMul ?y ?x)", '{x="3,3",y="3,3"}'),
    "quotient turned round": ("(Div ?x ?y)", "(Div ?y ?x)", '{x="2",y="positive 2"}'),
    "shifted slice": (
        "(Slice[starts=[0], ends=[2], axes=[0], steps=[1]] ?x)",
        "(Slice[starts=[1], ends=[3], axes=[0], steps=[1]] ?x)",
        '{x="4"}',
    ),
    "every second element": (
        "(Slice[starts=[0], ends=[2], axes=[0], steps=[1]] ?x)",
        "(Slice[starts=[0], ends=[4], axes=[0], steps=[2]] ?x)",
        '{x="4"}',
    ),
    "pad on the other side": (
        "(Pad[pads=[1, 0], value=0] ?x)",
        "(Pad[pads=[0, 1], value=0] ?x)",
        '{x="3"}',
    ),
    "concat of windows": (
        "(Concat[axis=2] (Conv[..k] ?x ?w) (Conv[..k] ?y ?w))",
        "(Conv[..k] (Concat[axis=2] ?x ?y) ?w)",
        '{x="1,2,5",y="1,2,6",w="3,2,2",k={strides=[2],pads=[0, 0],dilations=[1]}}',
    ),
    "rows for columns": (
        "(Transpose[perm=[1, 0]] (ReduceSum[axes=[0], keepdims=1] ?x))",
        "(ReduceSum[axes=[1], keepdims=1] ?x)",
        '{x="3,3"}',
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_planted_rules_are_refused(name: str) -> None:
    """A planted wrong rule is refuted, and the prover alone does not prove it."""
    rule = planted(*WRONG[name])
    assert verify(rule, seconds=2).tier == "refuted"
    assert not at_every_size(rule, deadline_in(2))[0].holds
    assert not at_given_sizes(rule, deadline_in(2)).holds


RIGHT = {
    "block product": (
        "(MatMul (Concat[axis=1] ?a ?b) (Concat[axis=0] ?c ?d))",
        "(Add (MatMul ?a ?c) (MatMul ?b ?d))",
        '{a="2,3",b="2,1",c="3,2",d="1,2"}',
    ),
    "delayed division": (
        "(MatMul (Div ?x ?s) ?y)",
        "(Div (MatMul ?x ?y) ?s)",
        '{x="2,3",y="3,4",s="positive 2,1"}',
    ),
    "softmax ignores a shift": (
        "(Softmax[axis=1] (Add ?x ?s))",
        "(Softmax[axis=1] ?x)",
        '{x="2,3",s="2,1"}',
    ),
    "mean of a sum": (
        "(ReduceMean[axes=[0]] (Add ?x ?y))",
        "(Add (ReduceMean[axes=[0]] ?x) (ReduceMean[axes=[0]] ?y))",
        '{x="3",y="3"}',
    ),
    "sum of a concat": (
        "(ReduceSum[axes=[0]] (Concat[axis=0] ?x ?y))",
        "(Add (ReduceSum[axes=[0]] ?x) (ReduceSum[axes=[0]] ?y))",
        '{x="3,2",y="1,2"}',
    ),
    "largest of a concat": (
        "(ReduceMax[axes=[0]] (Concat[axis=0] ?x ?y))",
        "(Max (ReduceMax[axes=[0]] ?x) (ReduceMax[axes=[0]] ?y))",
        '{x="3,2",y="1,2"}',
    ),
    "enlarged kernel": (
        "(Conv[strides=?t, pads=?p, dilations=[1], group=1] ?x ?w)",
        "(Conv[strides=?t, pads=(plus ?p [1, 1]), dilations=[1], group=1] ?x "
        "(Pad[pads=[0, 0, 1, 0, 0, 1], value=0] ?w))",
        '{x="1,2,5",w="3,2,1",t=[2],p=[0, 0]}',
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_laws_are_proved_at_every_size(name: str) -> None:
    """A law is proved for all sizes without a hint."""
    lhs, rhs, instance = RIGHT[name]
    where = ("shape ?s = [(dim ?x 0), 1]", "rank ?x = 2") if "?s)" in lhs else ()
    if name == "mean of a sum":
        where = ("shape ?x = (shape ?y)",)
    found = verify(planted(lhs, rhs, instance, *where), seconds=20)
    assert found.tier == "all-sizes", found.reason


def test_a_denominator_must_stand_on_the_left() -> None:
    """What is divided by must be divided by on the left, or be known not to be 0."""
    sides = ("(Add ?x ?y)", "(Mul ?y (Add (Div ?x ?y) 1))", '{x="2",y="const positive 2"}')
    assert at_every_size(planted(*sides), deadline_in(5))[0].reason.startswith("at")
    assert verify(planted(*sides, "nonzero ?y", "const ?y")).tier == "all-sizes"


def test_a_root_must_stand_on_the_left() -> None:
    """What stands under a root must do so on the left, or be known not to be negative."""
    sides = ("(Identity ?x)", "(Mul (Sqrt ?x) (Sqrt ?x))", '{x="const positive 2"}')
    assert not at_every_size(planted(*sides), deadline_in(5))[0].holds
    assert verify(planted(*sides, "positive ?x")).tier == "all-sizes"


def test_vacuous_rules_are_not_proved() -> None:
    """A rule that fires on none of its instances has no verdict."""
    rule = planted("(Relu ?x)", "(Relu ?x)", '{x="2,3"}', "rank ?x = 1")
    assert "vacuous" in verify(rule).reason


def test_a_reduced_axis_must_have_one_element() -> None:
    """The larger of two is the largest of their concat only along an axis of size 1."""
    sides = ("(ReduceMax[axes=[0]] (Concat[axis=0] ?x ?y))", "(Max ?x ?y)")
    found = verify(planted(*sides, '{x="1,3",y="1,3"}'))
    assert found.tier == "all-sizes"
    assert "(dim ?x 0) = 1" in found.conditions


def test_needed_conditions_are_named() -> None:
    """What the right side needs and nobody states is part of the verdict."""
    lhs = "(Concat[axis=1] (Concat[axis=0] ?a ?b) (Concat[axis=0] ?c ?d))"
    rhs = "(Concat[axis=0] (Concat[axis=1] ?a ?c) (Concat[axis=1] ?b ?d))"
    rule = planted(lhs, rhs, '{a="1,2",b="2,2",c="1,3",d="2,3"}', dtypes="any")
    found = verify(rule)
    assert found.tier == "all-sizes"
    assert found.conditions == ("(dim ?b 0) = (dim ?d 0)",)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("clip-of-clip", "<="),
        ("positive-factor-of-relu[Relu]", "positive"),
        ("shift-before-conv", "zeros"),
        ("pad-into-max-pool-after-relu", "="),
        ("mul-by-one", "every"),
        ("slice-rows-before-matmul", "<"),
        ("transpose-is-reshape", "moves-ones"),
        ("scale-after-matmul", "along"),
    ],
)
def test_conditions_count_only_where_they_are_stated(name: str, word: str) -> None:
    """A rule that loses a condition loses its proof."""
    rule = SHIPPED[name]
    where = tuple(each for each in rule.where if each.word != word)
    assert where != rule.where
    assert not at_every_size(replace(rule, where=where), deadline_in(4))[0].holds


def test_every_word_has_a_reading() -> None:
    """Each word of the vocabulary of conditions is read by the prover."""
    assert READINGS.keys() == WORDS.keys()

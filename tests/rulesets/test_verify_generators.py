"""Constants written as terms, with symbols for sizes: Eye, Band and Fill on the left."""

import pytest

from rulesets.deadline import deadline_in
from rulesets.rule import Rule
from rulesets.store import parse_file
from rulesets.verify import at_every_size, verify

EYE = "(Eye[size=?n, dtype=?t])"
BAND = "(Band[rows=?r, cols=?c, lower=?l, upper=?u, value=?v, dtype=?t])"
FILL = "(Fill[value=?v, shape=[?p, ?q], dtype=?t])"
IN_EYE = 'n = 3, t = "float64"'
IN_BAND = 'r = 3, c = 4, l = 1, u = 2, v = 0.5, t = "float64"'
IN_FILL = 'v = 0.5, p = 2, q = 3, t = "float64"'
CONV = "Conv[strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1], group=1]"

RIGHT = {
    "product with identity": (f"(MatMul ?x {EYE})", "?x", f'x = "2,3", {IN_EYE}'),
    "identity is symmetric": (f"(Transpose[perm=[1, 0]] {EYE})", EYE, IN_EYE),
    "identity is idempotent": (f"(MatMul {EYE} {EYE})", EYE, IN_EYE),
    "rows of the identity": (
        f"(ReduceSum[axes=[1], keepdims=0] {EYE})",
        "(Fill[value=1, shape=[?n], dtype=?t])",
        IN_EYE,
    ),
    "scaled identity": (
        f"(MatMul ?x (Mul {EYE} ?s))",
        "(Mul ?x ?s)",
        f's = "", x = "2,3", {IN_EYE}',
        "rank ?s = 0",
    ),
    "identity kernel": (
        f"({CONV} ?x (Reshape[shape=[?n, ?n, 1, 1]] {EYE}))",
        "?x",
        f'x = "1,3,4,4", {IN_EYE}',
    ),
    "transposed band": (
        f"(Transpose[perm=[1, 0]] {BAND})",
        "(Band[rows=?c, cols=?r, lower=?u, upper=?l, value=?v, dtype=?t])",
        IN_BAND,
    ),
    "band of no width": (
        "(Band[rows=?n, cols=?n, lower=0, upper=0, value=1, dtype=?t])",
        EYE,
        IN_EYE,
    ),
    "transposed fill": (
        f"(Transpose[perm=[1, 0]] {FILL})",
        "(Fill[value=?v, shape=[?q, ?p], dtype=?t])",
        IN_FILL,
    ),
    "product with equal elements": (
        f"(MatMul ?x {FILL})",
        "(Mul (Fill[value=?v, shape=[1, ?q], dtype=?t])"
        " (ReduceSum[axes=[1], keepdims=1] ?x))",
        f'x = "4,2", {IN_FILL}',
        "rank ?x = 2",
    ),
    "fill of any rank": (
        "(Relu (Fill[value=?v, shape=?s, dtype=?t]))",
        "(Fill[value=(max ?v 0), shape=?s, dtype=?t])",
        'v = -0.5, s = [2, 3], t = "float64"',
    ),
}
WRONG = {
    "factor lost": (
        f"(MatMul ?x (Mul {EYE} ?s))",
        "?x",
        f's = "", x = "2,3", {IN_EYE}',
        "rank ?s = 0",
    ),
    "band not mirrored": (
        f"(Transpose[perm=[1, 0]] {BAND})",
        "(Band[rows=?c, cols=?r, lower=?l, upper=?u, value=?v, dtype=?t])",
        IN_BAND,
    ),
    "band of width one at size one": (
        "(Band[rows=?n, cols=?n, lower=0, upper=1, value=1, dtype=?t])",
        EYE,
        'n = 1, t = "float64"',
    ),
    "relu of any fill": (f"(Relu {FILL})", FILL, IN_FILL),
    "sum of the wrong axis": (
        f"(ReduceSum[axes=[0], keepdims=0] {FILL})",
        "(Fill[value=(* ?v ?q), shape=[?q], dtype=?t])",
        'v = 0.5, p = 3, q = 3, t = "float64"',
    ),
}


def planted(lhs: str, rhs: str, instance: str, *where: str) -> Rule:
    """Make one rule."""
    conditions = ", ".join(f"'{each}'" for each in where)
    text = (
        f"[[rule]]\nname = 'planted'\nlhs = '{lhs}'\nrhs = '{rhs}'\n"
        f"where = [{conditions}]\nfloat = {{ tag = 'exact' }}\n"
        f"instances = [{{ {instance} }}]\n"
    )
    (rule,) = parse_file(text, "planted.toml")
    return rule


@pytest.mark.parametrize("name", RIGHT)
def test_laws_of_constants_are_proved(name: str) -> None:
    """At every size of the constant, not only at that of the instance."""
    verdict = verify(planted(*RIGHT[name]))
    assert verdict.tier == "all-sizes", verdict.reason
    assert verdict.conditions == ()


@pytest.mark.parametrize("name", WRONG)
def test_wrong_laws_of_constants_are_not(name: str) -> None:
    """Neither where numbers refute them nor where the instance happens to fit."""
    rule = planted(*WRONG[name])
    assert verify(rule).tier != "all-sizes"
    assert not at_every_size(rule, deadline_in(5))[0].holds

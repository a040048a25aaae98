"""What rounding does to the shipped rules: what is kept is what is measured."""

from pathlib import Path

import pytest

from rulesets.deviation import FILE, Deviation, load_deviations, measure, write
from rulesets.errors import RuleError, RuleFileError
from rulesets.rule import Rule
from rulesets.store import load, parse_file

RULES = load()
KEPT = load_deviations()
ROUNDING = 2e-7
"""Figures below are one or two roundings; which of them is a matter of the machine."""


def one(text: str) -> Rule:
    """Read one rule."""
    (rule,) = parse_file(text, "test.toml")
    return rule


def test_every_shipped_rule_has_its_figures() -> None:
    """The file names the shipped rules, in their order, and no other."""
    assert list(KEPT) == [rule.name for rule in RULES]


@pytest.mark.parametrize("rule", RULES[::12], ids=lambda rule: rule.name)
def test_the_figures_are_found_again(rule: Rule) -> None:
    """Measured again, a figure is of the order that is kept."""
    found, kept = measure(rule), KEPT[rule.name]
    for now, then in ((found.sides, kept.sides), (found.float64, kept.float64)):
        assert now <= 3 * then + ROUNDING
        assert then <= 3 * now + ROUNDING


def test_exact_rules_have_the_same_bits() -> None:
    """A rule tagged exact computes the same in float32 on both sides."""
    exact = [rule.name for rule in RULES if rule.float_tag == "exact"]
    assert len(exact) > 200
    assert [name for name in exact if KEPT[name].sides] == []


def test_no_rule_in_use_loses_digits() -> None:
    """The worst is a few units of the sixth digit of float32."""
    assert max(max(one.sides, one.float64) for one in KEPT.values()) < 1e-6


def test_regrouping_is_seen() -> None:
    """A rule that regroups a sum of three has other last bits, but no more."""
    rule = one(
        "[[rule]]\nname = 'regroup'\nlhs = '(Add (Add ?a ?b) ?c)'\n"
        "rhs = '(Add ?a (Add ?b ?c))'\nfloat = { tag = 'reassociates' }\n"
        "instances = [{ a = '30', b = '30', c = '30' }]\n"
    )
    found = measure(rule)
    assert 1e-9 < found.sides < 1e-6
    assert 1e-9 < found.float64 < 1e-6


def test_cancellation_is_seen() -> None:
    """A rule that is true over the reals and loses every digit is caught."""
    rule = one(
        "[[rule]]\nname = 'lossy'\nlhs = '(Relu ?x)'\n"
        "rhs = '(Relu (Sub (Add ?x 1e9) 1e9))'\nfloat = { tag = 'risky' }\n"
        "instances = [{ x = '5' }]\n"
    )
    assert measure(rule).sides > 0.1


def test_a_rule_that_never_fires_is_an_error() -> None:
    """Nothing measured is not zero."""
    rule = one(
        "[[rule]]\nname = 'never'\nlhs = '(Relu ?x)'\nrhs = '(Relu ?x)'\n"
        "where = ['rank ?x = 2']\nfloat = { tag = 'exact' }\ninstances = [{ x = '5' }]\n"
    )
    with pytest.raises(RuleError, match="rule 'never' fires on none of its instances"):
        measure(rule)


def test_figures_are_kept_with_two_digits(tmp_path: Path) -> None:
    """What is written is read again."""
    path = tmp_path / FILE
    write(path, [(RULES[0], Deviation(0.0, 1.2345e-7))])
    assert load_deviations(path) == {RULES[0].name: Deviation(0.0, 1.2e-7)}


@pytest.mark.parametrize("text", ["[[", "'a' = 1.0", "'a' = { sides = 0.0 }"])
def test_a_wrong_file_is_named(tmp_path: Path, text: str) -> None:
    """The error says what a row looks like."""
    path = tmp_path / FILE
    path.write_text(text)
    with pytest.raises(RuleFileError, match=FILE):
        load_deviations(path)

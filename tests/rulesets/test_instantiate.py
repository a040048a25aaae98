"""Rules at their instances: the equations they say there."""

import pytest

from rulesets.errors import RuleError
from rulesets.ground import leaves
from rulesets.instantiate import instantiate
from rulesets.rule import Rule
from rulesets.store import load
from tensat.derive import derive

SHIPPED = {rule.name: rule for rule in load()}
UNREAD = {
    "split-of-concat": "a chosen element",
    "gather-is-slice": "a tensor of int64",
    "not-of-not": "a tensor of bool",
}


def readable() -> list[Rule]:
    """Rules with one root, all instances of which can be read."""
    found = []
    for rule in SHIPPED.values():
        try:
            instantiate(rule)
        except RuleError:
            continue
        if len(rule.lhs) == 1 and rule.name != "cast-to-own-type":
            found.append(rule)
    return found


def test_nearly_all_shipped_rules_are_read() -> None:
    """What is left out speaks of integers, truth values or a chosen element."""
    assert len(SHIPPED) - len(readable()) <= 14


@pytest.mark.parametrize("rule", readable()[::7], ids=lambda rule: rule.name)
def test_a_rule_derives_its_own_instance(rule: Rule) -> None:
    """Conditions hold at the instance, so one round is enough."""
    made = instantiate(rule)
    for equation in made.equations:
        assert derive(equation, [rule], {}, rounds=1, constants=made.constants).derived


def test_constants_are_named() -> None:
    """Leaves that the instance declares constant; a known value is no leaf."""
    made = instantiate(SHIPPED["matmul-of-constants"])
    assert made.constants == {"v", "w"}
    (equation,) = instantiate(SHIPPED["mul-by-one"]).equations
    assert [leaf.name for leaf in leaves(equation.lhs)] == ["x"]


def test_both_roots_are_equations() -> None:
    """A rule with two roots says two equations."""
    assert len(instantiate(SHIPPED["parallel-matmul"]).equations) == 2


@pytest.mark.parametrize(("name", "message"), UNREAD.items(), ids=UNREAD)
def test_what_is_not_read_is_named(name: str, message: str) -> None:
    """The error says why."""
    with pytest.raises(RuleError, match=message):
        instantiate(SHIPPED[name])

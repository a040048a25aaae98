"""Rules at their instances: the equations they say there."""

import pytest

from rulesets.errors import RuleError
from rulesets.ground import Node, leaves, outputs_of
from rulesets.instantiate import instantiate
from rulesets.rule import Rule
from rulesets.store import load, parse_file
from tensat.derive import derive

SHIPPED = {rule.name: rule for rule in load()}


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


def test_all_shipped_rules_are_read() -> None:
    """Only rules with two roots are left out here."""
    several = [rule for rule in SHIPPED.values() if len(rule.lhs) > 1]
    assert len(SHIPPED) - len(readable()) == len(several) + 1


NOT_OF_NOT = """[[rule]]
name = "not-of-not"
lhs = "(Not (Not ?x))"
rhs = "?x"
dtypes = "any"
float = { tag = "exact" }
instances = [{ x = "bool 2,3" }]
"""


@pytest.mark.parametrize(
    ("rule", "dtype"),
    [
        (parse_file(NOT_OF_NOT, "own.toml")[0], "bool"),
        (SHIPPED["gather-is-slice"], "int64"),
    ],
    ids=lambda one: getattr(one, "name", one),
)
def test_element_types_are_those_of_the_instance(rule: Rule, dtype: str) -> None:
    """Truth values and indices are leaves and constants of their own type."""
    (equation,) = instantiate(rule).equations
    inner = equation.lhs
    while isinstance(inner, Node) and inner.arguments:
        inner = inner.arguments[-1]
    assert outputs_of(inner)[0].dtype == dtype


def test_a_chosen_argument_is_read() -> None:
    """The third part of a split of a concatenation is its third argument."""
    (equation,) = instantiate(SHIPPED["split-of-concat"]).equations
    assert str(equation.rhs) == "xs.2"


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

"""Derivability: an equation follows if saturation makes both sides one, and only then."""

import pytest

from rulesets.corpus import Read, read
from rulesets.equation import Equation
from rulesets.ground import Leaf, node
from rulesets.rule import Rule
from rulesets.size import symbol
from rulesets.store import load, parse_file
from tensat.derive import derivable, derive

ASSOCIATIVE = """
[[rule]]
name = "matmul-associative"
lhs = "(MatMul (MatMul ?a ?b) ?c)"
rhs = "(MatMul ?a (MatMul ?b ?c))"
where = ["rank ?a = 2", "rank ?b = 2", "rank ?c = 2"]
float = { tag = "reassociates" }
instances = [{ a = "2,3", b = "3,4", c = "4,5" }]
"""
ADDITION = """
[[rule]]
name = "relu-of-relu"
lhs = "(Relu (Relu ?x))"
rhs = "(Relu ?x)"
where = ["WHERE"]
float = { tag = "exact" }
instances = [{ x = "2,3" }]
"""
THREE = "matmul(matmul(input_1,input_4),input_5) == matmul(input_1,matmul(input_4,input_5))"
CHAIN = (
    "matmul(matmul(matmul(input_1,input_4),input_5),input_6) == "
    "matmul(input_1,matmul(input_4,matmul(input_5,input_6)))"
)


def rules(text: str) -> tuple[Rule, ...]:
    """Read rules."""
    return parse_file(text, "test.toml")


def equation(text: str) -> Equation:
    """Read a published equation."""
    (found,) = read(text, "test")
    assert isinstance(found, Read)
    return found.equation


def twice(rank: int) -> Equation:
    """relu(relu(x)) = relu(x) at some rank."""
    x = Leaf("x", (2, 3, 4)[:rank])
    inner = node("Relu", {}, x)
    return Equation(node("Relu", {}, inner), inner)


def test_one_step_is_enough_for_one_law() -> None:
    """An instance of a rule is derived in the first round."""
    found = derive(equation(THREE), rules(ASSOCIATIVE), {})
    assert (found.rounds, found.stop) == (1, "derived")
    assert found.rules == ("matmul-associative",)


def test_a_longer_chain_takes_more_rounds() -> None:
    """Four factors need a second round, and one round is not enough."""
    found = derive(equation(CHAIN), rules(ASSOCIATIVE), {})
    assert found.rounds == 2
    assert derive(equation(CHAIN), rules(ASSOCIATIVE), {}, rounds=1).stop == "iterations"


def test_equal_sides_need_no_rule() -> None:
    """The same term, or the same sum in the other order after one round."""
    assert derive(equation("relu(input_1) == relu(input_1)"), (), {}).rounds == 0
    turned = equation("ewadd(input_1,input_2) == ewadd(input_2,input_1)")
    assert derive(turned, (), {}).derived


def test_what_does_not_follow_is_not_derived() -> None:
    """Saturation ends without making the sides one."""
    found = derive(equation("relu(input_1) == input_1"), rules(ASSOCIATIVE), {})
    assert (found.derived, found.stop) == (False, "saturated")


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_rule_whose_condition_fails_does_not_fire(rank: int) -> None:
    """A rule for matrices derives nothing about other ranks."""
    known = rules(ADDITION.replace("WHERE", "rank ?x = 2"))
    assert derive(twice(rank), known, {}).derived == (rank == 2)


@pytest.mark.parametrize("names", [(), ("x",)], ids=["input", "constant"])
def test_leaves_may_be_constants(names: tuple[str, ...]) -> None:
    """A rule about constants fires only where leaves are declared to be."""
    known = rules(ADDITION.replace("WHERE", "const ?x"))
    found = derive(twice(2), known, {}, constants=frozenset(names))
    assert found.derived == bool(names)


def test_symbols_take_the_sizes_given() -> None:
    """The generator's equations are symbolic; the test runs at numbers."""
    x = Leaf("x", (symbol("m"), 3))
    inner = node("Relu", {}, x)
    known = rules(ADDITION.replace("WHERE", "dim ?x 0 = 5"))
    assert derivable(Equation(node("Relu", {}, inner), inner), known, {"m": 5})
    assert not derivable(Equation(node("Relu", {}, inner), inner), known, {"m": 4})


def test_shipped_rules_derive_what_they_say() -> None:
    """A published equation about clipped values follows from the shipped rules."""
    assert derive(equation("relu(relu(input_1)) == relu(input_1)"), load(), {}).rounds == 1


def test_arithmetic_of_drawn_constants_needs_no_rule() -> None:
    """With values, two ways to compute one constant are one; without, they are not."""
    x, c = Leaf("x", (2, 3)), Leaf("c", (3,))
    twice, doubled = node("Add", {}, c, c), node("Sub", {}, c, node("Neg", {}, c))
    sums = Equation(node("Add", {}, x, twice), node("Add", {}, x, doubled))
    names = frozenset({"c"})
    assert derive(sums, (), {}, constants=names, drawn=True).derived
    assert not derive(sums, (), {}, constants=names).derived

"""What laws say about a whole layer: on columns as in the e-graph."""

from collections.abc import Iterator

import numpy as np
import pytest

from rulesets.bank import Bank
from rulesets.candidates import open_equations
from rulesets.closure import Closure
from rulesets.column_match import UnfitError, pattern_of
from rulesets.elsewhere import Elsewhere
from rulesets.enumerate import layer
from rulesets.equation import Equation
from rulesets.families import SIZES, family_of
from rulesets.family import Family, Step, splits, step
from rulesets.generalize import holds_elsewhere
from rulesets.ground import Leaf, constant
from rulesets.rule import Rule
from rulesets.size import symbol
from rulesets.store import parse_file
from rulesets.tensor import Shape
from rulesets.term import parse_term

K = symbol("k")
W = tuple(Leaf(f"w{n}", (K, K), "w") for n in range(3))
EYE = constant("Eye", size=K)


def law(lhs: str, rhs: str, *where: str) -> Rule:
    """Make a rule; its instance is never used here."""
    names = sorted({c for c in lhs if f"?{c}" in lhs})
    values = ", ".join(
        f"{n} = '{'float32' if n == 't' else '3,3'}'"
        if f"=?{n}" not in lhs or n == "t"
        else f"{n} = 3"
        for n in names
    )
    conditions = ", ".join(f"'{each}'" for each in where)
    text = (
        f"[[rule]]\nname = 'law'\nlhs = '{lhs}'\nrhs = '{rhs}'\nwhere = [{conditions}]\n"
        f"float = {{ tag = 'exact' }}\ninstances = [{{ {values} }}]\n"
    )
    (rule,) = parse_file(text, "test.toml")
    return rule


TWICE = law("(Transpose[perm=[1, 0]] (Transpose[perm=[1, 0]] ?a))", "?a")
GROUP = law("(MatMul (MatMul ?a ?b) ?c)", "(MatMul ?a (MatMul ?b ?c))")
SUM = law("(Add (Add ?a ?b) ?c)", "(Add (Add ?a ?c) ?b)")
UNIT = law("(MatMul ?a (Eye[size=?n, dtype=?t]))", "?a")
FIRST = law("(Output[index=0] (Split[axis=0, parts=?p] (Concat[axis=0] ?a ?b)))", "?a")
SECOND = law("(Output[index=1] (Split[axis=0, parts=?p] (Concat[axis=0] ?a ?b)))", "?b")
ROWS = law(
    "(MatMul (Concat[axis=0] ?a ?b) ?c)", "(Concat[axis=0] (MatMul ?a ?c) (MatMul ?b ?c))"
)


def products(a: Shape, b: Shape) -> Iterator[Step]:
    """Products."""
    yield step("MatMul")


def sums(a: Shape, b: Shape) -> Iterator[Step]:
    """Sums."""
    yield step("Add", commutative=True)


def transposes(shape: Shape) -> Iterator[Step]:
    """Transposes."""
    yield step("Transpose", perm=(1, 0))


def nothing(shape: Shape) -> Iterator[Step]:
    """Nothing."""
    yield from ()


def joins(a: Shape, b: Shape) -> Iterator[Step]:
    """Products, and stacks of two square matrices."""
    yield step("MatMul")
    if a == b == (K, K):
        yield step("Concat", axis=0)


def halves(shape: Shape) -> Iterator[Step]:
    """Both halves of a stack."""
    yield from splits(shape, 0, K)


PRODUCTS = Family("p", W, SIZES, {"k": 2}, nothing, products)
TURNS = Family("r", W, SIZES, {"k": 2}, transposes, lambda a, b: iter(()))
SUMS = Family("s", W, SIZES, {"k": 2}, nothing, sums)
UNITS = Family("u", W[:2], SIZES, {"k": 2}, nothing, products, (EYE,))
STACKS = Family("t", W, SIZES, {"k": 2}, halves, joins)


def closed(family: Family, size: int) -> tuple[Bank, Closure]:
    """Enumerate up to a size; the closure of the last layer, without laws."""
    bank = Bank(family)
    elsewhere = Elsewhere(bank)
    for each in range(1, size + 1):
        smaller = len(bank.terms)
        elsewhere.extend()
        found = layer(bank, each, last=each == size)
    return bank, Closure(bank, found, smaller, elsewhere)


def left_open(family: Family, size: int, *laws: Rule) -> set[str]:
    """Return what laws leave open, as texts."""
    _, closure = closed(family, size)
    closure.saturate(laws)
    return {str(one.equation) for one in open_equations(family, closure)}


def test_without_laws_every_equation_is_open() -> None:
    """Each once up to renaming."""
    assert left_open(PRODUCTS, 2) == {
        "(MatMul (MatMul w0 w1) w2) == (MatMul w0 (MatMul w1 w2))",
        "(MatMul (MatMul w0 w1) w1) == (MatMul w0 (MatMul w1 w1))",
        "(MatMul (MatMul w0 w1) w0) == (MatMul w0 (MatMul w1 w0))",
        "(MatMul (MatMul w0 w0) w1) == (MatMul w0 (MatMul w0 w1))",
        "(MatMul (MatMul w0 w0) w0) == (MatMul w0 (MatMul w0 w0))",
    }


@pytest.mark.parametrize(
    ("family", "laws"),
    [
        (TURNS, (TWICE,)),
        (PRODUCTS, (GROUP,)),
        (SUMS, (SUM,)),
        (UNITS, (UNIT, law("(MatMul (Eye[size=?n, dtype=?t]) ?a)", "?a"), GROUP)),
        (STACKS, (FIRST, SECOND, GROUP, ROWS)),
    ],
    ids=["transposes", "products", "sums in every order", "a constant", "parts"],
)
def test_laws_close_their_instances(family: Family, laws: tuple[Rule, ...]) -> None:
    """With the laws of size 2 known, nothing of size 2 is left."""
    assert left_open(family, 2)
    assert left_open(family, 2, *laws) == set()


def test_a_law_closes_nothing_else() -> None:
    """Without associativity its instances stay open."""
    assert left_open(PRODUCTS, 2, TWICE, UNIT) == left_open(PRODUCTS, 2)


def test_a_condition_keeps_a_law_away() -> None:
    """A law of another rank closes nothing."""
    wrong = law("(MatMul (MatMul ?a ?b) ?c)", "(MatMul ?a (MatMul ?b ?c))", "rank ?a = 3")
    assert left_open(PRODUCTS, 2, wrong) == left_open(PRODUCTS, 2)


def test_derived_terms_stand_below_others() -> None:
    """Half of a product of a stack: the step between is as large as the whole term."""
    _, closure = closed(STACKS, 3)
    rules = closure.apply([FIRST, SECOND, GROUP, ROWS])
    shallow = len(closure.open())
    assert closure.deepen()
    closure.apply(rules)
    assert len(closure.open()) < shallow


def test_what_is_united_follows_in_the_e_graph() -> None:
    """A sample of what columns derive is derived there from the same laws."""
    from tensat.derive import derive

    laws = (FIRST, SECOND, GROUP, ROWS)
    _, closure = closed(STACKS, 3)
    before = closure.apart(np.arange(closure.count))
    closure.saturate(laws)
    united = np.flatnonzero(before & ~closure.apart(np.arange(closure.count)))
    assert len(united) > 100
    for node in united[:: len(united) // 25].tolist():
        equation = Equation(*closure.sides(node))
        assert derive(equation, laws, SIZES, rounds=5).derived, str(equation)


def test_wrong_laws_unite_nothing() -> None:
    """Terms of different values are never made one, whatever a law says."""
    wrong = law("(MatMul ?a ?b)", "?a")
    assert left_open(PRODUCTS, 2, wrong) == left_open(PRODUCTS, 2)


@pytest.mark.parametrize(
    "text",
    [
        "?a",
        "(Relu 1)",
        "(Split[axis=0, parts=[1, 1]] ?a)",
        "(Where ?a ?b ?c)",
        "(Max ?a...)",
    ],
)
def test_some_patterns_are_for_the_e_graph(text: str) -> None:
    """Variables alone, numbers, operators with several results or more arguments."""
    with pytest.raises(UnfitError):
        pattern_of(parse_term(text))


def test_accidents_are_left_out() -> None:
    """Of the matrices some equations hold at the first sizes only; none is open."""
    family = family_of("linear")
    _, closure = closed(family, 2)
    nodes = np.arange(closure.count)
    assert not all(
        holds_elsewhere(family, Equation(*closure.sides(node))) for node in nodes.tolist()
    )
    found = closure.open().tolist()
    assert found
    assert all(holds_elsewhere(family, Equation(*closure.sides(node))) for node in found)


def test_a_family_shrinks_to_what_is_new() -> None:
    """Of the matrices' equations of size 2 the shipped laws leave a few per thousand."""
    from rulesets.cli_generate import laws as shipped

    family = family_of("linear-small")
    bank, closure = closed(family, 3)
    whole = closure.count
    rules = [rule for rule in shipped() if rule.family == "linear"]
    assert len(closure.apply(rules)) > 0.8 * len(rules)
    assert closure.apart(np.arange(whole)).sum() < whole / 10
    assert bank.family is family

"""Equations: orientation, renaming, instances, and how general they are made."""

import pytest

from rulesets.equation import Equation, canonical, without_instances
from rulesets.errors import RulesetsError
from rulesets.families import FAMILIES, family_of
from rulesets.generalize import abstract, generalize, holds_elsewhere, idle, separate
from rulesets.ground import Ground, Leaf, leaves, node, part, shape_of, size
from rulesets.ground_json import from_json, to_json
from rulesets.size import symbol

LINEAR = family_of("linear")
M, K = symbol("m"), symbol("k")
X = tuple(Leaf(f"x{n}", (M, K), "x") for n in range(4))
W = tuple(Leaf(f"w{n}", (K, K), "w") for n in range(3))


def add(a: Ground, b: Ground) -> Ground:
    """Return a sum."""
    return node("Add", {}, a, b)


def matmul(a: Ground, b: Ground) -> Ground:
    """Return a product."""
    return node("MatMul", {}, a, b)


def relu(a: Ground) -> Ground:
    """Return a rectified term."""
    return node("Relu", {}, a)


def test_names_do_not_matter() -> None:
    """Equations that differ by a renaming have one canonical form."""
    one = canonical(Equation(matmul(X[0], add(W[0], W[1])), matmul(X[0], W[0])))
    other = canonical(Equation(matmul(X[2], add(W[2], W[0])), matmul(X[2], W[2])))
    assert one == other


def test_the_larger_side_is_left() -> None:
    """Orientation does not matter either."""
    found = canonical(Equation(relu(X[0]), relu(relu(X[0]))))
    assert found is not None
    assert str(found) == "(Relu (Relu x0)) == (Relu x0)"


def test_the_order_of_a_sum_does_not_matter() -> None:
    """Commutative arguments are sorted, ties are tried in both orders."""
    one = canonical(Equation(add(relu(X[0]), X[1]), relu(X[0])))
    other = canonical(Equation(add(X[0], relu(X[1])), relu(X[1])))
    assert one == other
    assert canonical(Equation(add(X[0], X[1]), add(X[1], X[0]))) is None


def test_an_instance_is_dropped() -> None:
    """Equal leaves make an instance of the equation with different ones."""
    general = Equation(add(relu(X[0]), relu(X[1])), relu(add(X[0], X[1])))
    special = Equation(add(relu(X[0]), relu(X[0])), relu(add(X[0], X[0])))
    assert without_instances([special, general]) == [general]


def test_a_passed_on_subterm_becomes_a_leaf() -> None:
    """What both sides only pass on says nothing; its shape may be one no leaf has."""
    wide = node("Concat", {"axis": 0}, X[0], X[1])
    found = abstract(LINEAR, Equation(relu(relu(wide)), relu(wide)))
    assert found is not None
    (leaf,) = leaves(found.lhs)
    assert shape_of(leaf) == (M + M, K)


def test_a_law_over_few_leaves_becomes_general() -> None:
    """From sums of one product the distributive law follows by trying."""
    special = Equation(
        add(matmul(W[0], W[1]), matmul(W[0], W[1])), matmul(W[0], add(W[1], W[1]))
    )
    found = generalize(LINEAR, special)
    assert str(found) == "(Add (MatMul w0 w1) (MatMul w0 w2)) == (MatMul w0 (Add w1 w2))"


def test_what_needs_equal_leaves_keeps_them() -> None:
    """relu(x * x) = x * x does not hold for x * y."""
    square = node("Mul", {}, X[0], X[0])
    equation = Equation(relu(square), square)
    assert separate(LINEAR, equation) == equation


def test_accidents_fail_elsewhere() -> None:
    """X * x + x is never negative on integers, but on reals."""
    term = add(node("Mul", {}, X[0], X[0]), X[0])
    assert not holds_elsewhere(LINEAR, Equation(relu(term), term))


def test_size_counts_shared_operators_once() -> None:
    """Constants count nothing and an output counts with its Split."""
    square = matmul(W[0], W[1])
    assert size(add(square, square)) == 2
    assert size(part(0, (K, K), 1, node("Concat", {"axis": 0}, W[0], W[1]))) == 2
    assert size(LINEAR.constants[0]) == 0


@pytest.mark.parametrize("name", FAMILIES)
def test_families_give_every_symbol_its_own_size(name: str) -> None:
    """Two axes fit because they must: the two choices of sizes differ as well."""
    family = family_of(name)
    used = {text for leaf in family.leaves for s in leaf.shape for text in str(s).split()}
    for chosen in (family.sizes, family.others):
        values = [chosen[text] for text in used if text in chosen and text in "mkn"]
        assert len(values) == len(set(values))


def test_an_unknown_family_is_named() -> None:
    """The error lists the families."""
    with pytest.raises(RulesetsError, match="unknown family 'lineal'; known: linear, "):
        family_of("lineal")


def test_equations_survive_json() -> None:
    """Sizes that are polynomials come back as they were."""
    term = part(0, (K, M + 2 * K), 1, node("Concat", {"axis": 0}, W[0], X[0]))
    equation = Equation(term, relu(X[0]))
    assert from_json(to_json(equation)) == equation


def test_json_that_is_no_equation_is_refused() -> None:
    """The error shows what was found."""
    with pytest.raises(RulesetsError, match="a term is a leaf or a call; found"):
        from_json([["leaf"], ["leaf"]])


def test_arithmetic_of_zero_is_idle() -> None:
    """A part like x - x has one value whatever x is; there is no end to such equations."""
    zero = node("Sub", {}, X[0], X[0])
    assert idle(Equation(add(zero, X[1]), X[1]), LINEAR.others)
    assert not idle(Equation(relu(relu(X[0])), relu(X[0])), LINEAR.others)

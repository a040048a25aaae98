"""Enumeration: what a layer holds, fingerprints, representatives."""

from collections.abc import Iterator

import numpy as np
import pytest

from rulesets.bank import Bank, Rows
from rulesets.enumerate import chunks, layer
from rulesets.family import Family, Step, step
from rulesets.fingerprint import hashes, inputs, value_of
from rulesets.ground import Leaf, leaves, size
from rulesets.size import symbol
from rulesets.tensor import Shape

K = symbol("k")
X0, X1, X2 = (Leaf(f"x{n}", (K, K), "x") for n in range(3))


def unary(shape: Shape) -> Iterator[Step]:
    """Relu and a transpose."""
    if len(shape) == 2:
        yield step("Relu")
        yield step("Transpose", perm=(1, 0))


def binary(a: Shape, b: Shape) -> Iterator[Step]:
    """Sums and products."""
    yield step("Add", commutative=True)
    yield step("MatMul")


def family(*chosen: Leaf) -> Family:
    """Square matrices."""
    return Family("square", chosen, {"k": 2}, {"k": 3}, unary, binary)


def test_size_one_is_every_step_over_leaves() -> None:
    """Two leaves: 4 unary terms, 3 sums (no order) and 4 products."""
    assert layer(Bank(family(X0, X1)), 1, last=True).terms == 4 + 3 + 4


def test_every_term_has_the_size_of_its_layer() -> None:
    """A layer holds terms with exactly that many different operators, and none twice."""
    bank = Bank(family(X0, X1))
    layer(bank, 1, last=False)
    layer(bank, 2, last=False)
    seen = set()
    for number, left, right in chunks(bank, 3):
        rights = [-1] * len(left) if right is None else right.tolist()
        for one, other in zip(left.tolist(), rights, strict=True):
            seen.add((number, one, other))
            if len(seen) % 97 == 0:
                assert size(bank.term(number, one, other)) == 3
    total = sum(len(left) for _, left, _ in chunks(bank, 3))
    assert total == len(seen)


def test_shared_operands_are_found() -> None:
    """At size 3 a sum meets what was computed from it, and what was not."""
    bank = Bank(family(X0, X1))
    layer(bank, 1, last=False)
    layer(bank, 2, last=False)
    texts = {
        str(bank.term(number, int(left[k]), -1 if right is None else int(right[k])))
        for number, left, right in chunks(bank, 3)
        for k in range(len(left))
    }
    assert "(MatMul (Add x0 x1) (Relu x0))" in texts
    assert "(Add (MatMul x0 x1) (Relu (MatMul x0 x1)))" in texts


def test_a_value_has_one_representative() -> None:
    """Relu of relu is no new value; the equation names the smaller term."""
    bank = Bank(family(X0))
    layer(bank, 1, last=False)
    found = layer(bank, 2, last=True)
    pairs = {
        (
            str(bank.term(*(int(column[k]) for column in _columns(found.lhs)))),
            str(bank.term(*(int(column[k]) for column in _columns(found.rhs)))),
        )
        for k in range(len(found.lhs))
    }
    assert ("(Relu (Relu x0))", "(Relu x0)") in pairs
    assert ("(Transpose[perm=[1,0]] (Transpose[perm=[1,0]] x0))", "x0") in pairs


def _columns(rows: object) -> tuple[np.ndarray, ...]:
    return tuple(getattr(rows, name) for name in ("step", "left", "right"))


def test_leaves_in_order_are_recognized() -> None:
    """x0 before x1 is canonical, x1 alone is not."""
    bank = Bank(family(X0, X1, X2))
    found = layer(bank, 1, last=True)
    texts = [
        str(bank.term(*(int(c[k]) for c in _columns(found.lhs))))
        for k in range(len(found.lhs))
    ]
    assert len(texts) == len(found.lhs)
    for number, left, right in chunks(bank, 1):
        if right is None:
            continue
        rows = Rows(np.full(len(left), number, np.int32), left, right)
        for ordered, one, other in zip(bank.canonical(rows), left, right, strict=True):
            assert ordered == ((one, other) in {(0, 0), (0, 1)})


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "grid"])
def test_hashes_tell_values_apart(exact: bool) -> None:
    """Equal values hash alike whatever the sign of zero; a changed element does not."""
    value = np.arange(12.0).reshape(2, 3, 2)
    value[1] = value[0]
    value[1, 0, 0] = -0.0
    found, usable = hashes(value, exact=exact)
    assert found[0] == found[1]
    assert usable.all()
    value[1, 2, 1] += 1
    assert len(set(hashes(value, exact=exact)[0].tolist())) == 2


def test_large_values_are_not_trusted() -> None:
    """Above 2**53 integers are no longer exact."""
    assert not hashes(np.full((1, 3, 1), 2.0**53), exact=True)[1][0]


def test_rounding_does_not_change_a_grid_hash() -> None:
    """Values that differ in the last bits are one value."""
    value = np.random.default_rng(2).standard_normal((1, 3, 4))
    one, other = (hashes(v, exact=False)[0][0] for v in (value, value * (1 + 1e-15)))
    assert one == other


def test_scalars_have_both_signs() -> None:
    """A law that needs a positive scalar fails at the first point."""
    (value,) = inputs((Leaf("s", ()),), {}, exact=True, seed=0).values()
    assert value[0, 0] < 0 < value[0, 1]


def test_a_term_is_evaluated_at_the_sizes_given() -> None:
    """Symbols of shapes take the values of the environment."""
    values = inputs((X0, X1), {"k": 5}, exact=True, seed=0)
    term = step("MatMul").of(X0, X1)
    assert value_of(term, {"k": 5}, values).shape == (1, 3, 5, 5)
    assert leaves(term) == (X0, X1)

"""Products of few rows as convolutions on blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tensat.kernels.blocked_matmul import BLOCKED_MATMUL, MOST_ROWS
from tensat.kernels.blocked_ops import BLOCKED_SINGLE
from tensat.kernels.kernel import BlockedForm, Layout, Members, Tree
from tests.tensat.kernels.blocked_lab import BLOCK, Lab, run

SEED = 20265
SIZES = [(32, 48), (30, 20), (7, 5), (16, 1)]


def _forms(members: Members) -> tuple[BlockedForm, ...]:
    if len(members) == 1:
        return BLOCKED_SINGLE[members[0].op](members, BLOCK)
    tree = Tree(members[-1].op)
    for above, below in zip(members[-2::-1], members[:0:-1], strict=True):
        tree = Tree(above.op, ((above.children.index(below.value), tree),))
    (fusion,) = [one for one in BLOCKED_MATMUL if one.tree == tree]
    assert fusion.blocked is not None
    assert fusion.plain(members) is None
    return fusion.blocked(members, BLOCK)


def _product(lab: Lab, kind: str, rows: int, inner: int, outer: int) -> Members:
    if kind == "gemm":
        x, w = lab.value(rows, inner), lab.weight(outer, inner)
        return (lab.apply("Gemm", x, w, lab.weight(outer), transB=1),)
    x = lab.value(*((1, rows, inner) if kind == "batched" else (rows, inner)))
    return (lab.apply("MatMul", x, lab.weight(inner, outer)),)


@pytest.mark.parametrize("last", ["", "Relu", "Tanh", "Sigmoid"])
@pytest.mark.parametrize("added", ["", "right", "left"])
@pytest.mark.parametrize("rows", [1, 3, MOST_ROWS])
@pytest.mark.parametrize("kind", ["matrix", "batched", "gemm"])
@pytest.mark.parametrize(("inner", "outer"), SIZES, ids=["32-48", "30-20", "7-5", "16-1"])
def test_the_result_is_the_product(
    inner: int, outer: int, kind: str, rows: int, added: str, last: str
) -> None:
    """With its bias and its activation, from plain rows to plain rows."""
    lab = Lab(np.random.default_rng(SEED))
    members = _product(lab, kind, rows, inner, outer)
    if added and kind != "gemm":
        pair = (members[0].value, lab.weight(outer))
        members = (
            lab.apply("Add", *(pair if added == "right" else pair[::-1])),
            *members,
        )
    if last:
        members = (lab.apply(last, members[0].value), *members)
    (form,) = _forms(members)
    assert set(form.layouts) == {Layout.PLAIN}
    assert (form.result, form.by_runtime) == (Layout.PLAIN, False)
    got = run(lab.written(members, form), lab.feeds(members), "NONE")
    wanted = run(lab.standard(members), lab.feeds(members))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def _many_rows(lab: Lab) -> Members:
    return _product(lab, "matrix", MOST_ROWS + 1, 32, 32)


def _weights_that_move(lab: Lab) -> Members:
    return (lab.apply("MatMul", lab.value(1, 32), lab.value(32, 16)),)


def _several_matrices(lab: Lab) -> Members:
    return (lab.apply("MatMul", lab.value(2, 1, 32), lab.weight(2, 32, 16)),)


def _scaled(lab: Lab) -> Members:
    return (lab.apply("Gemm", lab.value(1, 32), lab.weight(32, 16), alpha=2.0),)


def _turned(lab: Lab) -> Members:
    return (lab.apply("Gemm", lab.value(32, 1), lab.weight(32, 16), transA=1),)


def _bias_by_row(lab: Lab) -> Members:
    product = lab.apply("MatMul", lab.value(3, 32), lab.weight(32, 16))
    return lab.apply("Add", product.value, lab.weight(3, 1)), product


def _computed_bias(lab: Lab) -> Members:
    product = lab.apply("MatMul", lab.value(3, 32), lab.weight(32, 16))
    return lab.apply("Add", product.value, lab.value(16)), product


@pytest.mark.parametrize(
    "make",
    [
        _many_rows,
        _weights_that_move,
        _several_matrices,
        _scaled,
        _turned,
        _bias_by_row,
        _computed_bias,
    ],
)
def test_other_products_are_refused(make: Callable[[Lab], Members]) -> None:
    """Those that no such convolution computes, and those that gain nothing."""
    assert _forms(make(Lab(np.random.default_rng(SEED)))) == ()


def test_rows_of_any_number_are_refused() -> None:
    """The convolution has its number of rows as a size of its image."""
    lab = Lab(np.random.default_rng(SEED), symbolic=True)
    assert _forms(_product(lab, "matrix", 3, 32, 16)) == ()

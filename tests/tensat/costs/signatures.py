"""Signatures of small operators, for tests of what times them."""

from __future__ import annotations

from tensat.costs.source import Argument, Signature

F = "float32"


def relu(size: int) -> Signature:
    """Relu of a vector."""
    return Signature("Relu", (), (Argument(F, (size,)),), (Argument(F, (size,)),), 17)


def matmul(rows: int, inner: int, columns: int) -> Signature:
    """A product with a constant matrix."""
    x, w = Argument(F, (rows, inner)), Argument(F, (inner, columns), True)
    return Signature("MatMul", (), (x, w), (Argument(F, (rows, columns)),), 17)


def gather(rows: int) -> Signature:
    """Three rows of a constant table of four columns."""
    table, index = Argument(F, (rows, 4), True), Argument("int64", (3,))
    out = Argument(F, (3, 4))
    return Signature("Gather", (("axis", 0),), (table, index), (out,), 17)

"""Matrix products."""

from collections.abc import Mapping, Sequence
from typing import Any

from rulesets.judge import all_equal, equal
from rulesets.meaning import Index, Meaning, Operand, Scalar, broadcast_index
from rulesets.ops.spec import (
    FLOATS,
    NUMBERS,
    Attribute,
    Attributes,
    Operator,
    integer,
    require,
    shaped,
)
from rulesets.tensor import Shape, broadcast


def _matmul(attributes: Attributes, a: Shape, b: Shape) -> Shape:
    require(bool(a and b), "matrix product of tensors with at least one axis", (a, b))
    left, right = (a if len(a) > 1 else (1, *a)), (b if len(b) > 1 else (*b, 1))
    require(equal(left[-1], right[-2]), "inner sizes must be equal", (a, b))
    result = broadcast(left[:-2], right[:-2])
    if len(a) > 1:
        result = (*result, left[-2])
    return (*result, right[-1]) if len(b) > 1 else result


def _gemm(attributes: Attributes, a: Shape, b: Shape, c: Shape = ()) -> Shape:
    require(len(a) == len(b) == 2, "product of two matrices", (a, b))
    rows, left = a[::-1] if integer(attributes, "transA") else a
    right, columns = b[::-1] if integer(attributes, "transB") else b
    require(equal(left, right), "inner sizes must be equal", (a, b))
    result = (rows, columns)
    fits = len(c) <= 2 and all_equal(broadcast(result, c), result)
    require(fits, f"third argument must broadcast to {rows}, {columns}", c)
    return result


def _matmul_at(m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index) -> Scalar:
    x, y = xs
    rows, columns = len(x.shape) > 1, len(y.shape) > 1
    batch = i[: len(i) - rows - columns]
    row, column = i[len(batch) : len(batch) + rows], i[len(i) - columns :]
    left, right = broadcast_index(x.shape[:-2], batch), broadcast_index(y.shape[:-2], batch)
    return m.sum(
        x.shape[-1:], lambda k: x[(*left, *row, k)] * y[(*right, k, *column[:columns])]
    )


def _gemm_at(m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index) -> Scalar:
    x, y, *bias = xs

    def product(k: Any) -> Scalar:
        left, right = (i[0], k), (k, i[1])
        return (
            x[left[::-1] if a["transA"] else left]
            * y[right[::-1] if a["transB"] else right]
        )

    inner = x.shape[0 if a["transA"] else 1]
    result = m.number(a["alpha"]) * m.sum((inner,), product)
    for c in bias:
        result = result + m.number(a["beta"]) * c[broadcast_index(c.shape, i)]
    return result


OPERATORS: tuple[Operator, ...] = (
    Operator("MatMul", (), (2, 2), shaped(_matmul, (2, 2), NUMBERS), _matmul_at),
    Operator(
        "Gemm",
        (
            Attribute("alpha", "float", 1.0),
            Attribute("beta", "float", 1.0),
            Attribute("transA", "int", 0),
            Attribute("transB", "int", 0),
        ),
        (2, 3),
        shaped(_gemm, (2, 3), FLOATS),
        _gemm_at,
    ),
)

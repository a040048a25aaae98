"""Fusions of matrix products: with a bias, an activation, transpositions and a factor.

What ONNX Runtime 1.32 does to float32 models on CPU at its highest level:

- MatMul by a matrix, plus a bias that Gemm can take: Gemm, between two Reshapes if the
  first factor is no matrix; for these no size may be symbolic. A bias of more than one axis
  is taken only without Reshapes.
- Gemm, and an activation behind it: FusedGemm. Not behind a Reshape.
- MatMul whose factors are transposed, and whose factors or result are multiplied by a
  number: FusedMatMul.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from rulesets.ops import single
from rulesets.size import Size
from tensat.costs.source import Argument, Signature
from tensat.kernels.fusions_reading import (
    argument,
    canonical,
    chained,
    contributed,
    divided,
    is_number,
    maker,
    result,
    shape,
    spellings,
)
from tensat.kernels.kernel import Application, Fusion, Members, Tree

ACTIVATIONS = ("Relu", "LeakyRelu", "Elu", "HardSigmoid", "Sigmoid", "Softplus", "Tanh")
"""What FusedGemm computes behind the product."""

_SUMS = spellings("Add", (Tree("MatMul"),), None)


def _biased(members: Members) -> tuple[Application, Argument] | None:
    """Return the product and the bias of a sum that becomes Gemm."""
    found = divided(members, members[0], "MatMul")
    if found is None:
        return None
    product_, place = found
    a, b, bias = shape(product_, 0), shape(product_, 1), shape(members[0], place)
    if len(b) != 2 or (len(a) != 2 and not _known(*a, *b)):
        return None
    columns = b[1]
    if len(bias) == 1:
        fits = bias[0] == columns
    else:
        possible = ((1, columns), (a[0], 1), (a[0], columns))
        fits = len(bias) == len(a) == 2 and bias in possible
    return (product_, argument(members[0], place)) if fits else None


def _known(*sizes: Size) -> bool:
    """Whether sizes are numbers: only then the runtime writes Reshapes."""
    return all(isinstance(size, int) for size in sizes)


def matmul_add(members: Members) -> tuple[Signature, ...] | None:
    """Return Gemm, with the Reshapes around it, for a product plus a bias."""
    found = _biased(members) if chained(members) else None
    if found is None:
        return None
    product_, bias = found
    a, b, out = argument(product_, 0), argument(product_, 1), result(members[0])
    if len(a.dims) == 2:
        return (canonical("Gemm", (a, b, bias), (out,)),)
    rows = math.prod(a.dims[:-1])
    left = Argument(a.dtype, (rows, a.dims[-1]), a.constant)
    flat = Argument(out.dtype, (rows, out.dims[-1]))
    return (
        canonical("Reshape", (a,), (left,), shape=left.dims),
        canonical("Gemm", (left, b, bias), (flat,)),
        canonical("Reshape", (flat,), (out,), shape=out.dims),
    )


def _activated(
    members: Members, inputs: Sequence[Argument | None], **gemm: object
) -> tuple[Signature, ...]:
    root = members[0]
    given = {f"activation_{name}": value for name, value in root.attributes.items()}
    return (
        contributed("FusedGemm", inputs, root.outputs, activation=root.op, **given, **gemm),
    )


def gemm_activation(members: Members) -> tuple[Signature, ...] | None:
    """Return FusedGemm for an activation behind Gemm."""
    if not chained(members):
        return None
    gemm = members[1]
    return _activated(members, gemm.inputs, **gemm.attributes)


def matmul_add_activation(members: Members) -> tuple[Signature, ...] | None:
    """Return FusedGemm for an activation behind a product of matrices plus a bias."""
    found = _biased(members[1:]) if chained(members) else None
    if found is None:
        return None
    product_, bias = found
    a, b = argument(product_, 0), argument(product_, 1)
    if len(a.dims) != 2:
        return None
    plain = canonical("Gemm", (a, b, bias), members[0].outputs)
    return _activated(members, plain.inputs, **dict(plain.attributes))


def transposition(perm: Sequence[int]) -> tuple[bool, bool] | None:
    """Return which of FusedMatMul's transpositions move axes so, None if none does.

    Args:
        perm: Permutation of a Transpose before a product.

    Returns:
        Whether the two axes of the matrices are swapped, and whether the rows came first,
        before the axes of the batch.
    """
    rank = len(perm)
    if rank < 2:
        return None
    last = {(rank - 1, rank - 2): (True, False)}
    if rank > 2:
        last.update({(0, rank - 1): (False, True), (rank - 1, 0): (True, True)})
    found = last.get((perm[-2], perm[-1]))
    if found is None:
        return None
    first = 1 if found[1] else 0
    return found if tuple(perm[:-2]) == tuple(range(first, first + rank - 2)) else None


def _factor(scaling: Application, place: int) -> float | None:
    """Return what a Mul or Div multiplies by, the number at a place; None if it does not.

    A constant whose value is not at hand counts as 1: the time is the same.
    """
    found, other = argument(scaling, place), argument(scaling, 1 - place)
    if (scaling.op == "Div" and place == 0) or not other.dims:
        return None
    if not is_number(found, len(other.dims)):
        return None
    value = 1.0 if found.value is None else found.value
    if scaling.op == "Mul":
        return single(value)
    return single(1 / value) if value else None


def _scaled(
    members: Members, scaling: Application
) -> tuple[Argument, Application | None, float] | None:
    """Return what a Mul or Div scales, the member that computes it, and the factor."""
    for place in (1, 0):
        factor = _factor(scaling, place)
        if factor is not None:
            inside = maker(members, scaling, 1 - place)
            return argument(scaling, 1 - place), inside, factor
    return None


def _side(
    members: Members, matmul: Application, place: int
) -> tuple[Argument, tuple[bool, bool], float] | None:
    """Return a factor before it is moved and scaled, how it is moved, and its factor."""
    found, inside, factor = argument(matmul, place), maker(members, matmul, place), 1.0
    if inside is not None and inside.op in {"Mul", "Div"}:
        scaled = _scaled(members, inside)
        if scaled is None:
            return None
        found, inside, factor = scaled
    if inside is None:
        return found, (False, False), factor
    moved = transposition(_permutation(inside))
    same = len(argument(matmul, 0).dims) == len(argument(matmul, 1).dims)
    if moved is None or (moved[1] and not same):
        return None
    return argument(inside, 0), moved, factor


def _permutation(transpose: Application) -> tuple[int, ...]:
    found = transpose.attributes["perm"]
    assert isinstance(found, tuple)
    return found


def fused_matmul(members: Members) -> tuple[Signature, ...] | None:
    """Return FusedMatMul for a product with transpositions and numbers around it."""
    root = members[0]
    if not chained(members) or any(result(one).constant for one in members):
        return None
    matmul, factor = root, 1.0
    if root.op != "MatMul":
        scaled = _scaled(members, root)
        inside = None if scaled is None else scaled[1]
        if scaled is None or inside is None:
            return None
        matmul, factor = inside, scaled[2]
    left, right = _side(members, matmul, 0), _side(members, matmul, 1)
    if left is None or right is None:
        return None
    (a, (trans_a, batch_a), of_a), (b, (trans_b, batch_b), of_b) = left, right
    flags = {
        "transA": int(trans_a),
        "transB": int(trans_b),
        "transBatchA": int(batch_a),
        "transBatchB": int(batch_b),
    }
    alpha = single(single(of_a * of_b) * factor)
    return (contributed("FusedMatMul", (a, b), root.outputs, alpha=alpha, **flags),)


def _products() -> tuple[Tree, ...]:
    """Return products with a Transpose or a scaling in a factor or behind."""
    turned = Tree("Transpose")
    simple: tuple[Tree | None, ...] = (None, turned)
    left = (*simple, Tree("Mul"), Tree("Div"))
    right = (*left, *spellings("Mul", (turned,), None))

    def matmul(a: Tree | None, b: Tree | None) -> Tree:
        made = tuple((place, one) for place, one in enumerate((a, b)) if one is not None)
        return Tree("MatMul", made)

    inner = [matmul(a, b) for a, b in product(left, right)]
    behind = [matmul(a, b) for a, b in product(simple, simple)]
    scaled = [tree for op in ("Mul", "Div") for tree in spellings(op, behind, None)]
    return (*[tree for tree in inner if tree.inner], *scaled)


FUSIONS: tuple[Fusion, ...] = (
    *[Fusion("product plus bias", tree, matmul_add) for tree in _SUMS],
    *[
        Fusion("Gemm with activation", Tree(act, ((0, Tree("Gemm")),)), gemm_activation)
        for act in ACTIVATIONS
    ],
    *[
        Fusion("product plus bias with activation", Tree(act, ((0, tree),)),
               matmul_add_activation)
        for act, tree in product(ACTIVATIONS, _SUMS)
    ],
    *[Fusion("product transposed and scaled", tree, fused_matmul) for tree in _products()],
)  # fmt: skip

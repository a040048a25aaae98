"""Narrow families about convolutions and products whose operands are moved or padded.

As in `rulesets.families.narrow`: few operators each, enumerated completely. `padded` are
paddings before pools, `enlarged` paddings of kernels, `pointwise` a convolution of one
pixel behind another, `halved` groups joined in pairs, `one-row` a product of one row as a
convolution, `group-shifts` shifts before convolutions in groups, `flattened` vectors behind
a reshape, `biases` vectors added to concatenations, `casts` what changes no value, `bounds`
maxima and minima alone, and `saturating` what is linear between two numbers.
"""

from collections.abc import Iterator

from rulesets.families.folded import (
    GROUPS,
    OTHER_GROUPS,
    SMALL,
    SMALLS,
    L,
    P,
    Q,
    reshaped,
)
from rulesets.families.images import IMAGE, IMAGES, MATMUL, B, C, H, W, window
from rulesets.families.narrow import ADD, MAX, MIN, MUL, OTHERS, SIZES, K, M, N, leaves
from rulesets.families.narrow import number as literal
from rulesets.family import Family, Step, step
from rulesets.ground import constant, node
from rulesets.tensor import Shape

ROW = {**SIZES, "k": 3, "n": 4}
ROWS = {**OTHERS, "k": 2, "n": 5}
HALVES = {**IMAGE, "b": 1, "l": 3, "c": 2, "h": 3, "w": 4, "u": 2, "v": 3}
OTHER_HALVES = {**IMAGES, "b": 2, "l": 2, "c": 3, "h": 4, "w": 3, "u": 3, "v": 2}


def _never(*_: Shape) -> Iterator[Step]:
    yield from ()


# -- paddings ------------------------------------------------------------------------------


def _padded_unary(shape: Shape) -> Iterator[Step]:
    if shape == (B, C, H, W):
        yield step("Relu")
        yield step("Pad", pads=(0, 0, 1, 1, 0, 0, 1, 1))
        yield window("MaxPool", kernel=(3, 3), pads=(1, 1, 1, 1))
    elif shape == (B, C, H + 2, W + 2):
        yield window("MaxPool", kernel=(3, 3))


def _enlarged_unary(shape: Shape) -> Iterator[Step]:
    if shape == (K, C, 1, 1):
        yield step("Pad", pads=(0, 0, 1, 1, 0, 0, 1, 1))
    elif shape == (K, C, 2, 2):
        yield step("Pad", pads=(0, 0, 0, 0, 0, 0, 1, 0))


def _enlarged_binary(a: Shape, b: Shape) -> Iterator[Step]:
    pads = {
        (1, 1): (0, 0, 0, 0),
        (2, 2): (1, 1, 0, 1),
        (3, 3): (1, 1, 1, 1),
        (3, 2): (1, 1, 1, 1),
    }
    if a == (B, C, H, W) and b[:2] == (K, C):
        yield window("Conv", pads=pads[b[2:]])  # type: ignore[index]


# -- kernels as matrices -------------------------------------------------------------------


def _pointwise_unary(shape: Shape) -> Iterator[Step]:
    if shape == (N, K, 1, 1):
        yield reshaped(N, K)
    elif shape == (K, C, P, Q):
        yield reshaped(K, C * P * Q)
    elif shape == (N, C * P * Q):
        yield reshaped(N, C, P, Q)


def _pointwise_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == (B, C, H, W) and b[1:] == (C, P, Q):
        yield window("Conv", pads=(1, 1, 1, 1))
    elif a[:2] == (B, K) and b == (N, K, 1, 1):
        yield window("Conv")
    elif a == (N, K) and b == (K, C * P * Q):
        yield MATMUL


def _halved_unary(shape: Shape) -> Iterator[Step]:
    for copies in (1, 2):
        if shape == (2, 2, L, copies, 18):
            yield reshaped(L * 4, 2 * copies, 3, 3)
        elif shape == (1, 2, L, copies, 6):
            yield reshaped(L * 2, 2 * copies, 3)


def _halved_binary(a: Shape, b: Shape) -> Iterator[Step]:
    groups = {
        (L * 4, 2, 3, 3): 4,
        (L * 4, 4, 3, 3): 2,
        (L * 2, 2, 3): 2,
        (L * 2, 4, 3): 1,
    }
    if a in ((B, 8, H, W), (B, 4, W)) and len(b) == len(a) and b in groups:
        moves = {"strides": (2,), "pads": (0, 1)} if len(a) == 3 else {"pads": (1,) * 4}
        yield window("Conv", len(a) - 2, group=groups[b], **moves)
    if a in ((2, 2, L, 1, 18), (1, 2, L, 1, 6)) and b == (1, 2, 1, 2, 1):
        yield MUL


def _one_row_unary(shape: Shape) -> Iterator[Step]:
    if shape == (N, K):
        yield step("Transpose", perm=(1, 0))
        yield reshaped(N, K, 1, 1)
    elif shape in ((1, K), (1, 1, K)):
        yield reshaped(1, K, 1, 1)
    elif shape == (1, N, 1, 1):
        yield reshaped(1, N)
        yield reshaped(1, 1, N)


def _one_row_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a in ((1, K), (1, 1, K)) and b == (K, N):
        yield MATMUL
    elif a == (1, K, 1, 1) and b == (N, K, 1, 1):
        yield window("Conv")


def _flattened_unary(shape: Shape) -> Iterator[Step]:
    if shape == (1, K, 1, 1):
        yield reshaped(1, K)
    elif shape == (K,):
        yield reshaped(K, 1, 1)


def _flattened_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if (a, b) in (((1, K), (K,)), ((1, K, 1, 1), (K, 1, 1))):
        yield ADD


def _biases_unary(shape: Shape) -> Iterator[Step]:
    if len(shape) == 1:
        yield reshaped(*shape, 1, 1)


def _biases_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if (a, b) == ((B, C, H, W), (B, K, H, W)):
        yield step("Concat", axis=1)
    elif (a, b) == ((C,), (K,)):
        yield step("Concat", axis=0)
    elif len(a) == 4 and b == (a[1], 1, 1):
        yield ADD


def _group_shifts_unary(shape: Shape) -> Iterator[Step]:
    if shape == (L * 2, C, P, Q):
        yield reshaped(2, L, C, P, Q)
    elif shape == (C * 2, 1, 1):
        yield reshaped(2, 1, C, 1, 1)
    elif shape == (2, L, C, P, Q):
        yield step("ReduceSum", axes=(2, 3, 4), keepdims=0)
    elif shape == (2, L):
        yield reshaped(L * 2, 1, 1)


def _group_shifts_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == (B, C * 2, H, W) and b == (L * 2, C, P, Q):
        yield window("Conv", group=2, strides=(2, 1))
    elif (a, b) == ((2, L, C, P, Q), (2, 1, C, 1, 1)):
        yield MUL
    elif len(a) == 4 and b == (a[1], 1, 1):
        yield ADD


# -- single elements -----------------------------------------------------------------------


def _casts_unary(shape: Shape) -> Iterator[Step]:
    yield step("Cast", to="float32")
    yield step("Identity")


def _bounds_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == b:
        yield from (MAX, MIN)


# The reciprocals of these numbers are floats without rounding, so that the sides are equal.
SATURATIONS = tuple(
    each
    for most, shift in ((4.0, 3.0), (2.0, 1.0))
    for each in (
        step("Clip", min=0.0, max=most),
        step("HardSigmoid", alpha=1 / most, beta=shift / most),
    )
)


def _saturating_unary(shape: Shape) -> Iterator[Step]:
    if shape:
        yield from SATURATIONS


def _saturating_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a and b == ():
        yield from (ADD, MUL)


_PAIR = node("Reshape", {"shape": (1, 2, 1, 2, 1)}, constant("Eye", size=2))

MOVED: tuple[Family, ...] = (
    Family(
        "padded",
        leaves("x", 1, B, C, H, W),
        IMAGE,
        IMAGES,
        _padded_unary,
        _never,
        exact=False,
        largest=5.0,
    ),
    Family(
        "enlarged",
        (
            *leaves("x", 1, B, C, H, W),
            *leaves("w", 1, K, C, 1, 1),
            *leaves("v", 1, K, C, 2, 2),
        ),
        IMAGE,
        IMAGES,
        _enlarged_unary,
        _enlarged_binary,
        largest=5.0,
    ),
    Family(
        "pointwise",
        (
            *leaves("x", 1, B, C, H, W),
            *leaves("v", 1, K, C, P, Q),
            *leaves("w", 1, N, K, 1, 1),
        ),
        {**SMALL, "u": 2, "v": 3},
        {**SMALLS, "u": 3, "v": 2},
        _pointwise_unary,
        _pointwise_binary,
        largest=5.0,
    ),
    Family(
        "halved",
        (
            *leaves("x", 1, B, 8, H, W),
            *leaves("y", 1, B, 4, W),
            *leaves("w", 1, 2, 2, L, 1, 18),
            *leaves("v", 1, 1, 2, L, 1, 6),
        ),
        HALVES,
        OTHER_HALVES,
        _halved_unary,
        _halved_binary,
        (_PAIR,),
        largest=5.0,
    ),
    Family(
        "one-row",
        (*leaves("x", 1, 1, K), *leaves("y", 1, 1, 1, K), *leaves("w", 1, N, K)),
        ROW,
        ROWS,
        _one_row_unary,
        _one_row_binary,
    ),
    Family(
        "flattened",
        (*leaves("y", 1, 1, K, 1, 1), *leaves("b", 1, K)),
        ROW,
        ROWS,
        _flattened_unary,
        _flattened_binary,
    ),
    Family(
        "group-shifts",
        (
            *leaves("x", 1, B, C * 2, H, W),
            *leaves("w", 1, L * 2, C, P, Q),
            *leaves("c", 1, C * 2, 1, 1),
        ),
        GROUPS,
        OTHER_GROUPS,
        _group_shifts_unary,
        _group_shifts_binary,
        largest=5.0,
    ),
    Family(
        "biases",
        (
            *leaves("x", 1, B, C, H, W),
            *leaves("y", 1, B, K, H, W),
            *leaves("c", 1, C),
            *leaves("d", 1, K),
        ),
        SMALL,
        SMALLS,
        _biases_unary,
        _biases_binary,
    ),
    Family("casts", leaves("x", 1, M, K), SIZES, OTHERS, _casts_unary, _never),
    Family("bounds", leaves("x", 3, M, K), SIZES, OTHERS, _never, _bounds_binary),
    Family(
        "saturating",
        leaves("x", 1, M, K),
        SIZES,
        OTHERS,
        _saturating_unary,
        _saturating_binary,
        tuple(map(literal, (1.0, 2.0, 3.0, 4.0))),
        exact=False,
    ),
)

"""Narrow families about products, convolutions and selections.

As in `rulesets.families.narrow`: `affine` are matrix products with what scales and shifts
rows and columns, `windows` the same of convolutions, `convolved` their sums, `pools` sums
and factors of pools, `shifted` what a shift before a convolution becomes,
`selected` and `slices` selections beside functions and beside what moves or joins.
"""

from collections.abc import Iterator
from typing import Any

from rulesets.families.images import CONV, IMAGE, IMAGES, MATMUL, TURNED, B, C, H, W, window
from rulesets.families.narrow import (
    ADD,
    ARITHMETIC,
    FUNCTIONS,
    MUL,
    OTHERS,
    SIZES,
    SUB,
    K,
    M,
    N,
    leaves,
)
from rulesets.family import Family, Step, step
from rulesets.tensor import Shape

POOL: dict[str, Any] = {"kernel": (3, 3), "pads": (1, 1, 1, 1)}
POOLS = (
    window("AveragePool", count_include_pad=1, **POOL),
    window("MaxPool", **POOL),
    step("GlobalAveragePool"),
    step("GlobalMaxPool"),
)


# -- matrices ----------------------------------------------------------------------------


def _affine_unary(shape: Shape) -> Iterator[Step]:
    if shape == (K, N):
        yield step("ReduceSum", axes=(0,), keepdims=1)
    if shape == (K,):
        yield step("Reshape", shape=(K, 1))
        yield step("Reshape", shape=(1, K))


def _affine_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if len(a) == len(b) == 2:
        yield MATMUL
    if a in ((M, K), (K, N), (M, N)) and (b in ((), a[1:], (a[0], 1), (1, a[1])) or a == b):
        yield from (ADD, MUL)
        if a == b:
            yield SUB


# -- images ------------------------------------------------------------------------------


def _pools_unary(shape: Shape) -> Iterator[Step]:
    if shape[2:] == (H, W):
        yield from POOLS


def _pools_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if len(a) == 4 and (b in ((), (C, 1, 1)) or a == b):
        yield from (ADD, MUL)
        if a == b:
            yield SUB


def _windows_unary(shape: Shape) -> Iterator[Step]:
    if len(shape) == 4 and shape[1:] == (1, 1, 1):
        yield step("Reshape", shape=(shape[0], 1, 1))


def _windows_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if len(a) == 4 and len(b) == 4 and a[2:] == (H, W) and b[2:] == (2, 3):
        yield CONV
        yield TURNED
    if len(a) == 4 and b in ((), (a[1], 1, 1), (a[0], 1, 1, 1)):
        yield MUL


def _sums_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == (B, C, H, W) and b == (K, C, 2, 3):
        yield CONV
    if a == b:
        yield from (ADD, SUB)


def _shifted_unary(shape: Shape) -> Iterator[Step]:
    if shape == (K, C, 3, 3):
        yield step("ReduceSum", axes=(1, 2, 3), keepdims=0)
    if shape == (K,):
        yield step("Reshape", shape=(K, 1, 1))


def _shifted_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == (B, C, H, W) and b == (K, C, 3, 3):
        yield CONV
    if a == (B, C, H, W) and b in ((C, 1, 1), ()):
        yield ADD
    if a == (K, C, 3, 3) and b in ((C, 1, 1), ()):
        yield MUL
    if len(a) == 4 and b == (K, 1, 1):
        yield ADD


# -- selections --------------------------------------------------------------------------


def _cut(axis: int, start: int, end: int) -> Step:
    return step("Slice", starts=(start,), ends=(end,), axes=(axis,), steps=(1,))


def _selected_unary(shape: Shape) -> Iterator[Step]:
    yield from FUNCTIONS
    if shape == (M, 6):
        yield _cut(1, 1, 3)


def _selected_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == b:
        yield from ARITHMETIC


def _slices_unary(shape: Shape) -> Iterator[Step]:
    for axis, size in enumerate(shape):
        if size == 9:
            yield from (_cut(axis, *cut) for cut in ((1, 3), (2, 7), (3, 5)))
            yield _cut(axis, 0, 9)
    if len(shape) == 3:
        yield step("Softmax", axis=2)
        yield step("Transpose", perm=(1, 2, 0))


def _slices_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if len(a) == 3 and b == (K, N):
        yield MATMUL
    if a == b == (M, 9, K):
        yield step("Concat", axis=0)
    if len(a) == 3 and b == a[-1:]:
        yield step("LayerNormalization", axis=2)


WINDOWED: tuple[Family, ...] = (
    Family(
        "affine",
        (
            *leaves("x", 1, M, K),
            *leaves("y", 1, M, K),
            *leaves("w", 1, K, N),
            *leaves("c", 1, N),
            *leaves("d", 1, K),
            *leaves("s", 1),
        ),
        SIZES,
        OTHERS,
        _affine_unary,
        _affine_binary,
        exact=False,
    ),
    Family(
        "windows",
        (
            *leaves("x", 1, B, C, H, W),
            *leaves("w", 1, K, C, 2, 3),
            *leaves("v", 1, C, K, 2, 3),
            *leaves("c", 1, C, 1, 1),
            *leaves("e", 1, K, 1, 1),
            *leaves("d", 1, K, 1, 1, 1),
            *leaves("s", 1),
        ),
        IMAGE,
        IMAGES,
        _windows_unary,
        _windows_binary,
        exact=False,
        largest=5.0,
    ),
    Family(
        "convolved",
        (*leaves("x", 2, B, C, H, W), *leaves("w", 2, K, C, 2, 3)),
        IMAGE,
        IMAGES,
        lambda _: iter(()),
        _sums_binary,
        exact=False,
        largest=5.0,
    ),
    Family(
        "pools",
        (*leaves("x", 2, B, C, H, W), *leaves("c", 1, C, 1, 1), *leaves("s", 1)),
        IMAGE,
        IMAGES,
        _pools_unary,
        _pools_binary,
        exact=False,
    ),
    Family(
        "shifted",
        (
            *leaves("x", 1, B, C, H, W),
            *leaves("w", 1, K, C, 3, 3),
            *leaves("c", 1, C, 1, 1),
            *leaves("s", 1),
        ),
        IMAGE,
        IMAGES,
        _shifted_unary,
        _shifted_binary,
        exact=False,
        largest=5.0,
    ),
    Family(
        "selected",
        leaves("x", 2, M, 6),
        SIZES,
        OTHERS,
        _selected_unary,
        _selected_binary,
        exact=False,
    ),
    Family(
        "slices",
        (*leaves("x", 2, M, 9, K), *leaves("w", 1, K, N), *leaves("c", 1, K)),
        SIZES,
        OTHERS,
        _slices_unary,
        _slices_binary,
        exact=False,
    ),
)

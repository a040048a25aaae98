"""Narrow families about what folds into weights, biases and other constants.

As in `rulesets.families.narrow`: few operators each, enumerated completely. `ones` and
`single` are operands whose axes of length one may be left out, `rows` products of stacks of
matrices and what folds into their weight, `scaled` and `channels` factors behind and before
convolutions, `turned` around transposed ones, `grouped` around convolutions in groups,
`differences` of convolutions, `shifts` before convolutions, `averaged` factors and shifts
of pools and sums, `filled` one number for all channels, `appended` sums of concatenations.
"""

from collections.abc import Iterator

from rulesets.families.images import CONV, IMAGE, IMAGES, MATMUL, TURNED, B, C, H, W, window
from rulesets.families.narrow import ADD, MIN, MUL, OTHERS, SIZES, SUB, K, M, N, leaves
from rulesets.family import Family, Step, step
from rulesets.size import symbol
from rulesets.tensor import Shape

L, P, Q = symbol("l"), symbol("u"), symbol("v")
SMALL = {**IMAGE, "h": 3, "w": 4}
SMALLS = {**IMAGES, "h": 4, "w": 3}
GROUPS = {**SMALL, "c": 2, "l": 3, "h": 3, "w": 4, "u": 2, "v": 3}
OTHER_GROUPS = {**SMALLS, "c": 3, "l": 2, "h": 4, "w": 3, "u": 3, "v": 2}
STACK = {**SIZES, "b": 5}
STACKS = {**OTHERS, "b": 4}


GROUPED = window("Conv", group=2)
GROUPED_TURNED = window("ConvTranspose", output_padding=(0, 0), group=2)
AVERAGE = window("AveragePool", kernel=(3, 3), pads=(1, 1, 1, 1))
GLOBAL = (step("GlobalAveragePool"), step("GlobalMaxPool"))


def reshaped(*shape: object) -> Step:
    """Return a Reshape to a shape."""
    return step("Reshape", shape=shape)


# -- axes of length one --------------------------------------------------------------------


def _ones_unary(shape: Shape) -> Iterator[Step]:
    if shape in ((1,), (1, 1)):
        yield reshaped()
    elif shape == (1, C, 1, 1):
        yield reshaped(C, 1, 1)
    elif shape == (1, 1, K):
        yield reshaped(K)


def _ones_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if (
        (len(a) == 2 and len(b) <= 2)
        or (len(a) == 3 and len(b) > 2)
        or len(a) == len(b) == 4
    ):
        yield from (ADD, MUL, MIN)
    if (a, b) in (((M, N, K), (K,)), ((B, C, H, W), (C, 1, 1))):
        yield from (ADD, MUL, MIN)


# -- matrices ------------------------------------------------------------------------------


def _rows_unary(shape: Shape) -> Iterator[Step]:
    if shape == (K, N):
        yield step("ReduceSum", axes=(0,), keepdims=1)
    if shape == (K,):
        yield reshaped(K, 1)
    if shape == (B, M, K):
        yield reshaped(B * M, K)
    if shape == (B * M, N):
        yield reshaped(B, M, N)
    if shape == (1, K, N):
        yield reshaped(K, N)


def _rows_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if len(a) > 1 and b in ((K, N), (1, K, N)):
        yield MATMUL
    if (a, b) in (((B, M, K), (K,)), ((K, N), (K, 1))):
        yield MUL
    if (a, b) in (((1, N), ()),):
        yield MUL
    if (a, b) in (((B, M, K), ()), ((B, M, N), (1, N))):
        yield ADD


# -- convolutions --------------------------------------------------------------------------


def _scaled_unary(shape: Shape) -> Iterator[Step]:
    if shape in ((C, 1, 1), (K, 1, 1)):
        yield reshaped(shape[0], 1, 1, 1)


def _scaled_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == (B, C, H, W) and b == (K, C, 2, 3):
        yield CONV
    if len(a) == 4 and b in ((K, 1, 1), (a[0], 1, 1, 1)):
        yield MUL


def _differences_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == (B, C, H, W) and b == (K, C, 2, 3):
        yield CONV
    if a == b:
        yield SUB


def _turned_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == (B, C, H, W) and b == (C, N, 2, 3):
        yield TURNED
    if len(a) == 4 and b in ((), (C, 1, 1), (a[0], 1, 1, 1)):
        yield MUL


def _grouped_unary(shape: Shape) -> Iterator[Step]:
    if shape == (2, L, C, P, Q):
        yield reshaped(L * 2, C, P, Q)
    if shape == (C * 2, 1, 1):
        yield reshaped(2, 1, C, 1, 1)


def _grouped_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == (B, C * 2, H, W) and b == (L * 2, C, P, Q):
        yield GROUPED
    if a == (B, L * 2, H, W) and b == (L * 2, C, P, Q):
        yield GROUPED_TURNED
    if a[:2] == (B, C * 2) and b == (C * 2, 1, 1):
        yield MUL
    if a == (2, L, C, P, Q) and b == (2, 1, C, 1, 1):
        yield MUL


def _channels_unary(shape: Shape) -> Iterator[Step]:
    if shape == (C, 1, 1):
        yield reshaped(1, C, 1, 1)


def _channels_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == (B, C, H, W) and b == (K, C, 2, 3):
        yield CONV
    if (a, b) in (((B, C, H, W), (C, 1, 1)), ((K, C, 2, 3), (1, C, 1, 1))):
        yield MUL


def _shifts_unary(shape: Shape) -> Iterator[Step]:
    if shape == (K, C, P, Q):
        yield step("ReduceSum", axes=(1, 2, 3), keepdims=0)
    if shape == (K,):
        yield reshaped(K, 1, 1)


def _shifts_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == (B, C, H, W) and b == (K, C, P, Q):
        yield window("Conv", strides=(2, 1))
    if a == (B, C, H, W) and b in ((C, 1, 1), ()):
        yield ADD
    if a == (K, C, P, Q) and b == (C, 1, 1):
        yield MUL
    if a == (K,) and b == ():
        yield MUL
    if len(a) == 4 and b == (K, 1, 1):
        yield ADD


# -- pools and sums ------------------------------------------------------------------------


def _averaged_unary(shape: Shape) -> Iterator[Step]:
    if shape == (B, C, H, W):
        yield GLOBAL[0]
    elif shape == (B, C, 1, 1):
        yield from GLOBAL
    elif shape == (N, C, H, W):
        yield AVERAGE
    elif shape == (M, N):
        yield step("ReduceSum", axes=(1,), keepdims=0)
        yield step("ReduceMean", axes=(1,), keepdims=0)


def _averaged_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a[:2] == (B, C) and b in ((), (C, 1, 1)):
        yield from (ADD, MUL)
    elif a in ((M, N), (M,), (N, C, H, W)) and b == ():
        yield MUL


# -- equal elements ------------------------------------------------------------------------


def _filled_unary(shape: Shape) -> Iterator[Step]:
    if shape == (1,):
        yield step("Expand", shape=(C,))
    elif shape == (C,):
        yield reshaped(C, 1, 1)


def _filled_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == (B, C, H, W) and b in ((1,), (C, 1, 1)):
        yield ADD


# -- concatenations ------------------------------------------------------------------------


def _appended_unary(shape: Shape) -> Iterator[Step]:
    if shape in ((C,), (K,), (C + K,)):
        yield reshaped(*shape, 1, 1)


def _appended_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if (a, b) == ((B, C, H, W), (B, K, H, W)):
        yield step("Concat", axis=1)
    if (a, b) == ((B, M, C), (B, M, K)):
        yield step("Concat", axis=2)
    if (a, b) in (((C,), (K,)), ((C, 1, 1), (K, 1, 1))):
        yield step("Concat", axis=0)
    if (len(a) == 4 and b == (a[1], 1, 1)) or (len(a) == 3 and b == (a[2],)):
        yield ADD


FOLDED: tuple[Family, ...] = (
    Family(
        "ones",
        (
            *leaves("x", 1, M, K),
            *leaves("y", 1, M, N, K),
            *leaves("z", 1, B, C, H, W),
            *leaves("c", 1, 1),
            *leaves("d", 1, 1, 1),
            *leaves("e", 1, 1, 1, K),
            *leaves("f", 1, 1, C, 1, 1),
        ),
        {**IMAGE, "n": 7},
        {**IMAGES, "n": 4},
        _ones_unary,
        _ones_binary,
    ),
    Family(
        "rows",
        (
            *leaves("x", 1, B, M, K),
            *leaves("w", 1, K, N),
            *leaves("v", 1, 1, K, N),
            *leaves("c", 1, K),
            *leaves("s", 1),
        ),
        STACK,
        STACKS,
        _rows_unary,
        _rows_binary,
    ),
    Family(
        "scaled",
        (
            *leaves("x", 1, B, C, H, W),
            *leaves("w", 1, K, C, 2, 3),
            *leaves("c", 1, K, 1, 1),
        ),
        SMALL,
        SMALLS,
        _scaled_unary,
        _scaled_binary,
        largest=5.0,
    ),
    Family(
        "differences",
        (*leaves("x", 1, B, C, H, W), *leaves("w", 2, K, C, 2, 3)),
        SMALL,
        SMALLS,
        lambda _: iter(()),
        _differences_binary,
        largest=5.0,
    ),
    Family(
        "turned",
        (
            *leaves("x", 1, B, C, H, W),
            *leaves("w", 1, C, N, 2, 3),
            *leaves("c", 1, C, 1, 1),
            *leaves("s", 1),
        ),
        SMALL,
        SMALLS,
        _scaled_unary,
        _turned_binary,
        largest=5.0,
    ),
    Family(
        "single",
        (*leaves("x", 1, M, K), *leaves("d", 1, 1, 1)),
        IMAGE,
        IMAGES,
        _ones_unary,
        _ones_binary,
    ),
    Family(
        "grouped",
        (
            *leaves("x", 1, B, C * 2, H, W),
            *leaves("y", 1, B, L * 2, H, W),
            *leaves("w", 1, 2, L, C, P, Q),
            *leaves("c", 1, C * 2, 1, 1),
        ),
        GROUPS,
        OTHER_GROUPS,
        _grouped_unary,
        _grouped_binary,
        largest=5.0,
    ),
    Family(
        "channels",
        (
            *leaves("x", 1, B, C, H, W),
            *leaves("w", 1, K, C, 2, 3),
            *leaves("c", 1, C, 1, 1),
        ),
        SMALL,
        SMALLS,
        _channels_unary,
        _channels_binary,
        largest=5.0,
    ),
    Family(
        "shifts",
        (
            *leaves("x", 1, B, C, H, W),
            *leaves("w", 1, K, C, P, Q),
            *leaves("c", 1, C, 1, 1),
            *leaves("s", 1),
        ),
        {**SMALL, "u": 2, "v": 3},
        {**SMALLS, "u": 3, "v": 2},
        _shifts_unary,
        _shifts_binary,
        largest=5.0,
    ),
    Family(
        "averaged",
        (
            *leaves("x", 1, B, C, H, W),
            *leaves("y", 1, B, C, 1, 1),
            *leaves("z", 1, M, N),
            *leaves("v", 1, N, C, H, W),
            *leaves("c", 1, C, 1, 1),
            *leaves("s", 1),
        ),
        {**SMALL, "n": 7},
        {**SMALLS, "n": 6},
        _averaged_unary,
        _averaged_binary,
        exact=False,
    ),
    Family(
        "filled",
        (*leaves("x", 1, B, C, H, W), *leaves("s", 1, 1)),
        IMAGE,
        IMAGES,
        _filled_unary,
        _filled_binary,
    ),
    Family(
        "appended",
        (
            *leaves("x", 1, B, C, H, W),
            *leaves("y", 1, B, K, H, W),
            *leaves("p", 1, B, M, C),
            *leaves("q", 1, B, M, K),
            *leaves("c", 1, C),
            *leaves("d", 1, K),
            *leaves("e", 1, C, 1, 1),
            *leaves("f", 1, K, 1, 1),
        ),
        IMAGE,
        IMAGES,
        _appended_unary,
        _appended_binary,
    ),
)

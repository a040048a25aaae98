"""Narrow families about transposes, reshapes, expansions and paddings beside other work.

As in `rulesets.families.slices`: one family for each thing that something moves past.
`turned-*` are transposes, `folded-*` reshapes, `spread-*` expansions, `ones-*` axes of
length one that may come and go, `padded-twice` paddings of paddings.
"""

import operator
from collections.abc import Iterator

from rulesets.families.narrow import (
    ADD,
    ARITHMETIC,
    DIV,
    MUL,
    OTHERS,
    SIZES,
    SUB,
    K,
    M,
    N,
    leaves,
)
from rulesets.families.slices import each
from rulesets.family import Binary, Family, Step, Unary, step
from rulesets.ground import Leaf
from rulesets.size import symbol
from rulesets.tensor import Shape

B = symbol("b")
STACK, STACKS = {**SIZES, "b": 5}, {**OTHERS, "b": 4}
TURN, BACK = step("Transpose", perm=(1, 2, 0)), step("Transpose", perm=(2, 0, 1))
ORDERED = (SUB, DIV)
SPREAD = (*leaves("x", 1, M, 1), *leaves("y", 1, M, K))
ONES = (
    *leaves("x", 1, M, K, N),
    *leaves("c", 1, N),
    *leaves("s", 1),
    *leaves("u", 1, 1, 1),
)
REDUCE = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin")


def _family(
    name: str,
    given: tuple[Leaf, ...],
    unary: Unary,
    binary: Binary,
    largest: float = 5.0,
) -> Family:
    return Family(name, given, STACK, STACKS, unary, binary, exact=False, largest=largest)


def _none(*_: Shape) -> Iterator[Step]:
    yield from ()


# -- transposes --------------------------------------------------------------------------


def _turned(shape: Shape) -> Iterator[Step]:
    if shape == (M, K, N):
        yield TURN


def _turned_rows(shape: Shape) -> Iterator[Step]:
    yield TURN
    for axes in ((0, 1), (1, 2)):
        yield from (step(name, axes=axes, keepdims=1) for name in REDUCE)


def _turned_softmax(shape: Shape) -> Iterator[Step]:
    yield TURN
    yield from (step("Softmax", axis=axis) for axis in (1, 2))


def _turned_one(shape: Shape) -> Iterator[Step]:
    if shape == (M, 1, K):
        yield step("Transpose", perm=(1, 0, 2))
        yield step("Reshape", shape=(1, M, K))


# -- reshapes, expansions, paddings ------------------------------------------------------


def _folded(shape: Shape) -> Iterator[Step]:
    if shape == (M, K):
        yield step("Reshape", shape=(M * K,))


def _even_or_single(a: Shape, b: Shape) -> bool:
    return a == b or b == ()


def _spread(shape: Shape) -> Iterator[Step]:
    if shape == (M, 1):
        yield step("Expand", shape=(M, K))


def _spreads(a: Shape, b: Shape) -> bool:
    return b == (M, K) and a in ((M, 1), (M, K))


def _spreads_second(a: Shape, b: Shape) -> bool:
    return a == (M, K) and b in ((M, 1), (M, K))


def _spread_twice(shape: Shape) -> Iterator[Step]:
    if shape == (M, 1):
        yield step("Expand", shape=(M, K))
    if len(shape) == 2:
        yield step("Expand", shape=(N, M, K))


def _padded(shape: Shape) -> Iterator[Step]:
    if shape == (M, K):
        yield step("Pad", pads=(0, 1, 2, 0))
        yield step("Pad", pads=(1, 1, 2, 2))
    elif shape == (M + 2, K + 1):
        yield step("Pad", pads=(1, 0, 0, 2))


# -- axes of length one ------------------------------------------------------------------


def _ones(shape: Shape) -> Iterator[Step]:
    if shape == (N,):
        yield step("Reshape", shape=(1, 1, N))
    if shape == ():
        yield step("Reshape", shape=(1, 1, 1))
    if shape == (1, 1):
        yield step("Reshape", shape=())


SMALL = ((N,), (1, 1, N), (), (1, 1), (1, 1, 1))


def _small_second(a: Shape, b: Shape) -> bool:
    return a == (M, K, N) and b in SMALL


def _small_first(a: Shape, b: Shape) -> bool:
    return b == (M, K, N) and a in SMALL


def _single_turned(shape: Shape) -> Iterator[Step]:
    if shape == (1, M, K, N):
        yield step("Transpose", perm=(0, 2, 1, 3))
        yield step("Transpose", perm=(2, 0, 3, 1))
        yield step("Reshape", shape=(M, K, N))
    if shape == (M, K, 1, N):
        yield step("Transpose", perm=(2, 1, 0, 3))
        yield step("Reshape", shape=(M, K, N))
    if shape == (M, 1, K, N):
        yield step("Transpose", perm=(1, 2, 0, 3))
        yield step("Reshape", shape=(M, K, N))
    if shape == (M, K, N):
        yield step("Transpose", perm=(1, 0, 2))
        yield step("Transpose", perm=(1, 2, 0))
    if shape == (K, M, N):
        yield step("Reshape", shape=(1, K, M, N))
    if shape == (K, N, M):
        yield step("Reshape", shape=(K, 1, N, M))


def _single(shape: Shape) -> Iterator[Step]:
    if len(shape) == 3:
        yield step("Reshape", shape=(1, *shape))


def _single_product(a: Shape, b: Shape) -> Iterator[Step]:
    if len(a) == len(b) and a[-1] == b[-2]:
        yield step("MatMul")


def _single_softmax(shape: Shape) -> Iterator[Step]:
    yield from _single(shape)
    yield step("Softmax", axis=len(shape) - 1)


def _single_mask(shape: Shape) -> Iterator[Step]:
    if shape == (M, K, N):
        yield step("Reshape", shape=(1, M, K, N))
    if len(shape) == 4 and shape[1] == 1:
        yield step("Reshape", shape=shape[1:])


def _single_masked(a: Shape, b: Shape) -> bool:
    return len(a) == len(b) and a[-3:] == (M, K, N) and b[-3:] in ((1, K, N), (1, 1, N))


BESIDE: tuple[Family, ...] = (
    *each("turned-even", ARITHMETIC, leaves("x", 2, M, K, N), _turned, operator.eq),
    _family("turned-rows", leaves("x", 1, M, K, N), _turned_rows, _none),
    _family("turned-softmax", leaves("x", 1, M, K, N), _turned_softmax, _none),
    _family("turned-one", leaves("x", 1, M, 1, K), _turned_one, _none),
    *each(
        "folded-even",
        ARITHMETIC,
        (*leaves("x", 2, M, K), *leaves("s", 1)),
        _folded,
        _even_or_single,
    ),
    *each("spread-even", ARITHMETIC, SPREAD, _spread, _spreads),
    *each("spread-second", ORDERED, SPREAD, _spread, _spreads_second),
    _family("spread-twice", leaves("x", 1, M, 1), _spread_twice, _none, 12.0),
    _family("padded-twice", leaves("x", 1, M, K), _padded, _none),
    *each("ones-second", ARITHMETIC, ONES, _ones, _small_second),
    *each("ones-first", ORDERED, ONES, _ones, _small_first),
    _family("single-turned", leaves("x", 1, 1, M, K, N), _single_turned, _none),
    _family("single-out", leaves("x", 1, M, K, 1, N), _single_turned, _none),
    _family("single-second", leaves("x", 1, M, 1, K, N), _single_turned, _none),
    _family(
        "single-product",
        (*leaves("x", 1, B, M, K), *leaves("y", 1, B, K, N)),
        _single,
        _single_product,
    ),
    _family("single-softmax", leaves("x", 1, M, K, N), _single_softmax, _none),
    *each(
        "single-mask",
        (ADD, SUB, MUL),
        (
            *leaves("x", 1, M, K, N),
            *leaves("c", 1, 1, 1, K, N),
            *leaves("d", 1, 1, 1, 1, N),
        ),
        _single_mask,
        _single_masked,
    ),
)

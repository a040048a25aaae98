"""Narrow families about selections: one family for each thing that a selection passes.

Sizes of axes that are cut are numbers, because an offset into a symbolic size could lie
outside; proofs say later that only the offsets matter.
"""

import operator
from collections.abc import Callable, Iterable, Iterator

from rulesets.families.narrow import (
    ADD,
    DIV,
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
from rulesets.family import Binary, Family, Step, Unary, step
from rulesets.ground import Leaf
from rulesets.tensor import Shape

LONG, PART = 9, 5
"""Sizes of axes that are cut."""

ARITHMETIC = (ADD, SUB, MUL, DIV)


def cut(axis: int, start: int, end: int) -> Step:
    """Return the step that keeps a range of one axis."""
    return step("Slice", starts=(start,), ends=(end,), axes=(axis,), steps=(1,))


def narrow(name: str, given: tuple[Leaf, ...], unary: Unary, binary: Binary) -> Family:
    """Return a family of real values at the usual sizes."""
    return Family(name, given, SIZES, OTHERS, unary, binary, exact=False, largest=5.0)


def _none(*_: Shape) -> Iterator[Step]:
    yield from ()


def _once(*axes: int) -> Unary:
    """Cuts of axes that have their whole size."""

    def unary(shape: Shape) -> Iterator[Step]:
        for axis in axes:
            if len(shape) > axis and shape[axis] in (LONG, PART):
                yield cut(axis, 1, 3)

    return unary


def _and(first: Unary, *steps: Step) -> Unary:
    """Steps besides, for every tensor."""

    def unary(shape: Shape) -> Iterator[Step]:
        yield from first(shape)
        yield from steps

    return unary


# -- one after the other, joined, and of what was joined ---------------------------------


def _whole(shape: Shape) -> Iterator[Step]:
    if shape[1] == LONG:
        yield cut(1, 0, LONG)
        yield Step("Split", (("axis", 1), ("parts", (LONG,))), 0)
        yield step("Concat", axis=1)


def _cuts(shape: Shape) -> Iterator[Step]:
    if shape[1] == LONG:
        yield from (cut(1, *ends) for ends in ((2, 7), (3, 5), (5, 7), (3, 7)))
    if shape[1] == PART:
        yield cut(1, 1, 3)


def _next_to(a: Shape, b: Shape) -> Iterator[Step]:
    if (a, b) == ((M, 2), (M, 2)):
        yield step("Concat", axis=1)


def _ends(shape: Shape) -> Iterator[Step]:
    if shape == (M, 12):
        yield cut(1, 1, 4)
    if shape == (M, PART):
        yield cut(1, 2, 4)
    if shape == (M, 17):
        yield from (cut(1, 2, 4), cut(1, 6, 9))


def _ends_joined(a: Shape, b: Shape) -> Iterator[Step]:
    if (a, b) == ((M, PART), (M, 12)):
        yield step("Concat", axis=1)


def _off_joined(a: Shape, b: Shape) -> Iterator[Step]:
    if a[0] == b[0]:
        yield step("Concat", axis=1)


# -- elements ----------------------------------------------------------------------------


SPREAD = (*leaves("x", 1, PART, LONG), *leaves("c", 1, LONG))


def _spread(a: Shape, b: Shape) -> bool:
    return len(a) == 2 and len(b) == 1 and b[0] == a[1]


def _across(shape: Shape) -> Iterator[Step]:
    if len(shape) == 2 and shape[0] == PART:
        yield cut(0, 1, 3)


def _along(shape: Shape) -> Iterator[Step]:
    if shape[-1] == LONG:
        yield cut(len(shape) - 1, 1, 3)


def each(
    name: str,
    operators: Iterable[Step],
    given: tuple[Leaf, ...],
    unary: Unary,
    fits: Callable[[Shape, Shape], bool],
) -> Iterator[Family]:
    """Yield a family for each binary operator, so that only its own laws are looked at.

    Args:
        name: The beginning of the families' names.
        operators: The operators.
        given: Leaves.
        unary: The steps for one tensor.
        fits: Whether the operator applies to two tensors.
    """
    for one in operators:

        def binary(a: Shape, b: Shape, one: Step = one) -> Iterator[Step]:
            if fits(a, b):
                yield one

        yield narrow(f"{name}-{one.op.lower()}", given, unary, binary)


# -- what moves --------------------------------------------------------------------------


def _turned(shape: Shape) -> Iterator[Step]:
    yield from _once(0, 1, 2)(shape)
    yield step("Transpose", perm=(1, 2, 0))


def _folded(shape: Shape) -> Iterator[Step]:
    yield from _once(1)(shape)
    if len(shape) == 3:
        yield step("Reshape", shape=(*shape[:2], 3, 4))


def _unfolded(shape: Shape) -> Iterator[Step]:
    if shape == (M, K, 12):
        yield step("Reshape", shape=(M, K, 3, 4))
        yield cut(2, 4, 8)
    if shape == (M, K, 3, 4):
        yield cut(2, 1, 2)
    if shape == (M, K, 4):
        yield step("Reshape", shape=(M, K, 1, 4))
    if shape == (M, K, 24):
        yield step("Reshape", shape=(M, K, 3, 2, 4))
        yield cut(2, 8, 16)
    if shape == (M, K, 3, 2, 4):
        yield cut(2, 1, 2)
    if shape == (M, K, 8):
        yield step("Reshape", shape=(M, K, 1, 2, 4))


# -- products and normalizations ---------------------------------------------------------


def _product(a: Shape, b: Shape) -> Iterator[Step]:
    if len(a) >= len(b) >= 2 and a[-1] == b[-2]:
        yield step("MatMul")


def _image(a: Shape, b: Shape) -> Iterator[Step]:
    if len(a) == 4 and b[1] == a[1]:
        given = {"strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1)}
        yield step("Conv", **given)  # type: ignore[arg-type]


def _kernels(shape: Shape) -> Iterator[Step]:
    if shape[0] == LONG:
        yield cut(0, 1, 3)
    if shape[1] == LONG:
        yield cut(1, 1, 3)


def _layer(a: Shape, b: Shape) -> Iterator[Step]:
    if len(a) == 3 and b == a[2:]:
        yield step("LayerNormalization", axis=2)


SLICED: tuple[Family, ...] = (
    narrow("cut-whole", leaves("x", 1, M, LONG), _whole, _none),
    narrow("cut-cut", leaves("x", 1, M, LONG), _cuts, _next_to),
    narrow(
        "cut-joined",
        (*leaves("x", 1, M, PART), *leaves("y", 1, M, 12)),
        _ends,
        _ends_joined,
    ),
    narrow(
        "cut-beside",
        (*leaves("x", 1, LONG, M), *leaves("y", 1, LONG, K)),
        _once(0),
        _off_joined,
    ),
    narrow("cut-function", leaves("x", 1, M, LONG), _and(_once(1), *FUNCTIONS), _none),
    narrow(
        "cut-root",
        leaves("x", 1, M, LONG, sign="drawn"),
        _and(_once(1), step("Sqrt")),
        _none,
    ),
    *each("cut-even", ARITHMETIC, leaves("x", 2, M, LONG), _once(1), operator.eq),
    *each("cut-across", ARITHMETIC, SPREAD, _across, _spread),
    *each("cut-along", ARITHMETIC, SPREAD, _along, _spread),
    narrow("cut-turned", leaves("x", 1, M, LONG, K), _turned, _none),
    narrow("cut-folded", leaves("x", 1, M, LONG, 12), _folded, _none),
    narrow("cut-unfolded", leaves("x", 1, M, K, 12), _unfolded, _none),
    narrow("cut-unfolded-heads", leaves("x", 1, M, K, 24), _unfolded, _none),
    narrow(
        "cut-rows",
        (*leaves("x", 1, M, LONG, K), *leaves("w", 1, K, N)),
        _once(1),
        _product,
    ),
    narrow(
        "cut-batched-rows",
        (*leaves("x", 1, M, LONG, K), *leaves("y", 1, M, K, N)),
        _once(1),
        _product,
    ),
    narrow(
        "cut-columns",
        (*leaves("x", 1, M, N, K), *leaves("w", 1, K, LONG)),
        lambda shape: _once(len(shape) - 1)(shape),
        _product,
    ),
    narrow(
        "cut-channels",
        (*leaves("x", 1, M, K, 4, PART), *leaves("w", 1, LONG, K, 2, 3)),
        _kernels,
        _image,
    ),
    narrow(
        "cut-layer",
        (*leaves("x", 1, M, LONG, K), *leaves("g", 1, K)),
        _once(1),
        _layer,
    ),
    narrow(
        "cut-softmax",
        leaves("x", 1, M, LONG, K),
        _and(_once(1), step("Softmax", axis=2)),
        _none,
    ),
)

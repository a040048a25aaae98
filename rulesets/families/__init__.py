"""The families the generator knows: what is enumerated together, and up to what size.

`linear` and `linear-small` are matrices without broadcasting, `batched` stacks of matrices,
`conv` images and kernels, `norm` softmax and normalizations with quotients, `layout`
transposes and reshapes of three axes, `elementwise` functions of one element. Families of
few operators each are in `rulesets.families.narrow`, `rulesets.families.window`,
`rulesets.families.folded` and `rulesets.families.moved`.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from rulesets.errors import RulesetsError
from rulesets.families.beside import BESIDE
from rulesets.families.folded import FOLDED
from rulesets.families.moved import MOVED
from rulesets.families.narrow import NARROW
from rulesets.families.slices import SLICED
from rulesets.families.window import WINDOWED
from rulesets.family import Family, Step, splits, step
from rulesets.ground import Leaf, constant, node
from rulesets.ops import single
from rulesets.size import symbol
from rulesets.tensor import Shape

M, K, N = symbol("m"), symbol("k"), symbol("n")
B, C, H, W = symbol("b"), symbol("c"), symbol("h"), symbol("w")
SIZES = {"m": 2, "k": 3, "n": 4, "b": 2, "c": 2, "h": 4, "w": 5}
OTHERS = {"m": 3, "k": 2, "n": 5, "b": 3, "c": 4, "h": 5, "w": 3}

EYE = constant("Eye", size=K)
_SAME = constant("Eye", size=C)
_POOLED = constant("Band", cols=C, lower=0, rows=C, upper=0, value=single(1 / 9))
IDENTITY_KERNEL = node(
    "Pad",
    {"pads": (0, 0, 1, 1, 0, 0, 1, 1)},
    node("Unsqueeze", {"axes": (2, 3)}, _SAME),
)
POOLING_KERNEL = node(
    "Expand", {"shape": (C, C, 3, 3)}, node("Unsqueeze", {"axes": (2, 3)}, _POOLED)
)

ADD, MUL = step("Add", commutative=True), step("Mul", commutative=True)
SUB, DIV = step("Sub"), step("Div")
MAX, MIN = step("Max", commutative=True), step("Min", commutative=True)
MATMUL, RELU = step("MatMul"), step("Relu")
TRANSPOSE = step("Transpose", perm=(1, 0))


def _leaves(prefix: str, count: int, *shape: object) -> tuple[Leaf, ...]:
    return tuple(Leaf(f"{prefix}{k}", shape, prefix) for k in range(count))  # type: ignore[arg-type]


def _concats(a: Shape, b: Shape, axes: range | tuple[int, ...]) -> Iterator[Step]:
    for axis in axes:
        if len(a) == len(b) and a[:axis] + a[axis + 1 :] == b[:axis] + b[axis + 1 :]:
            yield step("Concat", axis=axis)


# -- matrices ----------------------------------------------------------------------------


def _linear_unary(shape: Shape) -> Iterator[Step]:
    if not shape:
        return
    yield RELU
    if len(shape) == 2:
        yield TRANSPOSE
        for axis in (0, 1):
            for unit in (M, K):
                yield from splits(shape, axis, unit)


def _linear_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a and not b:
        yield MUL
    if a == b:
        yield MUL
    if a and a == b:
        yield ADD
    if len(a) == len(b) == 2:
        yield MATMUL
        yield from _concats(a, b, (0, 1))


# -- stacks of matrices ------------------------------------------------------------------


def _batched_unary(shape: Shape) -> Iterator[Step]:
    if len(shape) == 3:
        yield step("Transpose", perm=(0, 2, 1))
        yield from splits(shape, 0, B)
    elif len(shape) == 2:
        yield TRANSPOSE
    if len(shape) > 1:
        for unit in (M, K):
            yield from splits(shape, len(shape) - 1, unit)


def _batched_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a and (not b or (len(b) == 1 and b[0] == a[-1])):
        yield MUL
        if b:
            yield ADD
    if a and a == b:
        yield ADD
    if min(len(a), len(b)) >= 2:
        yield MATMUL
    yield from _concats(a, b, range(len(a)))


# -- images ------------------------------------------------------------------------------


def _windowed(op: str, size: int, **attributes: object) -> Step:
    pad = (size - 1) // 2
    return step(
        op,
        strides=(1, 1),
        pads=(pad,) * 4,
        dilations=(1, 1),
        commutative=False,
        **attributes,
    )


def _conv_unary(shape: Shape) -> Iterator[Step]:
    if len(shape) != 4:
        return
    yield RELU
    if shape[2:] == (H, W):
        yield _windowed("MaxPool", 3, kernel=(3, 3))
        yield _windowed("AveragePool", 3, kernel=(3, 3), count_include_pad=1)
        for axis, unit in ((0, B), (1, C)):
            yield from splits(shape, axis, unit)
    elif shape[2:] == (1, 1):
        yield step("Pad", pads=(0, 0, 1, 1, 0, 0, 1, 1))
    if shape[2:] != (H, W):
        yield from splits(shape, 0, C)


def _conv_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if len(a) == 4 and not b:
        yield MUL
    if a and a == b:
        yield ADD
        yield MUL
    if len(a) != 4 or len(b) != 4:
        return
    image, kernel = a[2:] == (H, W), b[2:] in ((3, 3), (1, 1))
    if image and kernel:
        yield _windowed("Conv", 3 if b[2] == 3 else 1)
    if image == (b[2:] == (H, W)):
        yield from _concats(a, b, (0, 1))


# -- normalizations ----------------------------------------------------------------------


def _norm_unary(shape: Shape) -> Iterator[Step]:
    if len(shape) == 2 and shape[1] != 1:
        yield step("Softmax", axis=1)
        yield step("ReduceSum", axes=(1,))
        yield step("ReduceMean", axes=(1,))
        yield step("Exp")


def _norm_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if len(a) == 2 and a == b and 1 not in a:
        yield from (ADD, SUB, MUL)
    elif len(a) == 2 and 1 not in a and (not b or b in ((M, 1), (K, 1), (K,))):
        yield from (ADD, SUB, MUL, DIV) if len(b) == 2 else (MUL, ADD)
    if a == (M, K) and b == (K,):
        yield step("RMSNormalization", axis=1)
        yield step("LayerNormalization", axis=1)
    if len(a) == len(b) == 2:
        yield MATMUL


# -- layout ------------------------------------------------------------------------------

_PERMS = ((0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1))


def _layout_unary(shape: Shape) -> Iterator[Step]:
    yield RELU
    yield step("Sigmoid")
    if len(shape) == 3:
        for perm in _PERMS:
            yield step("Transpose", perm=perm)
        yield step("Reshape", shape=(shape[0] * shape[1], shape[2]))
        yield step("Reshape", shape=(shape[0], shape[1] * shape[2]))
        yield step("ReduceSum", axes=(0,), keepdims=0)
        yield step("ReduceMax", axes=(2,))
    if len(shape) == 2:
        yield TRANSPOSE
        yield step("Reshape", shape=(M, K, N))
    for axis in range(len(shape)):
        for unit in (M, K, N):
            yield from splits(shape, axis, unit)


def _layout_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == b:
        yield ADD
        yield MUL
    yield from _concats(a, b, range(len(a)))


# -- one element -------------------------------------------------------------------------

_FUNCTIONS = ("Relu", "Neg", "Abs", "Exp", "Sigmoid", "Tanh", "Sqrt", "Reciprocal")


def _elementwise_unary(shape: Shape) -> Iterator[Step]:
    if shape:
        yield from (step(name) for name in _FUNCTIONS)
        yield step("Clip", min=0.0, max=0.5)
        yield step("Clip", min=-0.25, max=1.0)


def _elementwise_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a and a == b:
        yield from (ADD, SUB, MUL, DIV, MAX, MIN)


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        family.name: family
        for family in (
            Family(
                "linear",
                (*_leaves("x", 3, M, K), *_leaves("w", 3, K, K), *_leaves("s", 2)),
                SIZES,
                OTHERS,
                _linear_unary,
                _linear_binary,
                (EYE,),
            ),
            Family(
                "linear-small",
                (*_leaves("x", 1, M, K), *_leaves("w", 2, K, K), *_leaves("s", 1)),
                SIZES,
                OTHERS,
                _linear_unary,
                _linear_binary,
            ),
            Family(
                "batched",
                (
                    *_leaves("x", 2, B, M, K),
                    *_leaves("w", 2, K, K),
                    *_leaves("v", 1, B, K, N),
                    *_leaves("c", 1, K),
                    *_leaves("s", 1),
                ),
                SIZES,
                OTHERS,
                _batched_unary,
                _batched_binary,
            ),
            Family(
                "conv",
                (
                    *_leaves("x", 2, B, C, H, W),
                    *_leaves("w", 2, C, C, 3, 3),
                    *_leaves("v", 2, C, C, 1, 1),
                    *_leaves("s", 1),
                ),
                SIZES,
                OTHERS,
                _conv_unary,
                _conv_binary,
                (IDENTITY_KERNEL, POOLING_KERNEL),
                exact=False,
            ),
            Family(
                "norm",
                (
                    *_leaves("x", 2, M, K),
                    *_leaves("w", 1, K, N),
                    *_leaves("v", 1, K, K),
                    *_leaves("r", 1, M, 1),
                    *_leaves("c", 1, K),
                    *_leaves("d", 1, K, 1),
                    *_leaves("s", 1),
                ),
                SIZES,
                OTHERS,
                _norm_unary,
                _norm_binary,
                exact=False,
            ),
            Family(
                "layout",
                _leaves("x", 3, M, K, N),
                SIZES,
                OTHERS,
                _layout_unary,
                _layout_binary,
                exact=False,
            ),
            Family(
                "elementwise",
                _leaves("x", 3, M, K),
                SIZES,
                OTHERS,
                _elementwise_unary,
                _elementwise_binary,
                exact=False,
            ),
            *NARROW,
            *WINDOWED,
            *FOLDED,
            *SLICED,
            *BESIDE,
            *MOVED,
        )
    }
)


def family_of(name: str) -> Family:
    """Return a family.

    Raises:
        RulesetsError: There is none of this name.
    """
    if name not in FAMILIES:
        raise RulesetsError(f"unknown family {name!r}; known: {', '.join(FAMILIES)}")
    return FAMILIES[name]

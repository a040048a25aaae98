"""Narrow families: few operators each, many of them, so that all pairs are enumerated.

`scalars` are functions and arithmetic of single elements with the numbers that models
hold, `powers`, `ring`, `field` and `lattice` parts of it up to three operators, `passing`,
`worded` and `roots` functions beside what moves elements, `pairs` binary operators beside
the same, `spread` what broadcasts, `shapes` and `reshapes` reshapes and their relatives.
"""

from collections.abc import Callable, Iterator

from rulesets.family import Family, Step, step
from rulesets.ground import Leaf, Node, constant
from rulesets.size import symbol
from rulesets.tensor import Shape

M, K, N = symbol("m"), symbol("k"), symbol("n")
SIZES = {"m": 2, "k": 3, "n": 4}
OTHERS = {"m": 3, "k": 2, "n": 5}
INF = float("inf")

ADD, MUL = step("Add", commutative=True), step("Mul", commutative=True)
SUB, DIV, POW = step("Sub"), step("Div"), step("Pow")
MAX, MIN = step("Max", commutative=True), step("Min", commutative=True)
ARITHMETIC = (ADD, SUB, MUL, DIV, MAX, MIN)
FUNCTIONS = (
    *(step(name) for name in ("Relu", "Neg", "Abs", "Exp", "Sigmoid", "Tanh", "Erf")),
    *(step(name) for name in ("Sqrt", "Reciprocal", "HardSwish", "HardSigmoid")),
    step("LeakyRelu"),
    step("Elu"),
    step("Gelu"),
    step("Clip", min=-0.25, max=1.0),
)
SAME = (
    step("Identity"),
    step("Cast", to="float32"),
    step("Sum"),
    step("Clip", min=-INF, max=INF),
)
ROOT = ("Sqrt",)


def leaves(prefix: str, count: int, *shape: object, sign: str = "any") -> tuple[Leaf, ...]:
    """Return interchangeable leaves."""
    return tuple(Leaf(f"{prefix}{k}", shape, prefix, sign) for k in range(count))  # type: ignore[arg-type]


def number(value: float) -> Node:
    """Return a constant of rank 0."""
    return constant("Fill", value=value, shape=())


def filled(value: float, *shape: object) -> Node:
    """Return a constant of equal elements."""
    return constant("Fill", value=value, shape=shape)


def _always(*steps: Step) -> Callable[[Shape], Iterator[Step]]:
    """The steps for every tensor that has axes."""

    def unary(shape: Shape) -> Iterator[Step]:
        if shape:
            yield from steps

    return unary


def _on_equal(*steps: Step) -> Callable[[Shape, Shape], Iterator[Step]]:
    """The steps for two tensors of equal shape, or a tensor and a number, in any order."""

    def binary(a: Shape, b: Shape) -> Iterator[Step]:
        if a == b and a:
            yield from (each for each in steps if each != POW)
        elif a and _small(b):
            yield from steps
        elif b and _small(a):
            yield from (each for each in steps if each in (SUB, DIV))

    return binary


def _small(shape: Shape) -> bool:
    return shape in ((), (M, 1))


def _elements(
    name: str,
    given: tuple[Leaf, ...],
    unary: tuple[Step, ...],
    binary: tuple[Step, ...],
    constants: tuple[Node, ...] = (),
) -> Family:
    """Return a family of functions of single elements."""
    return Family(
        name,
        given,
        SIZES,
        OTHERS,
        _always(*unary),
        _on_equal(*binary),
        constants,
        exact=False,
    )


def _lattice_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == (M, K) and b in (a, ()):
        yield from (MAX, MIN)
    if a == (M, K) and b == (K,):
        yield MUL


# -- what moves elements -----------------------------------------------------------------


def _moves(shape: Shape) -> Iterator[Step]:
    if shape == (M, K):
        yield step("Transpose", perm=(1, 0))
        yield step("Reshape", shape=(M * K,))
        yield step("Expand", shape=(N, M, K))
        yield step("Unsqueeze", axes=(0,))
        yield step("Slice", starts=(1,), ends=(2,), axes=(1,), steps=(1,))
        yield step("Pad", pads=(0, 1, 0, 0))
    if len(shape) == 3:
        yield step("Transpose", perm=(1, 2, 0))


def _passing_unary(shape: Shape) -> Iterator[Step]:
    yield from FUNCTIONS
    yield from _moves(shape)


def _worded_unary(shape: Shape) -> Iterator[Step]:
    yield step("Cast", to="float32")
    yield step("Gelu")
    yield from _moves(shape)


def _roots_unary(shape: Shape) -> Iterator[Step]:
    yield from (step(name) for name in ("Sqrt", "Abs", "Relu"))
    yield from _moves(shape)


def _passing_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == b == (M, K):
        yield step("Concat", axis=1)


def _pairs_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == b or _spreads(b, a):
        yield from ARITHMETIC
    elif _spreads(a, b):
        yield from (SUB, DIV)


def _spreads(small: Shape, large: Shape) -> bool:
    """Whether a row, a column or a row of ones and sizes broadcasts into a tensor."""
    if len(large) < 2 or len(small) > len(large):
        return False
    pairs = zip(small[::-1], large[::-1], strict=False)
    return all(one in (1, other) for one, other in pairs)


def _pairs_unary(shape: Shape) -> Iterator[Step]:
    yield from _moves(shape)
    if shape == (M, 1):
        yield step("Transpose", perm=(1, 0))
        yield step("Expand", shape=(M, K))
    if shape == (K,):
        yield step("Reshape", shape=(K, 1))
        yield step("Reshape", shape=(1, K))
        yield step("Expand", shape=(M, K))


# -- reshapes ----------------------------------------------------------------------------

_REDUCE = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")


def _shapes_unary(shape: Shape) -> Iterator[Step]:
    """Squeeze, Unsqueeze and Flatten are reshapes by definition and left out."""
    rank = len(shape)
    ones = tuple(axis for axis in range(rank) if shape[axis] == 1)
    if ones and rank > len(ones):
        yield from (step(name, axes=ones, keepdims=0) for name in _REDUCE)
        yield from (step(name, axes=ones, keepdims=1) for name in _REDUCE)
        yield step("Concat", axis=ones[0])
        yield step("Reshape", shape=tuple(size for size in shape if size != 1))
    if rank == 2:
        yield step("Transpose", perm=(1, 0))
        yield step("Transpose", perm=(0, 1))
        yield step("Reshape", shape=(shape[1], shape[0]))
        yield step("Pad", pads=(0,) * 4)
        yield step("Pad", pads=(0, 1, 2, 0))
        yield step("Pad", pads=(1, 1, 0, 2))
        yield step("Pad", pads=(1, 2, 2, 2))
    if rank == 3:
        yield from (step("Transpose", perm=perm) for perm in ((1, 0, 2), (2, 1, 0)))
        yield step("Reshape", shape=(shape[1], shape[0], shape[2]))
    yield step("Reshape", shape=shape)
    yield step("Expand", shape=shape)
    yield step("Expand", shape=(N, *shape))
    if 1 in shape:
        yield step("Expand", shape=tuple(K if size == 1 else size for size in shape))


def _reshapes_unary(shape: Shape) -> Iterator[Step]:
    if len(shape) == 2:
        yield step("Reshape", shape=(shape[1], shape[0]))
        yield step("Reshape", shape=(shape[0] * shape[1],))
        yield step("Transpose", perm=(1, 0))
        yield step("Expand", shape=(N, *shape))
    if len(shape) == 3 and shape[0] == N:
        yield step("Expand", shape=(M, *shape))


def _spread_unary(shape: Shape) -> Iterator[Step]:
    if shape in ((M, 1), (K,)):
        yield step("Expand", shape=(M, K))


def _spread_binary(a: Shape, b: Shape) -> Iterator[Step]:
    if a == (M, K) and b in ((M, 1), (K,), (M, K)):
        yield from ARITHMETIC
    elif a in ((M, 1), (K,)) and b == (M, K):
        yield from (SUB, DIV)


def _nothing(a: Shape, b: Shape) -> Iterator[Step]:
    yield from ()


NARROW: tuple[Family, ...] = (
    _elements(
        "scalars",
        leaves("x", 3, M, K),
        (*FUNCTIONS, *SAME, step("Clip", min=0.0, max=INF)),
        (*ARITHMETIC, POW),
        (
            *map(number, (0.0, 1.0, -1.0, 2.0, 3.0, 4.0, 0.5)),
            *(filled(value, M, 1) for value in (0.0, 1.0)),
        ),
    ),
    _elements(
        "powers",
        leaves("x", 2, M, K, sign="drawn"),
        (step("Sqrt"), step("Reciprocal")),
        (MUL, POW),
        tuple(map(number, (1.0, 2.0, 3.0, 4.0, 0.5, 0.75, -1.0, -0.5))),
    ),
    _elements(
        "ring", leaves("x", 3, M, K), (step("Neg"),), (ADD, SUB, MUL), (number(-1.0),)
    ),
    _elements(
        "field",
        leaves("x", 3, M, K),
        (step("Neg"), step("Reciprocal")),
        (MUL, DIV),
        (number(1.0),),
    ),
    Family(
        "lattice",
        (*leaves("x", 2, M, K), *leaves("p", 1, K, sign="positive")),
        SIZES,
        OTHERS,
        _always(step("Relu"), step("LeakyRelu")),
        _lattice_binary,
        (number(0.0),),
        exact=False,
    ),
    Family(
        "passing",
        leaves("x", 2, M, K),
        SIZES,
        OTHERS,
        _passing_unary,
        _passing_binary,
        exact=False,
        largest=5.0,
    ),
    Family(
        "worded",
        leaves("x", 2, M, K),
        SIZES,
        OTHERS,
        _worded_unary,
        _passing_binary,
        exact=False,
        largest=5.0,
    ),
    Family(
        "roots",
        leaves("x", 2, M, K, sign="drawn"),
        SIZES,
        OTHERS,
        _roots_unary,
        _passing_binary,
        exact=False,
        largest=5.0,
    ),
    Family(
        "pairs",
        (*leaves("x", 2, M, K), *leaves("c", 1, K), *leaves("r", 1, M, 1)),
        SIZES,
        OTHERS,
        _pairs_unary,
        _pairs_binary,
        exact=False,
        largest=5.0,
    ),
    Family(
        "reshapes",
        leaves("x", 1, M, K),
        SIZES,
        OTHERS,
        _reshapes_unary,
        _nothing,
        largest=20.0,
    ),
    Family(
        "spread",
        (*leaves("x", 1, M, K), *leaves("r", 1, M, 1), *leaves("c", 1, K)),
        SIZES,
        OTHERS,
        _spread_unary,
        _spread_binary,
        exact=False,
    ),
    Family(
        "shapes",
        (*leaves("x", 1, M, K), *leaves("y", 1, M, 1, K), *leaves("z", 1, 1, M, 1)),
        SIZES,
        OTHERS,
        _shapes_unary,
        _nothing,
        exact=False,
        largest=5.0,
    ),
)

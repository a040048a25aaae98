"""Random applications of every canonical operator, on static shapes.

`cases(seed)` draws attributes and argument types, so that the operator applies; the tests
compare its shape rule and its ONNX forms with ONNX itself on them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random

from rulesets.ops import OPERATORS, SPECIAL, Attributes, Operator, complete
from rulesets.tensor import Shape, Tensor

type Draw = Callable[[Random], tuple[Attributes, tuple[Tensor, ...]]]


@dataclass(frozen=True)
class Case:
    """One application of an operator to tensors of static shapes."""

    name: str
    attributes: Attributes
    inputs: tuple[Tensor, ...]

    @property
    def operator(self) -> Operator:
        """The operator's specification."""
        return OPERATORS[self.name]

    def __str__(self) -> str:
        return f"{self.name}-{'-'.join(map(str, self.inputs))}"


def floats(*shapes: Shape, dtype: str = "float32") -> tuple[Tensor, ...]:
    """Return one type per shape."""
    return tuple([Tensor(dtype, shape) for shape in shapes])


def shape(rng: Random, low: int = 1, high: int = 4) -> tuple[int, ...]:
    """Return between `low` and `high` sizes of 1 to 4."""
    return tuple([rng.randint(1, 4) for _ in range(rng.randint(low, high))])


def _fitting(rng: Random, whole: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape that broadcasts to another one."""
    kept = whole[rng.randint(0, len(whole)) :]
    return tuple([size if rng.random() < 0.7 else 1 for size in kept])


def _unary(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    return {}, floats(shape(rng, 0))


def _typed(*dtypes: str) -> Draw:
    return lambda rng: ({}, floats(shape(rng, 0), dtype=rng.choice(dtypes)))


def _binary(*dtypes: str) -> Draw:
    def draw(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
        whole = shape(rng, 0)
        parts = [whole, _fitting(rng, whole)]
        rng.shuffle(parts)
        return {}, floats(*parts, dtype=rng.choice(dtypes))

    return draw


def _several(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    whole = shape(rng, 0)
    return {}, floats(whole, *[_fitting(rng, whole) for _ in range(rng.randint(0, 2))])


def _where(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    whole = shape(rng, 0)
    return {}, (Tensor("bool", _fitting(rng, whole)), *floats(_fitting(rng, whole), whole))


def _clip(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    bounds = {"min": -0.5, "max": 0.75}
    names = rng.choice((("min",), ("max",), ("min", "max"), ()))
    return {name: bounds[name] for name in names}, floats(shape(rng, 0))


def _matmul(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    batch, (m, k, n) = shape(rng, 0, 2), shape(rng, 3, 3)
    left, right = (*batch, m, k), (*_fitting(rng, batch), k, n)
    pairs = [(left, right), ((k,), right), (left, (k,)), ((k,), (k,))]
    return {}, floats(*rng.choice(pairs))


def _gemm(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    m, k, n = shape(rng, 3, 3)
    trans = rng.randint(0, 1), rng.randint(0, 1)
    a = (k, m) if trans[0] else (m, k)
    b = (n, k) if trans[1] else (k, n)
    third = rng.choice(((), (_fitting(rng, (m, n)),)))
    beta = 0.25 if third else 1.0
    given = {"alpha": 0.5, "beta": beta, "transA": trans[0], "transB": trans[1]}
    return given, floats(a, b, *third)


def _window(rng: Random, count: int) -> dict[str, tuple[int, ...]]:
    return {
        "strides": tuple([rng.randint(1, 3) for _ in range(count)]),
        "dilations": tuple([rng.randint(1, 2) for _ in range(count)]),
        "pads": tuple([rng.randint(0, 1) for _ in range(2 * count)]),
    }


def _conv(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    count, group = rng.randint(1, 2), rng.randint(1, 2)
    batch, channels, kernels = shape(rng, 3, 3)
    kernel = tuple([rng.randint(1, 3) for _ in range(count)])
    x = (batch, channels * group, *[rng.randint(5, 8) for _ in range(count)])
    w = (kernels * group, channels, *kernel)
    bias = rng.choice(((), ((kernels * group,),)))
    return {**_window(rng, count), "group": group}, floats(x, w, *bias)


def _conv_transpose(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    count, group = rng.randint(1, 2), rng.randint(1, 2)
    batch, channels, kernels = shape(rng, 3, 3)
    kernel = tuple([rng.randint(2, 3) for _ in range(count)])
    window = {**_window(rng, count), "strides": (2,) * count}
    x = (batch, channels * group, *[rng.randint(3, 5) for _ in range(count)])
    extra = tuple([rng.randint(0, 1) for _ in range(count)])
    bias = rng.choice(((), ((kernels * group,),)))
    weights = (channels * group, kernels, *kernel)
    given = {**window, "group": group, "output_padding": extra}
    return given, floats(x, weights, *bias)


def _pool(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    count = rng.randint(1, 2)
    kernel = tuple([rng.randint(2, 3) for _ in range(count)])
    window: dict[str, object] = {**_window(rng, count), "kernel": kernel}
    window["ceil_mode"] = rng.randint(0, 1)
    x = (*shape(rng, 2, 2), *[rng.randint(5, 8) for _ in range(count)])
    return window, floats(x)  # type: ignore[return-value]


def _average_pool(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    window, inputs = _pool(rng)
    # Runtimes disagree on the divisor of a window cut by ceil_mode.
    both = {**window, "count_include_pad": rng.randint(0, 1), "ceil_mode": 0}
    return {**both, "dilations": (1,) * len(both["strides"])}, inputs  # type: ignore[arg-type]


def _image(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    return {}, floats(shape(rng, 4, 4))


def _norm(vectors: int) -> Draw:
    def draw(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
        x = (*shape(rng, 2, 2), rng.randint(2, 4))
        return {"epsilon": 0.01}, floats(x, *[(x[1],)] * vectors)

    return draw


def _trailing(least: int, most: int) -> Draw:
    def draw(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
        x = shape(rng, 2, 4)
        axis = rng.randrange(len(x))
        return {"axis": axis}, floats(x, *[x[axis:]] * rng.randint(least, most))

    return draw


def _lrn(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    return {"alpha": 0.5, "size": rng.choice((1, 3, 5))}, floats(shape(rng, 4, 4))


def _axis(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    x = shape(rng, 1, 4)
    return {"axis": rng.randrange(len(x))}, floats(x)


def _reduce(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    x = shape(rng, 0, 4)
    axes = sorted(rng.sample(range(len(x)), rng.randint(1, len(x)))) if x else ()
    return {"axes": tuple(axes), "keepdims": rng.randint(0, 1)}, floats(x)


def _transpose(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    x = shape(rng, 1, 4)
    return {"perm": tuple(rng.sample(range(len(x)), len(x)))}, floats(x)


def _reshape(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    a, b, c = shape(rng, 3, 3)
    target = rng.choice(((a * b, c), (c, b, a), (a, 1, b * c), (a * b * c,), (b, c * a)))
    return {"shape": target}, floats((a, b, c))


def _squeeze(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    x = list(shape(rng, 1, 4))
    axes = tuple(sorted(rng.sample(range(len(x)), rng.randint(1, len(x)))))
    return {"axes": axes}, floats(
        tuple([1 if axis in axes else n for axis, n in enumerate(x)])
    )


def _unsqueeze(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    x, count = shape(rng, 0, 3), rng.randint(1, 2)
    return {"axes": tuple(sorted(rng.sample(range(len(x) + count), count)))}, floats(x)


def _flatten(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    x = shape(rng, 1, 4)
    return {"axis": rng.randint(0, len(x))}, floats(x)


def _concat(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    x = shape(rng, 1, 4)
    axis = rng.randrange(len(x))
    parts = [
        (*x[:axis], rng.randint(1, 3), *x[axis + 1 :]) for _ in range(rng.randint(1, 3))
    ]
    return {"axis": axis}, floats(*parts)


def _split(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    x, parts = shape(rng, 1, 4), shape(rng, 2, 3)
    axis = rng.randrange(len(x))
    return {"axis": axis, "parts": parts}, floats((*x[:axis], sum(parts), *x[axis + 1 :]))


def _slice(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    x = tuple([size + 1 for size in shape(rng, 1, 4)])
    axes = tuple(sorted(rng.sample(range(len(x)), rng.randint(1, len(x)))))
    rows = []
    for axis in axes:
        if rng.random() < 0.3:
            rows.append((x[axis] - 1, rng.randint(-1, x[axis] - 2), -rng.randint(1, 2)))
        else:
            start = rng.randint(1, x[axis] - 1)
            rows.append((start, rng.randint(start + 1, x[axis]), rng.randint(1, 2)))
    starts, ends, steps = zip(*rows, strict=True)
    return {"axes": axes, "starts": starts, "ends": ends, "steps": steps}, floats(x)


def _pad(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    x = shape(rng, 1, 3)
    pads = tuple([rng.randint(0, 2) for _ in range(2 * len(x))])
    return {"pads": pads, "value": rng.choice((0.0, 1.5))}, floats(x)


def _expand(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    whole = shape(rng, 1, 4)
    return {"shape": whole}, floats(_fitting(rng, whole))


def _upsample(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    x = shape(rng, 1, 4)
    return {"factors": tuple([rng.randint(1, 3) for _ in x])}, floats(x)


def _gather(rng: Random) -> tuple[Attributes, tuple[Tensor, ...]]:
    x = tuple([size + 1 for size in shape(rng, 1, 3)])
    places = Tensor(rng.choice(("int64", "int32")), shape(rng, 0, 2))
    return {"axis": rng.randrange(len(x))}, (*floats(x), places)


def _given(attributes: Attributes) -> Draw:
    return lambda rng: (attributes, ())


_SPECIFIC: Mapping[str, Draw] = {
    "Identity": _typed("float32", "int64", "bool", "float16"),
    "Relu": _typed("float32", "float16", "int32"),
    "Neg": _typed("float32", "int64"),
    "Not": _typed("bool"),
    "LeakyRelu": lambda rng: ({"alpha": 0.1}, _unary(rng)[1]),
    "HardSigmoid": lambda rng: ({"alpha": 1 / 6}, _unary(rng)[1]),
    "Gelu": lambda rng: (
        {"approximate": rng.choice(("none", "tanh"))},
        _unary(rng)[1],
    ),
    "Cast": lambda rng: (
        {"to": rng.choice(("float64", "float16", "int32", "bool"))},
        _typed("float32", "int64", "bool")(rng)[1],
    ),
    "Clip": _clip,
    **dict.fromkeys(("Add", "Sub", "Mul"), _binary("float32", "int64", "float64")),
    **dict.fromkeys(("Div", "Pow"), _binary("float32", "float64")),
    **dict.fromkeys(("Max", "Min", "Sum"), _several),
    "Equal": _binary("float32", "int64", "bool"),
    **dict.fromkeys(
        ("Less", "Greater", "LessOrEqual", "GreaterOrEqual"), _binary("float32", "int64")
    ),
    **dict.fromkeys(("And", "Or"), _binary("bool")),
    "Where": _where,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _pool,
    "AveragePool": _average_pool,
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), _image),
    "BatchNormalization": _norm(4),
    "InstanceNormalization": _norm(2),
    "LayerNormalization": _trailing(1, 2),
    "RMSNormalization": _trailing(1, 1),
    "LRN": _lrn,
    **dict.fromkeys(("Softmax", "LogSoftmax"), _axis),
    **{name: _reduce for name in OPERATORS if name.startswith("Reduce")},
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Flatten": _flatten,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Pad": _pad,
    "Expand": _expand,
    "Upsample": _upsample,
    "Gather": _gather,
    "Fill": _given({"value": 2.5, "shape": (2, 3)}),
    "Eye": _given({"size": 3}),
    "Band": _given({"rows": 4, "cols": 5, "lower": 1, "upper": 2, "value": 0.5}),
}


def cases(seed: int, each: int) -> Iterator[Case]:
    """Return some applications of every operator that has a shape rule.

    Args:
        seed: The same seed gives the same cases.
        each: How many per operator.
    """
    for name, operator in OPERATORS.items():
        if name in SPECIAL:
            continue
        rng = Random(f"{seed} {name}")
        draw = _SPECIFIC.get(name, _unary)
        for _ in range(1 if operator.arity == (0, 0) else each):
            attributes, inputs = draw(rng)
            yield Case(name, complete(operator, attributes), inputs)

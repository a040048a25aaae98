"""The operators of random models: each maker adds one operator, or a few, if one fits."""

from __future__ import annotations

import math

import numpy as np

from tests.tensat.random_layout import (
    concat,
    expand,
    flatten,
    pad,
    reduce,
    reshape,
    slices,
    split,
    squeeze,
    transpose,
)  # fmt: skip
from tests.tensat.random_models import Builder, Made, Open, Value

UNARY = ("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Erf", "Abs", "Neg", "HardSigmoid",
         "Identity", "Softplus", "Elu", "Floor", "Relu", "Sigmoid", "Neg")  # fmt: skip


def unary(b: Builder) -> Made:
    """An elementwise function of one value."""
    x = b.any()
    op = b.pick(UNARY)
    attributes = {}
    if op in {"LeakyRelu", "Elu", "HardSigmoid"} and b.chance(2):
        attributes["alpha"] = b.pick([0.1, 0.5, 1 / 6])
    if op == "HardSigmoid" and attributes:
        attributes["beta"] = 0.5
    return None if x is None else b.node(op, [x], x.shape, **attributes)


def clip(b: Builder) -> Made:
    """A Clip, bounds as inputs."""
    x = b.any()
    assert x is not None
    low = b.pick([None, 0.0, -1.0, 0.25])
    high = b.pick([None, 6.0, 1.0, 0.5])
    bounds = [
        None if number is None else b.stored(np.array(number, np.float32))
        for number in (low, high)
    ]
    return b.node("Clip", [x, *bounds], x.shape)


def binary(b: Builder) -> Made:
    """Arithmetic of two values that broadcast."""
    x = b.any()
    assert x is not None
    y = b.beside(x.shape)
    op = b.pick(["Add", "Sub", "Mul", "Add", "Mul", "Max", "Min", "Sum"])
    pair = [y, x] if b.chance(3) else [x, y]
    shape = x.shape if x.rank >= y.rank else y.shape
    return b.node(op, pair, shape)


def quotient(b: Builder) -> Made:
    """A division by something that is not zero."""
    x = b.any()
    assert x is not None
    kind = b.choose(4)
    if kind == 0:
        return b.node("Div", [x, b.weights(1, positive=True)], x.shape if x.rank else (1,))
    if kind == 1:
        keep = [1 if isinstance(n, Open) else n for n in x.shape]
        return b.node("Div", [x, b.weights(*keep, positive=True)], x.shape)
    away = b.one("Add", [b.one("Abs", [x], x.shape), b.stored(np.float32([1]))],
                 x.shape if x.rank else (1,))  # fmt: skip
    if kind == 2:
        one = b.stored(np.array(b.pick([1, 2.5]), np.float32))
        return [away, *b.node("Div", [one, away], away.shape)]
    op = b.pick(["Sqrt", "Reciprocal", "Log", "Div"])
    return b.node(op, [x, away] if op == "Div" else [away], away.shape)


def power(b: Builder) -> Made:
    """A power with a constant exponent."""
    x = b.any()
    assert x is not None
    exponent = b.stored(np.array(b.pick([1, 2, 3, 2, 4, 0.5, -1, -0.5, 0.75]), np.float32))
    away = b.one("Add", [b.one("Abs", [x], x.shape), b.stored(np.array(1, np.float32))],
                 x.shape)  # fmt: skip
    return b.node("Pow", [away, exponent], x.shape)


def product(b: Builder) -> Made:
    """A product with a weight, or a few products of one input."""
    x = b.any(2)
    if x is None or isinstance(x.shape[-1], Open):
        return None
    made = []
    for _ in range(1 + b.pick([0, 0, 1, 2])):
        wide = b.pick([2, 3, 4, 64 if x.shape[-1] < 64 else 80])
        w = b.weights(int(x.shape[-1]), wide)
        if b.chance(4):
            w = b.one("Mul", [w, b.scalar()], w.shape)
        y = b.one("MatMul", [x, w], (*x.shape[:-1], wide))
        if b.chance(2):
            y = b.one("Add", [y, b.weights(wide)], y.shape)
        made.append(y)
    return made


def attention(b: Builder) -> Made:
    """A product of two values of the model."""
    x = b.any(2)
    if x is None:
        return None
    perm = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    shape = tuple(x.shape[axis] for axis in perm)
    t = b.one("Transpose", [x], shape, perm=perm)
    y = b.one("MatMul", [x, t], (*x.shape[:-1], x.shape[-2]))
    return b.node("Mul", [y, b.stored(np.array(0.125, np.float32))], y.shape)


def gemm(b: Builder) -> Made:
    """A Gemm with or without its options."""
    x = b.any(2, 2)
    if x is None or x.open:
        return None
    trans_a, trans_b = b.choose(2), b.choose(2)
    rows, inner = (x.shape[1], x.shape[0]) if trans_a else x.shape
    w = b.weights(*((3, inner) if trans_b else (inner, 3)))
    c = [b.weights(*b.pick([(3,), (1, 3), (rows, 1), ()]))] if b.chance(2) else []
    return b.node("Gemm", [x, w, *c], (rows, 3), alpha=b.pick([1.0, 0.5]),
                  beta=b.pick([1.0, 2.0]), transA=trans_a, transB=trans_b)  # fmt: skip


def conv(b: Builder) -> Made:
    """One convolution, or a few of one input."""
    x = b.any(4, 4)
    if x is None or isinstance(x.shape[1], Open) or min(x.shape[2:]) < 3:
        return None
    made = []
    group = b.pick([1, 1, 1, 2, x.shape[1]])
    if x.shape[1] % group:
        group = 1
    for _ in range(1 + b.pick([0, 0, 1])):
        out = group * b.pick([1, 2])
        kernel = b.pick([(1, 1), (3, 3), (3, 1), (1, 1)])
        stride, pad = b.pick([1, 1, 2]), b.pick([0, 1])
        pads = [pad * (k > 1) for k in kernel] * 2
        sizes = [
            (n + 2 * p - k) // stride + 1
            for n, k, p in zip(x.shape[2:], kernel, pads, strict=False)
        ]
        bias = [b.weights(out)] if b.chance(2) else []
        w = b.weights(out, x.shape[1] // group, *kernel)
        y = b.one("Conv", [x, w, *bias], (x.shape[0], out, *sizes), pads=pads, group=group,
                  strides=[stride, stride], kernel_shape=kernel)  # fmt: skip
        if b.chance(3):
            y = b.one("Mul", [y, b.weights(out, 1, 1)], y.shape)
        if b.chance(3):
            y = batch_norm(b, y)
        made.append(y)
    return made


def conv_transpose(b: Builder) -> Made:
    """A transposed convolution."""
    x = b.any(4, 4)
    if x is None or isinstance(x.shape[1], Open) or max(x.shape[1:]) > 16:
        return None
    group = 2 if x.shape[1] % 2 == 0 and b.chance(2) else 1
    w = b.weights(x.shape[1], 3, 2, 2)
    sizes = [2 * n for n in x.shape[2:]]
    bias = [b.weights(3 * group)] if b.chance(2) else []
    y = b.one("ConvTranspose", [x, w, *bias], (x.shape[0], 3 * group, *sizes),
              strides=[2, 2], group=group)  # fmt: skip
    return [b.one("Mul", [y, b.weights(3 * group, 1, 1)], y.shape) if b.chance(2) else y]


def batch_norm(b: Builder, x: Value) -> Value:
    """A batch normalization."""
    n = x.shape[1]
    parts = [b.weights(n), b.weights(n), b.weights(n), b.weights(n, positive=True)]
    return b.one("BatchNormalization", [x, *parts], x.shape, epsilon=b.pick([1e-5, 1e-3]))


def norm(b: Builder) -> Made:
    """A normalization."""
    x = b.any(2)
    if x is None or isinstance(x.shape[1], Open) or isinstance(x.shape[-1], Open):
        return None
    kind = b.pick(["batch", "softmax", "instance", "layer", "lrn"])
    if kind == "batch":
        return [batch_norm(b, x)]
    if kind == "softmax":
        return b.node("Softmax", [x], x.shape, axis=-1)
    if kind == "layer" and b.opset >= 17:
        n = x.shape[-1]
        y = b.one("LayerNormalization", [x, b.weights(n), b.weights(n)], x.shape, axis=-1)
        if b.chance(2):
            y = b.one(b.pick(["Add", "Mul"]), [y, b.weights(n)], x.shape)
        return [y]
    if kind == "lrn" and x.rank == 4:
        return b.node("LRN", [x], x.shape, size=b.pick([3, 5]), alpha=0.3,
                      beta=b.pick([0.75, 0.5]), bias=b.pick([1.0, 2.0]))  # fmt: skip
    if kind == "instance" and x.rank > 2 and math.prod(x.shape[2:]) > 3:
        n = x.shape[1]
        return b.node("InstanceNormalization", [x, b.weights(n), b.weights(n)], x.shape)
    return None


def pool(b: Builder) -> Made:
    """A pool."""
    x = b.any(4, 4)
    if x is None or min(x.shape[2:]) < 3:
        return None
    if b.chance(3):
        op = b.pick(["GlobalAveragePool", "GlobalMaxPool"])
        return b.node(op, [x], (*x.shape[:2], 1, 1))
    op, pad, ceil = b.pick(["MaxPool", "AveragePool"]), b.choose(2), 0
    more = {"count_include_pad": b.choose(2)} if op == "AveragePool" else {}
    sizes = [(n + 2 * pad - 3) // 2 + 1 for n in x.shape[2:]]
    return b.node(op, [x], (*x.shape[:2], *sizes), kernel_shape=[3, 3], strides=[2, 2],
                  pads=[pad] * 4, ceil_mode=ceil, **more)  # fmt: skip


def hard_swish(b: Builder) -> Made:
    """The chain that exporters write for a hard swish."""
    x = b.any()
    assert x is not None
    three, six = (b.stored(np.array(n, np.float32)) for n in (3, 6))
    zero = b.stored(np.array(0, np.float32))
    c = b.one("Clip", [b.one("Add", [x, three], x.shape), zero, six], x.shape)
    if b.chance(2):
        return b.node("Div", [b.one("Mul", [x, c], x.shape), six], x.shape)
    return b.node("Mul", [x, b.one("Div", [c, six], x.shape)], x.shape)


def gelu(b: Builder) -> Made:
    """The chains that exporters write for GELU and SiLU."""
    x = b.any()
    assert x is not None
    one, two, half, root = (
        b.stored(np.array(n, np.float32)) for n in (1, 2, 0.5, math.sqrt(2))
    )
    kind = b.choose(3)
    if kind == 0:
        return b.node("Mul", [x, b.one("Sigmoid", [x], x.shape)], x.shape)
    if kind == 1:
        e = b.one("Exp", [b.one("Neg", [x], x.shape)], x.shape)
        return b.node(
            "Div", [b.pick([one, two, x]), b.one("Add", [one, e], x.shape)], x.shape
        )
    e = b.one("Erf", [b.one("Div", [x, root], x.shape)], x.shape)
    f = b.one("Add", [e, one], x.shape)
    if b.chance(2):
        return b.node("Mul", [b.one("Mul", [x, f], x.shape), half], x.shape)
    return b.node("Mul", [b.one("Mul", [x, half], x.shape), f], x.shape)


def layer_norm(b: Builder) -> Made:
    """A layer norm or an RMS norm out of its parts."""
    x = b.any(2)
    if x is None or isinstance(x.shape[-1], Open) or b.opset >= 18:
        return None
    n, small = x.shape[-1], (*x.shape[:-1], 1)
    more = {"axes": [-1], "keepdims": 1}
    rms = b.chance(2)
    d = x if rms else b.one("Sub", [x, b.one("ReduceMean", [x], small, **more)], x.shape)
    square = (
        b.one("Pow", [d, b.stored(np.array(2, np.float32))], x.shape)
        if b.chance(2)
        else b.one("Mul", [d, d], x.shape)
    )
    v = b.one("Add", [b.one("ReduceMean", [square], small, **more),
                      b.stored(np.array(1e-3, np.float32))], small)  # fmt: skip
    y = b.one("Div", [d, b.one("Sqrt", [v], small)], x.shape)
    y = b.one("Mul", [y, b.weights(n)], x.shape)
    return [y if rms else b.one("Add", [y, b.weights(n)], x.shape)]


def select(b: Builder) -> Made:
    """A choice by a comparison."""
    x = b.any()
    assert x is not None
    y = b.beside(x.shape)
    mask = b.one("Less", [x, b.scalar() if b.chance(2) else y], x.shape)
    if b.chance(3):
        mask = b.one("Not", [b.one("Not", [mask], x.shape)], x.shape)
    shape = x.shape if x.rank >= y.rank else y.shape
    return b.node("Where", [mask, x, x if b.chance(4) else y], shape)


def dynamic(b: Builder) -> Made:
    """A Reshape to sizes that the model computes: all axes but the first become one."""
    x = b.any(2)
    if x is None or any(isinstance(size, Open) for size in x.shape[1:]):
        return None
    sizes = b.one("Shape", [x], (x.rank,))
    first = b.one("Gather", [sizes, b.stored(np.array(0, np.int64))], (), axis=0)
    if b.opset < 13:
        first = b.one("Unsqueeze", [first], (1,), axes=[0])
    else:
        first = b.one("Unsqueeze", [first, b.ints(0)], (1,))
    wide = math.prod(x.shape[1:])
    rest = b.pick([[-1], [wide], [1, wide], [2, -1] if wide % 2 == 0 else [-1]])
    target = b.one("Concat", [first, b.ints(*rest)], (1 + len(rest),), axis=0)
    known = [n for n in rest if n > 0]
    shape = [n if n > 0 else wide // math.prod(known) for n in rest]
    return b.node("Reshape", [x, target], (x.shape[0], *shape))


def opaque(b: Builder) -> Made:
    """An operator that no rule knows."""
    x = b.any(1)
    if x is None:
        return None
    axis = b.stored(np.array(b.choose(x.rank), np.int64))
    return b.node("CumSum", [x, axis], x.shape)


def repeated(b: Builder) -> Made:
    """A node once more, so that two are equal."""
    fitting = [n for n in b.nodes if len(n.output) == 1]
    if not fitting:
        return None
    old = b.pick(fitting)
    shapes = {v.name: v for v in b.values}
    if old.output[0] not in shapes:
        return None
    made = b.node("Identity", [], shapes[old.output[0]].shape)
    copy = b.nodes[-1]
    name = copy.output[0]
    copy.CopyFrom(old)
    copy.output[0] = name
    return made


MAKERS = (
    unary, binary, binary, binary, quotient, power, product, product, attention, gemm,
    conv, conv, conv_transpose, norm, norm, pool, transpose, transpose, reshape, reshape,
    squeeze, flatten, concat, concat, split, slices, slices, pad, expand, reduce, reduce,
    hard_swish, gelu, layer_norm, select, clip, repeated,
    dynamic, opaque,
)  # fmt: skip

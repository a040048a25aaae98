"""Pairs from transformers: normalization, Gelu, attention."""

from __future__ import annotations

import numpy as np

from tensat.ordering.net import Array, Net, Weights, two
from tensat.ordering.pair import Models, Pair


def residual(rows: int, width: int) -> Models:
    """Return LayerNormalization of an Add, and of a Sum."""
    add, added = two()
    weights = Weights(31)
    scale, shift = weights.vector(width), weights.vector(width)
    dims = (1, rows, width)
    models = []
    for net, op in ((add, "Add"), (added, "Sum")):
        total = net.op(op, net.input(*dims), net.input(*dims))
        numbers = (net.weight(scale), net.weight(shift))
        normal = net.op("LayerNormalization", total, *numbers, axis=-1)
        models.append(net.model([normal], [dims]))
    return models[0], models[1]


def root_mean_square(rows: int, width: int) -> Models:
    """Return a norm by the root of mean squares, as the runtime knows it and otherwise."""
    known, other = two()
    scale = Weights(32).vector(width)
    dims = (1, rows, width)
    x, y = known.input(*dims), other.input(*dims)
    squares = known.op("Pow", x, known.number(2))
    x = known.op("Div", x, _root_of_mean(known, squares))
    x = known.op("Mul", x, known.weight(scale))
    root = _root_of_mean(other, other.op("Mul", y, y))
    y = other.op("Div", other.op("Mul", y, other.weight(scale)), root)
    return known.model([x], [dims]), other.model([y], [dims])


def _root_of_mean(net: Net, squares: str) -> str:
    mean = net.op("ReduceMean", squares, axes=[-1], keepdims=1)
    return net.op("Sqrt", net.op("Add", mean, net.number(1e-6)))


def layer_norm(rows: int, width: int) -> Models:
    """Return LayerNormalization, and the same by operators that are not one kernel."""
    whole, written = two()
    weights = Weights(33)
    scale, shift = weights.vector(width), weights.vector(width)
    dims = (1, rows, width)
    x, y = whole.input(*dims), written.input(*dims)
    numbers = (whole.weight(scale), whole.weight(shift))
    x = whole.op("LayerNormalization", x, *numbers, axis=-1, epsilon=1e-6)
    mean = written.op("ReduceMean", y, axes=[-1], keepdims=1)
    centred = written.op("Sub", y, mean)
    root = _root_of_mean(written, written.op("Mul", centred, centred))
    y = written.op("Mul", centred, written.op("Div", written.weight(scale), root))
    y = written.op("Add", y, written.weight(shift))
    return whole.model([x], [dims]), written.model([y], [dims])


def gelu(rows: int, width: int) -> Models:
    """Return Gelu between layers as the runtime knows it, and with folded constants."""
    known, folded = two()
    weights = Weights(34)
    up, down = weights.matrix(width, 4 * width), weights.matrix(4 * width, width)
    x, y = known.input(rows, width), folded.input(rows, width)
    x = known.op("MatMul", x, known.weight(up))
    error = known.op("Erf", known.op("Div", x, known.number(2**0.5)))
    x = known.op("Mul", x, known.op("Add", error, known.number(1)))
    x = known.op("MatMul", known.op("Mul", x, known.number(0.5)), known.weight(down))
    y = folded.op("MatMul", y, folded.weight(up / np.float32(2**0.5)))
    error = folded.op("Erf", y)
    y = folded.op("Mul", y, folded.op("Add", error, folded.number(1)))
    y = folded.op("MatMul", y, folded.weight(down / np.float32(2**0.5)))
    return known.model([x], [(rows, width)]), folded.model([y], [(rows, width)])


def attention(rows: int, heads: int, each: int) -> Models:
    """Return attention of rank 4, and of rank 3."""
    four, three = two()
    width = heads * each
    dims = (1, rows, width)
    q, k, v = (four.input(*dims) for _ in range(3))
    q, k, v = (four.reshape(x, 1, rows, heads, each) for x in (q, k, v))
    q, v = (four.op("Transpose", x, perm=[0, 2, 1, 3]) for x in (q, v))
    k = four.op("Transpose", k, perm=[0, 2, 3, 1])
    x = four.op("Transpose", _attend(four, q, k, v, each), perm=[0, 2, 1, 3])
    x = four.reshape(x, *dims)
    q, k, v = (three.input(*dims) for _ in range(3))
    q, k, v = (three.reshape(y, rows, heads, each) for y in (q, k, v))
    q, v = (three.op("Transpose", y, perm=[1, 0, 2]) for y in (q, v))
    k = three.op("Transpose", k, perm=[1, 2, 0])
    y = three.op("Transpose", _attend(three, q, k, v, each), perm=[1, 0, 2])
    y = three.reshape(y, *dims)
    return four.model([x], [dims]), three.model([y], [dims])


def _attend(net: Net, q: str, k: str, v: str, each: int) -> str:
    scores = net.op("Mul", net.op("MatMul", q, k), net.number(each**-0.5))
    return net.op("MatMul", net.op("Softmax", scores, axis=-1), v)


def grouped_heads(groups: int, heads: int, rows: int, each: int) -> Models:
    """Return keys repeated for each head, and the heads of a group as rows."""
    repeated, stacked = two()
    models = []
    for net in (repeated, stacked):
        q = net.input(groups * heads, 1, each)
        k, v = net.input(groups, each, rows), net.input(groups, rows, each)
        if net is repeated:
            k, v = (_repeat(net, x, groups, heads, x_dims) for x, x_dims in (
                (k, (each, rows)), (v, (rows, each)),
            ))  # fmt: skip
        else:
            q = net.reshape(q, groups, heads, each)
        y = net.reshape(_attend(net, q, k, v, each), groups * heads, 1, each)
        models.append(net.model([y], [(groups * heads, 1, each)]))
    return models[0], models[1]


def _repeat(net: Net, x: str, groups: int, heads: int, dims: tuple[int, int]) -> str:
    one = net.reshape(x, groups, 1, *dims)
    many = net.op("Expand", one, net.sizes(groups, heads, *dims))
    return net.reshape(many, groups * heads, *dims)


def causal(rows: int, heads: int, each: int) -> Models:
    """Return causal attention with a mask, and in two blocks of queries."""
    whole, blocks = two()
    mask = np.triu(np.full((rows, rows), -1e9, np.float32), 1)
    dims = (heads, rows, each)
    q, k, v = whole.input(*dims), whole.input(heads, each, rows), whole.input(*dims)
    x = _masked(whole, q, k, v, mask, each)
    q, k, v = blocks.input(*dims), blocks.input(heads, each, rows), blocks.input(*dims)
    half = rows // 2
    parts = []
    for first, last in ((0, half), (half, rows)):
        some = _cut(blocks, q, 1, first, last)
        keys, values = _cut(blocks, k, 2, 0, last), _cut(blocks, v, 1, 0, last)
        parts.append(_masked(blocks, some, keys, values, mask[first:last, :last], each))
    y = blocks.op("Concat", *parts, axis=1)
    return whole.model([x], [dims]), blocks.model([y], [dims])


def _masked(net: Net, q: str, k: str, v: str, mask: Array, each: int) -> str:
    scores = net.op("Mul", net.op("MatMul", q, k), net.number(each**-0.5))
    scores = net.op("Add", scores, net.weight(mask))
    return net.op("MatMul", net.op("Softmax", scores, axis=-1), v)


def _cut(net: Net, x: str, axis: int, first: int, last: int) -> str:
    return net.op("Slice", x, *[net.sizes(place) for place in (first, last, axis)])


_TINY = {"rows": 4, "width": 16}

PAIRS = (
    *(
        Pair(
            f"residual-{rows}",
            "Add, LayerNormalization",
            "Sum, LayerNormalization",
            residual,
            {"rows": rows, "width": width},
            _TINY,
        )
        for rows, width in ((128, 768), (64, 384))
    ),
    Pair(
        "rms-norm",
        "as the runtime knows it",
        "factors in another order",
        root_mean_square,
        {"rows": 128, "width": 768},
        _TINY,
    ),
    Pair(
        "layer-norm",
        "LayerNormalization",
        "written out",
        layer_norm,
        {"rows": 128, "width": 768},
        _TINY,
    ),
    Pair(
        "gelu",
        "Gelu in full",
        "its constants folded away",
        gelu,
        {"rows": 64, "width": 384},
        _TINY,
    ),
    Pair(
        "attention-rank",
        "rank 4",
        "rank 3",
        attention,
        {"rows": 64, "heads": 12, "each": 64},
        {"rows": 5, "heads": 2, "each": 4},
    ),
    Pair(
        "grouped-heads",
        "keys repeated",
        "heads as rows",
        grouped_heads,
        {"groups": 4, "heads": 4, "rows": 512, "each": 64},
        {"groups": 2, "heads": 3, "rows": 5, "each": 4},
    ),
    Pair(
        "causal",
        "masked attention",
        "two blocks of queries",
        causal,
        {"rows": 512, "heads": 4, "each": 64},
        {"rows": 6, "heads": 2, "each": 4},
    ),
)
"""All of them."""

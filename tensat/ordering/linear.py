"""Pairs of linear layers: merged, folded, and the forms that a weight can have."""

from __future__ import annotations

import numpy as np

from tensat.ordering.net import Weights, two
from tensat.ordering.pair import Models, Pair


def query_key_value(rows: int, width: int, layers: int) -> Models:
    """Return three MatMuls of one input a layer, apart and merged."""
    apart, merged = two()
    weights = Weights(1)
    x, y = apart.input(rows, width), merged.input(rows, width)
    for _ in range(layers):
        three = [weights.matrix(width, width) for _ in range(3)]
        q, k, v = (apart.op("MatMul", x, apart.weight(each)) for each in three)
        x = apart.op("Add", apart.op("Mul", q, k), v)
        wide = merged.op("MatMul", y, merged.weight(np.concatenate(three, axis=1)))
        sizes = merged.sizes(*[width] * 3)
        q, k, v = merged.ops(3, "Split", wide, sizes, axis=1)
        y = merged.op("Add", merged.op("Mul", q, k), v)
    dims = [(rows, width)]
    return apart.model([x], dims), merged.model([y], dims)


def product_chain(rows: int, width: int, layers: int) -> Models:
    """Return x W1 W2 a layer, and x (W1 W2)."""
    apart, folded = two()
    weights = Weights(2)
    x, y = apart.input(rows, width), folded.input(rows, width)
    for _ in range(layers):
        first, second = weights.matrix(width, width), weights.matrix(width, width)
        x = apart.op("MatMul", x, apart.weight(first))
        x = apart.op("Relu", apart.op("MatMul", x, apart.weight(second)))
        y = folded.op("Relu", folded.op("MatMul", y, folded.weight(first @ second)))
    dims = [(rows, width)]
    return apart.model([x], dims), folded.model([y], dims)


def transposed(rows: int, width: int, layers: int) -> Models:
    """Return x W a layer, and (W^T x^T)^T."""
    plain, turned = two()
    weights = Weights(3)
    x, y = plain.input(rows, width), turned.input(rows, width)
    for _ in range(layers):
        weight = weights.matrix(width, width)
        x = plain.op("Relu", plain.op("MatMul", x, plain.weight(weight)))
        y = turned.op("Transpose", y, perm=[1, 0])
        y = turned.op("MatMul", turned.weight(weight.T), y)
        y = turned.op("Relu", turned.op("Transpose", y, perm=[1, 0]))
    dims = [(rows, width)]
    return plain.model([x], dims), turned.model([y], dims)


def unit_batch(rows: int, width: int, layers: int) -> Models:
    """Return weights of rank 3 with a batch of one, and of rank 2."""
    batched, flat = two()
    weights = Weights(4)
    x, y = batched.input(1, rows, width), flat.input(1, rows, width)
    for _ in range(layers):
        weight = weights.matrix(1, width, width)
        x = batched.op("Relu", batched.op("MatMul", x, batched.weight(weight)))
        y = flat.op("Relu", flat.op("MatMul", y, flat.weight(weight[0])))
    dims = [(1, rows, width)]
    return batched.model([x], dims), flat.model([y], dims)


def batched_weights(rows: int, width: int) -> Models:
    """Return three MatMuls of one input, and one with weights [3, k, n]."""
    apart, batched = two()
    three = Weights(5).matrix(3, width, width)
    x, y = apart.input(rows, width), batched.input(rows, width)
    outputs = [apart.op("MatMul", x, apart.weight(each)) for each in three]
    product = batched.op("MatMul", y, batched.weight(three))
    parts = batched.ops(3, "Split", product, batched.sizes(1, 1, 1), axis=0)
    flat = [batched.reshape(part, rows, width) for part in parts]
    dims = [(rows, width)] * 3
    return apart.model(outputs, dims), batched.model(flat, dims)


def row_as_conv(width: int, layers: int) -> Models:
    """Return layers of one row, as MatMuls and as Convs of one pixel."""
    matmul, conv = two()
    weights = Weights(6)
    x, y = matmul.input(1, width), conv.input(1, width)
    for _ in range(layers):
        weight = weights.matrix(width, width)
        x = matmul.op("Relu", matmul.op("MatMul", x, matmul.weight(weight)))
        y = conv.conv(conv.reshape(y, 1, width, 1, 1), weight.T[:, :, None, None])
        y = conv.op("Relu", conv.reshape(y, 1, width))
    dims = [(1, width)]
    return matmul.model([x], dims), conv.model([y], dims)


def rows_as_conv(rows: int, width: int) -> Models:
    """Return a layer of many rows, as a MatMul and as a Conv between Transposes."""
    matmul, conv = two()
    weight = Weights(7).matrix(width, width)
    x, y = matmul.input(rows, width), conv.input(rows, width)
    x = matmul.op("MatMul", x, matmul.weight(weight))
    y = conv.reshape(conv.op("Transpose", y, perm=[1, 0]), 1, width, 1, rows)
    y = conv.conv(y, weight.T[:, :, None, None])
    y = conv.op("Transpose", conv.reshape(y, width, rows), perm=[1, 0])
    dims = [(rows, width)]
    return matmul.model([x], dims), conv.model([y], dims)


def two_inputs(rows: int, width: int, layers: int) -> Models:
    """Return x W + h U a layer, and [x, h] times the stacked weights."""
    apart, stacked = two()
    weights = Weights(8)
    x, h = apart.input(rows, width), apart.input(rows, width)
    y, g = stacked.input(rows, width), stacked.input(rows, width)
    for _ in range(layers):
        one, other = weights.matrix(width, width), weights.matrix(width, width)
        left = apart.op("MatMul", x, apart.weight(one))
        right = apart.op("MatMul", h, apart.weight(other))
        x = apart.op("Tanh", apart.op("Add", left, right))
        both = stacked.op("Concat", y, g, axis=1)
        weight = stacked.weight(np.concatenate([one, other]))
        y = stacked.op("Tanh", stacked.op("MatMul", both, weight))
    dims = [(rows, width)]
    return apart.model([x], dims), stacked.model([y], dims)


def first_row(rows: int, width: int, layers: int) -> Models:
    """Return layers of all rows of which the first is used, and layers of that row."""
    late, early = two()
    weights = Weights(9)
    x, y = late.input(rows, width), early.input(rows, width)
    cut = [early.sizes(place) for place in (0, 1, 0)]
    y = early.op("Slice", y, *cut)
    for _ in range(layers):
        weight = weights.matrix(width, width)
        x = late.op("Relu", late.op("MatMul", x, late.weight(weight)))
        y = early.op("Relu", early.op("MatMul", y, early.weight(weight)))
    x = late.op("Slice", x, *[late.sizes(place) for place in (0, 1, 0)])
    dims = [(1, width)]
    return late.model([x], dims), early.model([y], dims)


_TINY = {"width": 8, "layers": 2}
_FEW = {"rows": 4, **_TINY}

PAIRS = (
    *(
        Pair(
            f"qkv-{rows}",
            "three MatMuls",
            "one MatMul and Split",
            query_key_value,
            {"rows": rows, "width": 768, "layers": layers},
            {**_TINY, "rows": min(rows, 4)},
        )
        for rows, layers in ((1, 10), (64, 3), (128, 2))
    ),
    *(
        Pair(
            f"chain-{rows}",
            "x W1 W2",
            "x (W1 W2)",
            product_chain,
            {"rows": rows, "width": width, "layers": layers},
            {**_TINY, "rows": min(rows, 4)},
        )
        for rows, width, layers in ((1, 1024, 8), (64, 512, 4))
    ),
    *(
        Pair(
            f"transposed-{rows}",
            "x W",
            "(W^T x^T)^T",
            transposed,
            {"rows": rows, "width": 512, "layers": 4},
            {**_TINY, "rows": min(rows, 5)},
        )
        for rows in (8, 64)
    ),
    *(
        Pair(
            f"unit-batch-{rows}",
            "weights [1, k, n]",
            "weights [k, n]",
            unit_batch,
            {"rows": rows, "width": 768, "layers": 4},
            {**_TINY, "rows": min(rows, 3)},
        )
        for rows in (4, 64)
    ),
    *(
        Pair(
            f"batched-weights-{rows}",
            "three MatMuls",
            "one with [3, k, n], Split",
            batched_weights,
            {"rows": rows, "width": 512},
            {"rows": min(rows, 3), "width": 8},
        )
        for rows in (8, 64)
    ),
    Pair(
        "row-as-conv",
        "MatMul of one row",
        "1x1 Conv of one pixel",
        row_as_conv,
        {"width": 1024, "layers": 20},
        {"width": 16, "layers": 2},
    ),
    Pair(
        "rows-as-conv",
        "MatMul",
        "Transpose, 1x1 Conv, Transpose",
        rows_as_conv,
        {"rows": 64, "width": 512},
        {"rows": 4, "width": 8},
    ),
    Pair(
        "two-inputs",
        "x W + h U",
        "[x, h] [W; U]",
        two_inputs,
        {"rows": 16, "width": 512, "layers": 4},
        _FEW,
    ),
    Pair(
        "first-row",
        "layers, then row 0",
        "row 0, then layers",
        first_row,
        {"rows": 64, "width": 512, "layers": 3},
        _FEW,
    ),
)
"""All of them."""

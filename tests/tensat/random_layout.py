"""Random models: operators that move elements, and reductions."""

from __future__ import annotations

import numpy as np

from tests.tensat.random_models import Builder, Made, Open, Shape, Value, size_of


def transpose(b: Builder) -> Made:
    """Another order of axes."""
    x = b.any(2)
    if x is None:
        return None
    rest, perm = list(range(x.rank)), []
    while rest:
        perm.append(rest.pop(b.choose(len(rest))))
    return b.node("Transpose", [x], tuple(x.shape[axis] for axis in perm), perm=perm)


def reshape(b: Builder) -> Made:
    """Another shape: axes merged, split, or a new one of size 1."""
    x = b.any(1)
    if x is None:
        return None
    shape = list(x.shape)
    kind, axis = b.choose(4), b.choose(x.rank)
    if kind == 0 and axis + 1 < x.rank:
        shape[axis : axis + 2] = [size_of(shape[axis : axis + 2])]
    elif kind == 1 and not isinstance(shape[axis], Open) and shape[axis] % 2 == 0:
        shape[axis : axis + 1] = [2, shape[axis] // 2]
    elif kind == 2:
        shape.insert(axis, 1)
    elif not x.open:
        shape = [size_of(shape)]
    wanted = [-1 if isinstance(size, Open) else int(size) for size in shape]
    return None if wanted.count(-1) > 1 else b.node(
        "Reshape", [x, b.ints(*wanted)], tuple(shape)
    )  # fmt: skip


def squeeze(b: Builder) -> Made:
    """An axis of size 1 less or more."""
    x = b.any(1, 5)
    if x is None:
        return None
    ones = [k for k, n in enumerate(x.shape) if n == 1 and not isinstance(n, Open)]
    if ones and b.chance(2):
        axis, op = b.pick(ones), "Squeeze"
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    else:
        axis, op = b.choose(x.rank + 1), "Unsqueeze"
        shape = (*x.shape[:axis], 1, *x.shape[axis:])
    if b.opset < 13:
        return b.node(op, [x], shape, axes=[axis])
    return b.node(op, [x, b.ints(axis)], shape)


def flatten(b: Builder) -> Made:
    """A matrix."""
    x = b.any(2)
    if x is None:
        return None
    axis = b.choose(x.rank + 1)
    return b.node("Flatten", [x], (size_of(x.shape[:axis]), size_of(x.shape[axis:])),
                  axis=axis)  # fmt: skip


def concat(b: Builder) -> Made:
    """A Concat of values that fit."""
    x = b.any(1)
    if x is None:
        return None
    axis = b.choose(x.rank)

    def fits(shape: Shape) -> bool:
        return len(shape) == x.rank and all(
            k == axis or (n == m and isinstance(n, Open) == isinstance(m, Open))
            for k, (n, m) in enumerate(zip(shape, x.shape, strict=True))
        )

    others = [v for v in b.values if fits(v.shape)]
    parts = [x, *(b.pick(others) for _ in range(1 + b.choose(2)))]
    if b.chance(4) and not x.open:
        parts.append(b.weights(*x.shape))
    total: int = sum(v.shape[axis] for v in parts)
    total = Open(total) if any(isinstance(v.shape[axis], Open) for v in parts) else total
    y = b.one("Concat", parts, (*x.shape[:axis], total, *x.shape[axis + 1 :]), axis=axis)
    if b.chance(3) and not isinstance(total, Open):
        return _parts(b, y, axis, [v.shape[axis] for v in parts])
    return [y]


def _parts(b: Builder, x: Value, axis: int, sizes: list[int]) -> list[Value]:
    shapes = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in sizes]
    if b.opset < 13:
        return b.node("Split", [x], *shapes, axis=axis, split=sizes)
    return b.node("Split", [x, b.ints(*sizes)], *shapes, axis=axis)


def split(b: Builder) -> Made:
    """A Split; its parts may be joined again, in order or not."""
    x = b.any(1)
    if x is None:
        return None
    axis = b.choose(x.rank)
    n = x.shape[axis]
    if isinstance(n, Open) or n < 2:
        return None
    first = 1 + b.choose(n - 1)
    made = _parts(b, x, axis, [first, n - first] if b.chance(2) or n % 2 else [n // 2] * 2)
    if b.chance(3):
        parts = [made[1], made[0]] if b.chance(3) else made
        return [b.one("Concat", parts, x.shape, axis=axis), *made]
    return made


def slices(b: Builder) -> Made:
    """A Slice, or one or several elements by Gather."""
    x = b.any(1)
    if x is None:
        return None
    axis = b.choose(x.rank)
    n = x.shape[axis]
    if isinstance(n, Open):
        return None
    start = b.choose(n)
    if b.chance(3):
        index = start - n if b.chance(2) else start
        kind = b.choose(3)
        array = np.array([index, start] if kind == 2 else index, np.int64)
        array = array.reshape(1) if kind == 1 else array
        shape = (*x.shape[:axis], *array.shape, *x.shape[axis + 1 :])
        return b.node("Gather", [x, b.stored(array)], shape, axis=axis)
    end = start + 1 + b.choose(n - start)
    step = b.pick([1, 1, 1, 2, -1])
    if step < 0:
        kept = start + 1
        bounds = [b.ints(start), b.ints(-n - 1)]
    else:
        kept = (end - start + step - 1) // step
        bounds = [b.ints(start), b.ints(b.pick([end, end - n] if end < n else [end, 9999]))]
    shape = (*x.shape[:axis], kept, *x.shape[axis + 1 :])
    where = axis - x.rank if b.chance(2) else axis
    return b.node("Slice", [x, *bounds, b.ints(where), b.ints(step)], shape)


def pad(b: Builder) -> Made:
    """A Pad with a constant."""
    x = b.any(4, 4)
    if x is None:
        return None
    width = [0, 0, b.choose(2), b.choose(2)]
    after = [0, 0, b.choose(2), b.choose(2)]
    if b.chance(5):
        width[1] = 1
    value = [b.stored(np.array(b.pick([0, 0.5]), np.float32))] if b.chance(2) else []
    y = b.one("Pad", [x, b.ints(*width, *after), *value], tuple(
        Open(n) if isinstance(n, Open) else n + p + q
        for n, p, q in zip(x.shape, width, after, strict=True)))  # fmt: skip
    return [y]


def expand(b: Builder) -> Made:
    """An Expand that repeats, or does nothing."""
    x = b.any(1, 4)
    if x is None or x.open:
        return None
    shape = tuple(3 if n == 1 and b.chance(2) else n for n in x.shape)
    shape = (2, *shape) if b.chance(3) else shape
    return b.node("Expand", [x, b.ints(*shape)], shape)


def reduce(b: Builder) -> Made:
    """A sum, mean or extreme over some axes."""
    x = b.any(1)
    if x is None:
        return None
    axes = [k for k in range(x.rank) if b.chance(2)] or [x.rank - 1]
    if b.chance(3) and x.rank > 2:
        axes = list(range(2, x.rank))
    keep = b.choose(2)
    ops = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceMean"]
    op = b.pick(ops)
    shape = tuple(
        1 if k in axes else n for k, n in enumerate(x.shape) if keep or k not in axes
    )
    written = [k - x.rank if b.chance(3) else k for k in axes]
    if b.opset >= 18 or (op == "ReduceSum" and b.opset >= 13):
        return b.node(op, [x, b.ints(*written)], shape, keepdims=keep)
    return b.node(op, [x], shape, axes=written, keepdims=keep)

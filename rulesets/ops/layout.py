"""Operators that move elements: their results hold elements of their arguments.

Every axis is counted from the front. In `Slice`, an offset may be negative (counted from
the end) or `END` only on an axis whose size is symbolic; with a negative step, -1 as end
means "before the first element".
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rulesets.errors import NotModelledError, ShapeError
from rulesets.judge import all_equal, at_least, equal, judged
from rulesets.judge import position as position_of
from rulesets.meaning import (
    ElementRule,
    Index,
    Meaning,
    Operand,
    Scalar,
    broadcast_index,
    inside,
)
from rulesets.ops.spec import (
    ANY,
    INDICES,
    Attribute,
    Attributes,
    Operator,
    ShapeRule,
    axis_in,
    check_arity,
    integer,
    integers,
    require,
    same_dtype,
    shaped,
    sizes,
)
from rulesets.size import Poly, Size, ceil_div, product, total
from rulesets.tensor import Shape, Tensor, broadcast, elements

END: Final = 2**63 - 1


def _transpose(attributes: Attributes, x: Shape) -> Shape:
    perm = integers(attributes, "perm")
    ordered = sorted(perm) == list(range(len(x)))
    require(ordered, f"perm must be a permutation of {len(x)} axes", perm)
    return tuple([x[axis] for axis in perm])


def _reshape(attributes: Attributes, x: Shape) -> Shape:
    shape = sizes(attributes, "shape")
    same = equal(elements(x), elements(shape))
    require(same, "elements must stay equal in number", (x, shape))
    return shape


def _check_axes(axes: tuple[int, ...], rank: int) -> None:
    fits = axes == tuple(sorted(set(axes))) and all(0 <= axis < rank for axis in axes)
    require(fits, f"axes must be ascending and less than rank {rank}", axes)


def _squeeze(attributes: Attributes, x: Shape) -> Shape:
    axes = integers(attributes, "axes")
    _check_axes(axes, len(x))
    require(all(equal(x[axis], 1) for axis in axes), f"axes {axes} must have size 1", x)
    return tuple([size for axis, size in enumerate(x) if axis not in axes])


def _unsqueeze(attributes: Attributes, x: Shape) -> Shape:
    axes = integers(attributes, "axes")
    rank = len(x) + len(axes)
    _check_axes(axes, rank)
    rest = iter(x)
    return tuple([1 if axis in axes else next(rest) for axis in range(rank)])


def _flatten(attributes: Attributes, x: Shape) -> Shape:
    axis = integer(attributes, "axis")
    require(0 <= axis <= len(x), f"axis must be at least 0 and at most {len(x)}", axis)
    return (product(x[:axis]), product(x[axis:]))


def _concat(attributes: Attributes, *shapes: Shape) -> Shape:
    first = shapes[0]
    axis = axis_in(attributes, "axis", len(first))
    before, after = first[:axis], first[axis + 1 :]
    fits = all(len(one) == len(first) for one in shapes) and all(
        all_equal((*one[:axis], *one[axis + 1 :]), (*before, *after)) for one in shapes[1:]
    )
    require(fits, f"sizes but those of axis {axis} must be equal", shapes)
    return (*before, total(one[axis] for one in shapes), *after)


def _split(attributes: Attributes, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    check_arity(inputs, 1, 1)
    dtype, x = same_dtype(inputs, ANY), inputs[0].shape
    parts = sizes(attributes, "parts")
    if x is None:
        return tuple([Tensor(dtype, None) for _ in parts])
    axis = axis_in(attributes, "axis", len(x))
    require(
        bool(parts) and equal(total(parts), x[axis]), f"parts must sum to {x[axis]}", parts
    )
    return tuple([Tensor(dtype, (*x[:axis], part, *x[axis + 1 :])) for part in parts])


def offset_in(value: Size, size: Size) -> Size:
    """Return the position an offset of `Slice` means on an axis of this size."""
    if value == END:
        return size
    found = position_of(value, size)
    if found is not None:
        return found
    position = value if at_least(value, 0) else size + value
    inside = at_least(position, 0) and at_least(size, position)
    require(inside, f"offset must be inside an axis of size {size}", value)
    return position


def slice_size(size: Size, start: Size, end: Size, step: Size) -> Size:
    """Return the size of a sliced axis.

    Raises:
        ShapeError: The step is 0, or the offsets are not known to be inside the axis.
    """
    require(step != 0, "step must not be 0", step)
    if not at_least(step, 0):
        if isinstance(step, Poly):
            inside = at_least(start, 0) and at_least(end, -1)
            inside = inside and at_least(size, start + 1) and at_least(size, end + 1)
            require(inside, f"offsets must be inside an axis of size {size}", (start, end))
            return ceil_div(start - end, -step)
        if isinstance(size, Poly) or isinstance(start, Poly) or isinstance(end, Poly):
            unknown = NotModelledError if judged() else ShapeError
            raise unknown(f"a step of {step} needs sizes that are numbers; found {size}")
        inside = 0 <= start < size and -1 <= end < size
        require(inside, f"offsets must be inside an axis of size {size}", (start, end))
        return max(0, (start - end - step - 1) // -step)
    length = offset_in(end, size) - offset_in(start, size)
    if isinstance(length, int) and isinstance(step, int):
        return max(0, -(-length // step))
    require(at_least(length, 0), "end must not be before start", (start, end))
    return ceil_div(length, step)


def _slice(attributes: Attributes, x: Shape) -> Shape:
    axes, steps = integers(attributes, "axes"), integers(attributes, "steps")
    starts, ends = integers(attributes, "starts"), integers(attributes, "ends")
    _check_axes(axes, len(x))
    lengths = (len(starts), len(ends), len(axes), len(steps))
    require(len(set(lengths)) == 1, "starts, ends, axes, steps of one length", lengths)
    result = list(x)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        result[axis] = slice_size(x[axis], start, end, step)
    return tuple(result)


def _pad(attributes: Attributes, x: Shape) -> Shape:
    pads, rank = integers(attributes, "pads"), len(x)
    require(len(pads) == 2 * rank, f"pads must be {2 * rank} numbers", pads)
    result = tuple([x[axis] + (pads[axis] + pads[rank + axis]) for axis in range(rank)])
    fits = all(isinstance(size, Poly) or size >= 0 for size in result)
    require(fits, f"pads must not remove more than there is in {x}", pads)
    return result


def _expand(attributes: Attributes, x: Shape) -> Shape:
    shape = sizes(attributes, "shape")
    fits = len(x) <= len(shape) and all_equal(broadcast(x, shape), shape)
    require(fits, f"argument must broadcast to shape {shape}", x)
    return shape


def _upsample(attributes: Attributes, x: Shape) -> Shape:
    factors = integers(attributes, "factors")
    fits = len(factors) == len(x) and all(factor >= 1 for factor in factors)
    require(fits, f"factors must be {len(x)} numbers >= 1", factors)
    return tuple(size * factor for size, factor in zip(x, factors, strict=True))


def _gather(attributes: Attributes, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    check_arity(inputs, 2, 2)
    dtype, x = same_dtype(inputs[:1], ANY), inputs[0].shape
    same_dtype(inputs[1:], INDICES)
    indices = inputs[1].shape
    if x is None or indices is None:
        return (Tensor(dtype, None),)
    if not x:
        raise ShapeError("gather needs an argument with at least one axis; found none")
    axis = axis_in(attributes, "axis", len(x))
    return (Tensor(dtype, (*x[:axis], *indices, *x[axis + 1 :])),)


def _transpose_at(a: Mapping[str, Any], x: Shape, i: Index) -> Index:
    result = list(i)
    for at, axis in zip(i, a["perm"], strict=True):
        result[axis] = at
    return tuple(result)


def _regrouped(m: Meaning, i: Index, shape: Shape, target: Shape) -> Index:
    """Return the index in `target` of the element that has an index in `shape`."""
    flat: Any = 0
    for at, size in zip(i, shape, strict=True):
        flat = flat * size + at
    result: list[Any] = []
    for size in target[:0:-1]:
        flat, rest = m.divmod(flat, size)
        result.append(rest)
    return (flat, *reversed(result)) if target else ()


def _reshape_at(
    m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index
) -> Scalar:
    return xs[0][_regrouped(m, i, a["shape"], xs[0].shape)]


def _flatten_at(
    m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index
) -> Scalar:
    x, axis = xs[0].shape, a["axis"]
    return xs[0][
        _regrouped(m, i[:1], (0,), x[:axis]) + _regrouped(m, i[1:], (0,), x[axis:])
    ]


def _squeeze_at(a: Mapping[str, Any], x: Shape, i: Index) -> Index:
    rest = iter(i)
    return tuple(0 if axis in a["axes"] else next(rest) for axis in range(len(x)))


def _unsqueeze_at(a: Mapping[str, Any], x: Shape, i: Index) -> Index:
    return tuple(at for axis, at in enumerate(i) if axis not in a["axes"])


def _slice_at(a: Mapping[str, Any], x: Shape, i: Index) -> Index:
    result = list(i)
    for axis, start, step in zip(a["axes"], a["starts"], a["steps"], strict=True):
        begin = offset_in(start, x[axis]) if at_least(step, 0) else start
        result[axis] = begin + result[axis] * step
    return tuple(result)


def _upsample_at(
    m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index
) -> Scalar:
    pairs = zip(i, a["factors"], strict=True)
    return xs[0][tuple(at if f == 1 else m.divmod(at, f)[0] for at, f in pairs)]


def _pad_at(m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index) -> Scalar:
    x = xs[0]
    at = tuple(one - before for one, before in zip(i, a["pads"][: len(i)], strict=True))
    pairs = zip(at, x.shape, strict=True)
    guards = [guard for one, size in pairs for guard in inside(one, size)]
    return m.where(guards, x[at], m.number(a["value"]))


def _part_at(
    m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index, output: int = 0
) -> Scalar:
    axis = a["axis"]
    at = i[axis] + total(a["parts"][:output])
    return xs[0][(*i[:axis], at, *i[axis + 1 :])]


def _concat_at(m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index) -> Scalar:
    axis = a["axis"]
    at, result, nothing = i[axis], m.number(0), m.number(0)
    for x in xs:
        one = x[(*i[:axis], at, *i[axis + 1 :])]
        result = result + m.where(inside(at, x.shape[axis]), one, nothing)
        at = at - x.shape[axis]
    return result


def _gather_at(m: Meaning, a: Mapping[str, Any], xs: Sequence[Operand], i: Index) -> Scalar:
    x, indices = xs
    axis, rank = a["axis"], len(indices.shape)
    at = m.wrapped(indices.integer(i[axis : axis + rank]), x.shape[axis])
    return x[(*i[:axis], at, *i[axis + rank :])]


def _moved(source: Callable[..., Index]) -> ElementRule:
    """Return the element rule of an operator that reads one element at another index."""
    return lambda m, a, xs, i: xs[0][source(a, xs[0].shape, i)]


def _unary(
    name: str, rule: ShapeRule, element: ElementRule, *attributes: Attribute
) -> Operator:
    infer = shaped(rule, (1, 1), ANY)
    return Operator(name, attributes, (1, 1), infer, element, data_movement=True)


_AXIS, _AXES = Attribute("axis", "int"), Attribute("axes", "ints")

OPERATORS: tuple[Operator, ...] = (
    _unary("Transpose", _transpose, _moved(_transpose_at), Attribute("perm", "ints")),
    _unary("Reshape", _reshape, _reshape_at, Attribute("shape", "sizes")),
    _unary("Squeeze", _squeeze, _moved(_squeeze_at), _AXES),
    _unary("Unsqueeze", _unsqueeze, _moved(_unsqueeze_at), _AXES),
    _unary("Flatten", _flatten, _flatten_at, _AXIS),
    _unary(
        "Slice",
        _slice,
        _moved(_slice_at),
        Attribute("starts", "ints"),
        Attribute("ends", "ints"),
        _AXES,
        Attribute("steps", "ints"),
    ),
    _unary(
        "Expand",
        _expand,
        _moved(lambda a, x, i: broadcast_index(x, i)),
        Attribute("shape", "sizes"),
    ),
    _unary("Upsample", _upsample, _upsample_at, Attribute("factors", "ints")),
    Operator(
        "Pad",
        (Attribute("pads", "ints"), Attribute("value", "float", 0.0)),
        (1, 1),
        shaped(_pad, (1, 1), ANY),
        _pad_at,
    ),
    Operator(
        "Concat",
        (_AXIS,),
        (1, None),
        shaped(_concat, (1, None), ANY),
        _concat_at,
        data_movement=True,
    ),
    Operator(
        "Split",
        (_AXIS, Attribute("parts", "sizes")),
        (1, 1),
        _split,
        _part_at,
        data_movement=True,
    ),
    Operator("Gather", (_AXIS,), (2, 2), _gather, _gather_at, data_movement=True),
)

"""Values of small integer tensors, followed through a model while sizes are symbolic.

Shape computations (Shape, Gather, Mul, Concat, Reshape …) become tuples of sizes, so that
a reshape to a computed target is understood. Only tensors of rank 0 or 1 with at most
`LIMIT` entries are followed. Entries of bool tensors are 0 and 1.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rulesets.size import (
    Size,
    divide,
    floor_div,
    product,
    provably_different,
    provably_nonnegative,
    provably_positive,
)
from rulesets.tensor import elements
from tensat.onnx_forms.call import NotExpressibleError, OnnxCall, entries_of
from tensat.onnx_forms.form import counted
from tensat.onnx_forms.schema import OLDEST, type_name

LIMIT = 64
_FOLLOWED = frozenset({"int32", "int64", "bool"})


class Known(NamedTuple):
    """The value of an integer tensor.

    Attributes:
        sizes: Its entries.
        scalar: Whether it has rank 0; otherwise it has rank 1.
    """

    sizes: tuple[Size, ...]
    scalar: bool


def propagate(call: OnnxCall) -> Known | None:
    """Return the value of a node's first output, None if it is not known.

    Args:
        call: A node of the standard domain whose operands have `sizes` where known.
    """
    rule = _RULES.get(call.op_type)
    if rule is None or call.opset < OLDEST:
        return None
    try:
        known = rule(call)
    except NotExpressibleError:
        return None
    return known if len(known.sizes) <= LIMIT else None


def _known(call: OnnxCall, position: int) -> Known:
    operand = call.operand(position)
    entries, rank = entries_of(operand), operand.tensor.rank
    followed = operand.tensor.dtype in _FOLLOWED and rank in {0, 1}
    if entries is None or not followed or len(entries) > LIMIT:
        raise NotExpressibleError
    return Known(entries, rank == 0)


def _numbers(known: Known) -> tuple[int, ...]:
    numbers = tuple([one for one in known.sizes if isinstance(one, int)])
    if len(numbers) != len(known.sizes):
        raise NotExpressibleError
    return numbers


def _shape(call: OnnxCall) -> Known:
    shape = call.shape()
    rank = len(shape)
    start, end = call.integer("start", 0), call.integer("end", rank)
    return Known(shape[slice(start, end)], scalar=False)


def _size(call: OnnxCall) -> Known:
    return Known((elements(call.shape()),), scalar=True)


def _gather(call: OnnxCall) -> Known:
    data, places = _known(call, 0), _known(call, 1)
    if data.scalar or call.integer("axis", 0) not in {0, -1}:
        raise NotExpressibleError
    length = len(data.sizes)
    picked = [data.sizes[counted(place, length)] for place in _numbers(places)]
    return Known(tuple(picked), places.scalar)


def _slice(call: OnnxCall) -> Known:
    data = _known(call, 0)
    if call.opset < 10:
        starts, ends = call.integers("starts"), call.integers("ends")
        axes, steps = call.integers("axes"), None
    else:
        starts, ends = call.known_integers(1), call.known_integers(2)
        axes, steps = call.known_integers(3), call.known_integers(4)
    whole = axes in {None, (0,), (-1,)} and not data.scalar
    if not whole or starts is None or ends is None or len(starts) != 1 or len(ends) != 1:
        raise NotExpressibleError
    (step,) = steps if steps is not None and len(steps) == 1 else (1,)
    if step == 0:
        raise NotExpressibleError
    length = len(data.sizes)
    start, end = (one + length if one < 0 else one for one in (starts[0], ends[0]))
    # An offset before the first entry must not be read as one counted from the end.
    if step > 0:
        return Known(data.sizes[max(start, 0) : max(end, 0) : step], scalar=False)
    positions = range(min(start, length - 1), max(end, -1), step) if start >= 0 else ()
    return Known(tuple([data.sizes[place] for place in positions]), scalar=False)


def _concat(call: OnnxCall) -> Known:
    parts = [_known(call, position) for position in range(len(call.inputs))]
    if any(part.scalar for part in parts):
        raise NotExpressibleError
    return Known(tuple([size for part in parts for size in part.sizes]), scalar=False)


def _identity(call: OnnxCall) -> Known:
    return _known(call, 0)


def _cast(call: OnnxCall) -> Known:
    target, known = type_name(call.integer("to", 0)), _known(call, 0)
    if target == "bool":
        numbers = _numbers(known)
        return Known(tuple([int(one != 0) for one in numbers]), known.scalar)
    if target not in {"int32", "int64"}:
        raise NotExpressibleError
    return known


def _unsqueeze(call: OnnxCall) -> Known:
    axes = call.integers("axes") if call.opset < 13 else call.known_integers(1)
    known = _known(call, 0)
    if not known.scalar or axes not in {(0,), (-1,)}:
        raise NotExpressibleError
    return Known(known.sizes, scalar=False)


def _squeeze(call: OnnxCall) -> Known:
    axes = call.integers("axes") if call.opset < 13 else call.known_integers(1)
    known = _known(call, 0)
    if axes == () or known.scalar:
        return known
    if len(known.sizes) != 1 or axes not in {None, (0,), (-1,)}:
        raise NotExpressibleError
    return Known(known.sizes, scalar=True)


def _reshape(call: OnnxCall) -> Known:
    known, target = _known(call, 0), call.known_integers(1)
    if target is None or len(target) > 1:
        raise NotExpressibleError
    count = len(known.sizes)
    if target and target[0] not in {-1, count} and (target[0], count) != (0, count):
        raise NotExpressibleError
    if not target and count != 1:
        raise NotExpressibleError
    return Known(known.sizes, scalar=not target)


def _times(one: Size, other: Size) -> Size:
    return one * other


def _divided(one: Size, other: Size) -> Size:
    exact = divide(one, other)
    if exact is not None:
        return exact
    # ONNX rounds towards zero, a floor division towards minus infinity.
    if not isinstance(other, int) or other < 1 or not provably_nonnegative(one):
        raise NotExpressibleError
    return floor_div(one, other)


def _equal(one: Size, other: Size) -> Size:
    if one == other:
        return 1
    if provably_different(one, other):
        return 0
    raise NotExpressibleError


def _less(one: Size, other: Size) -> Size:
    if provably_positive(other - one):
        return 1
    if provably_nonnegative(one - other):
        return 0
    raise NotExpressibleError


def _larger(one: Size, other: Size) -> Size:
    return one if _less(other, one) else other


def _smaller(one: Size, other: Size) -> Size:
    return one if _less(one, other) else other


def _both(one: Size, other: Size) -> Size:
    return int(bool(one) and bool(other))


def _entrywise(rule: Callable[[Size, Size], Size]) -> Callable[[OnnxCall], Known]:
    def apply(call: OnnxCall) -> Known:
        result = _known(call, 0)
        for position in range(1, len(call.inputs)):
            left, right = _aligned(result, _known(call, position))
            sizes = tuple(map(rule, left.sizes, right.sizes))
            result = Known(sizes, left.scalar and right.scalar)
        return result

    return apply


def _aligned(*parts: Known) -> tuple[Known, ...]:
    """Return values repeated so that all have the same number of entries."""
    lengths = {len(part.sizes) for part in parts} - {1}
    if len(lengths) > 1:
        raise NotExpressibleError
    length = lengths.pop() if lengths else 1
    return tuple(
        [
            Known(part.sizes * length if len(part.sizes) == 1 else part.sizes, part.scalar)
            for part in parts
        ]
    )


def _where(call: OnnxCall) -> Known:
    chosen, yes, no = _aligned(*[_known(call, position) for position in range(3)])
    picked = tuple(
        [
            one if which else other
            for which, one, other in zip(_numbers(chosen), yes.sizes, no.sizes, strict=True)
        ]
    )
    return Known(picked, chosen.scalar and yes.scalar and no.scalar)


def _constant_of_shape(call: OnnxCall) -> Known:
    shape, value = call.known_integers(0), call.attributes.get("value")
    array = getattr(value, "dtype", None)
    if shape is None or len(shape) > 1 or array is None or array.kind not in "ib":
        raise NotExpressibleError
    count = shape[0] if shape else 1
    if not 0 <= count <= LIMIT:
        raise NotExpressibleError
    (entry,) = _entries(value)
    return Known((entry,) * count, scalar=not shape)


def _entries(value: object) -> tuple[int, ...]:
    return tuple([int(one) for one in value.reshape(-1)])  # type: ignore[attr-defined]


def _range(call: OnnxCall) -> Known:
    parts = [_known(call, position) for position in range(3)]
    if not all(part.scalar for part in parts):
        raise NotExpressibleError
    start, limit, step = (_numbers(part)[0] for part in parts)
    if step == 0:
        raise NotExpressibleError
    found = range(start, limit, step)
    if len(found) > LIMIT:
        raise NotExpressibleError
    return Known(tuple(found), scalar=False)


def _product(call: OnnxCall) -> Known:
    known = _known(call, 0)
    axes = call.integers("axes") if call.opset < 18 else call.known_integers(1)
    if known.scalar or axes not in {None, (0,), (-1,)}:
        raise NotExpressibleError
    if call.integer("noop_with_empty_axes", 0) and axes is None:
        raise NotExpressibleError
    return Known((product(known.sizes),), scalar=not call.integer("keepdims", 1))


_RULES: Mapping[str, Callable[[OnnxCall], Known]] = {
    "Shape": _shape,
    "Size": _size,
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Identity": _identity,
    "Cast": _cast,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "Add": _entrywise(lambda one, other: one + other),
    "Sub": _entrywise(lambda one, other: one - other),
    "Mul": _entrywise(_times),
    "Div": _entrywise(_divided),
    "Max": _entrywise(_larger),
    "Min": _entrywise(_smaller),
    "Equal": _entrywise(_equal),
    "Less": _entrywise(_less),
    "Greater": _entrywise(lambda one, other: _less(other, one)),
    "And": _entrywise(_both),
    "Where": _where,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
    "ReduceProd": _product,
}

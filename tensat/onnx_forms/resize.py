"""Forms of operators whose parameters are sizes: reshape, expand, slice, pad, constants."""

from collections.abc import Mapping

from rulesets.ops import END, array_of
from rulesets.ops.spec import floating, integers, sizes, text
from rulesets.size import Size, divide, product, provably_nonnegative
from rulesets.tensor import Shape, broadcast, elements
from tensat.onnx_forms.call import (
    Arg,
    Lowering,
    NotExpressibleError,
    OnnxCall,
    OnnxNode,
    Raised,
    vector,
)
from tensat.onnx_forms.form import Lower, Raise, counted, counted_all
from tensat.onnx_forms.plain import number
from tensat.onnx_forms.schema import array_dtype

_FAR = 2**31 - 1


def _copied(target: tuple[Size, ...], x: Shape | None) -> tuple[Size, ...]:
    """Return a reshape's target with every 0 replaced by the size it copies."""
    if 0 not in target:
        return target
    if x is None:
        raise NotExpressibleError
    if any(size == 0 and axis >= len(x) for axis, size in enumerate(target)):
        raise NotExpressibleError
    return tuple([x[axis] if size == 0 else size for axis, size in enumerate(target)])


def _raise_reshape(call: OnnxCall) -> Raised:
    target, x = call.known(1), call.operand(0).tensor.shape
    if target is None:
        raise NotExpressibleError
    # A symbolic entry must not turn out to be -1 when the model runs.
    if not all(
        size == -1 or provably_nonnegative(size) or size in (x or ()) for size in target
    ):
        raise NotExpressibleError
    if not call.integer("allowzero", 0):
        target = _copied(target, x)
    if -1 in target:
        if x is None:
            raise NotExpressibleError
        rest = divide(elements(x), product(size for size in target if size != -1))
        if rest is None or target.count(-1) > 1:
            raise NotExpressibleError
        target = tuple([rest if size == -1 else size for size in target])
    return Raised("Reshape", {"shape": target})


def _lower_reshape(asked: Lowering) -> tuple[OnnxNode, ...]:
    target, x = sizes(asked.attributes, "shape"), asked.inputs[0].shape or ()
    numbers = tuple([size for size in target if isinstance(size, int)])
    given: dict[str, object] = {}
    if len(numbers) == len(target):
        zeros = [axis for axis, size in enumerate(target) if size == 0]
        if any(x[axis : axis + 1] != (0,) for axis in zeros):
            given["allowzero"] = 1
        return (OnnxNode("Reshape", given, (Arg(0), vector(*numbers))),)
    written = [
        size if isinstance(size, int) else 0 if size == copied else -1
        for size, copied in zip(target, (*x, *[None] * len(target)), strict=False)
    ]
    if 0 in numbers or written.count(-1) > 1:
        raise NotExpressibleError
    return (OnnxNode("Reshape", given, (Arg(0), vector(*written))),)


def _raise_expand(call: OnnxCall) -> Raised:
    target = call.known(1)
    if target is None or not all(map(provably_nonnegative, target)):
        raise NotExpressibleError
    return Raised("Expand", {"shape": broadcast(call.shape(), target)})


def _lower_expand(asked: Lowering) -> tuple[OnnxNode, ...]:
    target, x = sizes(asked.attributes, "shape"), asked.inputs[0].shape
    if x is None:
        raise NotExpressibleError
    aligned = (None,) * (len(target) - len(x)) + x
    # A size that is there already is written as 1, which leaves it as it is.
    written = [
        size if isinstance(size, int) else 1 if size == own else None
        for size, own in zip(target, aligned, strict=True)
    ]
    numbers = [size for size in written if size is not None]
    if len(numbers) != len(written):
        raise NotExpressibleError
    return (OnnxNode("Expand", {}, (Arg(0), vector(*numbers))),)


def _range(size: Size, start: Size, end: Size, step: int) -> tuple[int, int]:
    """Return the offsets of a slice in canonical form."""
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int):
        first, last = (0, size) if step > 0 else (-1, size - 1)
        if step == 0 or last < 0:
            raise NotExpressibleError
        begin, stop = (one + size if one < 0 else one for one in (start, end))
        if step < 0 and begin < 0:
            # NumPy finds no element there, the runtime the first one.
            raise NotExpressibleError
        return max(0, min(begin, last)), max(first, min(stop, last))
    if end == size or (isinstance(end, int) and end >= _FAR):
        end = END
    if isinstance(start, int) and start <= -_FAR:
        start = 0
    if step < 1 or not isinstance(start, int) or not isinstance(end, int):
        raise NotExpressibleError
    return start, end


def _slice_parameters(
    call: OnnxCall,
) -> tuple[tuple[Size, ...], tuple[Size, ...], tuple[int, ...], tuple[int, ...]]:
    starts: tuple[Size, ...] | None
    ends: tuple[Size, ...] | None
    if call.opset < 10:
        starts, ends = call.integers("starts"), call.integers("ends")
        axes, steps = call.integers("axes"), None
    else:
        starts, ends = call.known(1), call.known(2)
        axes, steps = call.known_integers(3), call.known_integers(4)
    if starts is None or ends is None:
        raise NotExpressibleError
    if axes is None:
        axes = tuple(range(len(starts)))
    if steps is None:
        steps = (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise NotExpressibleError
    return starts, ends, axes, steps


def _raise_slice(call: OnnxCall) -> Raised:
    shape = call.shape()
    starts, ends, axes, steps = _slice_parameters(call)
    counted_all(axes, len(shape))
    kept: list[tuple[int, int, int, int]] = []
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        place = counted(axis, len(shape))
        size = shape[place]
        begin, stop = _range(size, start, end, step)
        if (begin, step) != (0, 1) or stop not in (END, size):
            kept.append((place, begin, stop, step))
    if not kept:
        return Raised("Identity")
    columns = tuple(zip(*sorted(kept), strict=True))
    names = ("axes", "starts", "ends", "steps")
    return Raised("Slice", dict(zip(names, columns, strict=True)))


def _lower_slice(asked: Lowering) -> tuple[OnnxNode, ...]:
    axes, steps = integers(asked.attributes, "axes"), integers(asked.attributes, "steps")
    starts = integers(asked.attributes, "starts")
    ends = tuple(
        [
            -END if step < 0 and end == -1 else end
            for end, step in zip(integers(asked.attributes, "ends"), steps, strict=True)
        ]
    )
    plain = all(step == 1 for step in steps)
    if not axes:
        return (OnnxNode("Identity", {}, (Arg(0),)),)
    if asked.opset < 10:
        if not plain:
            raise NotExpressibleError
        given = {"starts": starts, "ends": ends, "axes": axes}
        return (OnnxNode("Slice", given, (Arg(0),)),)
    vectors = (starts, ends, axes) if plain else (starts, ends, axes, steps)
    return (OnnxNode("Slice", {}, (Arg(0), *[vector(*one) for one in vectors])),)


def _raise_pad(call: OnnxCall) -> Raised:
    if call.text("mode", "constant") != "constant":
        raise NotExpressibleError
    if call.opset < 11:
        pads, value = call.integers("pads"), call.floating("value", 0.0)
        axes = None
    else:
        pads, value = call.known_integers(1), call.scalar(2) or 0.0
        axes = call.known_integers(3)
    rank = call.rank()
    places = range(rank) if axes is None else [counted(axis, rank) for axis in axes]
    if pads is None or len(pads) != 2 * len(places) or len(set(places)) < len(places):
        raise NotExpressibleError
    whole = [0] * (2 * rank)
    for position, axis in enumerate(places):
        whole[axis] = pads[position]
        whole[rank + axis] = pads[len(places) + position]
    return Raised("Pad", {"pads": tuple(whole), "value": value})


def _lower_pad(asked: Lowering) -> tuple[OnnxNode, ...]:
    pads, value = integers(asked.attributes, "pads"), floating(asked.attributes, "value")
    if asked.opset < 11:
        given: dict[str, object] = {"pads": pads, **({"value": value} if value else {})}
        return (OnnxNode("Pad", given, (Arg(0),)),)
    constant = (number(value, asked.inputs[0].dtype),) if value else ()
    return (OnnxNode("Pad", {}, (Arg(0), vector(*pads), *constant)),)


def _lower_generator(asked: Lowering) -> tuple[OnnxNode, ...]:
    target = array_dtype(text(asked.attributes, "dtype"))
    array = array_of(asked.name, asked.attributes).astype(target)
    return (OnnxNode("Constant", {"value": array}, ()),)


RAISING: Mapping[str, Raise] = {
    "Reshape": Raise(frozenset({"allowzero"}), _raise_reshape),
    "Expand": Raise(frozenset(), _raise_expand),
    "Slice": Raise(frozenset({"starts", "ends", "axes"}), _raise_slice),
    "Pad": Raise(frozenset({"mode", "pads", "value"}), _raise_pad),
}
LOWERING: Mapping[str, Lower] = {
    "Reshape": _lower_reshape,
    "Expand": _lower_expand,
    "Slice": _lower_slice,
    "Pad": _lower_pad,
    **dict.fromkeys(("Fill", "Eye", "Band"), _lower_generator),
}

"""Forms of operators that permute, join and take axes."""

from collections.abc import Mapping

from rulesets.ops.spec import integer, integers, sizes
from rulesets.size import Size, divide
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


def _raise_transpose(call: OnnxCall) -> Raised:
    perm = call.integers("perm")
    return Raised("Transpose", {"perm": perm or tuple(range(call.rank()))[::-1]})


def _raise_flatten(call: OnnxCall) -> Raised:
    axis, rank = call.integer("axis", 1), call.rank()
    if not -rank <= axis <= rank:
        raise NotExpressibleError
    return Raised("Flatten", {"axis": axis + rank if axis < 0 else axis})


def _raise_concat(call: OnnxCall) -> Raised:
    ranks = {one.tensor.rank for one in call.inputs if one is not None}
    if None in call.inputs or len(ranks) != 1 or None in ranks:
        raise NotExpressibleError
    axis = counted(call.integer("axis", 1), call.rank())
    return Raised("Concat", {"axis": axis}, tuple(range(len(call.inputs))))


def _raise_gather(call: OnnxCall) -> Raised:
    call.operand(1)
    return Raised("Gather", {"axis": counted(call.integer("axis", 0), call.rank())}, (0, 1))


def _axes(call: OnnxCall) -> tuple[int, ...] | None:
    return call.integers("axes") if call.opset < 13 else call.known_integers(1)


def _raise_squeeze(call: OnnxCall) -> Raised:
    axes, shape = _axes(call), call.shape()
    if axes is None:
        # All axes of size 1 go, so every size must be a number.
        if not all(isinstance(size, int) for size in shape):
            raise NotExpressibleError
        axes = tuple([axis for axis, size in enumerate(shape) if size == 1])
    return Raised("Squeeze", {"axes": counted_all(axes, len(shape))})


def _raise_unsqueeze(call: OnnxCall) -> Raised:
    axes = _axes(call)
    if axes is None:
        raise NotExpressibleError
    return Raised("Unsqueeze", {"axes": counted_all(axes, call.rank() + len(axes))})


def _lower_axes(asked: Lowering) -> tuple[OnnxNode, ...]:
    axes = integers(asked.attributes, "axes")
    if not axes:
        # ONNX reads a squeeze without axes as "all of size 1".
        return (OnnxNode("Identity", {}, (Arg(0),)),)
    if asked.opset < 13:
        return (OnnxNode(asked.name, {"axes": axes}, (Arg(0),)),)
    return (OnnxNode(asked.name, {}, (Arg(0), vector(*axes))),)


def _lower_same(asked: Lowering) -> tuple[OnnxNode, ...]:
    return (OnnxNode(asked.name, asked.attributes, asked.arguments),)


def _equal_parts(call: OnnxCall, size: Size) -> tuple[Size, ...]:
    count = call.integer("num_outputs", call.outputs)
    if count < 1:
        raise NotExpressibleError
    part = divide(size, count)
    if part is not None:
        return (part,) * count
    # From opset 18 on the last part may be smaller.
    if call.opset < 18 or not isinstance(size, int):
        raise NotExpressibleError
    large = -(-size // count)
    last = size - large * (count - 1)
    if last < 0:
        raise NotExpressibleError
    return (large,) * (count - 1) + (last,)


def _raise_split(call: OnnxCall) -> Raised:
    shape = call.shape()
    axis = counted(call.integer("axis", 0), len(shape))
    parts: tuple[Size, ...] | None
    parts = call.integers("split") if call.opset < 13 else call.known(1)
    if parts is None:
        parts = _equal_parts(call, shape[axis])
    if len(parts) != call.outputs:
        raise NotExpressibleError
    return Raised("Split", {"axis": axis, "parts": parts})


def _lower_split(asked: Lowering) -> tuple[OnnxNode, ...]:
    parts = sizes(asked.attributes, "parts")
    given: dict[str, object] = {"axis": integer(asked.attributes, "axis")}
    numbers = tuple([part for part in parts if isinstance(part, int)])
    if len(numbers) == len(parts):
        if asked.opset >= 13:
            return (OnnxNode("Split", given, (Arg(0), vector(*numbers))),)
        return (OnnxNode("Split", {**given, "split": numbers}, (Arg(0),)),)
    if len(set(parts)) > 1:
        raise NotExpressibleError
    if asked.opset >= 18:
        given["num_outputs"] = len(parts)
    return (OnnxNode("Split", given, (Arg(0),)),)


def _only(name: str) -> frozenset[str]:
    return frozenset({name})


RAISING: Mapping[str, Raise] = {
    "Transpose": Raise(_only("perm"), _raise_transpose),
    "Flatten": Raise(_only("axis"), _raise_flatten),
    "Concat": Raise(_only("axis"), _raise_concat),
    "Gather": Raise(_only("axis"), _raise_gather),
    "Squeeze": Raise(_only("axes"), _raise_squeeze),
    "Unsqueeze": Raise(_only("axes"), _raise_unsqueeze),
    "Split": Raise(frozenset({"axis", "split", "num_outputs"}), _raise_split),
}
LOWERING: Mapping[str, Lower] = {
    **dict.fromkeys(("Transpose", "Flatten", "Concat", "Gather"), _lower_same),
    **dict.fromkeys(("Squeeze", "Unsqueeze"), _lower_axes),
    "Split": _lower_split,
}

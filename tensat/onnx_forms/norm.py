"""Forms of normalizations, softmax and reductions."""

from collections.abc import Mapping

from rulesets.ops import OPERATORS
from rulesets.ops.spec import integer, integers
from tensat.onnx_forms.call import (
    Arg,
    Lowering,
    NotExpressibleError,
    OnnxCall,
    OnnxNode,
    Raised,
    vector,
)
from tensat.onnx_forms.form import Lower, Raise, attributes_of, counted, counted_all

_EPSILON = 1e-5
_REDUCTIONS = tuple(name for name in OPERATORS if name.startswith("Reduce"))


def _raise_batch(call: OnnxCall) -> Raised:
    """Raise inference only; up to opset 13 further outputs declared mean training."""
    training = call.outputs > 1 if call.opset < 14 else call.integer("training_mode", 0)
    if training or not call.integer("spatial", 1) or len(call.inputs) != 5:
        raise NotExpressibleError
    epsilon = call.floating("epsilon", _EPSILON)
    return Raised("BatchNormalization", {"epsilon": epsilon}, (0, 1, 2, 3, 4))


def _raise_layer(call: OnnxCall) -> Raised:
    if call.integer("stash_type", 1) != 1:
        raise NotExpressibleError
    axis = counted(call.integer("axis", -1), call.rank())
    attributes = {"axis": axis, "epsilon": call.floating("epsilon", _EPSILON)}
    operands = (0, 1) if call.optional(2) is None else (0, 1, 2)
    return Raised(call.op_type, attributes, operands)


def _raise_softmax(call: OnnxCall) -> Raised:
    rank = call.rank()
    if call.opset >= 13:
        axis = counted(call.integer("axis", -1), rank)
        return Raised(call.op_type, {"axis": axis})
    # Up to opset 12 the axes from `axis` on are one; that is one axis if all but one of
    # them have size 1.
    first = counted(call.integer("axis", 1), rank)
    shape = call.shape()
    wide = [axis for axis in range(first, rank) if shape[axis] != 1] or [first]
    if len(wide) > 1:
        raise NotExpressibleError
    return Raised(call.op_type, {"axis": wide[0]})


def _lower_softmax(asked: Lowering) -> tuple[OnnxNode, ...]:
    axis = integer(asked.attributes, "axis")
    if asked.opset < 13:
        shape = asked.inputs[0].shape
        if shape is None or any(size != 1 for size in shape[axis + 1 :]):
            raise NotExpressibleError
    return (OnnxNode(asked.name, {"axis": axis}, (Arg(0),)),)


def _axes_are_input(name: str, opset: int) -> bool:
    return opset >= (13 if name == "ReduceSum" else 18)


def _raise_reduce(call: OnnxCall) -> Raised:
    rank = call.rank()
    if _axes_are_input(call.op_type, call.opset):
        axes = call.known_integers(1)
    else:
        axes = call.integers("axes")
        if axes == ():
            raise NotExpressibleError
    if not axes:
        if call.integer("noop_with_empty_axes", 0):
            # Only a reduction that maps one element to itself may be left out.
            if call.op_type == "ReduceL2":
                raise NotExpressibleError
            return Raised("Identity")
        axes = tuple(range(rank))
    keepdims = int(call.integer("keepdims", 1) != 0)
    return Raised(call.op_type, {"axes": counted_all(axes, rank), "keepdims": keepdims})


def _lower_reduce(asked: Lowering) -> tuple[OnnxNode, ...]:
    axes = integers(asked.attributes, "axes")
    given = attributes_of(asked)
    del given["axes"]
    if not axes:
        return (OnnxNode(asked.name, given, (Arg(0),)),)
    if _axes_are_input(asked.name, asked.opset):
        return (OnnxNode(asked.name, given, (Arg(0), vector(*axes))),)
    return (OnnxNode(asked.name, {"axes": axes, **given}, (Arg(0),)),)


def _lower_trailing(asked: Lowering) -> tuple[OnnxNode, ...]:
    given = attributes_of(asked)
    if given["axis"] == (asked.inputs[0].rank or 0) - 1:
        del given["axis"]
    return (OnnxNode(asked.name, given, asked.arguments),)


def _lower_batch(asked: Lowering) -> tuple[OnnxNode, ...]:
    return (OnnxNode(asked.name, attributes_of(asked), asked.arguments),)


RAISING: Mapping[str, Raise] = {
    "BatchNormalization": Raise(
        frozenset({"epsilon", "momentum", "spatial", "training_mode"}), _raise_batch
    ),
    "LayerNormalization": Raise(frozenset({"axis", "epsilon", "stash_type"}), _raise_layer),
    "RMSNormalization": Raise(frozenset({"axis", "epsilon", "stash_type"}), _raise_layer),
    **dict.fromkeys(("Softmax", "LogSoftmax"), Raise(frozenset({"axis"}), _raise_softmax)),
    **dict.fromkeys(
        _REDUCTIONS,
        Raise(frozenset({"axes", "keepdims", "noop_with_empty_axes"}), _raise_reduce),
    ),
}
LOWERING: Mapping[str, Lower] = {
    "BatchNormalization": _lower_batch,
    "LayerNormalization": _lower_trailing,
    "RMSNormalization": _lower_trailing,
    **dict.fromkeys(("Softmax", "LogSoftmax"), _lower_softmax),
    **dict.fromkeys(_REDUCTIONS, _lower_reduce),
}

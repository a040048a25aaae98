"""Forms of operators that read alike in ONNX: elementwise ones, matrix products, casts."""

from collections.abc import Mapping
from math import inf

import numpy as np

from rulesets.ops import OPERATORS, added
from rulesets.ops.spec import ANY, FLOATS, Operator, Value, floating, integer, text
from rulesets.tensor import Tensor
from tensat.onnx_forms.call import (
    Absent,
    Arg,
    Const,
    Lowering,
    NotExpressibleError,
    OnnxCall,
    OnnxNode,
    Raised,
    Ref,
)
from tensat.onnx_forms.form import Lower, Raise, attributes_of
from tensat.onnx_forms.schema import array_dtype, type_name, type_number

# ONNX's defaults of these are the canonical ones, and so are the names.
_SAME = (
    *("Identity", "Relu", "LeakyRelu", "Sigmoid", "Tanh", "Erf", "Exp", "Log", "Sqrt"),
    *("Reciprocal", "Neg", "Abs", "HardSigmoid", "HardSwish", "Gelu", "Softplus", "Elu"),
    *("Floor", "Ceil", "Round", "Sign", "Not", "Sin", "Cos"),
    *("Add", "Sub", "Mul", "Div", "Pow", "Equal", "Less", "Greater", "LessOrEqual"),
    *("GreaterOrEqual", "And", "Or", "Where", "MatMul"),
    *("GlobalAveragePool", "GlobalMaxPool", "InstanceNormalization", "LRN"),
)
_VARIADIC = ("Max", "Min", "Sum")
_BFLOAT16_MOST = (2 - 2**-7) * 2.0**127
_GELU = frozenset({"none", "tanh"})


def read_attributes(call: OnnxCall, operator: Operator) -> dict[str, Value]:
    """Return the attributes of a node that are called as the canonical ones.

    Raises:
        NotExpressibleError: One is missing or has a value of another kind.
    """
    result: dict[str, Value] = {}
    for one in operator.attributes:
        if one.name not in call.attributes:
            if one.default is None:
                raise NotExpressibleError
        elif one.kind == "int":
            result[one.name] = call.integer(one.name, 0)
        elif one.kind == "float":
            result[one.name] = call.floating(one.name, 0.0)
        else:
            result[one.name] = call.text(one.name, "")
    return result


def own_raise(name: str) -> Raise | None:
    """Return how nodes of an operator that a caller has added are raised: as they are."""
    if not added(name):
        return None
    return Raise(frozenset(one.name for one in OPERATORS[name].attributes), _raise_same)


def own_lower(name: str) -> Lower | None:
    """Return how an operator that a caller has added is written: as it is."""
    return _lower_same if added(name) else None


def _raise_same(call: OnnxCall) -> Raised:
    if None in call.inputs:
        raise NotExpressibleError
    attributes = read_attributes(call, OPERATORS[call.op_type])
    if attributes.get("approximate", "none") not in _GELU:
        raise NotExpressibleError
    return Raised(call.op_type, attributes, tuple(range(len(call.inputs))))


def _lower_same(asked: Lowering) -> tuple[OnnxNode, ...]:
    return (OnnxNode(asked.name, attributes_of(asked), asked.arguments),)


def _lower_variadic(asked: Lowering) -> tuple[OnnxNode, ...]:
    # Before opset 8 these did not broadcast.
    if asked.opset < 8 and len({one.shape for one in asked.inputs}) > 1:
        raise NotExpressibleError
    return _lower_same(asked)


def _raise_dropout(call: OnnxCall) -> Raised:
    """At inference dropout does nothing; a mask that is used stays as it is."""
    training = call.optional(2)
    if training is not None and (training.array is None or training.array.any()):
        raise NotExpressibleError
    return Raised("Identity")


def _raise_cast(call: OnnxCall) -> Raised:
    # saturate and round_mode concern 8-bit floats only, which have no canonical form.
    target = type_name(call.integer("to", 0))
    if target not in ANY:
        raise NotExpressibleError
    return Raised("Cast", {"to": target})


def _lower_cast(asked: Lowering) -> tuple[OnnxNode, ...]:
    number = type_number(text(asked.attributes, "to"))
    return (OnnxNode("Cast", {"to": number}, (Arg(0),)),)


def _limits(tensor: Tensor) -> tuple[float, float]:
    if tensor.dtype in FLOATS:
        most = _BFLOAT16_MOST if tensor.dtype == "bfloat16" else np.finfo(tensor.dtype).max
        return -float(most), float(most)
    whole = np.iinfo(tensor.dtype)
    return float(whole.min), float(whole.max)


def _raise_clip(call: OnnxCall) -> Raised:
    tensor = call.operand(0).tensor
    if tensor.dtype not in ANY - {"bool"}:
        raise NotExpressibleError
    if call.opset < 11:
        bound = float(np.finfo(np.float32).max)
        low, high = call.floating("min", -bound), call.floating("max", bound)
    else:
        found = call.scalar(1), call.scalar(2)
        low = -inf if found[0] is None else found[0]
        high = inf if found[1] is None else found[1]
    # An absent bound is the type's extreme value, so that value means "no bound".
    least, most = _limits(tensor)
    low, high = (-inf if low <= least else low), (inf if high >= most else high)
    return Raised("Clip", {"min": low, "max": high})


def number(value: float, dtype: str) -> Const:
    """Return a constant of rank 0 and the given type.

    Raises:
        NotExpressibleError: The type has no such value.
    """
    target = array_dtype(dtype)
    if target.kind in "iub" and not float(value).is_integer():
        raise NotExpressibleError
    if dtype == "bool" and value not in {0, 1}:
        raise NotExpressibleError
    if target.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise NotExpressibleError
    return Const(np.array(int(value) if target.kind in "iub" else value, target))


def _lower_clip(asked: Lowering) -> tuple[OnnxNode, ...]:
    low, high = floating(asked.attributes, "min"), floating(asked.attributes, "max")
    if asked.opset < 11:
        given = {
            name: bound for name, bound in (("min", low), ("max", high)) if abs(bound) < inf
        }
        return (OnnxNode("Clip", given, (Arg(0),)),)
    dtype = asked.inputs[0].dtype
    bounds: list[Ref] = [
        number(bound, dtype) if abs(bound) < inf else Absent() for bound in (low, high)
    ]
    while bounds and isinstance(bounds[-1], Absent):
        bounds.pop()
    return (OnnxNode("Clip", {}, (Arg(0), *bounds)),)


def _raise_gemm(call: OnnxCall) -> Raised:
    attributes = read_attributes(call, OPERATORS["Gemm"])
    for name in ("transA", "transB"):
        attributes[name] = int(call.integer(name, 0) != 0)
    third = call.optional(2)
    zero = third is not None and third.array is not None and third.array.size == 1
    if third is None or (zero and third.array is not None and not third.array.any()):
        return Raised("Gemm", {**attributes, "beta": 1.0}, (0, 1))
    return Raised("Gemm", attributes, (0, 1, 2))


def _lower_gemm(asked: Lowering) -> tuple[OnnxNode, ...]:
    arguments = asked.arguments
    given = attributes_of(asked)
    if len(arguments) == 2:
        given.pop("beta", None)
        if asked.opset < 11:
            # The third input was not optional yet.
            zero = Const(np.zeros(1, array_dtype(asked.inputs[0].dtype)))
            arguments = (*arguments, zero)
    for name in ("transA", "transB"):
        if name in given:
            given[name] = integer(asked.attributes, name)
    return (OnnxNode("Gemm", given, arguments),)


RAISING: Mapping[str, Raise] = {
    **{
        name: Raise(frozenset(one.name for one in OPERATORS[name].attributes), _raise_same)
        for name in (*_SAME, *_VARIADIC)
    },
    "Dropout": Raise(frozenset({"ratio", "seed"}), _raise_dropout),
    "Cast": Raise(frozenset({"to", "saturate", "round_mode"}), _raise_cast),
    "Clip": Raise(frozenset({"min", "max"}), _raise_clip),
    "Gemm": Raise(frozenset({"alpha", "beta", "transA", "transB"}), _raise_gemm),
}
LOWERING: Mapping[str, Lower] = {
    **dict.fromkeys(_SAME, _lower_same),
    **dict.fromkeys(_VARIADIC, _lower_variadic),
    "Cast": _lower_cast,
    "Clip": _lower_clip,
    "Gemm": _lower_gemm,
}

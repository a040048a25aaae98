"""Composite operators at opsets that do not have them yet, written out.

Each is written in the one form that ONNX Runtime fuses into a single kernel when it loads
the model (1.32: its Gelu, FastGelu, layer norm and RMS norm fusions; a hard swish it takes
apart itself). So the kernel is the same at every opset. What it would not fuse is not
written: normalizations over more than the last axis, weights of several axes.
"""

from collections.abc import Mapping
from math import pi, sqrt

import numpy as np

from rulesets.ops.spec import floating, integer, text
from tensat.onnx_forms.call import (
    Arg,
    Const,
    Lowering,
    Node,
    NotExpressibleError,
    OnnxNode,
    Ref,
    vector,
)
from tensat.onnx_forms.form import Lower
from tensat.onnx_forms.schema import array_dtype

_WIDE = frozenset({"float32", "float64"})
_X = Arg(0)


def _number(asked: Lowering, value: float) -> Const:
    """Return a number of the argument's type; narrow types would not keep its digits."""
    dtype = asked.inputs[0].dtype
    if dtype not in _WIDE:
        raise NotExpressibleError
    return Const(np.array(value, array_dtype(dtype)))


def _node(op_type: str, *inputs: Ref, **attributes: object) -> OnnxNode:
    return OnnxNode(op_type, attributes, inputs)


def _hard_swish(asked: Lowering) -> tuple[OnnxNode, ...]:
    if asked.inputs[0].dtype not in _WIDE:
        raise NotExpressibleError
    gate = _node("HardSigmoid", _X, alpha=float(np.float32(1 / 6)), beta=0.5)
    return gate, _node("Mul", _X, Node(0))


def _gelu(asked: Lowering) -> tuple[OnnxNode, ...]:
    one, half = _number(asked, 1.0), _number(asked, 0.5)
    if text(asked.attributes, "approximate") == "none":
        return (
            _node("Div", _X, _number(asked, sqrt(2))),
            _node("Erf", Node(0)),
            _node("Add", Node(1), one),
            _node("Mul", _X, Node(2)),
            _node("Mul", Node(3), half),
        )
    return (
        _node("Pow", _X, _number(asked, 3.0)),
        _node("Mul", Node(0), _number(asked, 0.044715)),
        _node("Add", _X, Node(1)),
        _node("Mul", Node(2), _number(asked, sqrt(2 / pi))),
        _node("Tanh", Node(3)),
        _node("Add", Node(4), one),
        _node("Mul", _X, half),
        _node("Mul", Node(6), Node(5)),
    )


def _only_last_axis(asked: Lowering) -> int:
    """Return the number of axes of what is normalized over the last of several."""
    shape = asked.inputs[0].shape or ()
    fits = all(one.shape == shape[-1:] for one in asked.inputs[1:])
    if len(shape) < 2 or integer(asked.attributes, "axis") != len(shape) - 1 or not fits:
        raise NotExpressibleError
    return len(shape)


def _mean(asked: Lowering, x: Ref, rank: int) -> OnnxNode:
    if asked.opset >= 18:
        return _node("ReduceMean", x, vector(rank - 1))
    return _node("ReduceMean", x, axes=(rank - 1,))


def _divided(asked: Lowering, x: Ref, first: int, rank: int) -> tuple[OnnxNode, ...]:
    """Return x by the root of its mean square; the nodes count from `first`."""
    epsilon = _number(asked, floating(asked.attributes, "epsilon"))
    return (
        _node("Pow", x, _number(asked, 2.0)),
        _mean(asked, Node(first), rank),
        _node("Add", Node(first + 1), epsilon),
        _node("Sqrt", Node(first + 2)),
        _node("Div", x, Node(first + 3)),
    )


def _rms_norm(asked: Lowering) -> tuple[OnnxNode, ...]:
    rank = _only_last_axis(asked)
    return *_divided(asked, _X, 0, rank), _node("Mul", Node(4), Arg(1))


def _layer_norm(asked: Lowering) -> tuple[OnnxNode, ...]:
    rank = _only_last_axis(asked)
    bias: Ref = Arg(2)
    if len(asked.inputs) == 2:
        # Without a bias the runtime would fuse only a part.
        (size,) = asked.inputs[1].shape or ()
        if not isinstance(size, int):
            raise NotExpressibleError
        bias = Const(np.zeros(size, array_dtype(asked.inputs[0].dtype)))
    return (
        _mean(asked, _X, rank),
        _node("Sub", _X, Node(0)),
        *_divided(asked, Node(1), 2, rank),
        _node("Mul", Node(6), Arg(1)),
        _node("Add", Node(7), bias),
    )


WRITTEN_OUT: Mapping[str, Lower] = {
    "HardSwish": _hard_swish,
    "Gelu": _gelu,
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
}

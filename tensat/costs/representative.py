"""Which signatures take the same time, so that one of them is timed for all.

The number that a constant holds, the bounds of a Clip or the epsilon of a normalization do
not change what a kernel does; a model with a hundred different scales would otherwise be a
hundred measurements. Views do not touch their bytes, so their size does not matter either.
A constant bias is added where the kernel writes anyway, and a constant second operand is
packed when the model is loaded, transposed or not: a Conv with bias is timed without, a
batched MatMul by a constant matrix as the MatMul of matrices that it is, a Gemm as the
one whose operands are not transposed. Timed apart, forms of one kernel would differ by
noise, and noise would choose between them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from tensat.costs.source import VIEW_OPERATORS, Argument, Signature

# Operators whose kernel depends on the value of a constant with one element.
_BY_VALUE = frozenset({"Pow"})
_INDIFFERENT: Mapping[str, Mapping[str, object]] = {
    "Clip": {"min": 0.0, "max": 6.0},
    "LeakyRelu": {"alpha": 0.25},
    "Elu": {"alpha": 1.0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "LRN": {"alpha": 1e-4, "bias": 1.0},
    "BatchNormalization": {"epsilon": 1e-5},
    "LayerNormalization": {"epsilon": 1e-5},
    "RMSNormalization": {"epsilon": 1e-5},
    "InstanceNormalization": {"epsilon": 1e-5},
    "Pad": {"value": 0.0},
}


_PARAMETERS: Mapping[str, tuple[float, ...]] = {
    "Clip": (0.0, 6.0),
    "LeakyRelu": (0.25,),
    "HardSigmoid": (0.2, 0.5),
}
"""Parameters of activations within a convolution."""


def representative(signature: Signature) -> Signature:
    """Return the signature that is timed for this one; equal ones take the same time."""
    if signature.op in VIEW_OPERATORS:
        return _view(signature)
    if signature.op == "com.microsoft.nchwc:Conv":
        return _blocked_convolution(signature)
    signature = _linear(signature)
    neutral = _INDIFFERENT.get(signature.op, {})
    attributes = tuple((name, neutral.get(name, v)) for name, v in signature.attributes)
    inputs = signature.inputs
    if signature.op not in _BY_VALUE:
        inputs = tuple(None if a is None else replace(a, value=None) for a in inputs)
    return replace(signature, attributes=attributes, inputs=inputs)


def _linear(signature: Signature) -> Signature:
    """Return the plain form of a kernel with constant weights."""
    inputs = signature.inputs
    constant = [argument is not None and argument.constant for argument in inputs]
    if signature.op in {"Conv", "ConvTranspose"} and constant[2:] == [True]:
        return replace(signature, inputs=inputs[:2])
    if signature.op not in {"Gemm", "MatMul"} or not all(constant[1:]) or constant[0]:
        return signature
    a, b = inputs[0], inputs[1]
    given = dict(signature.attributes)
    if a is None or b is None or len(b.dims) != 2 or len(a.dims) < 2 or given.get("transA"):
        return signature
    if given.get("transB"):
        b = replace(b, dims=b.dims[::-1])
    out = signature.outputs[0]
    rows, columns = math.prod(a.dims[:-1]), b.dims[1]
    matrix = replace(a, dims=(rows, a.dims[-1]))
    result = (replace(out, dims=(rows, columns)),)
    if len(inputs) < 3 or inputs[2] is None:
        return Signature("MatMul", (), (matrix, b), result, signature.opset)
    # A bias is written into the result first: one pass more.
    bias = replace(inputs[2], dims=(columns,))
    plain = (("alpha", 1.0), ("beta", 1.0), ("transA", 0), ("transB", 0))
    return Signature("Gemm", plain, (matrix, b, bias), result, signature.opset)


def _blocked_convolution(signature: Signature) -> Signature:
    """Return the kernel without what it does not read from memory, defaults left out."""
    given = dict(signature.attributes)
    activation = given.get("activation")
    if "activation_params" in given and isinstance(activation, str):
        given["activation_params"] = _PARAMETERS.get(activation, ())
    usual: Mapping[str, object] = {"group": 1, "auto_pad": "NOTSET"}
    kept = {
        name: value
        for name, value in given.items()
        if usual.get(name) != value
        and not (name in {"strides", "dilations"} and set(_numbers(value)) == {1})
        and not (name == "pads" and set(_numbers(value)) == {0})
    }
    inputs = list(signature.inputs)
    if len(inputs) > 2 and inputs[2] is not None and inputs[2].constant:
        inputs[2] = None
    while inputs[-1] is None:
        inputs.pop()
    return replace(signature, attributes=tuple(sorted(kept.items())), inputs=tuple(inputs))


def _numbers(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def _view(signature: Signature) -> Signature:
    dtype = signature.outputs[0].dtype
    square, row = Argument(dtype, (2, 2)), Argument(dtype, (4,))
    return Signature("Reshape", (("shape", (4,)),), (square,), (row,), signature.opset)

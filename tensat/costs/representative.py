"""Which signatures take the same time, so that one of them is timed for all.

The number that a constant holds, the bounds of a Clip or the epsilon of a normalization do
not change what a kernel does; a model with a hundred different scales would otherwise be a
hundred measurements. Views do not touch their bytes, so their size does not matter either.
"""

from __future__ import annotations

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


def representative(signature: Signature) -> Signature:
    """Return the signature that is timed for this one; equal ones take the same time."""
    if signature.op in VIEW_OPERATORS:
        return _view(signature)
    neutral = _INDIFFERENT.get(signature.op, {})
    attributes = tuple((name, neutral.get(name, v)) for name, v in signature.attributes)
    inputs = signature.inputs
    if signature.op not in _BY_VALUE:
        inputs = tuple(None if a is None else replace(a, value=None) for a in inputs)
    return replace(signature, attributes=attributes, inputs=inputs)


def _view(signature: Signature) -> Signature:
    dtype = signature.outputs[0].dtype
    square, row = Argument(dtype, (2, 2)), Argument(dtype, (4,))
    return Signature("Reshape", (("shape", (4,)),), (square,), (row,), signature.opset)

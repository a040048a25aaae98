"""Operators that an array library computes with one kernel of its own.

CuPy hands products of matrices to cuBLAS and has one generated kernel for each elementwise
function, reduction and transposed copy. Only such operators can be compared kernel by
kernel; a softmax or a sigmoid would be several calls there. The functions take the module
as an argument, since NumPy has all of them under the same names: what they compute is
checked with NumPy, how fast it is is timed with CuPy.

Source: https://docs.cupy.dev/en/stable/reference/comparison.html (NumPy's names in CuPy).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tensat.costs.source import Signature
from tensat.cuda.device import NativeCall

_FLOATS = frozenset({"float16", "float32", "float64"})  # what both libraries compute in
_UNARY = {
    "Abs": "absolute",
    "Ceil": "ceil",
    "Cos": "cos",
    "Exp": "exp",
    "Floor": "floor",
    "Log": "log",
    "Neg": "negative",
    "Reciprocal": "reciprocal",
    "Sin": "sin",
    "Sqrt": "sqrt",
    "Tanh": "tanh",
}
_BINARY = {
    "Add": "add",
    "Div": "divide",
    "Max": "maximum",
    "Min": "minimum",
    "Mul": "multiply",
    "Pow": "power",
    "Sub": "subtract",
}
_REDUCTIONS = {
    "ReduceMax": "max",
    "ReduceMean": "mean",
    "ReduceMin": "min",
    "ReduceProd": "prod",
    "ReduceSum": "sum",
}


def native_call(signature: Signature) -> NativeCall | None:
    """Return the one call that computes an operator; None if there is none.

    The call takes the array module and the operator's inputs, and returns its output.
    """
    arguments = (*signature.inputs, *signature.outputs)
    if any(a is None or a.dtype not in _FLOATS for a in arguments):
        return None
    if len({a.dtype for a in arguments if a is not None}) > 1:
        return None
    makers: tuple[Callable[[Signature], NativeCall | None], ...] = (
        *(_elementwise, _reduction),
        *(_product, _transposition),
    )
    calls = (make(signature) for make in makers)
    return next((call for call in calls if call is not None), None)


def _elementwise(signature: Signature) -> NativeCall | None:
    count = len(signature.inputs)
    if signature.op == "Relu":
        return _relu
    if signature.op in _UNARY and count == 1:
        return partial(_apply, _UNARY[signature.op])
    if signature.op in _BINARY and count == 2:
        return partial(_apply, _BINARY[signature.op])
    return None


def _reduction(signature: Signature) -> NativeCall | None:
    attributes = dict(signature.attributes)
    axes = attributes.get("axes")
    if signature.op not in _REDUCTIONS or not isinstance(axes, tuple):
        return None
    keepdims = bool(attributes.get("keepdims", 1))
    return partial(_reduce, _REDUCTIONS[signature.op], axes, keepdims)


def _product(signature: Signature) -> NativeCall | None:
    return partial(_apply, "matmul") if signature.op == "MatMul" else None


def _transposition(signature: Signature) -> NativeCall | None:
    perm = dict(signature.attributes).get("perm")
    if signature.op != "Transpose" or not isinstance(perm, tuple):
        return None
    return partial(_transpose, perm)


def _relu(module: Any, arrays: Sequence[Any]) -> object:
    return module.maximum(arrays[0], 0)


def _apply(name: str, module: Any, arrays: Sequence[Any]) -> object:
    return getattr(module, name)(*arrays)


def _reduce(
    name: str, axes: tuple[int, ...], keepdims: bool, module: Any, arrays: Sequence[Any]
) -> object:
    return getattr(module, name)(arrays[0], axis=axes, keepdims=keepdims)


def _transpose(perm: tuple[int, ...], module: Any, arrays: Sequence[Any]) -> object:
    return module.ascontiguousarray(module.transpose(arrays[0], perm))

"""What is timed in CuPy computes the operator; shown with NumPy, which has its names."""

from __future__ import annotations

import numpy as np
import pytest

from rulesets.ops import OPERATORS
from rulesets.tensor import Tensor
from tensat.costs.source import Argument, Signature
from tensat.cuda.native import native_call
from tensat.onnx_forms import lower
from tests.rulesets.ops.cases import Case, cases
from tests.tensat.onnx_forms.models import NEWEST, model_of, random_array, run

F = "float32"
EVERY = [
    *("Abs", "Add", "Ceil", "Cos", "Div", "Exp", "Floor", "Log", "MatMul", "Max"),
    *("Min", "Mul", "Neg", "Pow", "Reciprocal", "ReduceMax", "ReduceMean", "ReduceMin"),
    *("ReduceProd", "ReduceSum", "Relu", "Sin", "Sqrt", "Sub", "Tanh", "Transpose"),
]


def _signature(case: Case) -> Signature:
    outputs = case.operator.infer(case.attributes, case.inputs)
    return Signature(
        case.name,
        tuple(sorted(case.attributes.items())),
        tuple(_argument(tensor) for tensor in case.inputs),
        tuple(_argument(tensor) for tensor in outputs),
        NEWEST,
    )


def _argument(tensor: Tensor) -> Argument:
    assert tensor.shape is not None
    return Argument(tensor.dtype, tuple(int(size) for size in tensor.shape))


def _applications(name: str) -> list[tuple[Case, Signature]]:
    found = [(case, _signature(case)) for case in cases(5, 12) if case.name == name]
    return [(case, s) for case, s in found if native_call(s) is not None]


def test_operators_with_a_native_kernel() -> None:
    """Exactly these canonical operators have one kernel in CuPy in some application."""
    assert sorted({name for name in OPERATORS if _applications(name)}) == EVERY


@pytest.mark.parametrize("name", EVERY)
def test_the_native_kernel_computes_the_operator(name: str) -> None:
    """On random applications the call returns what ONNX Runtime does."""
    for case, signature in _applications(name):
        arrays = [random_array(one, 7 + k) for k, one in enumerate(case.inputs)]
        arrays = [np.asarray(np.abs(a) + 0.5, a.dtype) for a in arrays]
        outputs = case.operator.infer(case.attributes, case.inputs)
        nodes = lower(case.name, case.attributes, case.inputs, outputs, NEWEST)
        call = native_call(signature)
        assert nodes is not None
        assert call is not None
        found = np.asarray(call(np, arrays))
        (wanted,) = run(model_of(nodes, case.inputs, 1, NEWEST), arrays)
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        tolerance = 1e-2 if wanted.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def _of(op: str, *inputs: Argument | None, **attributes: object) -> Signature:
    given = tuple(sorted(attributes.items()))
    return Signature(op, given, inputs, (Argument(F, (2, 2)),), 21)


X = Argument(F, (2, 2))


@pytest.mark.parametrize(
    "signature",
    [
        _of("Softmax", X, axis=1),
        _of("Add", X, Argument("int32", (2, 2))),
        _of("Add", Argument("int64", (2, 2)), Argument("int64", (2, 2))),
        _of("Add", Argument("bfloat16", (2, 2)), Argument("bfloat16", (2, 2))),
        _of("Max", X, X, X),
        _of("Gemm", X, X, Argument(F, (2,)), alpha=1.0, beta=1.0, transA=0, transB=0),
        _of("MatMul", X, None),
        _of("com.microsoft:FusedMatMul", X, X),
    ],
    ids=str,
)
def test_other_operators_have_none(signature: Signature) -> None:
    """What CuPy would need several calls for, or computes otherwise, is not compared."""
    assert native_call(signature) is None

"""Following the values of shape computations."""

from dataclasses import dataclass

import numpy as np
import pytest

from rulesets.size import Size, evaluate, floor_div, symbol
from rulesets.tensor import Tensor
from tensat.onnx_forms import Known, OnnxCall, Operand, propagate
from tests.tensat.onnx_forms.models import constant, model_of_call, run

N, M = symbol("n"), symbol("m")
VALUES = {"n": 4, "m": 3}


def vector(*entries: Size, dtype: str = "int64") -> Operand:
    """Return a vector whose entries are known, perhaps symbolically."""
    return Operand(Tensor(dtype, (len(entries),)), None, entries)


def scalar(entry: Size) -> Operand:
    """Return a tensor of rank 0 whose value is known."""
    return Operand(Tensor("int64", ()), None, (entry,))


def call(
    op_type: str, opset: int, *inputs: Operand | None, **attributes: object
) -> OnnxCall:
    """Return a node with one output."""
    return OnnxCall(op_type, opset, attributes, inputs)


IMAGE = Operand(Tensor("float32", (N, 3, M, 8)))


@dataclass(frozen=True)
class Step:
    """A node and the value of its output."""

    id: str
    call: OnnxCall
    sizes: tuple[Size, ...]
    scalar: bool = False


STEPS = (
    Step("shape", call("Shape", 13, IMAGE), (N, 3, M, 8)),
    Step("shape-part", call("Shape", 15, IMAGE, start=1, end=-1), (3, M)),
    Step("shape-far", call("Shape", 15, IMAGE, start=-9, end=9), (N, 3, M, 8)),
    Step("size", call("Size", 13, IMAGE), (N * M * 24,), True),
    Step("gather", call("Gather", 13, vector(N, 3, M), constant(-1)), (M,), True),
    Step("gather-some", call("Gather", 13, vector(N, 3, M), constant([2, 0])), (M, N)),
    Step(
        "slice",
        call("Slice", 13, vector(N, 3, M), *map(constant, ([1], [2**31], [0]))),
        (3, M),
    ),
    Step("slice-old", call("Slice", 9, vector(N, 3, M), starts=(-2,), ends=(-1,)), (3,)),
    Step(
        "slice-reversed",
        call("Slice", 13, vector(N, 3, M), *map(constant, ([-1], [-(2**63)], [0], [-1]))),
        (M, 3, N),
    ),
    Step(
        "slice-before-first",
        call("Slice", 13, vector(N, 3, M), *map(constant, ([-9], [2], [0]))),
        (N, 3),
    ),
    Step("concat", call("Concat", 13, vector(N, 2), constant([-1]), axis=0), (N, 2, -1)),
    Step("unsqueeze", call("Unsqueeze", 13, scalar(N), constant([0])), (N,)),
    Step("unsqueeze-old", call("Unsqueeze", 11, scalar(N), axes=(-1,)), (N,)),
    Step("squeeze", call("Squeeze", 13, vector(N), constant([0])), (N,), True),
    Step("squeeze-all", call("Squeeze", 11, vector(N)), (N,), True),
    Step("cast", call("Cast", 13, vector(N, M), to=6), (N, M)),
    Step("identity", call("Identity", 13, scalar(N)), (N,), True),
    Step(
        "reshape-to-scalar",
        call("Reshape", 13, vector(N), constant(np.zeros(0))),
        (N,),
        True,
    ),
    Step("to-vector", call("Reshape", 13, scalar(N), constant([-1])), (N,)),
    Step("add", call("Add", 13, vector(N, 2), scalar(1)), (N + 1, 3)),
    Step("add-scalars", call("Add", 13, scalar(N), scalar(M)), (N + M,), True),
    Step("sub", call("Sub", 13, scalar(N), scalar(N)), (0,), True),
    Step("mul", call("Mul", 13, vector(N, M), vector(2)), (N * 2, M * 2)),
    Step("div-exact", call("Div", 13, scalar(N * M), scalar(M)), (N,), True),
    Step("div-floor", call("Div", 13, scalar(N), scalar(2)), (floor_div(N, 2),), True),
    Step("div-exact-negative", call("Div", 13, scalar(N * -6), scalar(3)), (N * -2,), True),
    Step("max", call("Max", 13, scalar(N + 2), scalar(1)), (N + 2,), True),
    Step("min", call("Min", 13, vector(N + 2, 0), vector(1, 5)), (1, 0)),
    Step("equal", call("Equal", 13, vector(N, 2, N), vector(N, -1, N + 1)), (1, 0, 0)),
    Step("less", call("Less", 13, scalar(N), scalar(N + 1)), (1,), True),
    Step(
        "where",
        call("Where", 13, vector(1, 0, dtype="bool"), vector(5, 6), vector(N, M)),
        (5, M),
    ),
    Step(
        "constant-of-shape",
        call("ConstantOfShape", 13, constant([3]), value=np.array([1], np.int64)),
        (1, 1, 1),
    ),
    Step("range", call("Range", 13, *map(constant, (1, 6, 2))), (1, 3, 5)),
    Step(
        "product", call("ReduceProd", 13, vector(N, 2, M), keepdims=0), (N * M * 2,), True
    ),
    Step("product-kept", call("ReduceProd", 18, vector(N, 2), constant([0])), (N * 2,)),
)


@pytest.mark.parametrize("step", STEPS, ids=[step.id for step in STEPS])
def test_value_is_followed(step: Step) -> None:
    """The output's entries, and whether it is a scalar, are known."""
    assert propagate(step.call) == Known(step.sizes, step.scalar)


@pytest.mark.parametrize("step", STEPS, ids=[step.id for step in STEPS])
def test_value_followed_is_the_computed_one(step: Step) -> None:
    """With actual sizes, ONNX computes the entries that were predicted."""
    arrays = []
    for operand in step.call.inputs:
        assert operand is not None
        if operand.array is None:
            arrays.append(_actual(operand))
    inputs = tuple(
        [
            Operand(_typed(operand)) if operand and operand.array is None else operand
            for operand in step.call.inputs
        ]
    )
    one = OnnxCall(step.call.op_type, step.call.opset, step.call.attributes, inputs)
    (found,) = run(model_of_call(one), arrays)
    expected = [evaluate(size, VALUES) for size in step.sizes]
    assert found.ndim == int(not step.scalar)
    assert found.reshape(-1).tolist() == expected


def _typed(operand: Operand) -> Tensor:
    shape = tuple([evaluate(size, VALUES) for size in operand.tensor.shape or ()])
    return Tensor(operand.tensor.dtype, shape)


def _actual(operand: Operand) -> np.ndarray:
    tensor = _typed(operand)
    if operand.sizes is None:
        return np.zeros(tensor.shape, tensor.dtype)
    entries = [evaluate(size, VALUES) for size in operand.sizes]
    return np.array(entries, tensor.dtype).reshape(tensor.shape)


UNKNOWN = {
    "rank-unknown": call("Shape", 13, Operand(Tensor("float32", None))),
    "float": call(
        "Add", 13, Operand(Tensor("float32", (1,)), np.ones(1, np.float32)), scalar(1)
    ),
    "cast-to-float": call("Cast", 13, scalar(N), to=1),
    "cast-to-byte": call("Cast", 13, scalar(N), to=2),
    "div-perhaps-negative": call("Div", 13, scalar(N - 5), scalar(2)),
    "div-by-zero": call("Div", 13, scalar(4), scalar(0)),
    "div-negative-truncates": call("Div", 13, scalar(-7), scalar(2)),
    "equal-unknown": call("Equal", 13, scalar(N), scalar(M)),
    "gather-symbolic-place": call("Gather", 13, vector(1, 2), scalar(N)),
    "gather-outside": call("Gather", 13, vector(1, 2), constant(2)),
    "length-mismatch": call("Add", 13, vector(1, 2), vector(1, 2, 3)),
    "too-many-entries": call("ConstantOfShape", 13, constant([65]), value=np.array([1])),
    "constant-of-shape-float": call("ConstantOfShape", 13, constant([2])),
    "rank-two": call("Unsqueeze", 13, vector(N, M), constant([0])),
    "unknown-operator": call("NonZero", 13, vector(1, 2)),
    "range-symbolic": call("Range", 13, scalar(0), scalar(N), scalar(1)),
    "slice-step-zero": call("Slice", 13, vector(1), *map(constant, ([0], [1], [0], [0]))),
}


@pytest.mark.parametrize("one", UNKNOWN.values(), ids=UNKNOWN)
def test_value_is_not_followed(one: OnnxCall) -> None:
    """What is not provable is not known."""
    assert propagate(one) is None

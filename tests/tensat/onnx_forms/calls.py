"""ONNX nodes to be raised, written shortly."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rulesets.size import symbol
from rulesets.tensor import Tensor
from tensat.onnx_forms import OnnxCall, Operand
from tests.tensat.onnx_forms.models import variable

N, M = symbol("n"), symbol("m")
X = variable("float32", 2, 3, 4)
IMAGE = variable("float32", 1, 2, 7, 6)
FAR = 2**63 - 1


def symbolic(*sizes: object, dtype: str = "float32") -> Operand:
    """Return an operand with a symbolic shape."""
    return Operand(Tensor(dtype, sizes))  # type: ignore[arg-type]


def sized(*sizes: object) -> Operand:
    """Return an int64 vector whose entries are known, perhaps symbolically."""
    return Operand(Tensor("int64", (len(sizes),)), None, sizes)  # type: ignore[arg-type]


def call(
    op_type: str, opset: int, *inputs: Operand | None, **attributes: object
) -> OnnxCall:
    """Return a node with one output."""
    return OnnxCall(op_type, opset, attributes, inputs)


def training(opset: int, outputs: int = 1, **attributes: object) -> OnnxCall:
    """Return a batch normalization."""
    vectors = [variable("float32", 3)] * 4
    one = call("BatchNormalization", opset, X, *vectors, **attributes)
    return replace(one, outputs=outputs)


def weighted(op_type: str, opset: int = 13, **attributes: object) -> OnnxCall:
    """Return a convolution of the image with a [2, 2, 3, 3] weight."""
    weight = variable("float32", 2, 2, 3, 3)
    return call(op_type, opset, IMAGE, weight, **attributes)


@dataclass(frozen=True)
class Form:
    """A node and what it means."""

    id: str
    call: OnnxCall
    name: str
    attributes: Mapping[str, object]


WINDOW = {"strides": (1, 1), "dilations": (1, 1), "pads": (0, 0, 0, 0)}
EVEN = {**WINDOW, "strides": (2, 2)}

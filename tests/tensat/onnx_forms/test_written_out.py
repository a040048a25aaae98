"""Composite operators at opsets that do not have them: one kernel, the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from rulesets.ops import OPERATORS, Attributes, complete
from rulesets.size import symbol
from rulesets.tensor import Tensor
from tensat.onnx_forms import OnnxNode, lower
from tests.tensat.onnx_forms.models import model_of, random_array, run

SHAPE = (2, 3, 8)


@dataclass(frozen=True)
class Composite:
    """A composite operator, where it begins, and the kernel it becomes before."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    since: int
    oldest: int
    kernels: tuple[str, ...]
    given: Mapping[str, object] = field(default_factory=dict)

    def attributes(self) -> Attributes:
        """All its attributes."""
        return complete(OPERATORS[self.name], self.given)  # type: ignore[arg-type]

    def written(self, opset: int, dtype: str = "float32") -> tuple[OnnxNode, ...] | None:
        """Its nodes at an opset."""
        inputs = tuple(Tensor(dtype, shape) for shape in self.shapes)
        outputs = OPERATORS[self.name].infer(self.attributes(), inputs)
        return lower(self.name, self.attributes(), inputs, outputs, opset)

    def model(self, opset: int, dtype: str = "float32") -> onnx.ModelProto:
        """A model of its nodes at an opset."""
        nodes = self.written(opset, dtype)
        assert nodes is not None
        inputs = tuple(Tensor(dtype, shape) for shape in self.shapes)
        return model_of(nodes, inputs, 1, opset)


LAYER = (SHAPE, (8,), (8,))
COMPOSITES = {
    "HardSwish": Composite("HardSwish", (SHAPE,), 14, 7, ("HardSigmoid", "Mul")),
    "Gelu": Composite("Gelu", (SHAPE,), 20, 9, ("Gelu",)),
    "Gelu-tanh": Composite(
        "Gelu", (SHAPE,), 20, 7, ("FastGelu",), {"approximate": "tanh"}
    ),
    "LayerNormalization": Composite(
        "LayerNormalization", LAYER, 17, 7, ("LayerNormalization",),
        {"axis": 2, "epsilon": 1e-3},
    ),
    "LayerNormalization-no-bias": Composite(
        "LayerNormalization", LAYER[:2], 17, 7, ("LayerNormalization",), {"axis": 2}
    ),
    "RMSNormalization": Composite(
        "RMSNormalization", LAYER[:2], 23, 7, ("SimplifiedLayerNormalization",),
        {"axis": 2, "epsilon": 1e-3},
    ),
}  # fmt: skip
OLD = [
    pytest.param(one, opset, id=f"{name}-{opset}")
    for name, one in COMPOSITES.items()
    for opset in (7, 9, 11, 13, 18, 22)
    if one.oldest <= opset < one.since
]


@pytest.mark.parametrize(("one", "opset"), OLD)
def test_runtime_makes_one_kernel_of_it(one: Composite, opset: int, tmp_path: Path) -> None:
    """What is written before the operator existed is fused when the model is loaded."""
    model = one.model(opset)
    # Not every fusion may give an output of the model.
    (output,) = model.graph.output
    model.graph.node.append(onnx.helper.make_node("Relu", [output.name], ["last"]))
    output.name = "last"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(tmp_path / "fused.onnx")
    onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    found = [node.op_type for node in onnx.load(tmp_path / "fused.onnx").graph.node]
    assert found == [*one.kernels, "Relu"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("one", "opset"), OLD)
def test_numbers_are_the_same(one: Composite, opset: int, dtype: str) -> None:
    """Written out it is valid and gives what the operator gives where it exists."""
    arrays = [random_array(Tensor(dtype, shape), k) for k, shape in enumerate(one.shapes)]
    model = one.model(opset, dtype)
    onnx.checker.check_model(model, full_check=True)
    (expected,), (found,) = run(one.model(one.since, dtype), arrays), run(model, arrays)
    assert found.dtype == expected.dtype
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("one", COMPOSITES.values(), ids=COMPOSITES)
def test_it_is_itself_where_it_exists(one: Composite) -> None:
    """From its first opset on it is one node."""
    nodes = one.written(one.since)
    assert nodes is not None
    assert [node.op_type for node in nodes] == [one.name]


REFUSED = {
    "half precision": (COMPOSITES["Gelu"], "float16"),
    "half precision, two nodes": (COMPOSITES["HardSwish"], "float16"),
    "two axes": (
        Composite("LayerNormalization", (SHAPE, (3, 8)), 17, 7, (), {"axis": 1}),
        "float32",
    ),
    "a vector": (
        Composite("RMSNormalization", ((8,), (8,)), 23, 7, (), {"axis": 0}),
        "float32",
    ),
    "one weight": (
        Composite("LayerNormalization", (SHAPE, (1,)), 17, 7, (), {"axis": 2}),
        "float32",
    ),
}


@pytest.mark.parametrize(("one", "dtype"), REFUSED.values(), ids=REFUSED)
def test_what_would_not_be_fused_is_not_written(one: Composite, dtype: str) -> None:
    """A chain of operators would cost more than the operator's price says."""
    assert one.written(13, dtype) is None


def test_missing_bias_of_unknown_size_is_not_written() -> None:
    """The zeros that stand for it need a size."""
    n = symbol("n")
    x, gain = Tensor("float32", (2, n)), Tensor("float32", (n,))
    given = {"axis": 1, "epsilon": 1e-5}
    assert lower("LayerNormalization", given, (x, gain), (x,), 13) is None
    assert lower("LayerNormalization", given, (x, gain, gain), (x,), 13) is not None

"""Models written operator by operator."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from tensat.ordering.net import Net, Weights


def test_a_model_is_valid_and_computes() -> None:
    """Weights, numbers, sizes and attributes arrive; the checker objects to nothing."""
    net = Net()
    x = net.input(2, 4)
    weight = Weights(3).matrix(4, 6)
    product = net.op("Mul", net.op("MatMul", x, net.weight(weight)), net.number(2))
    left, right = net.ops(2, "Split", product, net.sizes(2, 4), axis=1)
    model = net.model([left, net.reshape(right, 8)], [(2, 2), (8,)])
    onnx.checker.check_model(model, full_check=True)
    values = np.arange(8, dtype=np.float32).reshape(2, 4)
    found = ReferenceEvaluator(model).run(None, {"x0": values})
    wanted = 2 * values @ weight
    np.testing.assert_allclose(found[0], wanted[:, :2], rtol=1e-6)
    np.testing.assert_allclose(found[1], wanted[:, 2:].reshape(-1), rtol=1e-6)


def test_operators_of_other_domains() -> None:
    """The domain stands before a colon, and is among the model's opsets."""
    net = Net()
    y = net.op("com.microsoft:QuickGelu", net.input(1), alpha=1.5)
    model = net.model([y], [(1,)])
    node = model.graph.node[0]
    assert (node.domain, node.op_type) == ("com.microsoft", "QuickGelu")
    assert [opset.domain for opset in model.opset_import] == ["", "com.microsoft"]


@pytest.mark.parametrize(
    ("elements", "step"), [(4096, 1), (4097, 3), (40960, 11), (614_400, 151)]
)
def test_large_outputs_are_sampled(elements: int, step: int) -> None:
    """Evenly spaced elements come out, at most some thousand, and as many as declared."""
    net = Net()
    model = net.model([net.op("Neg", net.input(elements))], [(elements,)])
    onnx.checker.check_model(model, full_check=True)
    values = np.arange(elements, dtype=np.float32)
    (found,) = ReferenceEvaluator(model).run(None, {"x0": values})
    assert np.array_equal(found, -values[::step])
    (declared,) = model.graph.output[0].type.tensor_type.shape.dim
    assert declared.dim_value == len(found) <= 4096


def test_weights_repeat_for_a_seed() -> None:
    """And have another value for another seed."""
    one, again, other = (Weights(seed).kernel(4, 3, 3, 1) for seed in (1, 1, 2))
    assert one.shape == (4, 3, 3, 1)
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)

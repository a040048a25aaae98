"""Whole models on blocked tensors: bits of the runtime's own, and any size of images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tensat.costs.source import Progress, Signature
from tensat.egraph.saturate import Limits
from tensat.fold import fold
from tensat.improve import Aim, Budget, improve
from tensat.kernels.blocked_steps import NCHWC
from tensat.kernels.emit import Decoded
from tensat.kernels.machine import ALL_FUSIONS, cpu_machine
from tensat.model.onnx_export import to_model
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_read import read
from tensat.model.onnx_write import to_proto
from tensat.networks import build
from tensat.runtime import Runtime
from tensat.stages import Clock
from tensat.target import check_portable
from tests.tensat.kernels.blocked_lab import BLOCK, optimized, session

SEED = 20264


class Blocked:
    """Costs by which everything that can be is computed on blocks."""

    name = "blocked"

    def seconds(
        self,
        signatures: Sequence[Signature],
        deadline: float | None = None,
        progress: Progress | None = None,
    ) -> list[float]:
        """A reorder costs more than many kernels, a plain convolution more than those."""
        return [_cost(one.op) for one in signatures]


def _cost(op: str) -> float:
    if "Reorder" in op:
        return 1e-4
    return 1e-2 if "Conv" in op and not op.startswith(NCHWC) else 1e-6


def _planned(
    model: onnx.ModelProto, **sizes: int
) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Return the model on blocks, and the same in standard operators."""
    machine = cpu_machine(BLOCK, targeted=True)
    aim = Aim(sizes=sizes, machine=machine, fusions=ALL_FUSIONS)
    budget = Budget(Limits(nodes=2_000, seconds=5.0, iterations=1), 20.0, 10.0)
    plan = improve(to_graph(read(model)), (), Blocked(), aim, budget, Clock(None))
    assert plan.targeted is not None
    with Runtime() as runtime:
        written = [_written(one, runtime) for one in (plan.targeted, plan.decoded)]
    check_portable(read(model), read(written[1]))
    return written[0], written[1]


def _written(decoded: Decoded, runtime: Runtime) -> onnx.ModelProto:
    return to_proto(to_model(fold(decoded.graph, runtime, decoded.constants).graph))


def _outputs(
    model: onnx.ModelProto, feeds: dict[str, np.ndarray], level: str = "ALL"
) -> list[np.ndarray]:
    return [np.asarray(one) for one in session(model, level).run(None, feeds)]


def _kinds(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node if node.domain == NCHWC)


def _packed(model: onnx.ModelProto) -> list[bytes]:
    """Return the bytes of the weights and biases of all convolutions on blocks."""
    arrays = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    return sorted(
        arrays[name].tobytes()
        for node in model.graph.node
        if (node.domain, node.op_type) == (NCHWC, "Conv")
        for name in node.input
        if name in arrays
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mobilenet_v2", "resnet50"])
def test_models_are_the_runtimes_own(name: str) -> None:
    """From a standard model: the same kernels, equal bits of outputs and weights."""
    model = to_proto(build(name).model())
    blocked, portable = _planned(model)
    own = optimized(model)
    assert _kinds(blocked) == _kinds(own)
    assert _packed(blocked) == _packed(own)
    shape = [one.dim_value for one in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(SEED).standard_normal(shape).astype(np.float32)
    feeds = {model.graph.input[0].name: x}
    wanted = _outputs(model, feeds)
    for one, level in ((blocked, "NONE"), (blocked, "ALL"), (portable, "ALL")):
        for got, want in zip(_outputs(one, feeds, level), wanted, strict=True):
            assert np.array_equal(got, want)


def _network() -> onnx.ModelProto:
    """Return a small network of any sizes: gate, branches, enlarging, odd channels."""
    rng = np.random.default_rng(SEED)
    weights: dict[str, np.ndarray] = {}
    nodes: list[onnx.NodeProto] = []

    def add(op: str, *inputs: str, **given: Any) -> str:
        nodes.append(helper.make_node(op, list(inputs), [f"t{len(nodes)}"], **given))
        return f"t{len(nodes) - 1}"

    def constant(array: object, dtype: type = np.float32) -> str:
        weights[f"c{len(weights)}"] = np.asarray(array, dtype)
        return f"c{len(weights) - 1}"

    def conv(x: str, i: int, o: int, k: int = 1, **given: object) -> str:
        kernel = constant(rng.standard_normal((o, i, k, k)) / (i * k))
        bias = constant(rng.standard_normal(o))
        return add("Conv", x, kernel, bias, pads=[k // 2] * 4, **given)

    stem = add("Relu", conv("x", 3, 24, 3, strides=[2, 2]))
    depth = add("HardSwish", conv(stem, 1, 24, 3, group=24))
    gate = add("GlobalAveragePool", depth)
    gate = add("HardSigmoid", conv(add("Relu", conv(gate, 24, 8)), 8, 24))
    gated = conv(add("Mul", depth, gate), 24, 24)
    total = add("Relu", add("Add", gated, stem))
    factors = constant([1, 1, 2, 2])
    small = add("MaxPool", total, kernel_shape=[2, 2], strides=[2, 2])
    large = add(
        "Resize", conv(small, 24, 32), "", factors, mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    )  # fmt: skip
    pyramid = add("Relu", add("Add", large, conv(total, 24, 32)))
    wide = add("Concat", pyramid, conv(pyramid, 32, 16), axis=1)
    half = add("Mul", add("Sigmoid", wide), constant(0.5))
    last = conv(half, 48, 30, 3)
    nodes.append(helper.make_node("LeakyRelu", [last], ["y"], alpha=0.125))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(
        nodes, "small", [x], [y],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_a_model_on_blocks_takes_any_sizes() -> None:
    """No size that it was planned for is in it, and nothing leaves blocks on the way."""
    model = _network()
    blocked, portable = _planned(model, n=1, h=32, w=32)
    assert _kinds(blocked)["ReorderOutput"] == 1
    assert _kinds(blocked)["ReorderInput"] == 0
    for n, h, w in ((1, 32, 32), (3, 48, 80)):
        x = np.random.default_rng(SEED).standard_normal((n, 3, h, w)).astype(np.float32)
        (wanted,) = _outputs(model, {"x": x}, "NONE")
        for one in (blocked, portable):
            (got,) = _outputs(one, {"x": x})
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)

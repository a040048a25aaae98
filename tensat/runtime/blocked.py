"""Kernels as they run inside a region of blocked layout; child process only.

ONNX Runtime computes convolutions and pools on channels in blocks, and reorders a tensor
only where such a region begins or ends. A single operator is a region of its own: timed
as it is, a small convolution would take twice as long as in a model, most of it to reorder.
So the runtime's own optimized form of the model is taken, without its reorders.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil
from pathlib import Path

import onnx
from onnx import GraphProto, ModelProto, TensorProto, helper

from tensat.runtime.messages import Filling, Kernel

_DOMAIN = "com.microsoft.nchwc"


def inside_region(kernel: Kernel, optimized: ModelProto, block: int) -> Kernel | None:
    """Return the kernel that takes and gives blocked tensors; None if nothing is blocked.

    Args:
        kernel: What was optimized.
        optimized: The runtime's form of its model, constants included.
        block: Channels in a block.
    """
    graph = optimized.graph
    if not any(node.domain == _DOMAIN for node in graph.node):
        return None
    renamed_inputs: dict[str, str] = {}
    renamed_outputs: dict[str, str] = {}
    kept = []
    for node in graph.node:
        if node.op_type == "ReorderInput":
            renamed_inputs[node.output[0]] = node.input[0]
        elif node.op_type == "ReorderOutput":
            renamed_outputs[node.input[0]] = node.output[0]
        else:
            kept.append(node)
    used = {name for node in kept for name in node.input}
    inputs = _renamed(kernel.inputs, renamed_inputs, used, block)
    made = {name for node in kept for name in node.output}
    outputs = _renamed(kernel.outputs, renamed_outputs, made, block)
    del graph.node[:], graph.input[:], graph.output[:], graph.value_info[:]
    graph.node.extend(kept)
    graph.input.extend(map(_declared, inputs))
    graph.output.extend(map(_declared, outputs))
    return replace(
        kernel,
        model=optimized.SerializeToString(),
        inputs=inputs,
        constants=(),
        outputs=outputs,
        blocked=False,
    )


def _renamed(
    plain: tuple[Filling, ...], originals: Mapping[str, str], live: set[str], block: int
) -> tuple[Filling, ...]:
    """Return the tensors that the blocked graph takes or gives, by their names there."""
    by_name = {filling.name: filling for filling in plain}
    result = [filling for filling in plain if filling.name in live]
    for name, original in originals.items():
        if name in live and original in by_name:
            batch, channels, *spatial = by_name[original].dims
            dims = (batch, block * ceil(channels / block), *spatial)
            result.append(replace(by_name[original], name=name, dims=dims))
    return tuple(result)


def probe() -> ModelProto:
    """Return a model whose optimized form tells the size of a block."""
    graph = GraphProto(name="probe")
    graph.input.append(_declared(Filling("x", TensorProto.FLOAT, (1, 4, 4, 4))))
    graph.output.append(_declared(Filling("y", TensorProto.FLOAT, (1, 1, 4, 4))))
    weights = helper.make_tensor("w", TensorProto.FLOAT, [1, 4, 1, 1], [1.0] * 4)
    graph.initializer.append(weights)
    graph.node.append(helper.make_node("Conv", ["x", "w"], ["y"]))
    opset = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def block_of(optimized: ModelProto) -> int:
    """Return the channels in a block, from the optimized probe; 0 if nothing is blocked.

    The one output channel of its weights is filled up to a block.
    """
    graph = optimized.graph
    if not any(node.domain == _DOMAIN for node in graph.node):
        return 0
    return max((int(tensor.dims[0]) for tensor in graph.initializer), default=0)


def saved_by(make_session: Callable[[str], object]) -> ModelProto:
    """Return the model that a session writes while it is made.

    Args:
        make_session: Called with the path to write to.
    """
    with tempfile.TemporaryDirectory(prefix="tensat-") as folder:
        path = Path(folder) / "optimized.onnx"
        make_session(str(path))
        return onnx.load(path)


def _declared(filling: Filling) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(filling.name, filling.onnx_type, filling.dims)

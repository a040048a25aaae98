"""Channels-last convolutions as an operator that ONNX Runtime has for CUDA alone.

`com.microsoft:NhwcConv` is registered for CUDA in float32 and float16, and nowhere else in
the runtime's CPU build. It reads x [n, h, w, c] and weights [m, kh, kw, c / group], which
must be an initializer in exactly that order: the kernel takes a constant weight of this
domain as transposed already. Its shape inference takes sizes of weights in another order,
so that `kernel_shape` must be written. Pools and batch norms have channels-last kernels in
the runtime's internal domain only, which the runtime writes itself where the provider's
option `prefer_nhwc` is set; a model file cannot ask for them one by one.

So a model either leaves layout to that option, or has the convolutions of its choice
channels-last by `channels_last`. Between them stand transpositions; those that meet their
inverse go, and those before an elementwise operator or a concatenation move behind it.

Source: `onnxruntime/contrib_ops/cuda/diffusion/nhwc_conv.cc` (kernels and types),
`onnxruntime/core/providers/cuda/nn/conv.cc` (order of the weights, in `PrePack`),
`onnxruntime/test/contrib_ops/nhwc_conv_op_test.cc` (examples),
`onnxruntime/core/providers/cuda/cuda_nhwc_kernels.cc` (what the internal domain has), all
of https://github.com/microsoft/onnxruntime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from tensat.errors import InternalError

DOMAIN = "com.microsoft"
"""Of the operator."""

OPERATOR = "NhwcConv"
"""Its name."""

_TO_NHWC = (0, 2, 3, 1)
_TO_NCHW = (0, 3, 1, 2)
_TYPES = frozenset({ir.DataType.FLOAT, ir.DataType.FLOAT16})
_ONE_OPERAND = frozenset(
    {
        *("Abs", "Clip", "Elu", "Erf", "Exp", "HardSigmoid", "HardSwish", "LeakyRelu"),
        *("Neg", "Relu", "Sigmoid", "Softplus", "Sqrt", "Tanh"),
    }
)
_SEVERAL_OPERANDS = frozenset({"Add", "Concat", "Div", "Max", "Min", "Mul", "Sub", "Sum"})


@dataclass(frozen=True, slots=True)
class ChannelsLast:
    """A model with channels-last convolutions.

    Attributes:
        model: The new model; the old one is not changed.
        convolutions: Names of the outputs of the convolutions that were rewritten.
        transpositions: How many transpositions are left of those that were put around.
    """

    model: ir.Model
    convolutions: tuple[str, ...]
    transpositions: int


def channels_last(
    model: ir.Model, chosen: Callable[[ir.Node], bool] | None = None
) -> ChannelsLast:
    """Return the model with convolutions in ONNX Runtime's channels-last form for CUDA.

    Only convolutions of the main graph over two spatial axes, in float32 or float16, with
    constant weights can be rewritten; others stay. Batch norms should have been folded:
    nothing moves past them.

    Args:
        model: Any model.
        chosen: Which of the possible convolutions to rewrite; all if None.
    """
    copy = model.clone()
    graph = copy.graph
    names: list[str] = []
    packed: dict[ir.Value, ir.Value] = {}
    for node in list(graph):
        if _weights(node) is not None and (chosen is None or chosen(node)):
            names.append(node.outputs[0].name or "")
            _rewrite(graph, node, packed)
    while _cancel(graph) or _move(graph):
        pass
    if names:
        graph.opset_imports.setdefault(DOMAIN, 1)
    for weights in packed:
        _drop(graph, weights)
    left = sum(_permutation(n) in (_TO_NHWC, _TO_NCHW) for n in graph)
    before = sum(_permutation(n) in (_TO_NHWC, _TO_NCHW) for n in model.graph)
    return ChannelsLast(copy, tuple(names), max(0, left - before))


def is_last(node: ir.Node) -> bool:
    """Return whether a node is a channels-last convolution."""
    return (node.domain, node.op_type) == (DOMAIN, OPERATOR)


def as_standard(model: ir.Model) -> ir.Model:
    """Return the model with channels-last convolutions written as what they mean.

    Such a model computes the same and runs on any device, slower: a result for a GPU is
    compared with its original so where there is none.

    Raises:
        InternalError: Weights are not stored, so that the operator would refuse them.
    """
    copy = model.clone()
    graph = copy.graph
    for node in [node for node in graph if is_last(node)]:
        x, weights, *bias = node.inputs
        assert x is not None
        if weights is None or weights.const_value is None:
            raise InternalError(f"weights of {node.outputs[0].name} are not stored")
        before, filters = _transposition(x, _TO_NCHW), _transposition(weights, _TO_NCHW)
        inputs = [before.outputs[0], filters.outputs[0], *bias]
        conv = ir.Node("", "Conv", inputs, list(node.attributes.values()), name=node.name)
        after = _transposition(conv.outputs[0], _TO_NHWC)
        result = node.outputs[0]
        after.outputs[0].type, after.outputs[0].shape = result.type, result.shape
        graph.insert_before(node, [before, filters, conv, after])
        _replace(result, after.outputs[0])
        graph.remove(node, safe=True)
    return copy


def packed_weights(weights: np.ndarray) -> np.ndarray:
    """Return weights [m, c / group, kh, kw] as [m, kh, kw, c / group]."""
    return np.ascontiguousarray(weights.transpose(_TO_NHWC))


def _weights(node: ir.Node) -> ir.TensorProtocol | None:
    """Return the constant weights of a convolution that can be rewritten; else None."""
    if (node.domain, node.op_type) != ("", "Conv") or len(node.inputs) < 2:
        return None
    value = node.inputs[1]
    if value is None or value.is_graph_input() or None in node.inputs:
        return None
    tensor = ir.convenience.get_const_tensor(value)
    possible = tensor is not None and tensor.dtype in _TYPES and len(tensor.shape) == 4
    return tensor if possible else None


def _rewrite(graph: ir.Graph, node: ir.Node, packed: dict[ir.Value, ir.Value]) -> None:
    """Put a channels-last convolution between two transpositions in a node's place."""
    x, weights, *bias = node.inputs
    tensor = _weights(node)
    assert x is not None
    assert weights is not None
    assert tensor is not None
    array = tensor.numpy()
    if weights not in packed:
        packed[weights] = _initializer(graph, f"{weights.name}_nhwc", array, tensor.dtype)
    kernel = ir.AttrInt64s("kernel_shape", list(array.shape[2:]))
    attributes = [a for a in node.attributes.values() if a.name != "kernel_shape"]
    before = _transposition(x, _TO_NHWC)
    conv = ir.Node(
        DOMAIN,
        OPERATOR,
        [before.outputs[0], packed[weights], *bias],
        [*attributes, kernel],
        name=node.name,
        doc_string=node.doc_string,
        metadata_props=dict(node.metadata_props),
    )
    result = node.outputs[0]
    conv.outputs[0].type = result.type
    conv.outputs[0].shape = _permuted(result.shape, _TO_NHWC)
    after = _transposition(conv.outputs[0], _TO_NCHW)
    graph.insert_before(node, [before, conv, after])
    _replace(result, after.outputs[0])
    graph.remove(node, safe=True)


def _initializer(
    graph: ir.Graph, name: str, weights: np.ndarray, dtype: ir.DataType
) -> ir.Value:
    """Add weights in the operator's order."""
    name = _free_name(graph, name)
    array = packed_weights(weights)
    tensor = ir.tensor(array, dtype=dtype, name=name)
    kind, shape = ir.TensorType(dtype), ir.Shape(array.shape)
    value = ir.Value(name=name, shape=shape, type=kind, const_value=tensor)
    graph.register_initializer(value)
    return value


def _drop(graph: ir.Graph, weights: ir.Value) -> None:
    """Remove weights that nothing reads any more."""
    if weights.uses() or weights.is_graph_output():
        return
    producer = weights.producer()
    if producer is not None:
        graph.remove(producer, safe=True)
    elif weights.name is not None and weights.name in graph.initializers:
        del graph.initializers[weights.name]


def _free_name(graph: ir.Graph, name: str) -> str:
    """Return the name, lengthened until no value of the graph has it."""
    made = {value.name for node in graph.all_nodes() for value in node.outputs}
    taken = made | set(graph.initializers) | {value.name for value in graph.inputs}
    while name in taken:
        name += "_"
    return name


def _transposition(value: ir.Value, perm: tuple[int, ...]) -> ir.Node:
    node = ir.Node("", "Transpose", [value], [ir.AttrInt64s("perm", list(perm))])
    node.outputs[0].type = value.type
    node.outputs[0].shape = _permuted(value.shape, perm)
    return node


def _permuted(shape: ir.Shape | None, perm: tuple[int, ...]) -> ir.Shape | None:
    if shape is None or len(shape) != len(perm):
        return None
    return ir.Shape([shape[axis] for axis in perm])


def _permutation(node: ir.Node | None) -> tuple[int, ...] | None:
    """Return what a transposition permutes by; None for other nodes."""
    if node is None or (node.domain, node.op_type) != ("", "Transpose"):
        return None
    perm = node.attributes.get("perm")
    return None if perm is None else tuple(perm.as_ints())


def _replace(old: ir.Value, new: ir.Value) -> None:
    """Let new stand for old everywhere, under its name where the graph returns it."""
    if old.is_graph_output():
        old.name, new.name = None, old.name
    ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)


def _cancel(graph: ir.Graph) -> bool:
    """Remove transpositions that undo the one before; return whether there were any."""
    changed = False
    for node in list(graph):
        perm = _permutation(node)
        source = node.inputs[0] if perm else None
        first = _permutation(source.producer()) if source is not None else None
        if perm is None or first is None or source is None:
            continue
        inner = source.producer()
        assert inner is not None
        origin = inner.inputs[0]
        same = tuple(first[axis] for axis in perm) == tuple(range(len(perm)))
        if not same or origin is None or node.outputs[0].is_graph_output():
            continue
        _replace(node.outputs[0], origin)
        graph.remove(node, safe=True)
        if not source.uses() and not source.is_graph_output():
            graph.remove(inner, safe=True)
        changed = True
    return changed


def _move(graph: ir.Graph) -> bool:
    """Move transpositions to NCHW behind what runs in either; return whether any did."""
    for node in list(graph):
        operands = _operands(node)
        if operands and all(_permutation(v.producer()) == _TO_NCHW for v in operands):
            _swap(graph, node, operands)
            return True
    return False


def _operands(node: ir.Node) -> Sequence[ir.Value]:
    """Return the tensors over which an operator runs in either layout; none if it cannot.

    All must come out of transpositions, so that they have four axes: one that is broadcast
    along some of them is so in either layout. Single numbers beside them fit anywhere.
    """
    if node.domain or not node.inputs or node.inputs[0] is None:
        return ()
    if node.op_type in _ONE_OPERAND:
        return (node.inputs[0],)
    if node.op_type not in _SEVERAL_OPERANDS:
        return ()
    return tuple(v for v in node.inputs if v is not None and not _single(v))


def _single(value: ir.Value) -> bool:
    return value.shape is not None and all(size == 1 for size in value.shape)


def _swap(graph: ir.Graph, node: ir.Node, operands: Sequence[ir.Value]) -> None:
    """Run an operator on what its operands are the transpositions of."""
    producers = [value.producer() for value in operands]
    for position, value in enumerate(node.inputs):
        if value is not None and any(value is operand for operand in operands):
            producer = value.producer()
            assert producer is not None
            node.replace_input_with(position, producer.inputs[0])
    if node.op_type == "Concat":
        axis = _TO_NHWC.index(node.attributes["axis"].as_int() % 4)
        node.attributes["axis"] = ir.AttrInt64("axis", axis)
    result = node.outputs[0]
    users = tuple(result.uses())
    after = _transposition(result, _TO_NCHW)
    after.outputs[0].shape = result.shape
    result.shape = _permuted(result.shape, _TO_NHWC)
    graph.insert_after(node, after)
    for user, position in users:
        user.replace_input_with(position, after.outputs[0])
    if result.is_graph_output():
        name = result.name or ""
        result.name = _free_name(graph, f"{name}_nhwc")
        after.outputs[0].name = name
        for position, output in enumerate(graph.outputs):
            if output is result:
                graph.outputs[position] = after.outputs[0]
    for producer in dict.fromkeys(producers):
        assert producer is not None
        if not producer.outputs[0].uses() and not producer.outputs[0].is_graph_output():
            graph.remove(producer, safe=True)

"""Models by whose time others are judged; child process only.

One that computes nothing tells what a run takes, assorted small operators tell what a node
takes besides its kernel. A product of matrices in the core's own cache and a stream of
weights from memory tell how fast the machine is at the moment: neighbours on the same
processor may slow it down for seconds, neighbours on the same memory for minutes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from tensat.runtime.external import external
from tensat.runtime.messages import Filling, Kernel


@dataclass(frozen=True, slots=True)
class _Kind:
    """One operator.

    Attributes:
        op: ONNX operator.
        inputs: Sizes of its inputs, float32.
        attributes: Its attributes.
    """

    op: str
    inputs: tuple[tuple[int, ...], ...]
    attributes: Mapping[str, object] = field(default_factory=dict)


_IMAGE, _MATRIX = (1, 32, 16, 16), (64, 128)
_ASSORTED = (
    _Kind("Transpose", (_MATRIX,), {"perm": [1, 0]}),
    _Kind("Add", (_IMAGE, (32, 1, 1))),
    _Kind("Softmax", ((32, 128),), {"axis": -1}),
    _Kind("MatMul", ((16, 64), (64, 64))),
    _Kind("Concat", ((32, 64), (32, 64)), {"axis": 1}),
    _Kind("Relu", (_IMAGE,)),
    _Kind("GlobalAveragePool", (_IMAGE,)),
    _Kind("Mul", (_MATRIX, _MATRIX)),
    _Kind("Sigmoid", (_IMAGE,)),
    _Kind("MaxPool", ((1, 16, 16, 16),), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    _Kind("Conv", ((1, 16, 16, 16), (16, 16, 1, 1)), {"kernel_shape": [1, 1]}),
    _Kind("ReduceMean", (_MATRIX,)),
)


KINDS = len(_ASSORTED)
"""How many kinds of small operators there are."""

_MATRICES, _WIDE = 4, 1024

STREAMED = 4 * _MATRICES * _WIDE * _WIDE
"""Bytes of weights that the stream reads."""


def nothing(threads: int) -> Kernel:
    """Return a model that hands one number on."""
    return _model([_Kind("Identity", ((1,),))], threads)


def assorted(count: int, threads: int) -> Kernel:
    """Return a model of so many small operators, of a dozen kinds in turn."""
    kinds = [_ASSORTED[place % len(_ASSORTED)] for place in range(count)]
    return _model(kinds, threads)


def uniform(place: int, count: int, threads: int) -> Kernel:
    """Return a model of so many operators of one of these kinds."""
    return _model([_ASSORTED[place]] * count, threads)


def product(threads: int) -> Kernel:
    """Return a model that computes for about 0.1 ms, all of it within a core."""
    return _model([_Kind("MatMul", ((64, 256), (256, 256)))], threads)


def stream(threads: int) -> Kernel:
    """Return a model of rows times matrices: it does little but read `STREAMED` bytes."""
    graph = GraphProto(name="yardstick")
    row = Filling("row", TensorProto.FLOAT, (1, _WIDE))
    last = Filling(f"row{_MATRICES - 1}", TensorProto.FLOAT, (1, _WIDE))
    weights = [
        Filling(f"weight{place}", TensorProto.FLOAT, (_WIDE, _WIDE))
        for place in range(_MATRICES)
    ]
    for place, weight in enumerate(weights):
        node = helper.make_node("MatMul", [row.name, weight.name], [f"row{place}"])
        graph.node.append(node)
        graph.initializer.append(external(weight))
    for values, each in ((graph.input, row), (graph.output, last)):
        value = helper.make_tensor_value_info(each.name, each.onnx_type, each.dims)
        values.append(value)
    return _kernel(graph, (row,), tuple(weights), (last,), threads)


def _model(kinds: Sequence[_Kind], threads: int) -> Kernel:
    """Return a model of independent operators; equal kinds share their inputs."""
    graph = GraphProto(name="yardstick")
    inputs: dict[str, Filling] = {}
    for place, kind in enumerate(kinds):
        graph.node.append(_node(kind, place))
        for name, dims in zip(graph.node[-1].input, kind.inputs, strict=True):
            inputs[name] = Filling(name, TensorProto.FLOAT, dims)
    last = graph.node[-1].output[0]
    graph.output.append(ValueInfoProto(name=last))
    graph.input.extend(
        helper.make_tensor_value_info(each.name, each.onnx_type, each.dims)
        for each in inputs.values()
    )
    outputs = (Filling(last, TensorProto.FLOAT, ()),)
    return _kernel(graph, tuple(inputs.values()), (), outputs, threads)


def _kernel(
    graph: GraphProto,
    inputs: tuple[Filling, ...],
    constants: tuple[Filling, ...],
    outputs: tuple[Filling, ...],
    threads: int,
) -> Kernel:
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    return Kernel(model.SerializeToString(), inputs, constants, outputs, threads=threads)


def _node(kind: _Kind, place: int) -> NodeProto:
    names = [f"{kind.op}_{each}" for each in range(len(kind.inputs))]
    result = helper.make_node(kind.op, names, [f"result{place}"])
    result.attribute.extend(
        helper.make_attribute(name, value) for name, value in kind.attributes.items()
    )
    return result

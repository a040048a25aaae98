"""Types of the results of opaque nodes, from ONNX's own shape inference, node by node.

A model of the single node is built from the types that we derived ourselves, so declared
shapes of intermediate values (which may be stale) are never looked at. Symbolic sizes go in
as named dimensions and come back as the same sizes; dimensions that ONNX cannot tell become
fresh symbols ``?1``, ``?2``, …, equal where ONNX says that they are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx_ir as ir

from rulesets.size import Size
from rulesets.tensor import Tensor
from tensat.model.captures import captured
from tensat.model.dimensions import UNKNOWN, Symbols
from tensat.model.graph import dtype_name, dtype_of

__all__ = ["OpaqueTypes"]

_HEAVY = 1024  # bytes of a weight in a subgraph that inference need not see


@dataclass(slots=True)
class OpaqueTypes:
    """Infers types of opaque nodes of one model.

    Attributes:
        opsets: Version of each operator set of the model.
        functions: Functions of the model.
        symbols: Where fresh symbols come from.
    """

    opsets: Mapping[str, int]
    functions: Sequence[ir.Function]
    symbols: Symbols
    _function_protos: list[onnx.FunctionProto] | None = None
    _other: dict[ir.Value, onnx.TypeProto] = field(default_factory=dict)

    def declare(self, value: ir.Value) -> None:
        """Remember the type of an input of the model that is no tensor."""
        if value.type is not None and not isinstance(value.type, ir.TensorType):
            self._other[value] = ir.serde.serialize_value(value).type

    def infer(
        self,
        node: ir.Node,
        tensors: Mapping[ir.Value, Tensor],
        arrays: Mapping[ir.Value, np.ndarray],
    ) -> tuple[Tensor, ...]:
        """The type of each output of the node; ``UNKNOWN`` where ONNX does not say.

        Args:
            node: An ONNX node.
            tensors: Types of its inputs and captured values.
            arrays: Values of those that are small constants.
        """
        is_function = any(f.identifier() == node.op_identifier() for f in self.functions)
        if not is_function and not onnx.defs.has(node.op_type, node.domain):
            return tuple(_declared(value) for value in node.outputs)
        sizes = _Dimensions()
        model = self._model(node, tensors, arrays, sizes)
        if is_function:
            model.functions.extend(self._functions())
        try:
            model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        except Exception:  # an operator's inference may refuse; then nothing is known
            return tuple(_declared(value) for value in node.outputs)
        inferred = {info.name: info.type for info in model.graph.value_info}
        result = []
        for value in node.outputs:
            type_ = inferred.get(value.name or "")
            if type_ is not None and not type_.HasField("tensor_type"):
                self._other[value] = type_
            tensor = sizes.tensor(type_, self.symbols)
            result.append(_declared(value) if tensor == UNKNOWN else tensor)
        return tuple(result)

    def _functions(self) -> list[onnx.FunctionProto]:
        if self._function_protos is None:
            self._function_protos = [
                ir.serde.serialize_function(function) for function in self.functions
            ]
        return self._function_protos

    def _model(
        self,
        node: ir.Node,
        tensors: Mapping[ir.Value, Tensor],
        arrays: Mapping[ir.Value, np.ndarray],
        sizes: _Dimensions,
    ) -> onnx.ModelProto:
        model = onnx.ModelProto(ir_version=10)
        for domain, version in self.opsets.items():
            model.opset_import.add(domain=domain, version=version)
        graph = model.graph
        ir.serde.serialize_node_into(graph.node.add(), node)
        _forget_shapes(graph.node[0])
        values = {value: None for value in node.inputs if value is not None}
        if node.graph is not None:
            values |= dict.fromkeys(captured(node, node.graph))
        for value in values:
            info = graph.input.add(name=value.name)
            if value in arrays:
                graph.initializer.append(
                    onnx.numpy_helper.from_array(arrays[value], value.name)
                )
            if value in self._other:
                info.type.CopyFrom(self._other[value])
            else:
                sizes.declare(info.type, tensors[value])
        return model


class _Dimensions:
    """Names for the sizes of one inference, and the way back."""

    def __init__(self) -> None:
        self._names: dict[Size, str] = {}
        self._sizes: dict[str, Size] = {}

    def declare(self, type_: onnx.TypeProto, tensor: Tensor) -> None:
        if tensor.dtype == "unknown":
            return
        type_.tensor_type.elem_type = dtype_of(tensor.dtype).value
        if tensor.shape is None:
            return
        shape = type_.tensor_type.shape
        shape.ClearField("dim")  # a scalar has a shape, without dimensions
        for size in tensor.shape:
            if isinstance(size, int):
                shape.dim.add(dim_value=size)
            else:
                name = self._names.setdefault(size, f"tensat{len(self._names)}")
                self._sizes[name] = size
                shape.dim.add(dim_param=name)

    def tensor(self, type_: onnx.TypeProto | None, symbols: Symbols) -> Tensor:
        if type_ is None or not type_.HasField("tensor_type"):
            return UNKNOWN
        tensor = type_.tensor_type
        dtype = dtype_name(ir.DataType(tensor.elem_type))
        if not tensor.HasField("shape"):
            return Tensor(dtype, None)
        return Tensor(dtype, tuple(self._size(dim, symbols) for dim in tensor.shape.dim))

    def _size(self, dim: onnx.TensorShapeProto.Dimension, symbols: Symbols) -> Size:
        if dim.HasField("dim_value"):
            return int(dim.dim_value)
        if not dim.dim_param:
            return symbols.fresh()
        if dim.dim_param not in self._sizes:
            self._sizes[dim.dim_param] = symbols.fresh()
        return self._sizes[dim.dim_param]


def _declared(value: ir.Value) -> Tensor:
    """The declared element type; the declared shape may be stale."""
    if isinstance(value.type, ir.TensorType):
        return Tensor(dtype_name(value.type.dtype), None)
    return UNKNOWN


def _forget_shapes(node: onnx.NodeProto) -> None:
    """Drop declared shapes and heavy weights inside the subgraphs of a node."""
    for graph in _subgraphs(node):
        graph.ClearField("value_info")
        for value in (*graph.input, *graph.output):
            if value.type.HasField("tensor_type"):
                value.type.tensor_type.ClearField("shape")
        for tensor in graph.initializer:
            if len(tensor.raw_data) > _HEAVY:
                tensor.ClearField("raw_data")


def _subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    stack = [node]
    while stack:
        for attribute in stack.pop().attribute:
            for graph in (attribute.g, *attribute.graphs):
                if graph.node:
                    yield graph
                    stack.extend(graph.node)

"""An ONNX model that grows node by node, every value's type known at once.

The model is an onnx_ir Model, so what was loaded is kept as it is: names, opset, unknown
operators, symbolic dimensions. New nodes are canonical operators (rulesets.ops), checked
by their shape rules and written in the model's own opset, or plain ONNX operators that
have no canonical form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from rulesets.errors import OperatorError
from rulesets.ops import OPERATORS, Value, complete
from rulesets.size import Poly, symbol, symbols
from rulesets.tensor import Tensor
from tensat import onnx_forms
from tensat.errors import UsageError
from tensat.model.captures import captured
from tensat.model.constants import content_key, from_array, node_tensor, small_array
from tensat.model.dimensions import UNKNOWN, Symbols
from tensat.model.graph import Graph, dtype_name, dtype_of
from tensat.model.opaque_types import OpaqueTypes
from tensat.onnx_forms import OnnxCall, Operand, lower, result_types

OPSET, IR_VERSION = 17, 8
"""Versions of a model that starts empty: the oldest in which every fused form exists that
ONNX Runtime has had kernels for since long."""

type Dims = Sequence[int | str]


class ModelBuilder:
    """A model under construction.

    Attributes:
        model: The model; its outputs are up to date after `close`.
    """

    def __init__(self, model: ir.Model, graph: Graph | None) -> None:
        """Start from a model.

        Args:
            model: Changed in place.
            graph: What the model was imported as, for the types of its values; None if
                the model is empty. Outputs that a model came with stay.
        """
        self.model = model
        self._types: dict[ir.Value, Tensor] = {}
        self._declared = () if graph is None else tuple(model.graph.outputs)
        self._added: list[ir.Node] = []
        self._parameters: dict[str, ir.Value] = {}
        values = {value.name or "": value for value in _values(model.graph)}
        self._names = set(values)
        self._counts: dict[str, int] = {}
        if graph is not None:
            for ref, name in graph.names.items():
                if name in values:
                    self._types[values[name]] = graph.tensor(ref)
        self._opaque = OpaqueTypes(
            model.opset_imports, tuple(model.functions.values()), _later(self._types)
        )
        for node in model.graph:
            if any(value not in self._types for value in node.outputs):
                self._learn(node)

    @classmethod
    def empty(cls) -> ModelBuilder:
        """A model without nodes."""
        graph = ir.Graph([], [], nodes=[], opset_imports={"": OPSET}, name="graph")
        return cls(ir.Model(graph, ir_version=IR_VERSION, producer_name="tensat"), None)

    @property
    def opset(self) -> int:
        """Version of the default operator set."""
        return self.model.opset_imports.get("", self.model.opset_imports.get("ai.onnx", 1))

    def has(self, value: ir.Value) -> bool:
        """Whether a value is one of this model's."""
        producer = value.producer()
        owner = value.graph if producer is None else producer.graph
        return owner is self.model.graph

    def tensor(self, value: ir.Value) -> Tensor:
        """The type of a value; unknown where nothing tells."""
        if value not in self._types:
            self._types[value] = _declared(value)
        return self._types[value]

    # ------------------------------------------------------------------------ adding
    def add_input(self, dims: Dims, dtype: str, name: str) -> ir.Value:
        """Add an input; a dimension may be a name, equal names are equal sizes."""
        value = ir.Value(
            name=self._fresh(name, first=name),
            type=ir.TensorType(dtype_of(dtype)),
            shape=ir.Shape(dims),
        )
        self.model.graph.inputs.append(value)
        sizes = [symbol(dim) if isinstance(dim, str) else dim for dim in dims]
        self._types[value] = Tensor(dtype, tuple(sizes))
        return value

    def add_weight(self, array: np.ndarray, name: str = "weight") -> ir.Value:
        """Add a constant."""
        tensor = from_array(array)
        value = ir.Value(
            name=self._fresh(name),
            type=ir.TensorType(tensor.dtype),
            shape=ir.Shape(array.shape),
            const_value=tensor,
        )
        self.model.graph.register_initializer(value)
        self._types[value] = Tensor(dtype_name(tensor.dtype), tuple(array.shape))
        return value

    def apply(
        self, name: str, inputs: Sequence[ir.Value], attributes: Mapping[str, Value]
    ) -> tuple[ir.Value, ...]:
        """Add a canonical operator.

        Returns:
            Its results.

        Raises:
            UsageError: It does not apply to these arguments, or the opset has no form
                of it.
        """
        operator = OPERATORS[name]
        types = tuple(map(self.tensor, inputs))
        try:
            full = complete(operator, attributes)
            outputs = operator.infer(full, types)
        except OperatorError as error:
            raise UsageError(f"{name} does not apply here: {error}") from error
        lowered = lower(name, full, types, outputs, self.opset)
        if lowered is None:
            known = ", ".join(map(str, types))
            raise UsageError(f"{name} of {known} has no form in opset {self.opset}")
        return self._lowered(lowered, inputs, types, outputs)

    def apply_onnx(
        self, op_type: str, inputs: Sequence[ir.Value], attributes: Mapping[str, object]
    ) -> ir.Value:
        """Add an ONNX operator with one result, as it is.

        Raises:
            UsageError: ONNX cannot tell the type of its result: it does not apply.
        """
        (value,) = self._node(op_type, inputs, attributes, (UNKNOWN,))
        node = value.producer()
        assert node is not None, "a result has its node"
        tensors = {one: self.tensor(one) for one in inputs}
        (found,) = self._opaque.infer(node, tensors, {})
        if found.dtype == "unknown":
            self.model.graph.remove(node, safe=True)
            self._added.remove(node)
            raise UsageError(
                f"{op_type} does not apply to {', '.join(map(str, tensors.values()))}"
            )
        self._types[value] = found
        return value

    def _lowered(
        self,
        nodes: Sequence[onnx_forms.OnnxNode],
        inputs: Sequence[ir.Value],
        types: tuple[Tensor, ...],
        outputs: tuple[Tensor, ...],
    ) -> tuple[ir.Value, ...]:
        results: list[ir.Value] = []
        for node in nodes[:-1]:
            given = [self._input(ref, inputs, results) for ref in node.inputs]
            (value,) = self._node(node.op_type, given, node.attributes, (UNKNOWN,))
            producer = value.producer()
            assert producer is not None, "a result has its node"
            (self._types[value],) = result_types(self.call(producer)) or (UNKNOWN,)
            results.append(value)
        last = nodes[-1]
        given = [self._input(ref, inputs, results) for ref in last.inputs]
        return self._node(last.op_type, given, last.attributes, outputs)

    def _learn(self, node: ir.Node) -> None:
        """Types of results that the import does not name: they became constants there."""
        tensor = node_tensor(node) if node.op_type == "Constant" else None
        if tensor is not None:
            type_ = Tensor(dtype_name(tensor.dtype), tuple(tensor.shape.numpy()))
            self._types[node.outputs[0]] = type_
            return
        inputs = [value for value in node.inputs if value is not None]
        values = [*inputs, *captured(node, self.model.graph)]
        arrays = {
            value: array
            for value in inputs
            if value.const_value is not None
            and (array := small_array(value.const_value)) is not None
        }
        found = self._opaque.infer(node, {v: self.tensor(v) for v in values}, arrays)
        for value, type_ in zip(node.outputs, found, strict=True):
            self._types.setdefault(value, type_)

    def _input(
        self, ref: onnx_forms.Ref, inputs: Sequence[ir.Value], results: Sequence[ir.Value]
    ) -> ir.Value | None:
        if isinstance(ref, onnx_forms.Arg):
            return inputs[ref.position]
        if isinstance(ref, onnx_forms.Const):
            key = content_key(from_array(ref.array))
            if key not in self._parameters:
                self._parameters[key] = self.add_weight(ref.array, "constant")
            return self._parameters[key]
        return results[ref.index] if isinstance(ref, onnx_forms.Node) else None

    def _node(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        attributes: Mapping[str, object],
        outputs: tuple[Tensor, ...],
    ) -> tuple[ir.Value, ...]:
        base = op_type.lower()
        values = [ir.Value(name=self._fresh(base)) for _ in outputs]
        node = ir.Node(
            "",
            op_type,
            inputs,
            ir.convenience.convert_attributes(dict(attributes)),  # type: ignore[arg-type]
            outputs=values,
            name=values[0].name,
        )
        for value, tensor in zip(values, outputs, strict=True):
            self._types[value] = tensor
        self.model.graph.append(node)
        self._added.append(node)
        return tuple(values)

    def _fresh(self, base: str, first: str = "") -> str:
        """A name that no value has: `first` if free, else the base with a number."""
        name = first
        while not name or name in self._names:
            count = self._counts.get(base, 1 if first else 0)
            self._counts[base] = count + 1
            name = f"{base}_{count}"
        self._names.add(name)
        return name

    # ----------------------------------------------------------------------- reading
    def call(self, node: ir.Node) -> OnnxCall:
        """A node with all that is known of its inputs."""
        return OnnxCall(
            op_type=node.op_type,
            opset=self.opset,
            attributes=plain_attributes(node),
            inputs=tuple(None if v is None else self._operand(v) for v in node.inputs),
            outputs=len(node.outputs),
            used_outputs=frozenset(range(len(node.outputs))),
        )

    def _operand(self, value: ir.Value) -> Operand:
        constant = value.const_value
        array = None if constant is None else small_array(constant)
        return Operand(self.tensor(value), array)

    def close(self) -> ir.Model:
        """The model with its outputs: those it came with, then every new unused result.

        Raises:
            UsageError: There is nothing to give out.
        """
        taken = set(self._declared)
        loose = [
            value
            for node in self._added
            for value in node.outputs
            if not value.uses() and value not in taken
        ]
        if not self._declared and not loose:
            raise UsageError("the graph has no operator, so it computes nothing")
        for value in loose:
            tensor = self.tensor(value)
            value.type = ir.TensorType(dtype_of(tensor.dtype))
            value.shape = _onnx_shape(tensor)
        outputs = self.model.graph.outputs
        outputs.clear()
        outputs.extend([*self._declared, *loose])
        return self.model


def plain_attributes(node: ir.Node) -> dict[str, object]:
    """The attributes of an ONNX node that are numbers, texts, or tuples of them."""
    return {
        name: tuple(one.value) if isinstance(one.value, list | tuple) else one.value
        for name, one in node.attributes.items()
        if isinstance(one.value, int | float | str | list | tuple)
    }


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    yield from graph.initializers.values()
    for node in graph:
        yield from node.outputs


def _later(types: Mapping[ir.Value, Tensor]) -> Symbols:
    """Fresh symbols beyond those that the types have."""
    source = Symbols()
    sizes = [s for t in types.values() for s in t.shape or () if isinstance(s, Poly)]
    names = {name[1:] for size in sizes for name in symbols(size) if name.startswith("?")}
    for _ in range(max((int(name) for name in names if name.isdecimal()), default=0)):
        source.fresh()
    return source


def _declared(value: ir.Value) -> Tensor:
    if value.const_value is not None:
        tensor = value.const_value
        return Tensor(dtype_name(tensor.dtype), tuple(tensor.shape.numpy()))
    if not isinstance(value.type, ir.TensorType):
        return UNKNOWN
    dtype = dtype_name(value.type.dtype)
    if value.shape is None or not all(isinstance(dim, int) for dim in value.shape):
        return Tensor(dtype, None)
    return Tensor(dtype, tuple(int(dim) for dim in value.shape))  # type: ignore[arg-type]


def _onnx_shape(tensor: Tensor) -> ir.Shape | None:
    if tensor.shape is None:
        return None
    dims = [size if isinstance(size, int) else str(size) for size in tensor.shape]
    return ir.Shape([None if "?" in str(dim) else dim for dim in dims])

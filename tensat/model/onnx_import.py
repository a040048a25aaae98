"""Import: an ONNX model becomes a Graph of canonical operators.

Every node that ``onnx_forms`` can raise becomes a canonical operator; every other node
stays as it is, opaque. Shape computations are followed by value: an integer tensor whose
value is known becomes a constant. Nodes that no output depends on are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from rulesets.errors import OperatorError
from rulesets.ops import OPERATORS, complete, freeze
from rulesets.size import Size
from rulesets.tensor import Tensor
from tensat.errors import ModelError
from tensat.model.constants import (
    SMALL,
    Array,
    content_key,
    from_array,
    node_tensor,
    small_array,
)
from tensat.model.dimensions import InputTypes, Symbols
from tensat.model.graph import (
    CONSTANT,
    INPUT,
    OPAQUE,
    Graph,
    Header,
    Node,
    OpaqueNode,
    Ref,
    dtype_name,
    prune,
)
from tensat.model.onnx_order import ordered
from tensat.model.onnx_read import ModelLike, external_tensors, read
from tensat.model.opaque import opaque_key, reason_to_keep_apart
from tensat.model.opaque_types import OpaqueTypes
from tensat.model.shape_operand import asked_type
from tensat.onnx_forms import Known, OnnxCall, Operand, propagate, raise_call, result_types

__all__ = ["ModelLike", "read", "to_graph"]


def to_graph(
    model: ir.Model, *, shapes: Mapping[str, Sequence[int]] | None = None
) -> Graph:
    """The model as a Graph.

    Args:
        model: What ``read`` returned; it is not changed.
        shapes: Static shapes for inputs, by name, in place of the declared ones.

    Raises:
        ModelError: the model is invalid.
        UsageError: ``shapes`` names no input, or does not fit its declaration.
    """
    importer = _Importer(model, shapes or {})
    importer.add_inputs()
    nodes, captures = ordered(model.graph)
    for node in nodes:
        importer.add_node(node, captures.get(node, ()))
    return importer.finish()


class _Importer:
    """The graph under construction."""

    def __init__(self, model: ir.Model, shapes: Mapping[str, Sequence[int]]) -> None:
        self._model = model
        self._nodes: list[Node] = []
        self._inputs: list[int] = []
        self._declared: list[ir.Value] = []
        self._refs: dict[ir.Value, Ref] = {}
        self._constants: dict[str, ir.TensorProtocol] = {}
        self._constant_refs: dict[str, Ref] = {}
        self._large: dict[int, str] = {}
        self._opaque: dict[str, OpaqueNode] = {}
        self._defaults: dict[str, ir.TensorProtocol] = {}
        self._names: dict[Ref, str] = {}
        self._arrays: dict[Ref, Array] = {}
        self._sizes: dict[Ref, tuple[Size, ...]] = {}
        self._signature = [
            value
            for value in model.graph.inputs
            # IR version 3 lists constants among the inputs.
            if model.ir_version >= 4 or not value.is_initializer()
        ]
        self._symbols = Symbols()
        self._input_types = InputTypes(self._signature, shapes, self._symbols)
        self._opsets = dict(model.opset_imports)
        self._opsets.setdefault("", self._opsets.pop("ai.onnx", 1))
        self._types = OpaqueTypes(
            self._opsets, tuple(model.functions.values()), self._symbols
        )

    # ------------------------------------------------------------------ inputs
    def add_inputs(self) -> None:
        """Add the Input nodes."""
        for value in self._signature:
            name = value.name or ""
            type_ = self._input_types.tensor(value)
            ref = self._add(Node(INPUT, (("name", name),), (), (type_,)))
            self._types.declare(value)
            self._inputs.append(ref.node)
            self._refs[value] = ref
            self._names[ref] = name
            self._declared.append(_declaration(value, self._input_types.shape(value)))
            if value.const_value is not None and value.is_initializer():
                self._defaults[name] = value.const_value

    # ------------------------------------------------------------------- nodes
    def add_node(self, node: ir.Node, captures: tuple[ir.Value, ...]) -> None:
        """Add one ONNX node; those before it are there."""
        if node.domain == "" and node.op_type == "Constant":
            tensor = node_tensor(node)
            if tensor is not None:
                self._refs[node.outputs[0]] = self._constant(tensor, node.outputs[0].name)
                return
        call = self._call(node)
        new = None if call is None else self._raised(node, call)
        if new is None:
            new = self._opaque_node(node, call, captures)
        known = None if call is None else _fitting(propagate(call), new.outputs[0].dtype)
        if known is not None and self._fold(node, new, known):
            return
        ref = self._add(new)
        if known is not None:
            self._sizes[ref] = known.sizes
        for index, value in enumerate(node.outputs[: len(new.outputs)]):
            self._refs[value] = Ref(ref.node, index)
            if value.name:
                self._names[Ref(ref.node, index)] = value.name

    def _call(self, node: ir.Node) -> OnnxCall | None:
        """The node with what is known of its inputs; None if it can only be opaque."""
        if node.domain or node.op_identifier() in self._model.functions:
            return None
        attributes = {}
        for name, attribute in node.attributes.items():
            value = _plain(attribute)
            if value is None:
                return None
            attributes[name] = value
        return OnnxCall(
            op_type=node.op_type,
            opset=self._opsets[""],
            attributes=attributes,
            inputs=tuple(
                None if value is None else self._operand(self._ref(value))
                for value in node.inputs
            ),
            outputs=len(node.outputs),
            used_outputs=frozenset(
                index
                for index, value in enumerate(node.outputs)
                if value.uses() or value.is_graph_output()
            ),
        )

    def _operand(self, ref: Ref) -> Operand:
        return Operand(self._type(ref), self._arrays.get(ref), self._sizes.get(ref))

    def _type(self, ref: Ref) -> Tensor:
        return self._nodes[ref.node].outputs[ref.output]

    def _raised(self, node: ir.Node, call: OnnxCall) -> Node | None:
        raised = raise_call(call)
        if raised is None:
            return None
        values = [node.inputs[position] for position in raised.operands]
        refs = tuple(self._ref(value) for value in values if value is not None)
        operator = OPERATORS[raised.name]
        try:
            attributes = complete(operator, raised.attributes)
            outputs = operator.infer(attributes, tuple(map(self._type, refs)))
        except OperatorError:
            return None  # what the shape rule does not cover stays as it is
        return _original(node, Node(raised.name, freeze(attributes), refs, outputs))

    def _fold(self, node: ir.Node, new: Node, known: Known) -> bool:
        """Whether the result is a known integer tensor; it becomes a constant then."""
        numbers = [size for size in known.sizes if isinstance(size, int)]
        if len(numbers) < len(known.sizes):
            return False
        array = np.array(numbers, new.outputs[0].dtype)
        array = array.reshape(() if known.scalar else (-1,))
        output = node.outputs[0]
        self._refs[output] = self._constant(from_array(array), output.name)
        return True

    def _opaque_node(
        self, node: ir.Node, call: OnnxCall | None, captures: tuple[ir.Value, ...]
    ) -> Node:
        reason = reason_to_keep_apart(node, self._opsets, self._model.functions)
        record = OpaqueNode(
            node=node,
            arity=len(node.inputs),
            captured=captures,
            unique=bool(reason),
            reason=reason or "not modelled",
        )
        key = opaque_key(record, len(self._nodes))
        self._opaque.setdefault(key, record)
        values = (*node.inputs, *captures)
        refs = tuple(None if value is None else self._ref(value) for value in values)
        tensors, arrays = {}, {}
        for value, ref in zip(values, refs, strict=True):
            if value is not None and ref is not None:
                tensors[value] = self._type(ref)
                if ref in self._arrays:
                    arrays[value] = self._arrays[ref]
        outputs = None if call is None else self._called_types(call)
        if outputs is None or len(outputs) != len(node.outputs):
            outputs = self._types.infer(node, tensors, arrays)
        return _original(node, Node(OPAQUE, (("key", key),), refs, outputs))

    def _called_types(self, call: OnnxCall) -> tuple[Tensor, ...] | None:
        types = result_types(call)
        if types is None and (asked := asked_type(call, self._symbols)) is not None:
            types = (asked,)
        return types

    def _add(self, node: Node) -> Ref:
        self._nodes.append(node)
        return Ref(len(self._nodes) - 1)

    # --------------------------------------------------------------- constants
    def _ref(self, value: ir.Value) -> Ref:
        if value not in self._refs:
            if value.const_value is None:
                raise ModelError(f"the initializer '{value.name}' has no value")
            self._refs[value] = self._constant(value.const_value, value.name)
        return self._refs[value]

    def _constant(self, tensor: ir.TensorProtocol, name: str | None) -> Ref:
        if tensor.size <= SMALL:
            key = content_key(tensor)
        else:
            # Large tensors are compared at export only, where it costs nothing new.
            key = self._large.setdefault(id(tensor), f"large:{len(self._large)}")
        if key not in self._constant_refs:
            self._constants[key] = tensor
            type_ = Tensor(dtype_name(tensor.dtype), tuple(tensor.shape.numpy()))
            ref = self._add(Node(CONSTANT, (("key", key),), (), (type_,)))
            self._constant_refs[key] = ref
            if (array := small_array(tensor)) is not None:
                self._arrays[ref] = array
            if name:
                self._names[ref] = name
        return self._constant_refs[key]

    # --------------------------------------------------------------------- end
    def finish(self) -> Graph:
        """The graph, without dead nodes."""
        model = self._model
        header = Header(
            ir_version=model.ir_version,
            opsets=dict(model.opset_imports),
            inputs=tuple(self._declared),
            outputs=tuple(_declaration(v, v.shape) for v in model.graph.outputs),
            model={
                "producer_name": model.producer_name,
                "producer_version": model.producer_version,
                "domain": model.domain,
                "model_version": model.model_version,
                "doc_string": model.doc_string,
                "device_configurations": model.device_configurations,
            },
            metadata=dict(model.metadata_props),
            functions=tuple(model.functions.values()),
            name=model.graph.name or "",
            doc=model.graph.doc_string or "",
            graph_metadata=dict(model.graph.metadata_props),
            external=any(True for _ in external_tensors(model)),
        )
        outputs = tuple((v.name or "", self._ref(v)) for v in model.graph.outputs)
        return prune(
            Graph(
                nodes=tuple(self._nodes),
                outputs=outputs,
                inputs=tuple(self._inputs),
                constants=self._constants,
                opaque=self._opaque,
                defaults=self._defaults,
                names=self._names,
                header=header,
            )
        )


def _original(node: ir.Node, new: Node) -> Node:
    """The graph node with name, doc string and metadata of the ONNX node."""
    name = node.name or ""
    return replace(
        new,
        name=name,
        doc=node.doc_string or "",
        metadata=tuple(sorted(node.metadata_props.items())),
        origin=(name,) if name else (),
    )


def _fitting(known: Known | None, dtype: str) -> Known | None:
    """The value if it is one of that element type; the runtime would wrap others around."""
    if known is None or dtype not in ("int32", "int64", "bool"):
        return None
    low, high = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    fits = all(not isinstance(size, int) or low <= size <= high for size in known.sizes)
    return known if fits else None


def _plain(attribute: ir.Attr) -> object:
    """The value of an attribute as numbers, text or an array; None for anything else."""
    kind = attribute.type
    if attribute.is_ref():
        return None
    if kind in (ir.AttributeType.INT, ir.AttributeType.FLOAT, ir.AttributeType.STRING):
        value = attribute.value
        return None if isinstance(value, bytes) else value
    if kind in (
        ir.AttributeType.INTS,
        ir.AttributeType.FLOATS,
        ir.AttributeType.STRINGS,
    ):
        return tuple(attribute.value)
    if kind == ir.AttributeType.TENSOR:
        return small_array(attribute.as_tensor())
    return None


def _declaration(value: ir.Value, shape: ir.Shape | None) -> ir.Value:
    """A copy of the declaration of an input or output."""
    copy = ir.Value(name=value.name, type=value.type, shape=shape)
    copy.doc_string = value.doc_string
    copy.metadata_props.update(value.metadata_props)
    return copy

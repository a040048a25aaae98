"""Export: a Graph becomes an ONNX model at the opset it came from.

Canonical operators are lowered, opaque nodes are emitted as they were, equal constants
become one initializer. Inputs and outputs are declared as in the original; an output that
is an input, a constant or the same value as another output is an Identity of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from tensat import onnx_forms
from tensat.errors import InternalError
from tensat.model.captures import copy_attributes
from tensat.model.constants import SMALL, Array, content_key, from_array, renamed
from tensat.model.graph import (
    CONSTANT,
    INPUT,
    OPAQUE,
    OUTPUT,
    Graph,
    Node,
    Ref,
    dtype_of,
    prune,
)
from tensat.model.onnx_names import assign
from tensat.model.onnx_write import to_proto, write
from tensat.onnx_forms import lower

__all__ = ["to_model", "to_proto", "write"]


def to_model(graph: Graph) -> ir.Model:
    """The graph as an ONNX model; tensors are shared with the graph, not copied.

    Raises:
        InternalError: an operator cannot be written at the opset of the model.
    """
    return _Exporter(prune(graph)).build()


type _Look = Callable[[ir.TensorProtocol], object]


class _Exporter:
    """The model under construction."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._same = _equal_constants(graph)
        self._names = assign(graph, self._resolve)
        self._values: dict[Ref, ir.Value] = {}
        self._parameters: dict[str, ir.Value] = {}
        self._initializers: list[ir.Value] = []
        self._nodes: list[ir.Node] = []
        self._aliases: dict[str, ir.Value] = {}
        self._domains: set[str] = set()
        self._declared = {value.name: value for value in graph.header.inputs}

    def _resolve(self, ref: Ref) -> Ref:
        ref = self._graph.resolve(ref)
        return self._same.get(ref, ref)

    def build(self) -> ir.Model:
        """The model."""
        for index, node in enumerate(self._graph.nodes):
            if node.op == OUTPUT or Ref(index) in self._same:
                continue
            if node.op == INPUT:
                self._add_input(index, node)
            elif node.op == CONSTANT:
                self._add_constant(index, node)
            elif node.op == OPAQUE:
                self._add_opaque(index, node)
            else:
                self._add_operator(index, node)
            for output in range(len(node.outputs)):
                self._add_aliases(Ref(index, output))
        return self._model()

    # -------------------------------------------------------- inputs and constants
    def _add_input(self, index: int, node: Node) -> None:
        name = node.attribute("name")
        value = ir.Value(name=name, type=ir.TensorType(dtype_of(node.outputs[0].dtype)))
        if name in self._declared:
            _declare(value, self._declared[name])
        if name in self._graph.defaults:
            value.const_value = self._graph.defaults[name]
            self._initializers.append(value)
        self._values[Ref(index)] = value

    def _add_constant(self, index: int, node: Node) -> None:
        tensor = self._graph.constants[node.key]
        value = self._initializer(self._names.name(Ref(index), "constant"), tensor)
        self._values[Ref(index)] = value
        if tensor.size <= SMALL:
            self._parameters[content_key(tensor)] = value

    def _parameter(self, array: Array) -> ir.Value:
        """The initializer with that value; a new one if there is none."""
        tensor = from_array(array)
        key = content_key(tensor)
        if key not in self._parameters:
            name = self._names.fresh("constant")
            self._parameters[key] = self._initializer(name, tensor)
        return self._parameters[key]

    def _initializer(self, name: str, tensor: ir.TensorProtocol) -> ir.Value:
        shape = ir.Shape(tensor.shape.numpy())
        type_ = ir.TensorType(tensor.dtype)
        value = ir.Value(
            name=name, type=type_, shape=shape, const_value=renamed(tensor, name)
        )
        self._initializers.append(value)
        return value

    # ----------------------------------------------------------------------- nodes
    def _argument(self, ref: Ref | None) -> ir.Value | None:
        return None if ref is None else self._values[self._resolve(ref)]

    def _result(self, index: int, output: int, base: str) -> ir.Value:
        ref = Ref(index, output)
        value = ir.Value(name=self._names.name(ref, base))
        self._values[ref] = value
        return value

    def _add_opaque(self, index: int, node: Node) -> None:
        record = self._graph.opaque[node.key]
        original = record.node
        arguments = [self._argument(ref) for ref in node.inputs]
        replacements = {
            value: argument
            for value, argument in zip(
                record.captured, arguments[record.arity :], strict=True
            )
            if argument is not None
        }
        outputs = []
        for output, value in enumerate(original.outputs):
            if value.name:
                result = self._result(index, output, original.op_type.lower())
                if original.domain and isinstance(value.type, ir.TensorType):
                    # No inference knows this operator; its declared type is all there is.
                    result.type = value.type
            else:
                result = ir.Value(name="")
            outputs.append(result)
        self._nodes.append(
            ir.Node(
                original.domain,
                original.op_type,
                arguments[: record.arity],
                copy_attributes(original, replacements),
                overload=original.overload,
                outputs=outputs,
                name=node.name,
                doc_string=node.doc or None,
                metadata_props=dict(node.metadata),
                device_configurations=original.device_configurations,
            )
        )

    def _add_operator(self, index: int, node: Node) -> None:
        types = tuple(
            None if ref is None else self._graph.tensor(ref) for ref in node.inputs
        )
        lowered = lower(
            node.op,
            dict(node.attributes),
            types,
            node.outputs,
            self._graph.header.opset,
        )
        if lowered is None:
            raise InternalError(
                f"operator {node.op} cannot be written at opset {self._graph.header.opset} "
                f"for {', '.join(map(str, types))}"
            )
        self._domains.update(part.domain for part in lowered if part.domain)
        results: list[ir.Value] = []
        for position, part in enumerate(lowered):
            last = position == len(lowered) - 1
            inputs = [self._lowered_input(ref, node, results) for ref in part.inputs]
            base, name = part.op_type.lower(), node.name
            if last:
                outputs = [self._result(index, k, base) for k in range(len(node.outputs))]
            else:
                outputs = [ir.Value(name=self._names.fresh(base))]
                results.append(outputs[0])
                # Names of nodes must differ; those of values do.
                name = f"{name}/{outputs[0].name}" if name else name
            self._nodes.append(
                ir.Node(
                    part.domain,
                    part.op_type,
                    inputs,
                    _attributes(part.attributes),
                    outputs=outputs,
                    name=name,
                    doc_string=(node.doc or None) if last else None,
                    metadata_props=dict(node.metadata) if last else None,
                )
            )

    def _lowered_input(
        self, ref: onnx_forms.Ref, node: Node, results: Sequence[ir.Value]
    ) -> ir.Value | None:
        if isinstance(ref, onnx_forms.Arg):
            return self._argument(node.inputs[ref.position])
        if isinstance(ref, onnx_forms.Const):
            return self._parameter(ref.array)
        if isinstance(ref, onnx_forms.Node):
            return results[ref.index]
        return None

    def _add_aliases(self, ref: Ref) -> None:
        for name in self._names.aliases.get(ref, ()):
            value = ir.Value(name=name)
            self._nodes.append(
                ir.Node("", "Identity", [self._values[ref]], outputs=[value], name="")
            )
            self._aliases[name] = value

    # ----------------------------------------------------------------------- model
    def _model(self) -> ir.Model:
        header = self._graph.header
        inputs = [self._values[Ref(index)] for index in self._graph.inputs]
        # Domains that our own operators come from; all of them have but one version.
        own = dict.fromkeys(sorted(self._domains), 1)
        if header.ir_version < 4:
            inputs += [value for value in self._initializers if value not in inputs]
        graph = ir.Graph(
            inputs,
            self._outputs(),
            nodes=self._nodes,
            initializers=self._initializers,
            doc_string=header.doc or None,
            opset_imports={**own, **header.opsets},
            name=header.name or "graph",
            metadata_props=dict(header.graph_metadata),
        )
        return ir.Model(
            graph,
            ir_version=header.ir_version,
            functions=header.functions,
            metadata_props=dict(header.metadata),
            **header.model,
        )

    def _outputs(self) -> list[ir.Value]:
        declared = {value.name: value for value in self._graph.header.outputs}
        outputs = []
        for name, ref in self._graph.outputs:
            value = self._aliases.get(name, self._values[self._resolve(ref)])
            if name in declared and value.producer() is not None:
                _declare(value, declared[name])
            outputs.append(value)
        return outputs


def _declare(value: ir.Value, declaration: ir.Value) -> None:
    value.type, value.shape = declaration.type, declaration.shape
    value.doc_string = declaration.doc_string
    value.metadata_props.update(declaration.metadata_props)


def _equal_constants(graph: Graph) -> dict[Ref, Ref]:
    """For each constant that equals an earlier one, the earlier one."""
    refs = [Ref(index) for index, node in enumerate(graph.nodes) if node.op == CONSTANT]
    tensors = {ref: graph.constants[graph.nodes[ref.node].key] for ref in refs}
    same: dict[Ref, Ref] = {}

    def merge(group: list[Ref], tests: tuple[_Look, ...]) -> None:
        if len(group) < 2:
            return
        if not tests:
            same.update(dict.fromkeys(group[1:], group[0]))
            return
        parts: dict[object, list[Ref]] = {}
        for ref in group:
            parts.setdefault(tests[0](tensors[ref]), []).append(ref)
        for part in parts.values():
            merge(part, tests[1:])

    # Cheap looks come first, so that few large tensors are read as a whole.
    merge(refs, (_type, _ends, content_key))
    return same


def _type(tensor: ir.TensorProtocol) -> object:
    return tensor.dtype, tensor.shape.numpy()


def _ends(tensor: ir.TensorProtocol) -> object:
    flat = tensor.numpy().reshape(-1)
    return flat[:64].tobytes(), flat[-64:].tobytes()


def _attribute(name: str, value: object) -> ir.Attr:
    """An attribute of a lowered node."""
    if isinstance(value, np.ndarray):
        return ir.AttrTensor(name, from_array(value))
    if isinstance(value, str):
        return ir.AttrString(name, value)
    if isinstance(value, int):
        return ir.AttrInt64(name, value)
    if isinstance(value, float):
        return ir.AttrFloat32(name, value)
    if isinstance(value, Sequence):
        if any(isinstance(one, str) for one in value):
            return ir.AttrStrings(name, list(value))
        if any(isinstance(one, float) for one in value):
            return ir.AttrFloat32s(name, list(value))
        return ir.AttrInt64s(name, list(value))
    raise InternalError(f"attribute '{name}' has a value of type {type(value).__name__}")


def _attributes(values: Mapping[str, object]) -> list[ir.Attr]:
    return [_attribute(name, value) for name, value in values.items()]

"""The graph that import, e-graph, search and export share: a small immutable DAG.

A *node* applies one canonical operator (rulesets.ops) to values; a *value* is one output of
a node, named by a ``Ref``. Four operators are special and have no ONNX counterpart:

* ``Input[name]``: an input of the model, whether used or not;
* ``Constant[key]``: a tensor of ``Graph.constants``;
* ``Opaque[key]``: an ONNX node kept as it is, an entry of ``Graph.opaque``;
* ``Output[index]``: one output of the node that its only argument names. Graphs made by the
  importer have none, since a ``Ref`` says which output it means; a decoder of e-graphs may
  leave them in, and the exporter looks through them.

Nothing is changed in place: stages build new graphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import onnx_ir as ir

from rulesets.tensor import Tensor

__all__ = [
    "CONSTANT",
    "INPUT",
    "OPAQUE",
    "OUTPUT",
    "Attributes",
    "Graph",
    "Header",
    "Node",
    "OpaqueNode",
    "Ref",
    "dtype_name",
    "dtype_of",
    "prune",
]

INPUT, CONSTANT, OPAQUE, OUTPUT = "Input", "Constant", "Opaque", "Output"

Attributes = tuple[tuple[str, Any], ...]
"""Attributes of a node, complete and sorted by name: hashable."""


class Ref(NamedTuple):
    """A value: output ``output`` of node ``node`` (an index into ``Graph.nodes``)."""

    node: int
    output: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """One application of an operator.

    Attributes:
        op: Name of the canonical operator.
        attributes: All attributes, sorted by name.
        inputs: Argument values; None is an optional input that is absent.
        outputs: Type of each result.
        name: Name of the ONNX node this one stands for, "" if new or nameless.
        doc: Doc string of that ONNX node.
        metadata: Metadata entries of that ONNX node.
        origin: Names of all original nodes this one replaces.
    """

    op: str
    attributes: Attributes
    inputs: tuple[Ref | None, ...]
    outputs: tuple[Tensor, ...]
    name: str = ""
    doc: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    origin: tuple[str, ...] = ()

    def attribute(self, name: str) -> Any:
        """The value of one attribute.

        Raises:
            KeyError: the node has no such attribute.
        """
        for key, value in self.attributes:
            if key == name:
                return value
        raise KeyError(name)

    @property
    def key(self) -> str:
        """The key of a Constant or Opaque node."""
        return str(self.attribute("key"))


@dataclass(frozen=True, slots=True)
class OpaqueNode:
    """An ONNX node that is not modelled and passes through as it is.

    The graph node has ``arity`` arguments of the node itself, then one per captured value.

    Attributes:
        node: The original; its subgraphs are emitted unchanged.
        arity: Number of inputs of the node itself.
        captured: Outer values that its subgraphs read, as values of the source model.
        unique: Whether the node must never be merged with an equal one (random, stateful,
            of unknown meaning, or with subgraphs).
        reason: Why the node is opaque, for the report.
    """

    node: ir.Node
    arity: int
    captured: tuple[ir.Value, ...] = ()
    unique: bool = False
    reason: str = ""

    @property
    def captures(self) -> tuple[str, ...]:
        """Names by which its subgraphs read outer values; export keeps these names."""
        return tuple(value.name or "" for value in self.captured)

    @property
    def operator(self) -> str:
        """Domain and type, as ``domain::Type``; the default domain has no prefix."""
        domain = self.node.domain
        return f"{domain}::{self.node.op_type}" if domain else self.node.op_type


@dataclass(frozen=True, slots=True)
class Header:
    """What a model says besides its nodes; export repeats it.

    Attributes:
        ir_version: Version of the ONNX file format.
        opsets: Version of each imported operator set, by domain ("" is the default domain).
        inputs: Declarations of the inputs, in order, without the constants of IR version 3.
        outputs: Declarations of the outputs, in order.
        model: Producer, version, doc string and domain of the model, as keyword arguments.
        metadata: Metadata of the model.
        functions: Functions of the model.
        name: Name of the graph.
        doc: Doc string of the graph.
        graph_metadata: Metadata of the graph.
        external: Whether the model kept weights in files of their own.
    """

    ir_version: int
    opsets: Mapping[str, int]
    inputs: tuple[ir.Value, ...] = ()
    outputs: tuple[ir.Value, ...] = ()
    model: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    functions: tuple[ir.Function, ...] = ()
    name: str = ""
    doc: str = ""
    graph_metadata: Mapping[str, str] = field(default_factory=dict)
    external: bool = False

    @property
    def opset(self) -> int:
        """Version of the default operator set."""
        return self.opsets.get("", self.opsets.get("ai.onnx", 1))


@dataclass(frozen=True, slots=True)
class Graph:
    """A model as a DAG of canonical operators.

    Attributes:
        nodes: Nodes in topological order.
        outputs: Name and value of each output of the model, in order.
        inputs: The Input nodes, in the order of the signature, unused ones included.
        constants: Tensors of the Constant nodes by key; large ones may still be on disk.
        opaque: The ONNX nodes behind Opaque nodes by key.
        defaults: Default tensors of inputs that the caller may leave out, by name.
        names: Original names of values, which export reuses where it can.
        header: Everything else the model says.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[tuple[str, Ref], ...]
    inputs: tuple[int, ...]
    constants: Mapping[str, ir.TensorProtocol]
    opaque: Mapping[str, OpaqueNode]
    defaults: Mapping[str, ir.TensorProtocol]
    names: Mapping[Ref, str]
    header: Header

    @property
    def kept(self) -> tuple[tuple[str, Ref], ...]:
        """Name and value of each outer value that a subgraph captures, each once."""
        found: dict[tuple[str, Ref], None] = {}
        for node in self.nodes:
            if node.op == OPAQUE:
                record = self.opaque[node.key]
                for name, ref in zip(
                    record.captures, node.inputs[record.arity :], strict=True
                ):
                    assert ref is not None, "a captured value is never absent"
                    found[name, ref] = None
        return tuple(found)

    def tensor(self, ref: Ref) -> Tensor:
        """The type of a value."""
        return self.nodes[ref.node].outputs[ref.output]

    def resolve(self, ref: Ref) -> Ref:
        """The same value, named by the node that computes it instead of an Output node."""
        node = self.nodes[ref.node]
        while node.op == OUTPUT:
            source = node.inputs[0]
            assert source is not None, "an Output node always has its argument"
            ref = Ref(source.node, int(node.attribute("index")))
            node = self.nodes[ref.node]
        return ref

    def live(self) -> frozenset[int]:
        """Indices of the nodes that outputs depend on, and of all inputs."""
        alive = set(self.inputs)
        stack = [ref.node for _, ref in self.outputs]
        while stack:
            index = stack.pop()
            if index not in alive:
                alive.add(index)
                stack.extend(r.node for r in self.nodes[index].inputs if r is not None)
        return frozenset(alive)

    def uses(self) -> Iterator[tuple[int, Ref]]:
        """Each use of a value as (index of the using node, value)."""
        for index, node in enumerate(self.nodes):
            for ref in node.inputs:
                if ref is not None:
                    yield index, ref


def prune(graph: Graph) -> Graph:
    """The graph without nodes that no output depends on; inputs all stay."""
    alive = graph.live()
    if len(alive) == len(graph.nodes):
        return graph
    new = {old: position for position, old in enumerate(sorted(alive))}

    def moved(ref: Ref) -> Ref:
        return Ref(new[ref.node], ref.output)

    nodes = tuple(
        replace(node, inputs=tuple(r and moved(r) for r in node.inputs))
        for index, node in enumerate(graph.nodes)
        if index in alive
    )
    keys = {node.key for node in nodes if node.op in (CONSTANT, OPAQUE)}
    return replace(
        graph,
        nodes=nodes,
        outputs=tuple((name, moved(ref)) for name, ref in graph.outputs),
        inputs=tuple(new[index] for index in graph.inputs),
        constants={k: tensor for k, tensor in graph.constants.items() if k in keys},
        opaque={k: record for k, record in graph.opaque.items() if k in keys},
        names={moved(r): name for r, name in graph.names.items() if r.node in alive},
    )


_NAMES = {ir.DataType.FLOAT: "float32", ir.DataType.DOUBLE: "float64"}
_NAMES |= {
    dtype: dtype.name.lower()
    for dtype in ir.DataType
    if dtype not in _NAMES and dtype != ir.DataType.UNDEFINED
}
_NAMES[ir.DataType.UNDEFINED] = "unknown"
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}


def dtype_name(dtype: ir.DataType | None) -> str:
    """The name of an ONNX element type: "float32", "int64", …; "unknown" if None."""
    return "unknown" if dtype is None else _NAMES[dtype]


def dtype_of(name: str) -> ir.DataType:
    """The ONNX element type of that name.

    Raises:
        KeyError: there is no such type.
    """
    return _DTYPES[name]

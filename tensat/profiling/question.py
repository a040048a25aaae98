"""What is asked of a cost source about a node of the graph that runs.

A standard node is asked for by its canonical operator, as the optimizer would ask: both
share their measurements. A node of the runtime's own domains is asked for as that node.
All others depend on more than types and sizes (control flow, loops over data, quantized
numbers, denormal numbers): they are asked for by a digest of all that they hold. A Softmax
over masked numbers is one of them: its exponentials are denormal, or would be.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto

from rulesets.errors import OperatorError
from rulesets.ops import OPERATORS, complete
from rulesets.tensor import Tensor
from tensat.costs.source import PRICED_OPSET, Argument, Signature, priced_opset
from tensat.onnx_forms import OnnxCall, Operand, Raised, lower, raise_call
from tensat.profiling.running_graph import RunningGraph, bodies, captured

AS_IS = "as-is:"
"""Begins the operators of signatures that do not tell what to time."""

_EXPONENTIAL = frozenset({"Softmax", "LogSoftmax"})
_STEEP = 87.0  # e to minus that is hardly a normal number

_SMALLEST = float(np.finfo(np.float32).tiny)
_FLOATS = frozenset({"float32", "float16", "bfloat16", "float64"})
_DEFAULTS: Mapping[str, object] = {"auto_pad": "NOTSET"}
"""Attributes that say nothing when they have these values."""


def question(graph: RunningGraph, node: NodeProto) -> Signature | None:
    """Return what to ask about a node; None if it handles something else than tensors."""
    names = (*node.input, *captured(node), *node.output)
    if any(name and argument(graph, name) is None for name in names):
        return None
    if not any(True for _ in bodies(node)) and not _by_value(graph, node):
        asked = _foreign(graph, node) if node.domain else _standard(graph, node)
        if asked is not None:
            return asked
    return _as_is(graph, node)


def argument(graph: RunningGraph, name: str) -> Argument | None:
    """Return the type of a value; None if it is no tensor or nothing is known."""
    tensor = graph.constants.get(name)
    if tensor is not None:
        dtype = _dtype(tensor.data_type)
        value = _number(graph, name, dtype)
        return Argument(dtype, tuple(tensor.dims), constant=True, value=value)
    seen = graph.observed.get(name)
    if seen is None or seen.dims is None or seen.dtype == "object":
        return None
    return Argument(seen.dtype, seen.dims)


def _number(graph: RunningGraph, name: str, dtype: str) -> float | None:
    tensor = graph.constants[name]
    if dtype not in _FLOATS or any(size != 1 for size in tensor.dims):
        return None
    return float(graph.array(name).reshape(()))


def _dtype(number: int) -> str:
    """Return our name of an element type that ONNX numbers."""
    name = str(onnx.TensorProto.DataType.Name(number))
    return {"FLOAT": "float32", "DOUBLE": "float64"}.get(name, name.lower())


def _standard(graph: RunningGraph, node: NodeProto) -> Signature | None:
    """Return the question about a node that is one canonical operator."""
    call = _call(graph, node)
    raised = None if call is None else raise_call(call)
    if raised is None:
        return None
    inputs = tuple(argument(graph, node.input[place]) for place in raised.operands)
    types = tuple(Tensor(each.dtype, each.dims) for each in inputs if each is not None)
    outputs = tuple(found for name in node.output if (found := argument(graph, name)))
    opset = priced_opset(raised.name, graph.opsets.get("", 1))
    asked = Signature(raised.name, _completed(raised), inputs, outputs, opset)
    results = tuple(Tensor(each.dtype, each.dims) for each in outputs)
    given = dict(asked.attributes)
    if lower(raised.name, given, types, results, opset) is None:  # type: ignore[arg-type]
        return None
    return asked


def _completed(raised: Raised) -> tuple[tuple[str, object], ...]:
    attributes = complete(OPERATORS[raised.name], raised.attributes)
    return tuple(sorted(attributes.items()))


def _call(graph: RunningGraph, node: NodeProto) -> OnnxCall | None:
    attributes: dict[str, object] = {}
    for each in node.attribute:
        value = _plain(each)
        if value is None:
            return None
        attributes[each.name] = value
    try:
        return OnnxCall(
            op_type=node.op_type,
            opset=graph.opsets.get("", 1),
            attributes=attributes,
            inputs=tuple(_operand(graph, name) if name else None for name in node.input),
            outputs=len(node.output),
            used_outputs=frozenset(k for k, name in enumerate(node.output) if name),
        )
    except OperatorError:
        return None


def _operand(graph: RunningGraph, name: str) -> Operand:
    known = argument(graph, name)
    assert known is not None, "looked at before"
    tensor = Tensor(known.dtype, known.dims)
    if name in graph.integers:
        return Operand(tensor, graph.integers[name])
    if known.constant and known.elements <= 4096 and known.dtype != "string":
        return Operand(tensor, graph.array(name))
    return Operand(tensor)


def _foreign(graph: RunningGraph, node: NodeProto) -> Signature | None:
    """Return the question about a node of the runtime's own domains."""
    inputs = tuple(argument(graph, name) if name else None for name in node.input)
    outputs = tuple(found for name in node.output if (found := argument(graph, name)))
    if any(each is not None and each.dtype not in _FLOATS for each in inputs):
        return None
    attributes: dict[str, object] = {}
    for each in node.attribute:
        value = _plain(each)
        if value is None or isinstance(value, np.ndarray):
            return None
        if _DEFAULTS.get(each.name) != value:
            attributes[each.name] = value
    if len(outputs) < len(node.output):
        return None
    asked = tuple(None if each is None else replace(each, value=None) for each in inputs)
    name = f"{node.domain}:{node.op_type}"
    return Signature(name, tuple(sorted(attributes.items())), asked, outputs, PRICED_OPSET)


def _plain(attribute: AttributeProto) -> object:
    """Return an attribute as numbers, text or an array; None for anything else."""
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, int | float):
        return value
    if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS):
        return tuple(value)
    if attribute.type == AttributeProto.STRINGS:
        return tuple(each.decode(errors="replace") for each in value)
    return None


def _by_value(graph: RunningGraph, node: NodeProto) -> bool:
    """Whether a node meets numbers that processors compute with by microcode."""
    if node.op_type in _EXPONENTIAL and not node.domain:
        seen = graph.observed.get(node.input[0])
        if seen is not None and seen.span > _STEEP:
            return True
    return any(_denormals(graph, name) for name in (*node.input, *node.output))


def _denormals(graph: RunningGraph, name: str) -> int:
    """Return how many numbers of a value are denormal."""
    if name not in graph.constants:
        return graph.observed[name].denormals if name in graph.observed else 0
    if graph.constants[name].data_type != onnx.TensorProto.FLOAT:
        return 0
    sizes = np.abs(graph.array(name))
    return int(np.count_nonzero((sizes < _SMALLEST) & (sizes > 0)))


def _as_is(graph: RunningGraph, node: NodeProto) -> Signature:
    names = [*node.input, *captured(node)]
    inputs = tuple(argument(graph, name) if name else None for name in names)
    outputs = tuple(found for name in node.output if (found := argument(graph, name)))
    digest = hashlib.blake2b(digest_size=12)
    for part in _parts(graph, node):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    name = f"{AS_IS}{node.domain}.{node.op_type}" if node.domain else AS_IS + node.op_type
    attributes = (("digest", digest.hexdigest()),)
    opset = graph.opsets.get(node.domain, 1)
    return Signature(name, attributes, inputs, outputs, opset)


def _parts(graph: RunningGraph, node: NodeProto) -> Iterator[bytes]:
    """Yield all that a node holds and reads; names of values do not count outside."""
    copy = graph.whole(node)
    for each in sorted(copy.attribute, key=lambda attribute: attribute.name):
        yield each.SerializeToString(deterministic=True)
    yield repr([bool(name) for name in (*node.input, *node.output)]).encode()
    yield repr([_denormals(graph, name) for name in (*node.input, *node.output)]).encode()
    for name in (*node.input, *captured(node)):
        if name in graph.constants:
            yield np.ascontiguousarray(graph.array(name)).tobytes()
        elif name in graph.integers:
            yield graph.integers[name].tobytes()

"""From a signature to a model that holds nothing but that operator, several times.

Copies make the time of one kernel large against the overhead of a run. They must not be
flattered by caches: copies of an operator with large constants get *distinct* constants,
together as large as a model's weights, since in a running model weights come from memory.
Activations, on the other hand, are warm in a running model. Copies with equal inputs would
be merged by the runtime, so copies without large constants get inputs of their own.

No random numbers are made here: the runtime's process fills the tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import cast

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from rulesets.ops import Attributes
from rulesets.tensor import Tensor
from tensat.costs.source import Argument, Signature
from tensat.onnx_forms import Absent, Arg, Const, Node, OnnxNode, lower
from tensat.runtime.messages import Filling, Kernel

_FOOTPRINT = 64 << 20  # bytes of distinct weights: more than any core's own cache
_LARGE = 128 << 10  # constants from here on count as weights
_MOST_COPIES = 64
_WARM = 1 << 20  # bytes of activations that stay in the core's own cache
_WEIGHTS_PER_SECOND = 20e9
_COLD = 8 << 20  # distinct weights that a core's own cache does not hold
_BUSY = 1.5e-3  # seconds of arithmetic in one run that are enough
_BLOCKED = frozenset(
    {"Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"}
)
_IR_VERSION = 10


@dataclass(frozen=True, slots=True)
class _Plan:
    copies: int
    shared_inputs: bool


def kernel(
    signature: Signature, estimate: float, budget: float, threads: int
) -> Kernel | None:
    """Return what to time for a signature; None if this opset cannot express it.

    Args:
        signature: A canonical operator with concrete sizes.
        estimate: About how many seconds it takes; decides the number of copies.
        budget: Seconds for the repetitions.
        threads: Threads that compute.
    """
    inputs = tuple(Tensor(a.dtype, a.dims) for a in signature.present)
    outputs = tuple(Tensor(a.dtype, a.dims) for a in signature.outputs)
    attributes = cast("Attributes", dict(signature.attributes))
    nodes = lower(signature.op, attributes, inputs, outputs, signature.opset)
    if nodes is None:
        return None
    builder = _Builder(signature, nodes, _plan(signature, estimate))
    return builder.kernel(budget, threads)


def _plan(signature: Signature, estimate: float) -> _Plan:
    weights = sum(a.bytes for a in signature.present if a.constant)
    if weights >= _LARGE:
        copies = ceil(_FOOTPRINT / weights)
        streaming = weights / _WEIGHTS_PER_SECOND
        if streaming < 0.5 * estimate:  # arithmetic hides most of the traffic
            enough = max(ceil(_COLD / weights), int(_BUSY / estimate))
            copies = min(copies, enough, max(1, int(4 * _BUSY / estimate)))
        return _Plan(max(1, min(copies, _MOST_COPIES)), shared_inputs=True)
    activations = sum(a.bytes for a in (*signature.present, *signature.outputs))
    return _Plan(max(1, min(8, _WARM // max(activations, 1))), shared_inputs=False)


class _Builder:
    """Collects the parts of one model."""

    def __init__(
        self, signature: Signature, nodes: Sequence[OnnxNode], plan: _Plan
    ) -> None:
        self._signature = signature
        self._nodes = nodes
        self._plan = plan
        self._graph = GraphProto(name="kernel")
        self._inputs: list[Filling] = []
        self._constants: list[Filling] = []
        self._outputs: list[Filling] = []

    def kernel(self, budget: float, threads: int) -> Kernel:
        """Return the finished model with what it needs."""
        for copy in range(self._plan.copies):
            self._copy(copy)
        opset = [helper.make_opsetid("", self._signature.opset)]
        model: ModelProto = helper.make_model(
            self._graph, opset_imports=opset, ir_version=_IR_VERSION
        )
        return Kernel(
            model.SerializeToString(),
            tuple(self._inputs),
            tuple(self._constants),
            tuple(self._outputs),
            copies=self._plan.copies,
            seed=self._signature.seed(),
            threads=threads,
            budget=budget,
            blocked=self._signature.op in _BLOCKED,
        )

    def _copy(self, copy: int) -> None:
        present = self._signature.present
        names = [self._argument(a, k, copy) for k, a in enumerate(present)]
        results: list[str] = []
        for place, node in enumerate(self._nodes):
            last = place == len(self._nodes) - 1
            count = len(self._signature.outputs) if last else 1
            outputs = [f"n{place}_{copy}_{k}" for k in range(count)]
            inputs = [self._name(ref, names, results, place, copy) for ref in node.inputs]
            while inputs and not inputs[-1]:
                inputs.pop()
            self._graph.node.append(_node(node, inputs, outputs))
            results.append(outputs[0])
            if last:
                for name, argument in zip(outputs, self._signature.outputs, strict=True):
                    self._output(name, argument)

    def _argument(self, argument: Argument, place: int, copy: int) -> str:
        filling = Filling(
            f"a{place}_{copy}",
            _onnx_type(argument.dtype),
            argument.dims,
            below=_index_bound(self._signature, place),
            value=argument.value,
        )
        if argument.constant:
            self._constants.append(filling)
            self._graph.initializer.append(_external(filling))
            return filling.name
        if self._plan.shared_inputs and copy:
            return f"a{place}_0"
        self._inputs.append(filling)
        self._graph.input.append(_declared(filling))
        return filling.name

    def _name(
        self,
        ref: object,
        names: Sequence[str],
        results: Sequence[str],
        place: int,
        copy: int,
    ) -> str:
        if isinstance(ref, Arg):
            return names[ref.position]
        if isinstance(ref, Node):
            return results[ref.index]
        if isinstance(ref, Const):
            name = f"c{place}_{copy}_{len(self._graph.initializer)}"
            array = np.ascontiguousarray(ref.array)
            self._graph.initializer.append(onnx.numpy_helper.from_array(array, name))
            return name
        assert isinstance(ref, Absent)
        return ""

    def _output(self, name: str, argument: Argument) -> None:
        filling = Filling(name, _onnx_type(argument.dtype), argument.dims)
        self._outputs.append(filling)
        self._graph.output.append(_declared(filling))


def _node(node: OnnxNode, inputs: Sequence[str], outputs: Sequence[str]) -> NodeProto:
    result = helper.make_node(node.op_type, list(inputs), list(outputs))
    for name, value in node.attributes.items():
        result.attribute.append(_attribute(name, value))
    return result


def _attribute(name: str, value: object) -> AttributeProto:
    """Return the attribute; an empty tuple is a list of integers, as ONNX means it."""
    if isinstance(value, np.ndarray):
        return helper.make_attribute(name, onnx.numpy_helper.from_array(value))
    if isinstance(value, tuple):
        kind = None if value else AttributeProto.INTS
        return helper.make_attribute(name, list(value), attr_type=kind)
    return helper.make_attribute(name, value)


def _index_bound(signature: Signature, place: int) -> int:
    """Return below what integers must stay: indices of Gather address its axis."""
    if signature.op == "Gather" and place == 1:
        axis = dict(signature.attributes).get("axis", 0)
        data = signature.present[0]
        if isinstance(axis, int) and data.dims:
            return data.dims[axis]
    return 2


def _onnx_type(dtype: str) -> int:
    return int(TensorProto.DataType.Value(_PROTO_NAMES.get(dtype, dtype.upper())))


_PROTO_NAMES = {"float32": "FLOAT", "float64": "DOUBLE"}


def _declared(filling: Filling) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(filling.name, filling.onnx_type, filling.dims)


def _external(filling: Filling) -> TensorProto:
    """Return an initializer whose values come from outside the model."""
    result = TensorProto(
        name=filling.name,
        data_type=filling.onnx_type,
        dims=filling.dims,
        data_location=TensorProto.EXTERNAL,
    )
    result.external_data.add(key="location", value="made in the runtime's process")
    return result

"""From a signature to a model that holds nothing but that operator, several times.

Copies make the time of one kernel large against the overhead of a run. They must not be
flattered by caches: copies of an operator with large constants get *distinct* constants,
together as large as a model's weights, since in a running model weights come from memory.
Activations, on the other hand, are warm in a running model: copies read the same inputs,
or each the result of the one before where it has the type of an input, so that the runtime
computes in place as it does in a model. Only the last result is an output; the others are
let go at once, and their memory is used again.

An operator of another domain, ``domain:Type``, is written as that node. All models are run
as they stand, without the runtime's optimizations: the signature says what runs. No random
numbers are made here: the runtime's process fills the tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import cast

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from rulesets.ops import Attributes
from rulesets.tensor import Tensor
from tensat.costs.demand import LARGE, demand
from tensat.costs.source import Argument, Signature
from tensat.onnx_forms import Absent, Arg, Const, Node, OnnxNode, lower
from tensat.runtime.external import external
from tensat.runtime.messages import Filling, Kernel

FOOTPRINT = 192 << 20
"""Bytes of distinct weights: more than a share of the last cache."""

_MOST_COPIES = 64
_WEIGHTS_PER_SECOND = 20e9
_NEAR = 1 << 20  # bytes of weights that a core's own cache does hold
_SMALL = 4 << 10  # bytes of constants that are shared between copies even then
_COLD = 128 << 20  # distinct weights where arithmetic hides most of their traffic
_BUSY = 4e-3  # seconds of arithmetic in one run that are enough
_LONGEST = 40e-3  # seconds of one run that are too many
_FEW = 8  # copies without weights
# Of their own results they would make denormal or infinite numbers after some copies.
_DRIFTING = frozenset({"Pow", "Exp"})
_IR_VERSION = 10


@dataclass(frozen=True, slots=True)
class Plan:
    """How a kernel is repeated.

    Attributes:
        copies: How often.
        chained: Whether a copy reads the result of the one before.
        distinct: Bytes from which on each copy has a constant of its own.
    """

    copies: int
    chained: bool
    distinct: int = LARGE


def kernel(
    signature: Signature,
    estimate: float,
    budget: float,
    threads: int,
    resident: bool = False,
) -> Kernel | None:
    """Return what to time for a signature; None if this opset cannot express it.

    Args:
        signature: A canonical operator with concrete sizes.
        estimate: About how many seconds it takes; decides the number of copies.
        budget: Seconds for the repetitions.
        threads: Threads that compute.
        resident: Whether weights stay in a core's own cache between two runs.
    """
    nodes = _nodes(signature)
    if nodes is None:
        return None
    weights = sum(a.bytes for a in signature.present if a.constant)
    builder = _Builder(signature, nodes, plan(weights, estimate, resident))
    return replace(builder.kernel(budget, threads), demand=demand(signature, resident))


def plan(weights: float, estimate: float, resident: bool = False) -> Plan:
    """Return how to repeat a kernel.

    Args:
        weights: Bytes of its constants.
        estimate: About how many seconds it takes.
        resident: Whether they stay in a core's own cache between two runs.
    """
    most = max(1, int(_LONGEST / estimate))
    if resident:
        fitting = max(1, int(_NEAR / max(weights, 1)))
        return Plan(min(_FEW, most, fitting), weights < LARGE, _SMALL)
    if weights < LARGE:
        return Plan(min(_FEW, most), True)
    copies = ceil(FOOTPRINT / weights)
    streaming = weights / _WEIGHTS_PER_SECOND
    if streaming < 0.5 * estimate:  # arithmetic hides most of the traffic
        enough = max(ceil(_COLD / weights), int(_BUSY / estimate))
        copies = min(copies, enough, max(most, 2))
    return Plan(max(1, min(copies, _MOST_COPIES)), False)


def _nodes(signature: Signature) -> Sequence[OnnxNode] | None:
    """Return the ONNX nodes that compute a signature, None if its opset has none."""
    attributes = cast("Attributes", dict(signature.attributes))
    if ":" in signature.op:
        present = iter(range(len(signature.present)))
        refs = tuple(
            Absent() if argument is None else Arg(next(present))
            for argument in signature.inputs
        )
        return [OnnxNode(signature.op, attributes, refs)]
    inputs = tuple(Tensor(a.dtype, a.dims) for a in signature.present)
    outputs = tuple(Tensor(a.dtype, a.dims) for a in signature.outputs)
    return lower(signature.op, attributes, inputs, outputs, signature.opset)


class _Builder:
    """Collects the parts of one model."""

    def __init__(self, signature: Signature, nodes: Sequence[OnnxNode], plan: Plan) -> None:
        self._signature = signature
        self._nodes = nodes
        self._plan = plan
        self._graph = GraphProto(name="kernel")
        self._inputs: list[Filling] = []
        self._constants: list[Filling] = []
        self._outputs: list[Filling] = []
        self._before = ""
        self._linked = _linked(signature) if plan.chained else -1

    def kernel(self, budget: float, threads: int) -> Kernel:
        """Return the finished model with what it needs."""
        for copy in range(self._plan.copies):
            self._copy(copy)
        opsets = [helper.make_opsetid("", self._signature.opset)]
        domain = self._signature.op.rpartition(":")[0]
        if domain:
            opsets.append(helper.make_opsetid(domain, 1))
        model: ModelProto = helper.make_model(
            self._graph, opset_imports=opsets, ir_version=_IR_VERSION
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
                if copy == self._plan.copies - 1:
                    for name, argument in zip(
                        outputs, self._signature.outputs, strict=True
                    ):
                        self._output(name, argument)
                self._before = outputs[0]

    def _argument(self, argument: Argument, place: int, copy: int) -> str:
        filling = Filling(
            f"a{place}_{copy}",
            _onnx_type(argument.dtype),
            argument.dims,
            below=_index_bound(self._signature, place),
            value=argument.value,
        )
        if argument.constant and copy and argument.bytes < self._plan.distinct:
            return f"a{place}_0"
        if argument.constant:
            self._constants.append(filling)
            self._graph.initializer.append(external(filling))
            return filling.name
        if copy:
            return self._before if place == self._linked else f"a{place}_0"
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
    domain, _, op_type = node.op_type.rpartition(":")
    result = helper.make_node(op_type, list(inputs), list(outputs), domain=domain)
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


def _linked(signature: Signature) -> int:
    """Return which argument can be the first result; -1 if none has its type."""
    if signature.op in _DRIFTING:
        return -1
    wanted = (signature.outputs[0].dtype, signature.outputs[0].dims)
    for place, argument in enumerate(signature.present):
        if not argument.constant and (argument.dtype, argument.dims) == wanted:
            return place
    return -1


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

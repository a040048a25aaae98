"""Looking into a graph as TASO's callers do: operators and edges by number.

An operator is ``{"guid": number}`` and an edge has the operators it joins and the places
of the value there; both are plain dictionaries, as in TASO. Inputs and weights are
operators of type "Input" and "Weight" that edges come from, but not in the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

import numpy as np
import onnx_ir as ir

from rulesets.errors import OperatorError
from rulesets.ops import OPERATORS, complete
from rulesets.size import Size
from tensat.errors import UsageError
from tensat.model.constants import node_tensor
from tensat.onnx_forms import raise_call
from tensat.taso.model_builder import ModelBuilder, plain_attributes


class Operator(TypedDict):
    """An operator of a graph; the number stays the same while the graph grows."""

    guid: int


class Edge(TypedDict):
    """A value: result `srcIdx` of one operator and input `dstIdx` of another."""

    srcOp: Operator
    dstOp: Operator
    srcIdx: int
    dstIdx: int


type _Thing = ir.Node | ir.Value


class Inspection:
    """The graph's operators under numbers.

    Attributes:
        builder: The model.
    """

    def __init__(self, builder: ModelBuilder) -> None:
        self.builder = builder
        self._things: list[_Thing] = []
        self._numbers: dict[_Thing, int] = {}

    def operators(self) -> list[Operator]:
        """All operators in the model's order, without inputs and weights."""
        nodes = [node for node in self.builder.model.graph if not _is_weight(node)]
        return [self._operator(node) for node in nodes]

    def edges(self, op: Operator) -> list[Edge]:
        """The values that an operator takes; absent optional inputs are left out."""
        found = []
        for place, value in enumerate(self._node(op).inputs):
            if value is not None:
                source, index = self._source(value)
                found.append(Edge(srcOp=source, dstOp=op, srcIdx=index, dstIdx=place))
        return found

    def kind(self, op: Operator) -> str:
        """The ONNX type, with its domain if that is not the default one."""
        thing = self._thing(op)
        if isinstance(thing, ir.Value):
            return "Input" if thing.const_value is None else "Weight"
        if _is_weight(thing):
            return "Weight"
        return f"{thing.domain}::{thing.op_type}" if thing.domain else thing.op_type

    def input_dims(self, op: Operator, idx: int) -> list[Size]:
        """The sizes of an input; of a weight, its own."""
        thing = self._thing(op)
        if isinstance(thing, ir.Value) or _is_weight(thing):
            return self.output_dims(op, idx)
        return self._dims(_at(thing.inputs, idx, "input"))

    def output_dims(self, op: Operator, idx: int) -> list[Size]:
        """The sizes of a result."""
        thing = self._thing(op)
        results = (thing,) if isinstance(thing, ir.Value) else thing.outputs
        return self._dims(_at(results, idx, "output"))

    def outputs(self, op: Operator) -> int:
        """The number of results."""
        thing = self._thing(op)
        return 1 if isinstance(thing, ir.Value) else len(thing.outputs)

    def attribute(self, op: Operator, name: str) -> Any:
        """An attribute by its ONNX name; tuples come as lists.

        Attributes that ONNX gives as inputs (axes, split, pads) and kernel_shape of a
        convolution are found too, defaults are filled in, and axes count from the front.
        """
        known = self._attributes(self._node(op))
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise UsageError(f"{self.kind(op)} has no attribute {name!r}; known: {names}")
        value = known[name]
        return list(value) if isinstance(value, tuple) else value

    def weight(self, op: Operator) -> np.ndarray:
        """The value of a weight."""
        thing = self._thing(op)
        tensor = thing.const_value if isinstance(thing, ir.Value) else node_tensor(thing)
        if tensor is None:
            raise UsageError(f"a weight's value is asked for; found {self.kind(op)}")
        return np.array(tensor.numpy())

    # ------------------------------------------------------------------------ inside
    def _attributes(self, node: ir.Node) -> dict[str, object]:
        known = plain_attributes(node)
        raised = raise_call(self.builder.call(node)) if not node.domain else None
        if raised is not None:
            try:
                full = complete(OPERATORS[raised.name], raised.attributes)
            except OperatorError:
                full = {}
            known |= full
        known |= dict(self._renamed(node, known))
        return known

    def _renamed(
        self, node: ir.Node, known: dict[str, object]
    ) -> Iterator[tuple[str, object]]:
        if "kernel" in known:
            yield "kernel_shape", known["kernel"]
        if "parts" in known:
            yield "split", known["parts"]
        if node.op_type in {"Conv", "ConvTranspose"} and "kernel_shape" not in known:
            yield "kernel_shape", tuple(self._dims(node.inputs[1])[2:])

    def _operator(self, thing: _Thing) -> Operator:
        if thing not in self._numbers:
            self._numbers[thing] = len(self._things)
            self._things.append(thing)
        return Operator(guid=self._numbers[thing])

    def _thing(self, op: Operator) -> _Thing:
        number = op["guid"]
        if not 0 <= number < len(self._things):
            raise UsageError(f"the graph has no operator with guid {number}")
        return self._things[number]

    def _node(self, op: Operator) -> ir.Node:
        thing = self._thing(op)
        if isinstance(thing, ir.Value):
            raise UsageError(f"an operator is asked for; found {self.kind(op)}")
        return thing

    def _source(self, value: ir.Value) -> tuple[Operator, int]:
        producer = value.producer()
        if producer is None:
            return self._operator(value), 0
        index = value.index()
        return self._operator(producer), 0 if index is None else index

    def _dims(self, value: ir.Value | None) -> list[Size]:
        shape = None if value is None else self.builder.tensor(value).shape
        if shape is None:
            name = "an absent input" if value is None else f"'{value.name}'"
            raise UsageError(f"the sizes of {name} are not known")
        return list(shape)


def _is_weight(node: ir.Node) -> bool:
    return node.op_type == "Constant" and not node.domain


def _at(values: Sequence[ir.Value | None], idx: int, what: str) -> ir.Value | None:
    if not 0 <= idx < len(values):
        raise UsageError(f"{what} {idx} is asked for; there are {len(values)}")
    return values[idx]

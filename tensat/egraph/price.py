"""What a cost source is asked about an e-node, at the sizes optimized for.

E-nodes that cannot be written in the model's opset cost infinity and are never chosen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rulesets.errors import ShapeError, SizeError
from rulesets.size import Poly, evaluate
from rulesets.tensor import Tensor
from tensat.costs.source import (
    FREE_OPERATORS,
    Argument,
    Signature,
    priced_opset,
)
from tensat.egraph.encode import ABSENT
from tensat.egraph.engine import ENodeRow
from tensat.egraph.tensor_egraph import TensorEGraph
from tensat.onnx_forms import lower

UNKNOWN_SECONDS = 1e-5
"""Cost of a node of the model whose sizes are not known: it cannot be priced, only kept."""


def operator_of(symbol: str) -> str:
    """The operator that an egglog constructor stands for."""
    return symbol.rsplit("_", 1)[0]


def handle_of_row(egraph: TensorEGraph, row: ENodeRow) -> int:
    """The handle under which an e-node was put in."""
    return egraph.handle_of(operator_of(row.symbol), row.attributes, row.children)


def question(
    egraph: TensorEGraph, row: ENodeRow, sizes: Mapping[str, int], opset: int
) -> Signature | float:
    """What to ask a cost source about an e-node, or its cost if that is known."""
    operator = operator_of(row.symbol)
    if operator in FREE_OPERATORS or operator == ABSENT:
        return 0.0
    handle = handle_of_row(egraph, row)
    outputs = egraph.outputs[handle]
    original = egraph.rule_of[handle] is None
    attributes = dict(egraph.attributes(row.attributes))
    if operator != "Opaque":
        inputs = tuple(egraph.tensor(child) for child in row.children)
        if not expressible(operator, attributes, inputs, outputs, opset):
            return math.inf
    try:
        arguments = tuple(_argument(egraph, child, sizes) for child in row.children)
        results = tuple(concrete(tensor, sizes) for tensor in outputs)
        values = () if operator == "Opaque" else evaluated(attributes, sizes)
    except SizeError:
        return UNKNOWN_SECONDS if original else math.inf
    version = priced_opset(operator, opset)
    return Signature(operator, values, arguments, results, version)


def expressible(
    operator: str,
    attributes: Mapping[str, Any],
    inputs: tuple[Tensor, ...],
    outputs: tuple[Tensor, ...],
    opset: int,
) -> bool:
    """Whether an application can be written in ONNX at an opset."""
    try:
        return lower(operator, attributes, inputs, outputs, opset) is not None
    except ShapeError:
        return False


def _argument(
    egraph: TensorEGraph, child: int, sizes: Mapping[str, int]
) -> Argument | None:
    if egraph.key_of[child].operator == ABSENT:
        return None
    tensor = egraph.tensor(child)
    constant = egraph.constant(child)
    known = concrete(tensor, sizes)
    return Argument(known.dtype, known.dims, constant, egraph.scalar(child))


def concrete(tensor: Tensor, sizes: Mapping[str, int]) -> Argument:
    """The type at given sizes.

    Raises:
        SizeError: Its rank or one of its sizes is not known.
    """
    if tensor.shape is None:
        raise SizeError("a tensor of unknown rank has no size")
    return Argument(tensor.dtype, tuple(evaluate(size, sizes) for size in tensor.shape))


def evaluated(
    attributes: Mapping[str, Any], sizes: Mapping[str, int]
) -> tuple[tuple[str, object], ...]:
    """Attributes at given sizes, sorted by name.

    Raises:
        SizeError: A size is not known.
    """

    def concrete(value: object) -> object:
        if isinstance(value, Poly):
            return evaluate(value, sizes)
        if isinstance(value, tuple):
            return tuple(concrete(item) for item in value)
        return value

    return tuple((name, concrete(value)) for name, value in sorted(attributes.items()))

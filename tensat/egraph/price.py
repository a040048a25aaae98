"""Every e-node gets its cost in seconds.

Values that depend on constants only are computed before the model runs: their classes cost
nothing. Every other e-node is asked for at the sizes that the model is optimized for;
e-nodes that cannot be written in the model's opset cost infinity and are never chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

from rulesets.errors import ShapeError, SizeError
from rulesets.size import Poly, evaluate
from rulesets.tensor import Tensor
from tensat.costs.source import (
    FREE_OPERATORS,
    PRICED_OPSET,
    Argument,
    CostSource,
    Signature,
)
from tensat.egraph.encode import ABSENT
from tensat.egraph.engine import ENodeRow, Tables
from tensat.egraph.tensor_egraph import TensorEGraph
from tensat.onnx_forms import lower

UNKNOWN_SECONDS = 1e-5
"""Cost of a node of the model whose sizes are not known: it cannot be priced, only kept."""


@dataclass(frozen=True, slots=True)
class PricedENode:
    """An e-node with its cost.

    Attributes:
        operator: Canonical operator.
        attributes: Number of its attributes.
        children: Argument classes; of constants too.
        eclass: Its class.
        seconds: Cost; infinity where it cannot be used.
        handle: The handle under which it was put in.
    """

    operator: str
    attributes: int
    children: tuple[int, ...]
    eclass: int
    seconds: float
    handle: int


def price(
    egraph: TensorEGraph,
    tables: Tables,
    source: CostSource,
    sizes: Mapping[str, int],
    opset: int,
    deadline: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    computed: Container[int] | None = None,
) -> tuple[PricedENode, ...]:
    """The e-nodes of all classes that the model computes, with their costs.

    Args:
        egraph: The e-graph, refreshed.
        tables: Its tables.
        source: Where costs come from.
        sizes: Value of each symbolic dimension.
        opset: The model's version of the default operator set.
        deadline: As for `CostSource.seconds`.
        progress: As for `CostSource.seconds`.
        computed: Classes that are computed before the model runs; None for all constants.

    Returns:
        E-nodes in the order of the tables.
    """
    if computed is None:
        computed = {row.eclass for row in tables.enodes() if egraph.constant(row.eclass)}
    rows = [row for row in tables.enodes() if row.eclass not in computed]
    asked: dict[int, Signature] = {}
    fixed: dict[int, float] = {}
    for index, row in enumerate(rows):
        answer = question(egraph, row, sizes, opset)
        if isinstance(answer, Signature):
            asked[index] = answer
        else:
            fixed[index] = answer
    costs = source.seconds(list(asked.values()), deadline, progress)
    fixed.update(zip(asked, costs, strict=True))
    return tuple(_priced(egraph, row, fixed[index]) for index, row in enumerate(rows))


def _priced(egraph: TensorEGraph, row: ENodeRow, seconds: float) -> PricedENode:
    operator = operator_of(row.symbol)
    handle = egraph.handle_of(operator, row.attributes, row.children)
    return PricedENode(operator, row.attributes, row.children, row.eclass, seconds, handle)


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
    return Signature(operator, values, arguments, results, PRICED_OPSET)


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

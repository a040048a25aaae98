"""What an optimization did, as plain values that become JSON."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from tensat.model.constants import node_tensor


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """Size of a model.

    Attributes:
        operators: How many nodes of each type there are, those of sub-graphs included.
        nodes: Their sum.
        bytes: Bytes of all weights, those in Constant nodes included.
        predicted_seconds: Sum of operator costs, None if not known.
        measured_seconds: Median of one run, None if not measured.
    """

    operators: Mapping[str, int]
    nodes: int
    bytes: int
    predicted_seconds: float | None = None
    measured_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What was done and found.

    Attributes:
        improved: Whether the result is a new model; else it is the original.
        reason: One sentence: why the result is what it is.
        before: The original.
        after: The result; equal to ``before`` if not improved.
        candidate: The best model that was found, also where the original was kept; None if
            there was none.
        ratio: Measured time of the original over that of the result; None if not measured.
        deviation: Largest difference of outputs over their largest value.
        input_shapes: Sizes that the model was optimized and checked for.
        saturation: Why saturation stopped, growth of the e-graph, rules that fired.
        extraction: Status, cost, bound, gap and statistics of the chosen graph.
        rules: Rules behind the nodes of the chosen graph, with their numbers.
        opaque: Operators that were kept as they are, with their numbers.
        costs: Where costs came from.
        stages: Seconds of each stage.
        versions: Versions of this package and of what it stands on.
        notes: Other things worth knowing.
    """

    improved: bool
    reason: str
    before: ModelSummary
    after: ModelSummary
    candidate: ModelSummary | None = None
    ratio: float | None = None
    deviation: float | None = None
    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    saturation: Mapping[str, Any] = field(default_factory=dict)
    extraction: Mapping[str, Any] = field(default_factory=dict)
    rules: Mapping[str, int] = field(default_factory=dict)
    opaque: Mapping[str, int] = field(default_factory=dict)
    costs: Mapping[str, Any] = field(default_factory=dict)
    stages: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_json(self) -> str:
        """The report as JSON text; infinities and NaN, which JSON lacks, are null."""
        return json.dumps(_plain(asdict(self)), indent=2, allow_nan=False) + "\n"

    def __str__(self) -> str:
        """One line."""
        return self.reason


def _is_parameter(node: ir.Node) -> bool:
    """Whether a Constant node of a function holds what the caller gives."""
    return any(attribute.is_ref() for attribute in node.attributes.values())


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, int | str) else str(value)


def summarize(
    model: ir.Model, predicted: float | None = None, measured: float | None = None
) -> ModelSummary:
    """The size of a model; nodes of sub-graphs and functions count, constants do not."""
    counts: Counter[str] = Counter()
    tensors = [value.const_value for value in model.graph.initializers.values()]
    graphs: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for graph in graphs:
        for node in ir.traversal.RecursiveGraphIterator(graph):
            if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
                tensors.append(None if _is_parameter(node) else node_tensor(node))
            else:
                counts[
                    f"{node.domain}::{node.op_type}" if node.domain else node.op_type
                ] += 1
    total = sum(
        tensor.nbytes
        for tensor in tensors
        if tensor is not None and tensor.dtype != ir.DataType.STRING
    )
    operators = dict(sorted(counts.items()))
    return ModelSummary(operators, sum(counts.values()), total, predicted, measured)

"""Constant parts of a graph are computed once, by the runtime itself.

The runtime decides what an operator on constants gives (integer division, wrapping,
rounding), so folding can never disagree with it. Everything is computed in one run of one
model; if the runtime refuses that model, each value is tried by itself, and nodes whose
values it refuses stay as they are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx_ir as ir

from tensat.model.graph import CONSTANT, Graph, Node, Ref, dtype_of, prune
from tensat.model.onnx_export import to_model, write
from tensat.runtime import Failure, Level, Program, Runtime

MOST_TRIED = 64
"""Values that are tried one by one where the runtime refuses all of them together."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A graph after folding.

    Attributes:
        graph: The graph; constants that nobody uses are gone.
        folded: How many values were computed and stored.
        refused: Why the runtime refused some or all of them, or "".
    """

    graph: Graph
    folded: int
    refused: str = ""


def fold(graph: Graph, runtime: Runtime, foldable: frozenset[int]) -> Folded:
    """Replace nodes by their values.

    Args:
        graph: The graph.
        runtime: Computes the values.
        foldable: Indices of nodes that depend on constants only, themselves no constants.

    Returns:
        The graph with those nodes' values stored, as far as they are used elsewhere.
    """
    wanted = _wanted(graph, foldable)
    if not wanted:
        return Folded(graph, 0)
    values, refused = _found(graph, wanted, foldable, runtime)
    if not values:
        return Folded(graph, 0, refused)
    constants = dict(graph.constants)
    nodes = list(graph.nodes)
    for number, (ref, value) in enumerate(values.items()):
        key = _free_key(constants, number)
        tensor = graph.tensor(ref)
        constants[key] = ir.Tensor(value, dtype=dtype_of(tensor.dtype))
        nodes[ref.node] = Node(CONSTANT, (("key", key),), (), (tensor,))
    folded = prune(replace(graph, nodes=tuple(nodes), constants=constants))
    return Folded(folded, len(values), refused)


def _found(
    graph: Graph, wanted: tuple[Ref, ...], foldable: frozenset[int], runtime: Runtime
) -> tuple[dict[Ref, np.ndarray], str]:
    """The values that the runtime computes, and why it refused the others."""
    together = _values(graph, wanted, foldable, runtime)
    if not isinstance(together, Failure):
        return dict(zip(wanted, together, strict=True)), ""
    found = {}
    for ref in wanted[:MOST_TRIED]:
        alone = _values(graph, (ref,), foldable, runtime)
        if not isinstance(alone, Failure):
            found[ref] = alone[0]
    return found, str(together)


def _free_key(constants: Mapping[str, object], number: int) -> str:
    key = f"folded.{number}"
    while key in constants:
        key += "_"
    return key


def _wanted(graph: Graph, foldable: frozenset[int]) -> tuple[Ref, ...]:
    """Values of foldable nodes that outputs or other nodes use."""
    found: dict[Ref, None] = {}
    for index, ref in graph.uses():
        if index not in foldable and ref.node in foldable:
            found[ref] = None
    for _, ref in graph.outputs:
        if ref.node in foldable:
            found[ref] = None
    return tuple(found)


def _values(
    graph: Graph, wanted: tuple[Ref, ...], foldable: frozenset[int], runtime: Runtime
) -> list[np.ndarray] | Failure:
    names = tuple(f"value.{number}" for number in range(len(wanted)))
    declared = tuple(
        ir.Value(name=name, type=ir.TensorType(dtype_of(graph.tensor(ref).dtype)))
        for name, ref in zip(names, wanted, strict=True)
    )
    header = replace(
        graph.header, inputs=(), outputs=declared, functions=(), external=False
    )
    part = prune(
        replace(
            graph,
            outputs=tuple(zip(names, wanted, strict=True)),
            inputs=(),
            defaults={},
            header=header,
            names={},
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "constants.onnx"
        write(to_model(part), path)
        result = runtime.run(Program(str(path), Level.NONE), {})
        runtime.forget()
    return result

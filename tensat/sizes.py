"""Concrete sizes for symbolic dimensions: those for which costs are asked.

Dimensions of inputs follow from the inputs that the model runs with. Dimensions that no
operator's shape rule can express (what a Resize or a NonZero gives) have symbols of their
own; the original model is run once and tells.
"""

from __future__ import annotations

from collections.abc import Mapping

from rulesets.errors import SizeError
from rulesets.size import Poly, evaluate, symbols
from rulesets.tensor import Tensor
from tensat.model.graph import Graph, Ref
from tensat.runtime import Failure, Feeds, Level, Program, Runtime


def bind_sizes(
    graph: Graph,
    shapes: Mapping[str, tuple[int, ...]],
    path: str,
    feeds: Feeds,
    runtime: Runtime,
) -> dict[str, int]:
    """The value of each symbol of the graph's types, as far as they can be found out.

    Args:
        graph: The graph.
        shapes: Concrete shape of each input by name.
        path: The original model's file.
        feeds: Inputs it runs with.
        runtime: Runs it, if symbols are left that inputs do not decide.
    """
    found: dict[str, int] = {}
    for index in graph.inputs:
        node = graph.nodes[index]
        shape = shapes.get(str(node.attribute("name")))
        if shape is not None:
            _learn(node.outputs[0], shape, found)
    unknown = _unknown(graph, found)
    if unknown:
        observed = runtime.observe(Program(path, Level.NONE), feeds, list(unknown))
        if not isinstance(observed, Failure):
            for name, ref in unknown.items():
                seen = observed.get(name)
                if seen is not None and seen.dims is not None:
                    _learn(graph.tensor(ref), seen.dims, found)
    return found


def _unknown(graph: Graph, found: Mapping[str, int]) -> dict[str, Ref]:
    """Named values that have a symbol without a value as a whole dimension."""
    result = {}
    for ref, name in graph.names.items():
        shape = graph.tensor(ref).shape
        if shape is None:
            continue
        for size in shape:
            if isinstance(size, Poly) and not symbols(size) <= found.keys():
                result[name] = ref
    return result


def _learn(tensor: Tensor, dims: tuple[int, ...], found: dict[str, int]) -> None:
    """Solve for symbols that stand alone, or in a sum with a factor of their own."""
    if tensor.shape is None or len(tensor.shape) != len(dims):
        return
    for size, value in zip(tensor.shape, dims, strict=True):
        if not isinstance(size, Poly):
            continue
        open_symbols = symbols(size) - found.keys()
        if len(open_symbols) != 1:
            continue
        (name,) = open_symbols
        solution = _solve(size, name, value, found)
        if solution is not None:
            found[name] = solution


def _solve(size: Poly, name: str, value: int, found: Mapping[str, int]) -> int | None:
    """The least value of a symbol at which a size takes a value; None beyond 2^16."""
    try:
        if evaluate(size, {**found, name: value}) == value:
            return value
        for candidate in range(min(value * 64 + 64, 1 << 16)):
            if evaluate(size, {**found, name: candidate}) == value:
                return candidate
    except SizeError:
        return None
    return None

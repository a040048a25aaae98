"""Denormal weights become zero.

Numbers below the smallest normal one (1.2e-38 in float32) are left in weights by training,
and processors compute with them by microcode: a convolution over such weights takes 20 to
50 times as long. Zero is as good a value for them as any: nothing that they are multiplied
with and added to can tell the difference, unless it is itself of that size. Half precision
is left alone, since its denormals are numbers like 1e-6 that count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from tensat.model.graph import Graph

_SMALLEST = {
    ir.DataType.FLOAT: float(np.finfo(np.float32).tiny),
    ir.DataType.DOUBLE: float(np.finfo(np.float64).tiny),
}
"""The smallest normal number of each type."""


@dataclass(frozen=True, slots=True)
class Flushed:
    """A graph without denormal constants.

    Attributes:
        graph: The graph; the one given if there were none.
        numbers: How many numbers became zero.
        tensors: In how many constants.
    """

    graph: Graph
    numbers: int = 0
    tensors: int = 0


def flush_denormals(graph: Graph) -> Flushed:
    """Set what is too small for a normal number to zero, in float32 and float64 constants.

    Args:
        graph: The graph; constants of nodes that are kept as they are do not count.
    """
    changed = {}
    numbers = 0
    for key, tensor in graph.constants.items():
        smallest = _SMALLEST.get(tensor.dtype)
        if smallest is None:
            continue
        values = tensor.numpy()
        small = (np.abs(values) < smallest) & (values != 0)
        count = int(np.count_nonzero(small))
        if count:
            numbers += count
            changed[key] = ir.Tensor(
                np.where(small, np.zeros_like(values), values), name=tensor.name
            )
    if not changed:
        return Flushed(graph)
    constants = {**graph.constants, **changed}
    return Flushed(replace(graph, constants=constants), numbers, len(changed))

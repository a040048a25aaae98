"""The extraction problem of kernels, for extraction to solve."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from extraction import EGraph, ENode
from tensat.egraph.engine import ENodeRow
from tensat.kernels.collect import Kernel
from tensat.kernels.places import ClassId, Places

HYSTERESIS = 0.01
"""Relative surcharge on kernels that the model does not have itself."""

PER_OPERATOR = 1e-10
"""Seconds per e-node: of equal kernels the one of fewest operators is chosen."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The e-graph of kernels and what its nodes are.

    Attributes:
        egraph: What extraction sees.
        behind: The kernel behind each node; None for constants and for nodes that only say
            that what is made is what is asked for.
        seconds: Predicted cost of each node, without surcharges.
    """

    egraph: EGraph
    behind: tuple[Kernel | None, ...]
    seconds: tuple[float, ...]


def kernel_problem(
    kernels: Sequence[Kernel],
    seconds: Sequence[float],
    forms: Mapping[int, ENodeRow],
    roots: Iterable[int],
    hysteresis: float = HYSTERESIS,
    per_operator: float = PER_OPERATOR,
) -> Problem:
    """The extraction problem.

    Of kernels of one class that need the same values, constants aside, only the cheapest
    is part of it.

    Args:
        kernels: What can be chosen.
        seconds: What each costs.
        forms: Classes that are constants, as `constant_forms` gives them.
        roots: Classes that are wanted, plain.
        hysteresis: Relative surcharge on kernels that rules made, so that nothing is
            changed for a gain below the noise of measured costs. What costs the same as a
            kernel of the model's own, of the same class, by being the same, has none.
        per_operator: Surcharge for each e-node, in seconds.
    """
    roots = tuple(dict.fromkeys(roots))
    kernels = _as_fused(kernels, seconds)
    places = Places(kernels)
    own = {(k.eclass, k.layout, k.signatures) for k in kernels if k.rows and k.original}
    best: dict[tuple[ClassId, frozenset[ClassId]], tuple[float, float, Kernel]] = {}
    constants: dict[int, None] = dict.fromkeys(roots)
    for kernel, plain_cost in zip(kernels, seconds, strict=True):
        same = kernel.original or (kernel.eclass, kernel.layout, kernel.signatures) in own
        cost = plain_cost * (1 if same else 1 + hysteresis)
        cost += per_operator * len(kernel.rows)
        constants.update((eclass, None) for eclass, _ in kernel.arguments)
        needed = frozenset(places.arguments(kernel)).difference(forms)
        key = (places.result(kernel), needed)
        if key not in best or cost < best[key][0]:
            best[key] = (cost, plain_cost, kernel)
    nodes: list[ENode] = []
    behind: list[Kernel | None] = []
    costs: list[float] = []
    for (place, _), (cost, plain_cost, kernel) in best.items():
        name = kernel.name or (kernel.rows[0].symbol if kernel.rows else "Reorder")
        nodes.append(ENode(name, place, places.arguments(kernel), cost))
        behind.append(kernel)
        costs.append(plain_cost)
    for eclass in constants:
        if eclass in forms:
            nodes.append(ENode("Constant", eclass, (), 0.0))
            behind.append(None)
    for place, made in places.ways():
        nodes.append(ENode("Same", place, (made,), 0.0))
        behind.append(None)
    costs += [0.0] * (len(nodes) - len(costs))
    return Problem(EGraph(nodes, roots), tuple(behind), tuple(costs))


def _as_fused(kernels: Sequence[Kernel], seconds: Sequence[float]) -> list[Kernel]:
    """The kernels, where only fusions happen of which there is a kernel.

    What the runtime would fuse is to be computed apart only if it can be; a runtime without
    the fused kernel computes it apart anyway.
    """
    pairs = zip(kernels, seconds, strict=True)
    happen = {k.eclass for k, cost in pairs if k.forced and cost < math.inf}
    return [
        replace(kernel, shuns=frozenset())
        if kernel.shuns and kernel.eclass not in happen
        else kernel
        for kernel in kernels
    ]

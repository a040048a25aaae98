"""How constants are computed: for each class of constants the smallest way to write it."""

from __future__ import annotations

from tensat.egraph.engine import ENodeRow, Tables
from tensat.egraph.price import expressible, operator_of
from tensat.egraph.tensor_egraph import TensorEGraph


def constant_forms(egraph: TensorEGraph, tables: Tables, opset: int) -> dict[int, ENodeRow]:
    """An e-node for each class of constants that can be computed from stored ones.

    The smallest form of a class has the fewest operators; stored constants have none. What
    the opset has no operators for has no form, and no graph may use it.

    Args:
        egraph: The e-graph, refreshed.
        tables: Its tables.
        opset: The model's version of the default operator set.

    Returns:
        E-nodes by class; the arguments of each have a form, too, and never need the class.
    """
    rows = [
        row
        for row in tables.enodes()
        if egraph.constant(row.eclass) and _expressible(egraph, row, opset)
    ]
    best: dict[int, tuple[int, ENodeRow]] = {}
    users: dict[int, list[int]] = {}
    waiting = []
    for index, row in enumerate(rows):
        for child in set(row.children):
            users.setdefault(child, []).append(index)
        if not row.children:
            waiting.append(index)
    while waiting:
        again: list[int] = []
        for index in waiting:
            row = rows[index]
            if any(child not in best for child in row.children):
                continue
            size = int(operator_of(row.symbol) != "Constant")
            size += sum(best[child][0] for child in row.children)
            if row.eclass not in best or size < best[row.eclass][0]:
                best[row.eclass] = (size, row)
                again.extend(users.get(row.eclass, ()))
        waiting = sorted(set(again))
    return {eclass: row for eclass, (_, row) in best.items()}


def _expressible(egraph: TensorEGraph, row: ENodeRow, opset: int) -> bool:
    operator = operator_of(row.symbol)
    if operator == "Constant":
        return True
    handle = egraph.handle_of(operator, row.attributes, row.children)
    inputs = tuple(egraph.tensor(child) for child in row.children)
    attributes = dict(egraph.attributes(row.attributes))
    return expressible(operator, attributes, inputs, egraph.outputs[handle], opset)

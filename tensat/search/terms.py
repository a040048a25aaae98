"""All values that the graphs of a search have, each made once.

A *term* is an operator over terms; its handle is a small integer. Graphs that a search
looks at share nearly everything, so they are sets of terms of one store, and what is known
of a term (type, constant, cost, where rules match in it) is found out once for all of them.

Types, constants and the budget for folding them are those of the e-graph: the store is a
`TensorEGraph` of which egglog never hears. Constants of equal value are one term.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rulesets.tensor import Tensor
from tensat.costs.source import FREE_OPERATORS, CostSource, Signature
from tensat.egraph.constant_values import Array
from tensat.egraph.encode import ABSENT, Encoded
from tensat.egraph.engine import ENodeRow
from tensat.egraph.price import expressible, question


@dataclass(frozen=True, slots=True)
class Term:
    """An operator over terms.

    Attributes:
        op: Canonical operator.
        attributes: Its attributes, complete.
        number: The number of the attributes.
        arguments: Handles of the arguments.
        kind: A number for operator and attributes together.
        hash: Of the whole term; equal in every run.
        counted: Whether a machine runs it: no input, no constant, no choice of an output.
        constant: Whether it depends on no input.
        known: Whether it is a constant whose value rules can see.
        type: A number for all that costs depend on in an argument or a result.
    """

    op: str
    attributes: Mapping[str, Any]
    number: int
    arguments: tuple[int, ...]
    kind: int
    hash: int
    counted: bool
    constant: bool
    known: bool
    type: int


class Terms:
    """A store of terms; a `Builder` for rules.

    Args:
        encoded: A graph as put into an e-graph that is not used otherwise.
        source: What operators cost.
        sizes: Value of each symbolic dimension, for costs.
        opset: The model's version of the default operator set.
    """

    def __init__(
        self, encoded: Encoded, source: CostSource, sizes: Mapping[str, int], opset: int
    ) -> None:
        self.egraph = encoded.egraph
        self.nodes: list[Term] = []
        self._source, self._sizes, self._opset = source, sizes, opset
        self._kinds: dict[tuple[str, int], int] = {}
        self._memo: dict[tuple[int, tuple[int, ...]], int] = {}
        self._twins: dict[object, int] = {}
        self._prices: dict[object, float] = {}
        self._types: dict[object, int] = {}
        self._costs: list[float | None] = []
        self._settle()

    # ------------------------------------------------------------------ what rules ask
    def tensor(self, handle: int) -> Tensor:
        """Type and shape of the (first) output."""
        return self.egraph.tensor(handle)

    def constant(self, handle: int) -> bool:
        """Whether the term is made of constants and small enough to be stored folded."""
        return self.egraph.constant(handle)

    def array(self, handle: int) -> Array | None:
        """The value of a small constant."""
        return self.egraph.array(handle)

    def scalar(self, handle: int) -> float | None:
        """The value of a constant with one element."""
        return self.egraph.scalar(handle)

    def node(self, op: str, attrs: Mapping[str, Any], args: Sequence[int]) -> int:
        """The handle of an application.

        Raises:
            ShapeError: It is ill-shaped, or folding it would lose its value.
        """
        handle = self.egraph.node(op, attrs, args)
        self._settle()
        return self.egraph.find(handle)

    def literal(self, value: float, dtype: str) -> int:
        """The handle of a scalar constant."""
        handle = self.egraph.literal(value, dtype)
        self._settle()
        return self.egraph.find(handle)

    # ------------------------------------------------------------------ what searches ask
    def canonical(self, handle: int) -> int:
        """The term that stands for a handle: constants of equal value are one."""
        return self.egraph.find(handle)

    def over(self, handle: int, arguments: tuple[int, ...]) -> int:
        """The same operator over other arguments of the same types."""
        term = self.nodes[handle]
        known = self._memo.get((term.kind, arguments))
        if known is None:
            self.egraph.over(handle, arguments)
            self._settle()
            known = self._memo[term.kind, arguments]
        return self.egraph.find(known)

    def cost(self, handle: int) -> float:
        """Seconds that the term's own operator takes; infinity if it cannot be used."""
        cost = self._costs[handle]
        if cost is None:
            term, nodes = self.nodes[handle], self.nodes
            key = (term.kind, term.type, *[nodes[a].type for a in term.arguments])
            cost = self._prices.get(key)
            if cost is None:
                cost = self._prices[key] = self._price(handle)
            self._costs[handle] = cost
        return cost

    def inherit(self, handle: int, other: int) -> None:
        """Say that a term costs what another one costs, which differs in arguments only."""
        if self._costs[handle] is None:
            self._costs[handle] = self.cost(other)

    # ------------------------------------------------------------------ inside
    def _settle(self) -> None:
        """Take up what the e-graph has more than this store."""
        egraph = self.egraph
        for handle in range(len(self.nodes), len(egraph.key_of)):
            key = egraph.key_of[handle]
            pair = (key.operator, key.attributes)
            kind = self._kinds.setdefault(pair, len(self._kinds))
            value = egraph.value_key(handle)
            if value is not None:
                egraph.canonical[handle] = self._twins.setdefault(value, handle)
            constant = egraph.constants[handle]
            below = [self.nodes[argument].hash for argument in key.arguments]
            self._memo.setdefault((kind, key.arguments), handle)
            self._costs.append(None)
            self.nodes.append(
                Term(
                    key.operator,
                    dict(egraph.attributes(key.attributes)),
                    key.attributes,
                    key.arguments,
                    kind,
                    hash((kind, *below)),
                    constant is None
                    and key.operator not in FREE_OPERATORS
                    and key.operator != ABSENT,
                    constant is not None,
                    constant is not None and constant.array is not None,
                    self._type(handle),
                )
            )

    def _price(self, handle: int) -> float:
        term, egraph = self.nodes[handle], self.egraph
        if term.op in FREE_OPERATORS or term.op == ABSENT:
            return 0.0
        if term.constant:
            inputs = tuple(egraph.tensor(argument) for argument in term.arguments)
            outputs = egraph.outputs[handle]
            usable = expressible(term.op, term.attributes, inputs, outputs, self._opset)
            return 0.0 if usable else math.inf
        row = ENodeRow(
            f"{term.op}_{len(term.arguments)}", term.number, term.arguments, handle
        )
        answer = question(egraph, row, self._sizes, self._opset)
        if isinstance(answer, Signature):
            return self._source.seconds([answer])[0]
        return answer

    def _type(self, handle: int) -> int:
        """A number for all that costs depend on in an argument or a result."""
        egraph = self.egraph
        constant = egraph.constants[handle]
        known = (
            egraph.outputs[handle],
            constant is not None,
            None if constant is None else egraph.scalar(handle),
            egraph.rule_of[handle] is None and constant is None,
            egraph.key_of[handle].operator == ABSENT,
        )
        return self._types.setdefault(known, len(self._types))

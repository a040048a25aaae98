"""A small e-graph to try rules on: rules as text, values, saturation in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rulesets.condition import parse_condition
from rulesets.ops import OPERATORS
from rulesets.rule import Rule
from rulesets.size import Size
from rulesets.tensor import Tensor
from rulesets.term import parse_term
from tensat.egraph.compile_rules import Pattern, compile_rules, literals_of
from tensat.egraph.saturate import Limits, Saturation, saturate
from tensat.egraph.tensor_egraph import TensorEGraph


def rule(
    lhs: str | Sequence[str],
    rhs: str | Sequence[str],
    *where: str,
    name: str = "r",
    dtypes: str = "float",
) -> Rule:
    """A rule out of texts."""
    sides = [[text] if isinstance(text, str) else list(text) for text in (lhs, rhs)]
    left, right = (tuple(map(parse_term, texts)) for texts in sides)
    return Rule(name, left, right, tuple(map(parse_condition, where)), dtypes)


class Lab:
    """An e-graph under construction and the rules that will be applied to it."""

    def __init__(self, *rules: Rule, constant_bytes: int = 0) -> None:
        self.rules = rules
        self.literals = literals_of(rules)
        self.egraph = TensorEGraph(self.literals, constant_bytes)
        self.originals = 0
        self.patterns: tuple[Pattern, ...] = ()

    def input(self, name: str, *shape: Size, dtype: str = "float32") -> int:
        """An input of the model."""
        return self._original(
            self.egraph.put("Input", {"name": name}, [], (Tensor(dtype, shape),))
        )

    def constant(self, value: Any, dtype: str = "float32", key: str = "") -> int:
        """A stored constant; small ones have a value."""
        array = np.asarray(value, dtype)
        small = array if array.size <= 4096 else None
        key = key or f"k{len(self.egraph.outputs)}"
        return self.egraph.stored(key, Tensor(dtype, array.shape), small, array.nbytes)

    def node(self, op: str, *arguments: int, **attributes: Any) -> int:
        """A node of the model; the first result if there are several."""
        outputs = OPERATORS[op].infer(
            self.complete(op, attributes), tuple(map(self.egraph.tensor, arguments))
        )
        handle = self.egraph.put(op, self.complete(op, attributes), arguments, outputs)
        self._original(handle)
        if len(outputs) == 1:
            return handle
        return self.output(handle, 0)

    def output(self, handle: int, index: int) -> int:
        """One result of a node with several."""
        return self.egraph.node("Output", {"index": index}, [handle])

    def complete(self, op: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """All attributes of an operator."""
        return {**OPERATORS[op].defaults, **attributes}

    def run(self, **limits: Any) -> Saturation:
        """Compile and apply the rules until nothing changes."""
        if not self.patterns:
            self.patterns = compile_rules(self.rules, self.egraph, self.literals)
        return saturate(self.egraph, self.patterns, Limits(**limits))

    def same(self, first: int, second: int) -> bool:
        """Whether two values are one class."""
        return self.egraph.find(first) == self.egraph.find(second)

    def known(self, op: str, *arguments: int, **attributes: Any) -> int | None:
        """The class of an application if the e-graph has it."""
        egraph = self.egraph
        size = egraph.size()
        made = egraph.node(op, self.complete(op, attributes), arguments)
        return egraph.find(made) if egraph.size() == size else None

    def _original(self, handle: int) -> int:
        self.egraph.set_original(handle, self.originals)
        self.originals += 1
        return handle

"""A graph of canonical operators with values: what rules are tested on.

`TermGraph` is a `Builder`; equal applications are one node. `find` matches a left side the
way the engine does: commutative operators in every order, literals by value.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np

from rulesets.expression import same_number
from rulesets.instance import Instance, Sample
from rulesets.match import Match
from rulesets.ops import OPERATORS, complete
from rulesets.rule import Rule, attributes_of, bind
from rulesets.tensor import Tensor
from rulesets.term import Apply, Literal, Term, Variable
from tests.rulesets.evaluate import evaluate


@dataclass(frozen=True)
class Node:
    """An application, or a leaf (op "Leaf") with its value."""

    op: str
    attributes: Mapping[str, Any]
    arguments: tuple[int, ...]
    outputs: tuple[Tensor, ...]
    constant: bool


class TermGraph:
    """Nodes in topological order, with a float64 value for each output."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.values: list[tuple[np.ndarray, ...]] = []
        self._known: dict[object, int] = {}

    # facts

    def tensor(self, handle: int, /) -> Tensor:
        """Return type and shape of the first output."""
        return self.nodes[handle].outputs[0]

    def constant(self, handle: int, /) -> bool:
        """Say whether all leaves below are constant."""
        return self.nodes[handle].constant

    def array(self, handle: int, /) -> np.ndarray | None:
        """Return the value of a constant."""
        return self.values[handle][0] if self.constant(handle) else None

    def scalar(self, handle: int, /) -> float | None:
        """Return the element of a constant with one element."""
        array = self.array(handle)
        return float(array.reshape(())) if array is not None and array.size == 1 else None

    # building

    def leaf(self, value: np.ndarray, *, constant: bool) -> int:
        """Add an input or a constant."""
        tensor = Tensor(str(value.dtype), value.shape)
        self.nodes.append(Node("Leaf", {}, (), (tensor,), constant))
        self.values.append((value,))
        return len(self.nodes) - 1

    def literal(self, value: float, dtype: str, /) -> int:
        """Add a constant of rank 0."""
        return self.leaf(np.asarray(value, dtype), constant=True)

    def node(self, op: str, attributes: Mapping[str, Any], args: Sequence[int], /) -> int:
        """Add an application and compute it."""
        key = (op, tuple(sorted(attributes.items())), tuple(args))
        if key in self._known:
            return self._known[key]
        if op == "Output":
            source, index = args[0], attributes["index"]
            outputs = (self.nodes[source].outputs[index],)
            values = (self.values[source][index],)
        else:
            inputs = tuple(t for a in args for t in self.nodes[a].outputs[:1])
            outputs = OPERATORS[op].infer(attributes, inputs)
            with np.errstate(all="ignore"):
                values = evaluate(op, attributes, [self.values[a][0] for a in args])
            assert [v.shape for v in values] == [t.shape for t in outputs], (op, outputs)
        constant = all(self.constant(a) for a in args)
        self.nodes.append(Node(op, attributes, tuple(args), outputs, constant))
        self.values.append(values)
        self._known[key] = len(self.nodes) - 1
        return len(self.nodes) - 1


def random_value(sample: Sample, rng: np.random.Generator, scale: float) -> np.ndarray:
    """Make a value for a sample."""
    if sample.dtype == "bool":
        return rng.random(sample.shape) < 0.5
    if sample.dtype == "int64":
        return np.full(sample.shape, int(sample.value or 0), np.int64)
    if sample.value is not None:
        return np.full(sample.shape, sample.value)
    value = rng.normal(size=sample.shape) * scale
    if sample.sign == "any":
        return value
    return (np.abs(value) + 0.1) * (1 if sample.sign == "positive" else -1)


def leaves_of(
    instance: Instance, graph: TermGraph, seed: int, scale: float = 1.0
) -> dict[str, int]:
    """Add the tensors of an instance to a graph; their handles by variable."""
    rng = np.random.default_rng(seed)
    return {
        name: graph.leaf(random_value(sample, rng, scale), constant=sample.const)
        for name, sample in instance.tensors.items()
    }


def build_left(
    rule: Rule, instance: Instance, graph: TermGraph, leaves: Mapping[str, int]
) -> tuple[int, ...]:
    """Build the left sides of a rule (rest variables written out) for an instance."""
    names = dict(leaves)
    match = Match(names, _completed(rule, instance))

    def build(term: Term, dtype: str) -> int:
        if isinstance(term, Variable):
            return names[term.name]
        if isinstance(term, Literal):
            return graph.literal(term.value, dtype)
        assert isinstance(term, Apply)
        arguments = [build(each, dtype) for each in term.arguments]
        handle = graph.node(term.op, attributes_of(term, match, graph), arguments)
        if term.label is not None:
            names[term.label] = handle
        return handle

    return tuple(build(side, "float64") for side in rule.lhs)


def _completed(rule: Rule, instance: Instance) -> dict[str, Any]:
    """Fill defaults into the bundles, and leave out what the operator does not have."""
    values = dict(instance.attributes)
    for side in rule.lhs:
        for application in _applications(side):
            if application.bundle is not None:
                key = f"..{application.bundle}"
                given = dict(instance.attributes.get(key, ()))
                mentioned = dict(application.attributes)
                operator = OPERATORS[application.op]
                full = {
                    name: value
                    for name, value in {**operator.defaults, **given}.items()
                    if name in operator.kinds and name not in mentioned
                }
                values[key] = tuple(sorted(full.items()))
    return values


def _applications(term: Term) -> Iterator[Apply]:
    if isinstance(term, Apply):
        yield term
        for argument in term.arguments:
            yield from _applications(argument)


def find(rule: Rule, graph: TermGraph, roots: Sequence[int]) -> list[Match]:
    """Find every match of a rule at these roots; conditions are not tested."""
    matches = [Match({}, {}, tuple(roots))]
    for side, root in zip(rule.lhs, roots, strict=True):
        matches = [m for match in matches for m in _match(side, root, match, graph)]
    return matches


def _match(term: Term, handle: int, match: Match, graph: TermGraph) -> Iterator[Match]:
    if isinstance(term, Variable):
        yield from _named(term.name, handle, match)
    elif isinstance(term, Literal):
        if same_number(graph.scalar(handle), term.value):
            yield match
    elif isinstance(term, Apply):
        node = graph.nodes[handle]
        if node.op != term.op or len(node.arguments) != len(term.arguments):
            return
        bound = bind(term, node.attributes, match)
        if bound is None:
            return
        commutes = OPERATORS[term.op].commutative
        orders = permutations(node.arguments) if commutes else [node.arguments]
        for arguments in dict.fromkeys(orders):
            found = [bound]
            if term.label is not None:
                found = list(_named(term.label, handle, bound))
            for pattern, argument in zip(term.arguments, arguments, strict=True):
                found = [
                    m for each in found for m in _match(pattern, argument, each, graph)
                ]
            yield from found


def _named(name: str, handle: int, match: Match) -> Iterator[Match]:
    if match.variables.get(name, handle) == handle:
        yield replace(match, variables={**match.variables, name: handle})


def node_of(graph: TermGraph, op: str, *args: int, **given: Any) -> int:
    """Apply an operator with defaults filled in."""
    return graph.node(op, complete(OPERATORS[op], given), args)

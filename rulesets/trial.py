"""Rules on numbers: build an instance, apply the rule, compare both sides.

A *trial* is one instance of a rule with random values. It shows that a rule is not vacuous
(its conditions can hold) and finds counterexamples; it proves nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rulesets.errors import ShapeError
from rulesets.find import matches
from rulesets.instance import Instance, Sample
from rulesets.match import Match
from rulesets.ops import OPERATORS
from rulesets.reference import evaluate
from rulesets.rule import Rule, attributes_of, build, holds
from rulesets.tensor import Tensor
from rulesets.term import Apply, Literal, Term, Variable, applications

TOLERANCE = 1e-6


@dataclass(frozen=True)
class Node:
    """An application, or a leaf (op "Leaf")."""

    op: str
    attributes: Mapping[str, Any]
    arguments: tuple[int, ...]
    outputs: tuple[Tensor, ...]
    constant: bool


class Trial:
    """Applications with values; a `Builder` for rules."""

    def __init__(self) -> None:
        """Start empty."""
        self.nodes: list[Node] = []
        self.values: list[tuple[np.ndarray, ...]] = []
        self._known: dict[object, int] = {}

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
            if not 0 <= index < len(self.values[source]):
                raise ShapeError(f"output {index} of {len(self.values[source])}")
            outputs = self.nodes[source].outputs[index : index + 1]
            values = self.values[source][index : index + 1]
        else:
            inputs = tuple(t for a in args for t in self.nodes[a].outputs[:1])
            outputs = OPERATORS[op].infer(attributes, inputs)
            with np.errstate(all="ignore"):
                values = evaluate(op, attributes, [self.values[a][0] for a in args])
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


def bundles(rule: Rule, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Fill defaults into the bundles of an instance of a rule."""
    values = dict(attributes)
    for application in (each for side in rule.lhs for each in applications(side)):
        if application.bundle is not None:
            key = f"..{application.bundle}"
            operator = OPERATORS[application.op]
            mentioned = dict(application.attributes)
            full = {**operator.defaults, **dict(attributes.get(key, ()))}
            values[key] = tuple(
                sorted(
                    (name, value)
                    for name, value in full.items()
                    if name in operator.kinds and name not in mentioned
                )
            )
    return values


def built(
    rule: Rule,
    instance: Instance,
    seed: int,
    scale: float = 1.0,
    through: tuple[str, ...] = ("float64",),
) -> tuple[Trial, tuple[int, ...]]:
    """Build the left sides of a rule without rest variables on an instance.

    Args:
        rule: The rule.
        instance: Shapes, constants and attributes.
        seed: Of the values of the tensors.
        scale: Their standard deviation.
        through: Float types that the values are rounded to, one after the other; they are
            computed in the last.
    """
    rng = np.random.default_rng(seed)
    trial = Trial()
    names = {}
    for name, sample in instance.tensors.items():
        value = random_value(sample, rng, scale)
        for dtype in through if value.dtype.kind == "f" else ():
            value = value.astype(dtype)
        names[name] = trial.leaf(value, constant=sample.const)
    match = Match(names, bundles(rule, instance.attributes))

    def build_term(term: Term, dtype: str) -> int:
        if isinstance(term, Variable):
            return names[term.name]
        if isinstance(term, Literal):
            return trial.literal(term.value, dtype)
        assert isinstance(term, Apply)
        arguments = [build_term(each, dtype) for each in term.arguments]
        handle = trial.node(term.op, attributes_of(term, match, trial), arguments)
        if term.label is not None:
            names[term.label] = handle
        return handle

    return trial, tuple(build_term(side, through[-1]) for side in rule.lhs)


def deviations(
    rule: Rule, instance: Instance, seed: int, scale: float = 1.0
) -> list[float]:
    """Return, for each match that fires, the largest relative difference of the sides.

    Infinite where the left side is finite and the right is not, or only the left is no
    number. An empty list means that the rule did not fire.
    """
    expanded = rule.at_arity(instance.count)
    try:
        trial, roots = built(expanded, instance, seed, scale)
    except (ShapeError, ValueError, LookupError, ArithmeticError):
        return []
    result = []
    for match in matches(expanded, trial, roots):
        if not holds(expanded, match, trial):
            continue
        try:
            rights = build(expanded, match, trial)
        except ShapeError:
            continue
        pairs = zip(match.roots, rights, strict=True)
        result.append(
            max(_deviation(trial.values[a][0], trial.values[b][0]) for a, b in pairs)
        )
    return result


def _deviation(one: np.ndarray, other: np.ndarray) -> float:
    if one.dtype == bool:
        return float((one != other).any())
    finite = np.isfinite(one)
    if not np.isnan(other[np.isnan(one)]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    if not np.isfinite(other[finite]).all():
        return float("inf")
    largest = max(float(np.abs(one[finite]).max()), 1e-30)
    return float(np.abs(one[finite] - other[finite]).max() / largest)

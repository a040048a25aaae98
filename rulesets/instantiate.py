"""A rule at one of its instances: the equations between ground terms that it says there.

So the derivability of a rule from other rules is the derivability of these equations, and a
file of rules can be pruned like candidates of the generator.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rulesets.equation import Equation
from rulesets.errors import RuleError
from rulesets.expression import evaluate
from rulesets.ground import FLOAT, Ground, Leaf, constant, node, outputs_of
from rulesets.instance import Instance, Sample
from rulesets.match import Match
from rulesets.ops import OPERATORS
from rulesets.rule import Rule, attributes_of
from rulesets.tensor import Tensor
from rulesets.term import Apply, Literal, Select, Term, Variable


@dataclass(frozen=True, slots=True)
class Instantiated:
    """A rule at an instance.

    Attributes:
        equations: One for each pair of sides.
        constants: Names of the leaves that depend on no input.
    """

    equations: tuple[Equation, ...]
    constants: frozenset[str]


@dataclass(slots=True)
class _Table:
    """Facts about the terms that variables stand for; a handle is a place in the list."""

    terms: list[Ground] = field(default_factory=list)
    samples: list[Sample | None] = field(default_factory=list)

    def put(self, term: Ground, sample: Sample | None) -> int:
        """Add a term; its handle."""
        self.terms.append(term)
        self.samples.append(sample)
        return len(self.terms) - 1

    def tensor(self, handle: int, /) -> Tensor:
        """Return type and shape."""
        return outputs_of(self.terms[handle])[0]

    def constant(self, handle: int, /) -> bool:
        """Say whether the instance declares it constant."""
        sample = self.samples[handle]
        return sample is not None and sample.const

    def array(self, handle: int, /) -> np.ndarray | None:
        """Return the value of a constant whose elements the instance states."""
        sample = self.samples[handle]
        if sample is None or sample.value is None or not sample.const:
            return None
        return np.full(sample.shape, sample.value)

    def scalar(self, handle: int, /) -> float | None:
        """Return the element of a constant with one element."""
        array = self.array(handle)
        return float(array.reshape(())) if array is not None and array.size == 1 else None


def instantiate(rule: Rule, which: int = 0) -> Instantiated:
    """Return the equations a rule says at one of its instances.

    Raises:
        RuleError: The rule chooses an argument by number.
        OperatorError: The instance is ill-shaped.
    """
    instance = rule.instances[which]
    rule = rule.at_arity(instance.count)
    table = _Table()
    attributes = {k: FLOAT if v == "float64" else v for k, v in instance.attributes.items()}
    match = Match(_leaves(rule, instance, table), attributes)
    equations = []
    for lhs, rhs in zip(rule.lhs, rule.rhs, strict=True):
        left = _term(lhs, match, table)
        equations.append(Equation(left, _term(rhs, match, table)))
    names = frozenset(
        name
        for name, sample in instance.tensors.items()
        if sample.const and _value_of(sample, 0) is None
    )
    return Instantiated(tuple(equations), names)


def _leaves(rule: Rule, instance: Instance, table: _Table) -> dict[str, int]:
    handles: dict[str, int] = {}
    for name, sample in instance.tensors.items():
        dtype = FLOAT if sample.dtype == "float" else sample.dtype
        term: Ground = Leaf(name, sample.shape, f"{name}_", dtype=dtype)
        value = _value_of(sample, len(handles))
        if value is not None:
            term = constant("Fill", value=value, shape=sample.shape, dtype=dtype)
            sample = replace(sample, value=value)
        handles[name] = table.put(term, sample)
    return handles


def _value_of(sample: Sample, place: int) -> float | None:
    """The value of every element of a constant that conditions look into.

    Where the instance states none, each place has its own.
    """
    if not sample.const or sample.value is not None:
        return sample.value if sample.const else None
    looked_into = math.prod(sample.shape) == 1 or sample.sign != "any"
    value = 0.75 + 0.375 * place
    return (-value if sample.sign == "negative" else value) if looked_into else None


def _term(term: Term, match: Match, table: _Table) -> Ground:
    match term:
        case Variable(name=name):
            return table.terms[match.variables[name]]
        case Literal(value=value):
            return constant("Fill", value=value, shape=())
        case Apply():
            arguments = tuple(_term(each, match, table) for each in term.arguments)
            made = node(term.op, _given(term, match, table), *arguments)
            if term.label is not None:
                match.variables[term.label] = table.put(made, None)  # type: ignore[index]
            return made
        case Select(name=name, index=index):
            chosen = evaluate(index, match, table)
            return table.terms[match.variables[f"{name}.{chosen}"]]
    raise RuleError(f"{term} is not read here")


def _given(term: Apply, match: Match, table: _Table) -> Mapping[str, Any]:
    attributes = dict(match.attributes)
    bundle = attributes.get(f"..{term.bundle}")
    if bundle is not None:
        known = OPERATORS[term.op].kinds
        fitting = tuple((k, v) for k, v in bundle if k in known)  # type: ignore[union-attr,misc,str-unpack]
        attributes[f"..{term.bundle}"] = fitting
    return attributes_of(term, Match(match.variables, attributes, match.roots), table)

"""Does an equation follow from rules? Both sides go into one e-graph, which is saturated.

It follows within k rounds if both sides are in one e-class after at most k steps. Leaves
are inputs of known shape, so conditions, ranks and shapes are tested as in a real model: a
rule whose condition fails does not fire. Leaves may be declared constant, for rules that
speak of weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from zlib import crc32

import numpy as np

from rulesets.equation import Equation
from rulesets.ground import Ground, Leaf, Node, outputs_of, resize, subterms
from rulesets.rule import Rule
from rulesets.store import relevant
from rulesets.tensor import Tensor, bytes_of
from tensat.egraph.compile_rules import compile_rules, literals_of
from tensat.egraph.constant_values import Array
from tensat.egraph.saturate import Growth, Limits, saturate
from tensat.egraph.tensor_egraph import TensorEGraph

ROUNDS = 4
"""Steps of saturation after which an equation counts as not derived."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """What saturation said about an equation.

    Attributes:
        rounds: Steps it took, None if it was not derived; 0 if the sides are one term.
        stop: ``derived``, or why saturation ended: ``saturated``, ``nodes``, ``seconds``,
            ``iterations``.
        nodes: E-nodes at the end.
        rules: Names of the rules that made two classes one, in the order of the first time.
    """

    rounds: int | None
    stop: str
    nodes: int
    rules: tuple[str, ...] = ()

    @property
    def derived(self) -> bool:
        """Whether both sides became one."""
        return self.rounds is not None


class _Recording(TensorEGraph):
    """An e-graph that remembers which rules made classes one."""

    def __init__(self, literals: Sequence[float]) -> None:
        super().__init__(literals)
        self.united: dict[str, None] = {}

    def union(self, first: int, second: int) -> None:
        """Note the rule at work."""
        if self.rule is not None:
            self.united.setdefault(self.rule)
        super().union(first, second)


class _FoundError(Exception):
    """Both sides are in one class: stop saturating."""


def derive(
    equation: Equation,
    rules: Sequence[Rule],
    sizes: Mapping[str, int],
    *,
    rounds: int = ROUNDS,
    nodes: int = 5_000,
    seconds: float = 10.0,
    constants: frozenset[str] = frozenset(),
    drawn: bool = False,
) -> Derivation:
    """Try to derive an equation.

    Args:
        equation: Two ground terms.
        rules: The rules; those whose operators cannot occur are left out, and those with
            several roots: they bring in what one of two sides could need, never both.
        sizes: Values for the symbols of its shapes.
        rounds: Most steps.
        nodes: Most e-nodes.
        seconds: Most wall time.
        constants: Names of leaves that are constants, not inputs.
        drawn: Whether these have values, drawn at random: arithmetic of constants is then
            computed, as in a model, and needs no rule.

    Raises:
        UnsoundRuleError: A rule made two tensors of different type equal.
    """
    sides = (resize(equation.lhs, sizes), resize(equation.rhs, sizes))
    used = {term.op for side in sides for term in subterms(side) if isinstance(term, Node)}
    chosen = relevant([rule for rule in rules if len(rule.lhs) == 1], used)
    literals = literals_of(chosen)
    egraph = _Recording(literals)
    known: dict[Ground, int] = {}
    put = partial(_put, egraph, known, constants, drawn=drawn)
    one, other = map(put, sides)
    patterns = compile_rules(chosen, egraph, literals)
    egraph.refresh()
    if egraph.find(one) == egraph.find(other):
        return Derivation(0, "derived", egraph.size())
    steps = 0

    def check(_: Growth) -> None:
        nonlocal steps
        steps += 1
        if egraph.find(one) == egraph.find(other):
            raise _FoundError

    limits = Limits(nodes, seconds, rounds, multi_iterations=0)
    try:
        result = saturate(egraph, patterns, limits, check)
    except _FoundError:
        return Derivation(steps, "derived", egraph.size(), tuple(egraph.united))
    return Derivation(None, result.stop, egraph.size())


def _put(
    egraph: TensorEGraph,
    known: dict[Ground, int],
    constants: frozenset[str],
    term: Ground,
    *,
    drawn: bool,
) -> int:
    if term in known:
        return known[term]
    if isinstance(term, Leaf):
        tensor = Tensor(term.dtype, term.shape)
        if term.name in constants or term.sign == "positive":
            array = _drawn(term) if drawn or term.sign == "positive" else None
            handle = egraph.stored(term.name, tensor, array, bytes_of(tensor, {}))
        else:
            handle = egraph.put("Input", {"name": term.name}, [], (tensor,))
    else:
        arguments = [
            _put(egraph, known, constants, each, drawn=drawn) for each in term.arguments
        ]
        handle = egraph.put(term.op, dict(term.attributes), arguments, outputs_of(term))
    known[term] = handle
    return handle


def _drawn(leaf: Leaf) -> Array:
    """Random elements; the same for the same leaf."""
    generator = np.random.default_rng(crc32(leaf.name.encode()))
    value = generator.standard_normal(leaf.shape)  # type: ignore[arg-type]
    return np.abs(value) + 0.1 if leaf.sign == "positive" else value


def derivable(equation: Equation, rules: Sequence[Rule], sizes: Mapping[str, int]) -> bool:
    """Say whether an equation follows within the usual number of rounds."""
    return derive(equation, rules, sizes).derived

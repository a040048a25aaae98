"""Reduction: an e-node too expensive for any choice better than the known one goes.

A choice with e-node `n` contains M(roots) and M(d) for the children d of n. The cheapest
e-node of each, and n itself, are a lower bound on its cost. When that reaches the best
known cost, the known choice is at least as good and n is not needed. The sum over children
is tried first: it is above the bound of the union, so when it is low enough all is said.
"""

import numpy as np
import numpy.typing as npt

from extraction.clean import clean
from extraction.facts import Facts
from extraction.must import Must
from extraction.problem import Problem, Reduced, restrict

SLACK = 1e-9
"""Relative difference below which one cost is not an improvement on another."""

FEW_BITS = 24
"""Below this many bits a loop beats unpacking thousands of them."""


def drop_expensive(facts: Facts) -> Reduced:
    """Drop e-nodes whose lower bound reaches the known upper bound.

    Nothing may be left of the roots: then the known choice is optimal.
    """
    problem = facts.problem
    if facts.upper == float("inf"):
        return Reduced(problem)
    limit = worthwhile(facts.upper, facts.step) - problem.constant
    must = facts.must
    weigh = _Weigher(problem, must)
    needed = must.below(problem.roots)
    base = weigh(needed)
    extra = {number: weigh(bits & ~needed) for number, bits in must.of_class.items()}
    keep: set[int] = set()
    for number, nodes in problem.members.items():
        paid = weigh.least[number] if needed & must.bit[number] else 0.0
        room = limit - base + paid
        for node in nodes:
            children = problem.children[node]
            value = problem.cost[node] + sum([extra[child] for child in children])
            if value > room and len(children) > 1:
                shared = must.below(children) & ~needed
                value = problem.cost[node] + weigh(shared)
            if value <= room:
                keep.add(node)
    if len(keep) == len(problem.children):
        return Reduced(problem)
    return clean(restrict(problem, keep))


def worthwhile(upper: float, step: float) -> float:
    """Return the largest cost that still counts as better than `upper`.

    Args:
        upper: A known cost.
        step: Different costs differ by at least this much; 0.0 when unknown.
    """
    return upper - max(0.5 * step, SLACK * upper)


def required_bound(facts: Facts) -> float:
    """Return a lower bound: the constant and the least cost of each required e-class."""
    must = facts.must
    weigh = _Weigher(facts.problem, must)
    return facts.problem.constant + weigh(must.below(facts.problem.roots))


class _Weigher:
    """Sums of least costs over bit sets: bit by bit when few, else all at once."""

    def __init__(self, problem: Problem, must: Must) -> None:
        self.least = {
            number: min([problem.cost[node] for node in nodes])
            for number, nodes in problem.members.items()
        }
        self.size = (len(must.order) + 7) // 8
        weights = np.zeros(self.size * 8)
        weights[: len(must.order)] = [self.least[number] for number in must.order]
        self.of_bit = [self.least[number] for number in must.order]
        self.weights: npt.NDArray[np.float64] = weights

    def __call__(self, bits: int) -> float:
        if bits.bit_count() <= FEW_BITS:
            total = 0.0
            while bits:
                highest = bits.bit_length() - 1
                total += self.of_bit[highest]
                bits ^= 1 << highest
            return total
        size = (bits.bit_length() + 7) // 8
        raw = np.frombuffer(bits.to_bytes(size, "little"), dtype=np.uint8)
        on = np.unpackbits(raw, bitorder="little")
        return float(self.weights[: size * 8] @ on)

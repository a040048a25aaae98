"""The partial choices of one strongly connected component, all acyclic.

Only e-classes of one component can need each other in a circle. So the partial choices of
a component are made from nothing, e-node by e-node, each of e-classes that are there
already: what comes out has an order, and joining components cannot close a cycle.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from extraction.errors import TooWideError
from extraction.facts import Facts
from extraction.partial import Best, Effort, Partial, Pick, put, undominated

LARGEST = 14
"""E-classes of a component beyond which there are too many orders."""


@dataclass(frozen=True, slots=True)
class Bits:
    """The bits of partial choices: asking for an e-class, and not giving it."""

    asked: Mapping[int, int]
    withheld: Mapping[int, int]

    @staticmethod
    def of(numbers: Sequence[int]) -> "Bits":
        """Return bits for some e-classes."""
        width = len(numbers)
        return Bits(
            {number: 1 << at for at, number in enumerate(numbers)},
            {number: 1 << (width + at) for at, number in enumerate(numbers)},
        )


def derivations(facts: Facts, group: Sequence[int], bits: Bits, effort: Effort) -> Best:
    """Return the partial choices of a component.

    Args:
        facts: About the problem.
        group: The e-classes of a component.
        bits: Of all e-classes.
        effort: What may still be done.

    Raises:
        TooWideError: There is more to do than that.
    """
    if len(group) > LARGEST:
        raise TooWideError(f"{len(group)} e-classes need each other; possible: {LARGEST}")
    outer = [number for number in group if _is_outer(facts, number)]
    there = {number: 1 << at for at, number in enumerate(group)}
    must = sum(there[number] for number in outer if number in facts.problem.roots)
    best: Best = {}
    for made, partials in _by_what_is_made(facts, group, bits, effort).items():
        if must & ~made:
            continue
        absent = sum(bits.withheld[c] for c in outer if not there[c] & made)
        for asked, cost, trace in partials:
            put(best, asked | absent, cost, trace)
    return best


def _is_outer(facts: Facts, number: int) -> bool:
    """Whether something outside the component can ask for an e-class."""
    own, component = facts.component[number], facts.component
    users = facts.parents[number]
    return number in facts.problem.roots or any(
        component[facts.owner[node]] != own for node in users
    )


def _by_what_is_made(
    facts: Facts, group: Sequence[int], bits: Bits, effort: Effort
) -> dict[int, list[Partial]]:
    """Return set of e-classes of the group -> the ways to make exactly these."""
    problem = facts.problem
    there = {number: 1 << at for at, number in enumerate(group)}
    steps = [
        (
            there[number],
            sum(there[child] for child in problem.children[node] if child in there),
            sum(
                bits.asked[child] for child in problem.children[node] if child not in there
            ),
            problem.cost[node],
            Pick(number, node),
        )
        for number in group
        for node in problem.members[number]
    ]
    layer: dict[int, list[Partial]] = {0: [(0, 0.0, None)]}
    found = dict(layer)
    while layer:
        larger: dict[int, Best] = {}
        for made, partials in layer.items():
            for new, within, outside, cost, pick in steps:
                if made & new or within & ~made:
                    continue
                effort.spend(len(partials))
                target = larger.setdefault(made | new, {})
                for asked, price, trace in partials:
                    put(target, asked | outside, price + cost, (trace, pick))
        layer = {
            made: undominated(best, float("inf"), effort) for made, best in larger.items()
        }
        found.update(layer)
    return found

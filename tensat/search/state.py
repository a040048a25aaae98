"""One graph of a search: the terms that its roots need.

A rewrite replaces values by equal ones. All that is computed from them becomes other terms
with the same operators over other arguments, which cost the same: so the difference in cost
is decided near the rewrite, and the rest of a graph is built only when its turn comes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tensat.search.terms import Terms


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Values of a graph and the equal ones that take their place.

    Attributes:
        rule: Name of the rule.
        roots: The values.
        rights: The equal ones, none of which is its root.
    """

    rule: str
    roots: tuple[int, ...]
    rights: tuple[int, ...]


@dataclass(eq=False, slots=True)
class State:
    """A graph.

    Attributes:
        roots: Its outputs.
        order: Its terms, arguments first.
        place: Position of each term in the order.
        uses: How often a term is used, as argument or as output.
        cost: Seconds.
        operators: Number of terms that a machine runs.
        moved: For each changed term of the graph it was made from, what stands there now.
        parent: That graph; None for the first one.
        rewrite: What made it from that graph.
        alike: Whether it differs from that graph in one place only: other changed terms
            are the same operators over changed arguments, and none became one.
        reach: For each position the set of positions below it, as bits.
        above: Positions above a term, ascending, for those that were asked for.
    """

    roots: tuple[int, ...]
    order: list[int]
    place: dict[int, int]
    uses: dict[int, int]
    cost: float
    operators: int
    moved: Mapping[int, int] = field(default_factory=dict)
    parent: State | None = None
    rewrite: Rewrite | None = None
    alike: bool = False
    reach: list[int] = field(default_factory=list)
    above: dict[int, list[int]] = field(default_factory=dict)


def state_of(terms: Terms, roots: Sequence[int]) -> State:
    """The graph with these outputs."""
    order: list[int] = []
    place: dict[int, int] = {}
    stack = list(reversed(roots))
    while stack:
        handle = stack[-1]
        if handle in place:
            stack.pop()
            continue
        missing = [a for a in terms.nodes[handle].arguments if a not in place]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        place[handle] = len(order)
        order.append(handle)
    uses = dict.fromkeys(order, 0)
    for handle in order:
        for argument in terms.nodes[handle].arguments:
            uses[argument] += 1
    for root in roots:
        uses[root] += 1
    cost = math.fsum(terms.cost(handle) for handle in order)
    operators = sum(terms.nodes[handle].counted for handle in order)
    return State(tuple(roots), order, place, uses, cost, operators)


def reach_of(terms: Terms, state: State) -> list[int]:
    """For each position the positions below it and itself, as bits; kept in the graph."""
    if not state.reach:
        for position, handle in enumerate(state.order):
            bits = 1 << position
            for argument in terms.nodes[handle].arguments:
                bits |= state.reach[state.place[argument]]
            state.reach.append(bits)
    return state.reach


def above_of(terms: Terms, state: State, roots: Sequence[int]) -> list[int]:
    """Positions of the terms that are computed from any of these, ascending."""
    reach = reach_of(terms, state)
    for root in roots:
        if root not in state.above:
            place = state.place[root]
            bit = 1 << place
            state.above[root] = [
                at for at in range(place + 1, len(reach)) if reach[at] & bit
            ]
    if len(roots) == 1:
        return state.above[roots[0]]
    found = set().union(*(state.above[root] for root in roots))
    return sorted(found - {state.place[root] for root in roots})


def keeps_facts(terms: Terms, rewrite: Rewrite) -> bool:
    """Whether as much is known of the new values as of the old ones.

    If so, all terms above stay what they are but for their arguments, and cost the same.
    """
    for root, right in zip(rewrite.roots, rewrite.rights, strict=True):
        old, new = terms.nodes[root], terms.nodes[right]
        if old.constant != new.constant or old.known != new.known:
            return False
    return True


def may_merge(state: State, rewrite: Rewrite) -> bool:
    """Whether terms above the rewrite may become one: a new value is there already."""
    rights = rewrite.rights
    return any(r in state.place for r in rights) or len(set(rights)) < len(rights)


def difference(terms: Terms, state: State, rewrite: Rewrite) -> tuple[float, int]:
    """What a rewrite adds to cost and to the number of operators.

    Facts must be kept, and nothing become one above the rewrite.
    """
    nodes, place, uses = terms.nodes, state.place, state.uses
    cost, operators = 0.0, 0
    used = set(rewrite.rights)
    added: set[int] = set()
    stack = list(rewrite.rights)
    while stack:
        handle = stack.pop()
        if handle in place or handle in added:
            continue
        added.add(handle)
        cost += terms.cost(handle)
        operators += nodes[handle].counted
        for argument in nodes[handle].arguments:
            used.add(argument)
            stack.append(argument)
    gone: dict[int, int] = {}
    stack = [root for root in rewrite.roots if root not in used]
    while stack:
        handle = stack.pop()
        cost -= terms.cost(handle)
        operators -= nodes[handle].counted
        for argument in nodes[handle].arguments:
            gone[argument] = gone.get(argument, 0) + 1
            if gone[argument] == uses[argument] and argument not in used:
                stack.append(argument)
    return cost, operators


def hash_after(terms: Terms, state: State, rewrite: Rewrite) -> tuple[int, bool]:
    """The hash of the graph that a rewrite makes, and whether terms become one in it.

    The graph is not made. Facts must be kept.
    """
    nodes = terms.nodes
    changed = {
        root: nodes[right].hash
        for root, right in zip(rewrite.roots, rewrite.rights, strict=True)
    }
    above = above_of(terms, state, rewrite.roots)
    for position in above:
        handle = state.order[position]
        term = nodes[handle]
        below = [changed[a] if a in changed else nodes[a].hash for a in term.arguments]
        changed[handle] = hash((term.kind, *below))
    merged = False
    if may_merge(state, rewrite):
        new = {changed[state.order[position]] for position in above}
        old = (nodes[handle].hash for handle in state.order)
        merged = len(new) < len(above) or not new.isdisjoint(old)
    return hash(tuple(changed.get(root, nodes[root].hash) for root in state.roots)), merged


def hash_of(terms: Terms, roots: Sequence[int]) -> int:
    """The hash of the graph with these outputs; equal for equal graphs."""
    return hash(tuple(terms.nodes[root].hash for root in roots))


def rewritten(terms: Terms, state: State, rewrite: Rewrite) -> State:
    """The graph that a rewrite makes."""
    moved = dict(zip(rewrite.roots, rewrite.rights, strict=True))
    same = keeps_facts(terms, rewrite)
    above = above_of(terms, state, rewrite.roots)
    for position in above:
        handle = state.order[position]
        arguments = terms.nodes[handle].arguments
        moved[handle] = terms.over(handle, tuple(moved.get(a, a) for a in arguments))
        if same:
            terms.inherit(moved[handle], handle)
    result = state_of(terms, [moved.get(root, root) for root in state.roots])
    result.moved, result.parent, result.rewrite = moved, state, rewrite
    new = {moved[state.order[position]] for position in above}
    result.alike = same and len(new) == len(above) and new.isdisjoint(state.place)
    return result

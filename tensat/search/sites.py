"""Where left sides stand in the terms of a graph.

A *site* is a place where one left side of a rule stands. Whether it stands there is a
matter of the term alone, so sites are looked for once for each term, whatever graph it is
in. A term that changed only far below, in the arguments of what the patterns see, has the
sites of the one it comes from, with other arguments; those are carried over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rulesets.find import match_term
from rulesets.match import Match, Value
from rulesets.rule import Rule
from rulesets.term import Apply, Variable, applications, subterms
from rulesets.term import Term as Pattern
from tensat.egraph.compile_rules import symmetric
from tensat.search.state import State
from tensat.search.terms import Terms


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One left side of a rule.

    Attributes:
        rule: Position of the rule.
        pattern: The left side.
        below: How often each operator stands directly below the outermost one.
        depth: Operators on the longest path through the pattern.
    """

    rule: int
    pattern: Apply
    below: tuple[tuple[str, int], ...]
    depth: int


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A left side at a term.

    Attributes:
        number: Of this site, in order of discovery.
        side: The left side.
        root: The term.
        variables: The term of each variable.
        attributes: What attribute variables stand for.
        before: Number of the site it was carried over from; its own if it was not.
        origin: The term of that site.
    """

    number: int
    side: Side
    root: int
    variables: Mapping[str, int]
    attributes: Mapping[str, Value]
    before: int
    origin: int


@dataclass(frozen=True, slots=True)
class Joint:
    """A rule with several left sides.

    Attributes:
        sides: Its sides.
        shared: For each side the variables that sides before it have, too.
        symmetric: Whether the two sides may be exchanged.
    """

    sides: tuple[Side, ...]
    shared: tuple[tuple[str, ...], ...]
    symmetric: bool


@dataclass(slots=True)
class Sites:
    """Finds sites, and remembers them.

    Attributes:
        terms: The store.
        rules: The rules, without rest variables.
        joints: Those with several left sides.
        index: Left sides by their outermost operator and its number of arguments.
        deepest: Depth of the deepest left side for each outermost operator.
        found: Sites of each term looked at.
        count: Number of sites.
    """

    terms: Terms
    rules: Sequence[Rule]
    joints: list[Joint] = field(default_factory=list)
    index: dict[tuple[str, int], list[Side]] = field(default_factory=dict)
    deepest: dict[str, int] = field(default_factory=dict)
    found: dict[int, tuple[Site, ...]] = field(default_factory=dict)
    count: int = 0

    def __post_init__(self) -> None:
        for number, rule in enumerate(self.rules):
            sides = tuple(_side(number, pattern) for pattern in rule.lhs)
            for side in sides:
                op = side.pattern.op
                key = (op, len(side.pattern.arguments))
                self.index.setdefault(key, []).append(side)
                self.deepest[op] = max(self.deepest.get(op, 0), side.depth)
            if len(sides) > 1:
                shared = _shared([_names(pattern) for pattern in rule.lhs])
                self.joints.append(Joint(sides, shared, symmetric(rule)))

    def of_state(self, state: State) -> list[tuple[Site, ...]]:
        """The sites of each term of a graph, in the graph's order."""
        carried = self._carried(state)
        result = []
        for handle in state.order:
            sites = self.found.get(handle)
            if sites is None:
                origin = carried.get(handle)
                if origin is None:
                    sites = tuple(self._find(handle))
                else:
                    sites = tuple(self._carry(origin, handle, state.moved))
                self.found[handle] = sites
            result.append(sites)
        return result

    def _find(self, handle: int) -> Iterator[Site]:
        node = self.terms.nodes[handle]
        sides = self.index.get((node.op, len(node.arguments)))
        if not sides:
            return
        below = Counter(self.terms.nodes[argument].op for argument in node.arguments)
        for side in sides:
            if any(below[op] < count for op, count in side.below):
                continue
            for match in match_term(side.pattern, handle, Match(), self.terms):
                self.count += 1
                yield Site(
                    self.count, side, handle, match.variables, match.attributes,
                    self.count, handle,
                )  # fmt: skip

    def _carry(self, origin: int, handle: int, moved: Mapping[int, int]) -> Iterator[Site]:
        for site in self.found[origin]:
            variables = {name: moved.get(v, v) for name, v in site.variables.items()}
            self.count += 1
            yield Site(
                self.count, site.side, handle, variables, site.attributes,
                site.number, origin,
            )  # fmt: skip

    def _carried(self, state: State) -> dict[int, int]:
        """Changed terms whose sites are those of another term; that term for each."""
        if state.parent is None or state.rewrite is None or not state.alike:
            return {}
        distance = dict.fromkeys(state.rewrite.rights, 0)
        origin = {new: old for old, new in state.moved.items()}
        result = {}
        for handle in state.order:
            if handle in distance or handle not in origin:
                continue
            term = self.terms.nodes[handle]
            near = min(distance.get(a, 1 << 30) for a in term.arguments)
            distance[handle] = near + 1
            if distance[handle] > self.deepest.get(term.op, 0):
                old = origin[handle]
                if old in self.found:
                    result[handle] = old
        return result


def _side(rule: int, pattern: Pattern) -> Side:
    assert isinstance(pattern, Apply), "a left side is an application"
    below = Counter(each.op for each in pattern.arguments if isinstance(each, Apply))
    return Side(rule, pattern, tuple(below.items()), _depth(pattern))


def _depth(pattern: Pattern) -> int:
    if not isinstance(pattern, Apply):
        return 0
    return 1 + max((_depth(each) for each in pattern.arguments), default=0)


def _names(pattern: Pattern) -> set[str]:
    names = {each.name for each in subterms(pattern) if isinstance(each, Variable)}
    labels = {each.label for each in applications(pattern) if each.label is not None}
    return names | labels


def _shared(names: Sequence[set[str]]) -> tuple[tuple[str, ...], ...]:
    known: set[str] = set()
    result = []
    for each in names:
        result.append(tuple(sorted(each & known)))
        known |= each
    return tuple(result)

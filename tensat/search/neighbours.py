"""What a graph becomes where rules match in it: every rule at every match.

Right sides are made once for each match and carried over, as sites are, to graphs in which
only something below changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rulesets.errors import ShapeError, SizeError
from rulesets.expression import same_number
from rulesets.match import Match, Value
from rulesets.rule import build, holds
from tensat.search.sites import Joint, Site, Sites
from tensat.search.state import Rewrite, State, reach_of
from tensat.search.terms import Terms


@dataclass(slots=True)
class Neighbours:
    """Finds the rewrites of graphs.

    Attributes:
        terms: The store.
        sites: Where left sides stand.
        rights: The right sides made at sites, by the sites' numbers; None where the rule
            does not apply.
    """

    terms: Terms
    sites: Sites
    rights: dict[tuple[int, ...], tuple[int, ...] | None] = field(default_factory=dict)

    def of_state(self, state: State) -> Iterator[Rewrite]:
        """Every rewrite of a graph that changes it, in an order that is always the same."""
        found = self.sites.of_state(state)
        joint_sites: dict[int, list[Site]] = {}
        carried: dict[int, int] = {}
        for sites in found:
            for site in sites:
                if len(self.sites.rules[site.side.rule].lhs) == 1:
                    yield from self._rewrites(state, (site,), carried)
                else:
                    joint_sites.setdefault(id(site.side), []).append(site)
        for joint in self.sites.joints:
            lists = [joint_sites.get(id(side), []) for side in joint.sides]
            if all(lists):
                for group in self._join(state, joint, lists):
                    yield from self._rewrites(state, group, carried)

    def _join(
        self, state: State, joint: Joint, lists: list[list[Site]]
    ) -> Iterator[tuple[Site, ...]]:
        """Sites of one rule that agree on what they share and do not need each other."""
        groups: list[tuple[Site, ...]] = [(site,) for site in lists[0]]
        for sites, shared in zip(lists[1:], joint.shared[1:], strict=True):
            by_value: dict[tuple[int, ...], list[Site]] = {}
            for site in sites:
                key = tuple(site.variables[name] for name in shared)
                by_value.setdefault(key, []).append(site)
            grown: list[tuple[Site, ...]] = []
            for group in groups:
                known = {k: v for site in group for k, v in site.variables.items()}
                agreeing = by_value.get(tuple(known[name] for name in shared), ())
                grown += [
                    (*group, site)
                    for site in agreeing
                    if self._fits(state, joint, group, site)
                ]
            groups = grown
        yield from groups

    def _fits(
        self, state: State, joint: Joint, group: tuple[Site, ...], site: Site
    ) -> bool:
        reach = reach_of(self.terms, state)
        mine = state.place[site.root]
        for other in group:
            at = state.place[other.root]
            if at == mine or (joint.symmetric and at > mine):
                return False
            if reach[at] >> mine & 1 or reach[mine] >> at & 1:
                return False
            if not _agree(other.attributes, site.attributes):
                return False
        return True

    def _rewrites(
        self, state: State, group: tuple[Site, ...], carried: dict[int, int]
    ) -> Iterator[Rewrite]:
        rights = self._right_sides(state, group, carried)
        if rights is None:
            return
        pairs = [
            (site.root, right)
            for site, right in zip(group, rights, strict=True)
            if site.root != right
        ]
        if pairs:
            name = self.sites.rules[group[0].side.rule].name
            yield Rewrite(name, tuple(r for r, _ in pairs), tuple(n for _, n in pairs))

    def _right_sides(
        self, state: State, group: tuple[Site, ...], carried: dict[int, int]
    ) -> tuple[int, ...] | None:
        key = tuple([site.number for site in group])
        if key in self.rights:
            return self.rights[key]
        before = _before(state, group)
        if before is not None and before in self.rights:
            old = self.rights[before]
            new = old and tuple([self._move(state, right, carried) for right in old])
        else:
            new = self._build(group)
        self.rights[key] = new
        return new

    def _move(self, state: State, handle: int, carried: dict[int, int]) -> int:
        """The term with every term in it replaced that the graph has replaced."""
        if handle in state.moved:
            return state.moved[handle]
        assert state.parent is not None, "only what was carried over is moved"
        if handle in state.parent.place:
            return handle
        known = carried.get(handle)
        if known is None:
            arguments = self.terms.nodes[handle].arguments
            new = tuple([self._move(state, argument, carried) for argument in arguments])
            known = handle
            if new != arguments:
                known = self.terms.over(handle, new)
                self.terms.inherit(known, handle)
            carried[handle] = known
        return known

    def _build(self, group: tuple[Site, ...]) -> tuple[int, ...] | None:
        rule = self.sites.rules[group[0].side.rule]
        roots = tuple(site.root for site in group)
        egraph = self.terms.egraph
        if egraph.evaluated(roots[0]):
            return None
        variables = {k: v for site in group for k, v in site.variables.items()}
        attributes = {k: v for site in group for k, v in site.attributes.items()}
        match = Match(variables, attributes, roots)
        if not holds(rule, match, self.terms):
            return None
        egraph.rule = rule.name
        try:
            built = build(rule, match, self.terms)
        except (ShapeError, SizeError):
            return None
        finally:
            egraph.rule = None
        return tuple(self.terms.canonical(handle) for handle in built)


def _before(state: State, group: tuple[Site, ...]) -> tuple[int, ...] | None:
    """Numbers of the sites that these were in the graph before, if that is known."""
    if not state.alike or state.parent is None:
        return None
    numbers = []
    for site in group:
        if site.root in state.parent.place and site.root not in state.moved:
            numbers.append(site.number)
        elif site.before != site.number and state.moved.get(site.origin) == site.root:
            numbers.append(site.before)
        else:
            return None
    return tuple(numbers)


def _agree(first: Mapping[str, Value], second: Mapping[str, Value]) -> bool:
    return all(same_number(first[k], v) for k, v in second.items() if k in first)

"""A match becomes new e-nodes: what egglog found is checked and built here.

For each row that a pattern's join wrote: bind attributes, test conditions, build the right
side, and unite each root with its left side. A row is looked at once for each set of
classes it stands for; a right side that exists already costs a dictionary look-up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from rulesets.errors import ShapeError, SizeError
from rulesets.rule import Match, bind, build, holds
from tensat.egraph.compile_rules import Pattern
from tensat.egraph.tensor_egraph import ENodeKey, TensorEGraph

MOST_NEW = 200
"""New e-nodes (plus a tenth of those there are) after which a pattern waits a step:
by then classes have merged, and many of its other matches have become one."""


class Firing(NamedTuple):
    """One application of a rule that changed the e-graph.

    Attributes:
        pattern: The compiled left side.
        row: The match: roots, variables and numbers of attributes, all as they were then.
        built: Handle of each right side.
        first: The first new handle.
        made: The new e-nodes, in order of their handles, as they were then.
    """

    pattern: Pattern
    row: tuple[int, ...]
    built: tuple[int, ...]
    first: int
    made: tuple[ENodeKey, ...]

    @property
    def roots(self) -> tuple[int, ...]:
        """Handle of each left side."""
        return self.row[: len(self.built)]


@dataclass(slots=True)
class Applier:
    """Applies patterns to matches of one e-graph and remembers what was done.

    Attributes:
        egraph: The e-graph that grows.
        fired: How often each rule made two classes one or added a node.
        history: Each of these times, in order.
        seen: Rows already looked at.
    """

    egraph: TensorEGraph
    fired: Counter[str] = field(default_factory=Counter)
    history: list[Firing] = field(default_factory=list)
    seen: set[tuple[str, tuple[int, ...]]] = field(default_factory=set)

    def apply(
        self,
        pattern: Pattern,
        rows: Iterable[tuple[int, ...]],
        enough: Callable[[], bool],
    ) -> bool:
        """Apply a pattern at each row, until ``enough`` says so.

        Returns:
            Whether the e-graph changed.
        """
        changed = False
        room = self.egraph.size() + MOST_NEW + self.egraph.size() // 10
        for row in rows:
            key = (pattern.relation, row)
            if key in self.seen:
                continue
            if enough():
                return changed
            if self.egraph.size() > room:
                return True
            self.seen.add(key)
            changed |= self._apply(pattern, row)
        return changed

    def _apply(self, pattern: Pattern, row: tuple[int, ...]) -> bool:
        egraph, rule = self.egraph, pattern.rule
        roots = row[: len(rule.lhs)]
        if egraph.evaluated(roots[0]):
            return False
        if len(roots) > 1 and not independent(egraph, roots, pattern.symmetric):
            return False
        match = self._match(pattern, row)
        if match is None or not holds(rule, match, egraph):
            return False
        mark = egraph.mark()
        egraph.rule = rule.name
        try:
            built = build(rule, match, egraph)
        except (ShapeError, SizeError):
            egraph.rollback(mark)
            return False
        finally:
            egraph.rule = None
        new = [(a, b) for a, b in zip(roots, built, strict=True) if a != b]
        for root, handle in new:
            egraph.rule = rule.name
            egraph.union(root, handle)
            egraph.rule = None
        if new:
            self.fired[rule.name] += 1
            made = tuple(egraph.key_of[mark:])
            self.history.append(Firing(pattern, row, built, mark, made))
        return bool(new)

    def _match(self, pattern: Pattern, row: tuple[int, ...]) -> Match | None:
        roots = len(pattern.rule.lhs)
        split = roots + len(pattern.variables)
        variables = dict(zip(pattern.variables, row[roots:split], strict=True))
        match: Match | None = Match(variables, {}, tuple(row[:roots]))
        for application, number in zip(pattern.applications, row[split:], strict=True):
            if match is None:
                return None
            match = bind(application, dict(self.egraph.attributes(number)), match)
        return match


def independent(egraph: TensorEGraph, roots: tuple[int, ...], symmetric: bool) -> bool:
    """Whether no root is computed from another one, as far as original nodes tell.

    Merging nodes of which one feeds the other would close a cycle. Of two symmetric roots
    only the ordered pair counts.
    """
    if symmetric and roots[0] > roots[1]:
        return False
    for first in roots:
        for second in roots:
            if first is not second and egraph.depends(first, second):
                return False
    return len(set(roots)) == len(roots)

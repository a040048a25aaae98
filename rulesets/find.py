"""Where a left side stands in a DAG of applications.

The e-graph has its own joins (`tensat.egraph.compile_rules`); this is the same meaning for
terms whose values are applied to one another once each: commutative operators match in
every order, literals by value.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any, Protocol

from rulesets.expression import same_number
from rulesets.match import Match
from rulesets.ops import OPERATORS
from rulesets.rule import Rule, bind
from rulesets.term import Apply, Literal, Term, Variable


class Application(Protocol):
    """A node: its operator over arguments, which are handles."""

    @property
    def op(self) -> str:
        """Canonical operator."""
        ...

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Its attributes, complete."""
        ...

    @property
    def arguments(self) -> tuple[int, ...]:
        """Its arguments."""
        ...


class Nodes(Protocol):
    """Applications by handle."""

    def __getitem__(self, handle: int, /) -> Application:
        """Return the application that makes a value."""
        ...


class Terms(Protocol):
    """What a left side is looked for in."""

    @property
    def nodes(self) -> Nodes:
        """The application behind each handle."""
        ...

    def scalar(self, handle: int, /) -> float | None:
        """Return the element of a constant with one element."""
        ...


def matches(rule: Rule, terms: Terms, roots: Sequence[int]) -> list[Match]:
    """Find every match of a rule at these roots; conditions are not tested.

    Args:
        rule: A rule without rest variables.
        terms: Where to look.
        roots: The handle at which each left side must stand.
    """
    found = [Match({}, {}, tuple(roots))]
    for side, root in zip(rule.lhs, roots, strict=True):
        found = [m for match in found for m in match_term(side, root, match, terms)]
    return found


def match_term(term: Term, handle: int, match: Match, terms: Terms) -> Iterator[Match]:
    """Yield the ways in which a match goes on if a term stands at a handle."""
    if isinstance(term, Variable):
        yield from _named(term.name, handle, match)
    elif isinstance(term, Literal):
        if same_number(terms.scalar(handle), term.value):
            yield match
    elif isinstance(term, Apply):
        node = terms.nodes[handle]
        if node.op != term.op or len(node.arguments) != len(term.arguments):
            return
        bound = bind(term, node.attributes, match)
        if bound is not None:
            yield from _arguments(term, handle, bound, terms)


def _arguments(term: Apply, handle: int, bound: Match, terms: Terms) -> Iterator[Match]:
    arguments = terms.nodes[handle].arguments
    orders = permutations(arguments) if OPERATORS[term.op].commutative else [arguments]
    for order in dict.fromkeys(orders):
        found = [bound]
        if term.label is not None:
            found = list(_named(term.label, handle, bound))
        for pattern, argument in zip(term.arguments, order, strict=True):
            found = [
                m for each in found for m in match_term(pattern, argument, each, terms)
            ]
            if not found:
                break
        yield from found


def _named(name: str, handle: int, match: Match) -> Iterator[Match]:
    if match.variables.get(name, handle) == handle:
        yield replace(match, variables={**match.variables, name: handle})

"""Left sides found among e-nodes in Python: slow, but it can say what it found on its way.

The engine finds matches with egglog (`compile_rules`). This search answers questions about
them afterwards: which e-nodes a recorded match stood on, and how far a rule that never
matched gets. It knows operators, argument order and shared variables only; attributes and
conditions are the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rulesets.expression import same_number
from rulesets.ops import OPERATORS
from rulesets.term import Apply, Literal, Term, Variable
from tensat.egraph.tensor_egraph import TensorEGraph


@dataclass(frozen=True, slots=True)
class Found:
    """Where a left side stands, perhaps not all of it yet.

    Attributes:
        variables: Class of each variable and label.
        enodes: E-node of each operator of the left sides, outside first.
        places: For each of them the position of the operator around it in ``enodes`` and
            of the argument that it is; (-1, n) for the n-th root.
        uses: For each use of a variable its name, and where it is, in the same way.
    """

    variables: Mapping[str, int] = field(default_factory=dict)
    enodes: tuple[int, ...] = ()
    places: tuple[tuple[int, int], ...] = ()
    uses: tuple[tuple[str, int, int], ...] = ()


class Matcher:
    """E-nodes by class and by operator.

    Args:
        egraph: The e-graph, refreshed.
        twins: Whether e-nodes that became equal are tried one by one, not only the oldest.
    """

    def __init__(self, egraph: TensorEGraph, *, twins: bool = False) -> None:
        self.egraph, self.twins = egraph, twins
        self._members: dict[int, list[int]] = {}
        self._named: dict[tuple[str, int], list[int]] = {}
        for handle, key in enumerate(egraph.key_of):
            self._members.setdefault(egraph.find(handle), []).append(handle)
            self._named.setdefault((key.operator, len(key.arguments)), []).append(handle)

    def members(self, eclass: int) -> list[int]:
        """Handles of a class, the oldest first."""
        return self._members[self.egraph.find(eclass)]

    def enodes(self, operator: str, arity: int) -> list[int]:
        """Handles of an operator with that number of arguments, the oldest first."""
        return self._named.get((operator, arity), [])

    def classes(self, operator: str, arity: int) -> Iterable[int]:
        """Classes that hold the operator, each once."""
        find = self.egraph.find
        return dict.fromkeys(find(each) for each in self.enodes(operator, arity))

    def matches(self, sides: tuple[Term, ...], roots: tuple[int, ...] | None = None,
                before: int | None = None,
                variables: Mapping[str, int] | None = None) -> Iterator[Found]:  # fmt: skip
        """Every way in which terms stand in the e-graph.

        Args:
            sides: Terms of variables, literals and applications.
            roots: Class of each; any if None.
            before: Only e-nodes with smaller handles.
            variables: Classes that variables must be.
        """
        last = len(self.egraph.key_of) if before is None else before
        yield from self._sides(sides, roots, last, Found(dict(variables or {})), 0)

    def _sides(self, sides: tuple[Term, ...], roots: tuple[int, ...] | None, last: int,
               found: Found, at: int) -> Iterator[Found]:  # fmt: skip
        if at == len(sides):
            yield found
            return
        side = sides[at]
        if roots is not None:
            classes: Iterable[int] = (self.egraph.find(roots[at]),)
        elif isinstance(side, Apply):
            classes = self.classes(side.op, len(side.arguments))
        else:
            classes = self._members
        for eclass in classes:
            for more in self._term(side, eclass, (-1, at), last, found):
                yield from self._sides(sides, roots, last, more, at + 1)

    def _term(self, term: Term, eclass: int, place: tuple[int, int], last: int,
              found: Found) -> Iterator[Found]:  # fmt: skip
        match term:
            case Variable(name=name):
                bound = _bound(found, name, eclass, place)
                if bound is not None:
                    yield bound
            case Literal(value=value):
                scalar = self.egraph.scalar(eclass)
                if scalar is not None and same_number(value, scalar):
                    yield found
            case Apply():
                yield from self._apply(term, eclass, place, last, found)

    def _apply(self, term: Apply, eclass: int, place: tuple[int, int], last: int,
               found: Found) -> Iterator[Found]:  # fmt: skip
        if term.label is not None:
            labelled = _bound(found, term.label, eclass, place)
            if labelled is None:
                return
            found = labelled
        seen = set()
        for handle in self.members(eclass):
            key = self.egraph.key_of[handle]
            if handle >= last or key.operator != term.op:
                continue
            if len(key.arguments) != len(term.arguments):
                continue
            if not self.twins:
                if key in seen:
                    continue
                seen.add(key)
            here = Found(
                found.variables, (*found.enodes, handle), (*found.places, place), found.uses
            )
            for order in orders(term):
                yield from self._arguments(term, order, 0, len(found.enodes), last, here)

    def _arguments(self, term: Apply, order: tuple[int, ...], at: int, parent: int,
                   last: int, found: Found) -> Iterator[Found]:  # fmt: skip
        if at == len(order):
            yield found
            return
        child = self.egraph.key_of[found.enodes[parent]].arguments[order[at]]
        eclass = self.egraph.find(child)
        place = (parent, order[at])
        for more in self._term(term.arguments[at], eclass, place, last, found):
            yield from self._arguments(term, order, at + 1, parent, last, more)


def orders(term: Apply) -> tuple[tuple[int, ...], ...]:
    """For each argument as written the position where it may stand."""
    straight = tuple(range(len(term.arguments)))
    operator = OPERATORS.get(term.op)
    if operator is not None and operator.commutative and len(straight) == 2:
        return (straight, (1, 0))
    return (straight,)


def _bound(found: Found, name: str, eclass: int, place: tuple[int, int]) -> Found | None:
    known = found.variables.get(name)
    if known is not None and known != eclass:
        return None
    variables = {**found.variables, name: eclass}
    return Found(variables, found.enodes, found.places, (*found.uses, (name, *place)))

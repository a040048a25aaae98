"""The integer program of a problem, before any solver sees it.

One binary column per e-node (chosen or not), one per e-class that is no root (needed or
not). With x for e-nodes, y for e-classes (1 for roots), children d and must sets M:

- *choice* row of c:  Σ_{n of c} x_n  =  y_c
- *need* row of c, d:  Σ_{n of c, d ∈ M(n)} x_n  +  Σ_{m of d, c ∈ M(m)} x_m  <=  y_d

One need row per pair of e-classes instead of one per e-node and child is tighter, since at
most one e-node of c is chosen; must sets put every e-node into it that needs d however far
below. Its second sum says that an e-node of d which needs c cannot serve c: all cycles
through two e-classes are cut before the first solve, and many longer ones.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from extraction.facts import Facts
from extraction.problem import Problem


@dataclass(frozen=True, slots=True)
class Row:
    """`sum of columns - y <= most`, or `== most` for a choice row.

    Attributes:
        nodes: The e-nodes whose columns have coefficient 1.
        minus: The e-class whose column has coefficient -1, or None.
        most: The right-hand side.
        equal: Whether the row is an equation.
    """

    nodes: tuple[int, ...]
    minus: int | None
    most: float
    equal: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """The integer program of one problem.

    Attributes:
        problem: What it is about.
        nodes: The e-nodes in column order.
        classes: The non-root e-classes in column order, after the e-nodes.
        rows: Choice and need rows.
        component: E-class -> strongly connected component.
        tangled: The e-classes in a component of two or more.
    """

    problem: Problem
    nodes: tuple[int, ...]
    classes: tuple[int, ...]
    rows: tuple[Row, ...]
    component: Mapping[int, int]
    tangled: frozenset[int]

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.nodes) + len(self.classes)


def build(problem: Problem) -> Program:
    """Return the integer program of a reduced problem."""
    facts = Facts(problem)
    numbers = sorted(problem.members)
    sizes: dict[int, int] = {}
    for number in numbers:
        part = facts.component[number]
        sizes[part] = sizes.get(part, 0) + 1
    rows: list[Row] = []
    needs = {node: facts.must.below(problem.children[node]) for node in problem.children}
    for number in numbers:
        rows.append(_choice_row(problem, number))
        rows.extend(_need_rows(facts, needs, number))
    return Program(
        problem=problem,
        nodes=tuple(sorted(problem.children)),
        classes=tuple(number for number in numbers if number not in problem.roots),
        rows=tuple(rows),
        component=facts.component,
        tangled=frozenset(c for c in numbers if sizes[facts.component[c]] > 1),
    )


def _choice_row(problem: Problem, number: int) -> Row:
    if number in problem.roots:
        return Row(problem.members[number], None, 1.0, equal=True)
    return Row(problem.members[number], number, 0.0, equal=True)


def _need_rows(facts: Facts, needs: Mapping[int, int], number: int) -> list[Row]:
    problem, must = facts.problem, facts.must
    nodes = problem.members[number]
    own = must.bit[number]
    wanted = {must.bit[child]: child for node in nodes for child in problem.children[node]}
    users = _users(nodes, needs, sum(wanted))
    rows = []
    for bit, child in sorted(wanted.items(), key=lambda item: item[1]):
        back: list[int] = []
        if facts.component[child] == facts.component[number]:
            back = [node for node in problem.members[child] if needs[node] & own]
        if child not in problem.roots:
            rows.append(Row((*users[bit], *back), child, 0.0))
        elif back:
            rows.append(Row((*users[bit], *back), None, 1.0))
    return rows


def _users(
    nodes: tuple[int, ...], needs: Mapping[int, int], wanted: int
) -> dict[int, list[int]]:
    """Return wanted bit -> the e-nodes that need it."""
    users: dict[int, list[int]] = defaultdict(list)
    for node in nodes:
        rest = needs[node] & wanted
        while rest:
            bit = rest & -rest
            users[bit].append(node)
            rest ^= bit
    return users


@dataclass(frozen=True, slots=True)
class Cut:
    """`y_c <= Σ x of supports`: whoever needs c chooses one of these.

    Attributes:
        number: The e-class c.
        supports: E-nodes of which every acyclic derivation of c contains one.
    """

    number: int
    supports: tuple[int, ...]


def supports_of(problem: Problem, closed: frozenset[int] | set[int]) -> tuple[int, ...]:
    """Return the e-nodes of some e-classes that have no child among them.

    Follow children inside `closed` from any of its e-classes: an acyclic derivation must
    end, and it ends inside at one of these e-nodes. So each of the e-classes needs one.
    """
    return tuple(
        [
            node
            for number in sorted(closed)
            for node in problem.members[number]
            if closed.isdisjoint(problem.children[node])
        ]
    )

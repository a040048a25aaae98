"""Exact extraction without a solver, where the e-graph is narrow.

Every e-class starts as a table of partial choices: nothing, or one of its e-nodes. Then
e-classes are eliminated one by one: the tables that have to do with one are joined, what
asks for the e-class without giving it goes, the e-class is forgotten, and of what is
alike the cheapest stays (`partial`). In the end nothing is asked for and the cheapest is
the optimum. How large the tables get depends on how many e-classes are in use at a time,
not on how many there are: a network of hundreds of layers in two layouts, on whose
relaxation integer programming breaks its teeth, takes a fraction of a second. Where tables
get too large they can be cut instead, which gives a good choice without a proof.

What must not grow is bounded by counting pairs, never by a clock: the same e-graph always
takes the same way.

Source: variable elimination of weighted constraint satisfaction (Dechter, bucket
elimination, 1999); for e-graphs, Goharshady, Lam, Parreaux: Fast and Optimal Extraction for
Sparse Equality Graphs (OOPSLA 2024), who order a tree decomposition's bags instead of
making components acyclic first.
"""

import heapq
import math
from collections.abc import Mapping

from extraction.deadline import Deadline
from extraction.derivations import Bits, derivations
from extraction.errors import TooWideError
from extraction.facts import Facts
from extraction.partial import Effort, Partial, join, picks, settled, undominated
from extraction.problem import Problem, cost_of, needed
from extraction.reduce import REDUCTIONS, reduce, solvable
from extraction.served import drop_served, serve

MOST_PAIRS = 2e7
"""Pairs of partial choices that may be compared or joined: a few seconds."""

MOST_PAIRS_OF_A_BEAM = 5e7
"""The same where tables are cut."""

BEAM = 32
"""Partial choices of a table that is cut."""

SLACK = 1e-9
"""Relative cost that a partial choice may be above the best known one: rounding."""


def solve_narrow(
    problem: Problem,
    hint: Mapping[int, int],
    upper: float,
    step: float,
    deadline: Deadline | None = None,
    most_pairs: float = MOST_PAIRS,
) -> dict[int, int] | None:
    """Return an optimal choice of a reduced problem, None if it is too wide.

    Args:
        problem: The problem.
        hint: A complete acyclic choice, returned if none is better than `upper`.
        upper: The cost of some known choice.
        step: Different costs differ by at least this much; 0.0 when unknown.
        deadline: When to give up even before that.
        most_pairs: How much may be done.
    """
    bare = drop_served(problem)
    reduced = reduce(bare, REDUCTIONS, upper, step, deadline)
    if not solvable(reduced.problem):
        return dict(hint)
    try:
        found = _Elimination(reduced.problem, upper, Effort(most_pairs, deadline)).run()
    except TooWideError:
        return None
    if found is None:
        return dict(hint)
    chosen = needed(problem, serve(problem, reduced.lift(found)))
    return min(chosen, dict(hint), key=lambda one: cost_of(problem, one))


def solve_wide(
    problem: Problem,
    hint: Mapping[int, int],
    deadline: Deadline | None = None,
    beam: int = BEAM,
) -> dict[int, int]:
    """Return a choice at least as good as `hint` where exact elimination is too much.

    Tables that grow too large are cut: what stays is cheap, counting what it takes to make
    the rest fit the hint. What the hint itself is made of always stays.

    Args:
        problem: The problem.
        hint: A complete acyclic choice.
        deadline: When to give up.
        beam: Partial choices that a table keeps.
    """
    start = needed(problem, hint)
    bare = drop_served(problem)
    effort = Effort(MOST_PAIRS_OF_A_BEAM, deadline)
    search = _Elimination(bare, cost_of(problem, start), effort)
    search.cut_to(beam, needed(bare, start))
    try:
        found = search.run()
    except TooWideError:
        return start
    if found is None:
        return start
    chosen = needed(problem, serve(problem, found))
    return min(start, chosen, key=lambda one: cost_of(problem, one))


class _Elimination:
    """Tables of partial choices, fewer and fewer."""

    def __init__(self, problem: Problem, upper: float, effort: Effort) -> None:
        self.problem, self.effort = problem, effort
        self.beam = 0
        self.unlike = 0
        self.repair: dict[int, float] = {}
        self.room = upper - problem.constant + SLACK * upper
        self.bits = Bits.of(sorted(problem.members))
        self.tables: dict[int, list[Partial]] = {}
        self.scope: dict[int, set[int]] = {}
        self.users: dict[int, set[int]] = {number: set() for number in problem.members}

    def cut_to(self, beam: int, hint: Mapping[int, int]) -> None:
        """Keep tables small from now on.

        Args:
            beam: Partial choices in a table at most, or a few more.
            hint: A complete choice, whose parts are kept.
        """
        self.beam = beam
        problem = self.problem
        for number, nodes in problem.members.items():
            bit = self.bits.withheld[number] if number in hint else self.bits.asked[number]
            self.unlike |= bit
            self.repair[bit] = min(problem.cost[node] for node in nodes)

    def _cut(self, table: list[Partial]) -> list[Partial]:
        """Return the partial choices that seem best, among them one that fits the hint."""
        if not self.beam or len(table) <= self.beam:
            return table
        ranked = sorted(
            table, key=lambda each: (each[1] + self._to_fit(each[0] & self.unlike), each[0])
        )
        kept = ranked[: self.beam]
        fitting = [each for each in table if not each[0] & self.unlike]
        if fitting and not any(not each[0] & self.unlike for each in kept):
            kept.append(fitting[0])
        return sorted(kept, key=lambda each: (each[1], each[0]))

    def _to_fit(self, unlike: int) -> float:
        """Return about what it takes to make up for what differs from the hint."""
        price = 0.0
        while unlike:
            bit = unlike & -unlike
            unlike ^= bit
            price += self.repair[bit]
        return price

    def run(self) -> dict[int, int] | None:
        """Return the e-nodes of a best choice; None if all are above the known cost."""
        if not self._begin():
            return None
        heap = [(self._price(c), c) for c in sorted(self.users) if self.users[c]]
        heapq.heapify(heap)
        while heap:
            price, number = heapq.heappop(heap)
            if not self.users[number]:
                continue
            now = self._price(number)
            if now != price:
                heapq.heappush(heap, (now, number))
            elif not self._eliminate(number):
                return None
        return picks([table[0][2] for table in self.tables.values()])

    def _begin(self) -> bool:
        """Make the tables of all components."""
        facts, problem = Facts(self.problem), self.problem
        groups: dict[int, list[int]] = {}
        for number in sorted(problem.members):
            groups.setdefault(facts.component[number], []).append(number)
        for key, group in groups.items():
            best = derivations(facts, group, self.bits, self.effort)
            table = undominated(best, math.inf, self.effort)
            asked = {
                d for c in group for n in problem.members[c] for d in problem.children[n]
            }
            if not self._put(key, table, asked | set(group)):
                return False
        return True

    def _price(self, number: int) -> tuple[int, int]:
        """Return how many pairs it takes to eliminate an e-class, and how wide it gets."""
        pairs, scope = 1, set()
        for key in self.users[number]:
            pairs *= len(self.tables[key])
            scope |= self.scope[key]
        return pairs, len(scope)

    def _eliminate(self, number: int) -> bool:
        """Join the tables of an e-class into one; say whether something is left of it."""
        keys = sorted(self.users[number], key=lambda key: (len(self.tables[key]), key))
        table = self.tables[keys[0]]
        best = {bits: (cost, trace) for bits, cost, trace in table}
        for at, key in enumerate(keys[1:]):
            if at:
                table = self._cut(undominated(best, self.room, self.effort))
            best = join(table, self.tables[key], self.room, self.effort)
        bits = self.bits
        best = settled(best, bits.asked[number], bits.withheld[number])
        table = undominated(best, self.room, self.effort)
        scope = set().union(*(self.scope[key] for key in keys)) - {number}
        self.users[number] = set()
        for key in keys:
            for other in self.scope.pop(key):
                self.users[other].discard(key)
            del self.tables[key]
        return self._put(keys[0], table, scope)

    def _put(self, key: int, table: list[Partial], scope: set[int]) -> bool:
        """Enter a table, less what each of its partial choices costs at least."""
        if not table:
            return False
        table = self._cut(table)
        least = table[0][1]
        self.room -= least
        self.tables[key] = [(bits, cost - least, trace) for bits, cost, trace in table]
        self.scope[key] = scope
        for number in scope:
            self.users[number].add(key)
        return True

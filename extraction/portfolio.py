"""Solve one independent part: relaxation and both back ends in turn, slices growing.

Where a part is narrow, elimination ends before they begin: at once where it is very narrow,
after the relaxation had a turn where the part is small, since that mostly proves what is
small. Elimination is bounded by counting, not by time, and always ends in the same way.
Where the part is too wide, elimination with tables cut short gives solvers a better start.

HiGHS with lazy cuts wins on most parts; CP-SAT with levels on those where cycles fight the
optimum; landmark cuts with fixing on those where the relaxation is weak. Which kind a part
is shows only in the trying, so they alternate, each turn longer than the last, and hand
each other choices, cuts, bounds and deletions. At worst this costs a small multiple of
the best one alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from extraction.deadline import Deadline
from extraction.elimination import MOST_PAIRS, solve_narrow, solve_wide
from extraction.facts import Facts
from extraction.incumbent import best, better_greedy, repair
from extraction.model import Cut, Program, build
from extraction.problem import Problem, Reduced, cost_of, needed, restrict
from extraction.reduce import reduce, solvable
from extraction.relax import relax
from extraction.solve_cpsat import solve_cpsat
from extraction.solve_highs import solve_highs
from extraction.solver import Answer, Task
from extraction.upper_bound import required_bound, worthwhile

FIRST_SLICE = 2.0
"""Seconds of the first slice, to which one is added for every NODES_PER_SECOND."""

FEW_PAIRS = 5e5
"""Pairs that elimination may try before the relaxation has had its turn: little time."""

EASY = 400
"""E-nodes up to which the relaxation has a turn before elimination may take long."""

NODES_PER_SECOND = 1000
GROWTH = 2.5
MANY_ROUNDS = 12
"""Lazy rounds after which the other back end is asked."""

PATIENCE = 2.5
"""Slices for the relaxation, which stops by itself, or for who comes first in a tangle."""

OPENING = 0.4
"""HiGHS's first slice where cycles are few: it ends at once or is not the right one."""

UNHURRIED = 2.0
"""Seconds left from which a first bound by must sets is worth computing."""

LONG = 10.0
"""Seconds of a slice that may be repeated in the first turn: the e-graph is large."""

GAIN = 0.1
"""Share of the gap that a slice of relaxation must close to get another at once."""

SMALL = 1500
"""E-nodes up to which CP-SAT comes before HiGHS."""

LARGE = 2500
"""E-nodes above which HiGHS comes first and CP-SAT last."""

TANGLED = 0.3
"""Share of e-classes on cycles from which CP-SAT comes first."""

HUGE = 8000
"""E-nodes above which CP-SAT is left out of the first turn."""

WORTH = 0.9
"""A fixing that leaves less than this of the e-nodes starts the reductions anew."""


class PartSearch:
    """The search on one part; its problem shrinks as e-nodes are ruled out.

    Attributes:
        chosen: The best choice so far, for the part as given.
        cost: Its cost.
        bound: No choice costs less.
        proven: Whether `chosen` is optimal.
        rounds: Solver calls so far.
    """

    def __init__(self, problem: Problem, task: Task) -> None:
        """Start from a reduced problem and a task about it."""
        self.whole = problem
        self.task = task
        self.forced: dict[int, int] = {}
        self.chosen: Mapping[int, int] = task.hint
        self.cost = task.upper
        self.bound = 0.0
        self.proven = False
        self.rounds = 0
        self.pairs = pairs_at_first(problem)

    def open(self) -> None:
        """What comes before the turns: relaxation, elimination, a better start."""
        end, slice_ = self.task.deadline, FIRST_SLICE
        if self.pairs < MOST_PAIRS:
            self.tighten(end if end.left < 1.5 * slice_ else end.sooner(slice_))
            self.pairs = MOST_PAIRS
            if not self.over():
                self._eliminate()
        if not self.over():
            self._adopt(solve_wide(self.task.program.problem, self.task.hint, end))

    def run(self) -> None:
        """Take turns until the choice is proven optimal or time is up."""
        slice_ = FIRST_SLICE + len(self.whole.children) / NODES_PER_SECOND
        turn = 0
        while not self.over():
            for act in self._acts(turn):
                length = slice_ * self._weight(act, turn)
                while self._gains(act, length) and (turn or length > LONG):
                    pass
                if self.over():
                    break
            slice_ *= GROWTH
            turn += 1

    def _gains(self, act: Callable[[Deadline], None], length: float) -> bool:
        """Give an act its slice; say whether the relaxation deserves another at once."""
        end, before = self.task.deadline, self.bound
        act(end if end.left < 1.5 * length else end.sooner(length))
        if self.over() or act != self.tighten:
            return False
        return self.bound - before > GAIN * (self.cost - before)

    def over(self) -> bool:
        """Whether nothing is left to do or no time to do it."""
        return self.proven or self.task.deadline.passed

    def _acts(self, turn: int) -> list[Callable[[Deadline], None]]:
        program = self.task.program
        count = len(program.nodes)
        acts: list[Callable[[Deadline], None]] = []
        if count > LARGE:
            acts = [self.ask_highs, self.tighten]
            if turn or count <= HUGE:
                acts.append(self.ask_cpsat)
        elif _is_tangled(program) or (program.tangled and count <= SMALL):
            acts = [self.ask_cpsat, self.tighten, self.ask_highs]
        elif count <= SMALL:
            acts = [self.tighten, self.ask_cpsat, self.ask_highs]
        else:
            acts = [self.tighten, self.ask_highs, self.ask_cpsat]
        return acts

    def _weight(self, act: Callable[[Deadline], None], turn: int) -> float:
        program = self.task.program
        if _is_tangled(program):
            return PATIENCE if act == self._acts(turn)[0] else 1.0
        if act == self.tighten and (turn or len(program.nodes) > LARGE):
            return PATIENCE
        return OPENING if turn == 0 and act == self.ask_highs else 1.0

    def ask_highs(self, end: Deadline) -> None:
        """Give HiGHS a turn."""
        self._learn(solve_highs(replace(self.task, deadline=end), MANY_ROUNDS))

    def ask_cpsat(self, end: Deadline) -> None:
        """Give CP-SAT a turn."""
        self._learn(solve_cpsat(replace(self.task, deadline=end)))

    def tighten(self, end: Deadline) -> None:
        """Tighten the relaxation, fix and reduce while that shrinks the problem."""
        again = True
        while again and not self.proven and not end.passed:
            relaxed = relax(replace(self.task, deadline=end))
            self.rounds += relaxed.rounds
            self.bound = max(self.bound, relaxed.bound)
            self._adopt(relaxed.chosen)
            self.task = replace(self.task, cuts=relaxed.cuts)
            again = self._shrink(relaxed.keep, end)

    def _learn(self, answer: Answer) -> None:
        self.rounds += answer.rounds
        self.bound = max(self.bound, answer.bound)
        self.task = replace(self.task, cuts=tuple(answer.cuts))
        self._adopt(answer.chosen)
        if answer.proven:
            self.proven = True
            return
        for wanted in answer.candidates:
            self._adopt(repair(self.task.program.problem, wanted, self.task.deadline))

    def _adopt(self, chosen: Mapping[int, int]) -> None:
        """Take over a choice of the current problem where it is better."""
        problem, step = self.task.program.problem, self.task.step
        cost = cost_of(problem, chosen)
        if cost < cost_of(problem, self.task.hint):
            self.task = replace(self.task, hint=needed(problem, chosen))
        if cost < self.cost:
            self.cost = cost
            self.chosen = needed(self.whole, {**self.forced, **chosen})
            self.task = replace(self.task, upper=cost)
        if self.bound > worthwhile(self.cost, step):
            self.proven = True

    def _shrink(self, keep: frozenset[int], end: Deadline) -> bool:
        """Go on with only the e-nodes in `keep`; say whether the problem became smaller."""
        problem = self.task.program.problem
        if self.proven or len(keep) > WORTH * len(problem.children):
            return False
        reduced = reduce(
            restrict(problem, keep), upper=self.cost, step=self.task.step, deadline=end
        )
        if not solvable(reduced.problem):
            self.proven = True
            return False
        self.forced = {**self.forced, **reduced.forced}
        smaller = reduced.problem
        hint = best(
            smaller, [better_greedy(smaller, end), repair(smaller, self.chosen, end)]
        )
        program = build(smaller)
        cuts = carry(self.task.cuts, reduced)
        self.task = replace(self.task, program=program, hint=hint, cuts=cuts)
        self._adopt(hint)
        self._eliminate()
        return True

    def _eliminate(self) -> None:
        """Solve the part without a solver if it is narrow enough."""
        task = self.task
        problem = task.program.problem
        narrow = solve_narrow(
            problem, task.hint, self.cost, task.step, task.deadline, self.pairs
        )
        if narrow is not None:
            self._adopt(narrow)
            self.proven = True


def pairs_at_first(problem: Problem) -> float:
    """How much elimination may do at once: little where relaxing may prove it as well."""
    return FEW_PAIRS if len(problem.children) <= EASY else MOST_PAIRS


def _is_tangled(program: Program) -> bool:
    return len(program.tangled) > TANGLED * len(program.problem.members)


def carry(cuts: Sequence[Cut], reduced: Reduced) -> tuple[Cut, ...]:
    """Return the cuts that still make sense after a reduction.

    A deleted e-node is never chosen, so it leaves the supports. A forced one is chosen
    without a column to say so: cuts that count on it are dropped.
    """
    problem, forced = reduced.problem, set(reduced.forced.values())
    return tuple(
        Cut(cut.number, tuple([n for n in cut.supports if n in problem.children]))
        for cut in cuts
        if cut.number in problem.members and forced.isdisjoint(cut.supports)
    )


def solve_part(
    problem: Problem,
    hint: Mapping[int, int],
    upper: float,
    step: float,
    deadline: Deadline,
    seed: int = 0,
    workers: int = 1,
) -> Answer:
    """Solve a reduced, connected problem.

    Args:
        problem: The problem; its constant counts.
        hint: A complete acyclic choice of it.
        upper: The least cost known of any choice, ruled out already or not.
        step: Different costs differ by at least this much; 0.0 when unknown.
        deadline: When to return.
        seed: Random seed.
        workers: Threads a back end may use.

    Returns:
        The best choice and bound found; `proven` means that no choice of the problem is
        better than `upper` and than the choice returned.
    """
    pairs = pairs_at_first(problem)
    narrow = solve_narrow(problem, hint, upper, step, deadline, pairs)
    if narrow is not None:
        return Answer(narrow, cost_of(problem, narrow), True, rounds=0)
    task = Task(build(problem), hint, upper, step, deadline, (), seed, workers)
    search = PartSearch(problem, task)
    if deadline.left > UNHURRIED:
        search.bound = required_bound(Facts(problem))
    search.open()
    search.run()
    bound = search.cost if search.proven else min(search.bound, search.cost)
    return Answer(search.chosen, bound, search.proven, rounds=search.rounds)

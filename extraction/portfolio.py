"""Solve one independent part: both back ends in turn, with growing time slices.

HiGHS with lazy cuts wins on most parts, CP-SAT with levels on those where cycles fight the
optimum; which kind a part is shows only in the trying. So they alternate, each slice twice
as long as the last, and hand each other choices, loop cuts and bounds. At worst this costs
a small multiple of the better one alone.
"""

from collections.abc import Mapping
from dataclasses import replace

from extraction.deadline import Deadline
from extraction.incumbent import best, repair
from extraction.model import Program, build
from extraction.problem import Problem, cost_of
from extraction.solve_cpsat import solve_cpsat
from extraction.solve_highs import solve_highs
from extraction.solver import Answer, Task

FIRST_SLICE = 2.0
"""Seconds of the first slice."""

GROWTH = 2.0
MANY_ROUNDS = 12
"""Lazy rounds after which the other back end is asked."""

SMALL = 2000
"""E-nodes up to which a tangled part is first shown to CP-SAT."""


def solve_part(
    problem: Problem,
    hint: Mapping[int, int],
    step: float,
    deadline: Deadline,
    seed: int = 0,
    workers: int = 1,
) -> Answer:
    """Solve a reduced, connected problem.

    Args:
        problem: The problem; its constant counts.
        hint: A complete acyclic choice.
        step: Different costs differ by at least this much; 0.0 when unknown.
        deadline: When to return.
        seed: Random seed.
        workers: Threads a back end may use.

    Returns:
        The best choice and bound found.
    """
    program = build(problem)
    task = Task(program, hint, cost_of(problem, hint), step, deadline, (), seed, workers)
    answer = Answer(hint, 0.0, proven=False)
    turn = 0 if _first_highs(program) else 1
    slice_ = FIRST_SLICE
    while not answer.proven and not deadline.passed:
        end = deadline if deadline.left < 1.5 * slice_ else deadline.sooner(slice_)
        now = replace(
            task,
            hint=answer.chosen,
            hint_cost=cost_of(problem, answer.chosen),
            cuts=answer.cuts,
            deadline=end,
        )
        if turn % 2 == 0:
            new = solve_highs(now, MANY_ROUNDS)
        else:
            new = solve_cpsat(now)
        answer = _merge(problem, answer, new, now)
        turn += 1
        slice_ *= GROWTH if turn % 2 == 0 else 1.0
    return answer


def _first_highs(program: Program) -> bool:
    return not program.tangled or len(program.nodes) > SMALL


def _merge(problem: Problem, old: Answer, new: Answer, task: Task) -> Answer:
    choices = [new.chosen, old.chosen]
    if not new.proven:
        choices += [repair(problem, wanted, task.deadline) for wanted in new.candidates]
    chosen = best(problem, choices)
    cost = cost_of(problem, chosen)
    bound = max(old.bound, new.bound)
    proven = new.proven or cost - bound < 0.9 * task.step
    return Answer(
        chosen,
        cost if proven else min(bound, cost),
        proven,
        new.cuts or old.cuts,
        rounds=old.rounds + new.rounds,
    )



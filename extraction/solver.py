"""What the exact extractor asks of a solver, and what it gets back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from extraction.deadline import Deadline
from extraction.model import Cut, Program


@dataclass(frozen=True, slots=True)
class Task:
    """One call of a solver.

    Attributes:
        program: The integer program.
        hint: A complete and acyclic choice of the program's problem.
        upper: The least cost known of any choice, the problem's or one ruled out already.
        step: Different costs differ by at least this much; 0.0 when unknown.
        cuts: Loop cuts found before.
        deadline: When to return.
        seed: Random seed.
        workers: Threads.
    """

    program: Program
    hint: Mapping[int, int]
    upper: float
    step: float
    deadline: Deadline
    cuts: Sequence[Cut] = ()
    seed: int = 0
    workers: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What a solver found out.

    Attributes:
        chosen: An acyclic choice, the hint or a better one.
        bound: No choice of the program costs less.
        proven: Whether `chosen` is optimal for it.
        cuts: All loop cuts known by now.
        candidates: Cyclic choices worth repairing, best last.
        rounds: Solver calls made.
    """

    chosen: Mapping[int, int]
    bound: float
    proven: bool
    cuts: Sequence[Cut] = ()
    candidates: Sequence[Mapping[int, int]] = field(default=())
    rounds: int = 1


class Solver(Protocol):
    """A back end."""

    def __call__(self, task: Task) -> Answer:
        """Return the best choice found before the deadline."""
        ...

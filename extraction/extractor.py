"""The interface every extractor has."""

from dataclasses import dataclass, field
from typing import Protocol

from extraction.choice import Choice
from extraction.deadline import Deadline
from extraction.egraph import EGraph
from extraction.errors import UnderivableRootError
from extraction.problem import Problem


@dataclass(frozen=True, slots=True)
class Limits:
    """What an extractor may use.

    Attributes:
        deadline: When it must return, with the best choice it has.
        seed: Random seed; the same seed gives the same choice, time limits aside.
        workers: Threads a solver may use.
    """

    deadline: Deadline = field(default_factory=Deadline)
    seed: int = 0
    workers: int = 1


class Extractor(Protocol):
    """Anything that turns an e-graph into a choice within limits."""

    def __call__(self, graph: EGraph, limits: Limits) -> Choice:
        """Return a checked choice.

        Raises:
            UnderivableRootError: A root has no finite derivation.
        """
        ...


def require_roots(graph: EGraph, problem: Problem) -> None:
    """Make sure that every root still has an e-node in a cleaned problem.

    Raises:
        UnderivableRootError: A root has none.
    """
    for root in graph.root_numbers:
        if root not in problem.members:
            raise UnderivableRootError(
                f"root {graph.ids[root]!r} has {len(graph.members[root])} e-nodes of "
                "finite cost, but each needs an e-class that only derives from itself"
            )

"""Tables that reductions read, computed on first use and shared between them."""

from dataclasses import dataclass, field
from functools import cached_property

from extraction.must import Must, must_sets
from extraction.problem import Problem, class_of, parents_of
from extraction.scc import components_of


@dataclass(eq=False)
class Facts:
    """A problem with derived tables.

    Not frozen and without slots only because `cached_property` writes into the instance;
    nothing observable changes.

    Attributes:
        problem: The problem the tables are about.
        upper: The cost of some known choice, the problem's constant included; choices that
            cost as much are of no interest any more.
        step: Two different costs differ by at least this much; 0.0 when unknown.
    """

    problem: Problem
    upper: float = field(default=float("inf"))
    step: float = 0.0

    @cached_property
    def owner(self) -> dict[int, int]:
        """E-node -> its e-class."""
        return class_of(self.problem)

    @cached_property
    def parents(self) -> dict[int, list[int]]:
        """E-class -> the e-nodes that have it as a child."""
        return parents_of(self.problem)

    @cached_property
    def component(self) -> dict[int, int]:
        """E-class -> number of its strongly connected component, children's first."""
        return components_of(self.problem)

    @cached_property
    def must(self) -> Must:
        """What every acyclic derivation of an e-class contains."""
        return must_sets(self.problem, self.component)

"""Apply reductions until none changes anything.

Every reduction is a function of `Facts` that returns `Reduced`; all keep at least one
optimal choice (or, the last one, at least one better than the known upper bound). Each
can be switched off by leaving its name out.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from extraction.clean import clean
from extraction.deadline import Deadline
from extraction.dominance import drop_dominated, drop_dominated_must
from extraction.errors import UnknownMethodError
from extraction.facts import Facts
from extraction.free import drop_free
from extraction.problem import Problem, Reduced
from extraction.required import drop_implied, drop_impossible, root_required
from extraction.single import inline_single
from extraction.upper_bound import drop_expensive


@dataclass(frozen=True, slots=True)
class Reduction:
    """A named reduction.

    Attributes:
        name: What switches it.
        apply: The function.
        reads_must: Whether it needs must sets, the dear part of the facts.
    """

    name: str
    apply: Callable[[Facts], Reduced]
    reads_must: bool = False


REDUCTIONS = (
    Reduction("free", drop_free),
    Reduction("single", inline_single),
    Reduction("dominated", drop_dominated),
    Reduction("impossible", drop_impossible, reads_must=True),
    Reduction("expensive", drop_expensive, reads_must=True),
    Reduction("dominated-must", drop_dominated_must, reads_must=True),
    Reduction("implied", drop_implied, reads_must=True),
    Reduction("required", root_required, reads_must=True),
)
ALL = tuple(reduction.name for reduction in REDUCTIONS)


def choose_reductions(names: Iterable[str]) -> tuple[Reduction, ...]:
    """Return the reductions of these names, in the order they are applied.

    Raises:
        UnknownMethodError: There is no reduction of some name.
    """
    wanted = set(names)
    unknown = sorted(wanted - set(ALL))
    if unknown:
        raise UnknownMethodError(
            f"reduction {unknown[0]!r} was asked for; known: {', '.join(ALL)}"
        )
    return tuple(reduction for reduction in REDUCTIONS if reduction.name in wanted)


def reduce(
    problem: Problem,
    reductions: tuple[Reduction, ...] = REDUCTIONS,
    upper: float = float("inf"),
    step: float = 0.0,
    deadline: Deadline | None = None,
) -> Reduced:
    """Reduce a problem until nothing changes or time is up.

    Args:
        problem: The problem; cleaned first.
        reductions: Which to use.
        upper: The cost of a known choice; choices as dear as that may be lost.
        step: Different costs differ by at least this much; 0.0 when unknown.
        deadline: When to stop, between two reductions.

    Returns:
        The reduced problem and its lift. A root without e-nodes means that no choice is
        better than the known one.
    """
    reduced = clean(problem)
    facts = Facts(reduced.problem, upper, step)
    forced: dict[int, int] = {}
    idle = 0
    while idle < len(reductions):
        for reduction in reductions:
            if idle == len(reductions) or (deadline and deadline.passed):
                return Reduced(facts.problem, forced)
            after = reduction.apply(facts)
            if after.problem is facts.problem:
                idle += 1
                continue
            idle = 0
            forced = {**forced, **after.forced}
            after = clean(after.problem)
            facts = Facts(after.problem, upper, step)
            if not solvable(facts.problem):
                return Reduced(facts.problem, forced)
    return Reduced(facts.problem, forced)


def solvable(problem: Problem) -> bool:
    """Return whether every root of a cleaned problem still has an e-node."""
    return all(root in problem.members for root in problem.roots)

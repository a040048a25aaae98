"""Measure only what matters: extraction and measuring in turn.

What is not measured yet counts as little as it possibly can. The cheapest plan under such
bounds is measured where it is not, and looked for again, until all of it is measured: no
other plan can then be cheaper, since all others were given less than they cost. The
quick extractor leads the way, so that the exact one runs a few times only.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from extraction import Choice, extract
from tensat.costs.source import CostSource, Progress, Signature
from tensat.egraph.engine import ENodeRow
from tensat.kernels.again import again
from tensat.kernels.collect import Kernel
from tensat.kernels.problem import Problem, kernel_problem

LEAST_SECONDS = 1.0
"""Wall time that an extraction gets, however late it is."""

DOUBT = 1.5
"""Factor on costs that are estimated in the end: what is measured is to be preferred."""

MOST_SEARCH = 3.0
"""Wall time of a local search at most."""

MOST_TURNS = 40
"""Turns of extraction and measuring, after which what is not measured is estimated."""


@runtime_checkable
class LazySource(Protocol):
    """A cost source that can say what it knows, and bounds for the rest."""

    def known(self, signatures: Sequence[Signature]) -> list[float | None]:
        """Seconds of each signature, None where it would have to be measured."""
        ...

    def floor(self, signature: Signature) -> float:
        """Seconds that the signature cannot be faster than, without measuring."""
        ...

    def dispatch(self) -> float:
        """Seconds that a node takes in a model besides its kernel."""
        ...


@dataclass(frozen=True, slots=True)
class Candidates:
    """Kernels to choose from.

    Attributes:
        kernels: The kernels.
        forms: Classes that are constants, as `constant_forms` gives them.
        roots: Classes that are wanted.
    """

    kernels: Sequence[Kernel]
    forms: Mapping[int, ENodeRow]
    roots: Sequence[int]


@dataclass(frozen=True, slots=True)
class Settled:
    """The cheapest plan and what it took.

    Attributes:
        problem: The e-graph of kernels under the final costs.
        choice: What extraction chose.
        original: The e-graph of the model's own kernels.
        original_choice: The cheapest way to run the model as it is.
        turns: How often plans were looked for.
        asked: Distinct signatures of all kernels.
        measured: How many of them were asked for a measured cost.
        whole: What could be chosen.
        own: What there was for the model as it is.
        costs: Seconds of each signature as they were in the end, bounds included.
        dispatch: Seconds that each signature costs besides.
    """

    problem: Problem
    choice: Choice
    original: Problem
    original_choice: Choice
    turns: int
    asked: int
    measured: int
    whole: Candidates
    own: Candidates
    costs: Mapping[Signature, float]
    dispatch: float


def settle(
    whole: Candidates,
    own: Candidates,
    source: CostSource,
    *,
    deadline: float,
    seconds: float,
    seed: int = 0,
    everything: bool = False,
    progress: Progress | None = None,
) -> Settled:
    """The cheapest plan under costs that are measured where they matter.

    Args:
        whole: What can be chosen.
        own: What there is for the model as it is.
        source: What signatures cost.
        deadline: Value of `time.monotonic` after which nothing new is measured.
        seconds: Wall time for all extractions together, about.
        seed: For the solver.
        everything: Whether to measure every signature first.
        progress: Told how many of the signatures are known.
    """
    work = _Work(whole, own, source, deadline, seconds, seed, progress)
    return work.run(everything or not isinstance(source, LazySource))


class _Work:
    """Costs as they become known."""

    def __init__(
        self,
        whole: Candidates,
        own: Candidates,
        source: CostSource,
        deadline: float,
        seconds: float,
        seed: int,
        progress: Progress | None,
    ) -> None:
        self.whole, self.own = whole, own
        self.source, self.deadline, self.progress = source, deadline, progress
        self.left, self.seed = seconds, seed
        self.dispatch = source.dispatch() if isinstance(source, LazySource) else 0.0
        kernels = (*whole.kernels, *own.kernels)
        self.distinct = list(dict.fromkeys(s for k in kernels for s in k.signatures))
        self.costs: dict[Signature, float] = {}
        self.missing: set[Signature] = set()
        self.found: dict[str, tuple[Problem, Choice]] = {}
        self.bounds: dict[str, float] = {}
        self.turns = 0
        self.measured = 0

    def run(self, everything: bool) -> Settled:
        if everything:
            self._ask(self.distinct)
            self.missing.clear()
        else:
            self._bound()
            self._follow("greedy-dag")
        self._follow("ilp")
        unknown = [s for found in self.found.values() for s in self._unknown(*found)]
        if unknown:  # no time is left: let the source estimate all that is missing
            missing = sorted(self.missing, key=Signature.text)
            self._ask(missing)
            for signature in missing:
                self.costs[signature] *= DOUBT
            self._plan("ilp")
        (problem, choice), (original, own) = self.found.values()
        return Settled(
            problem,
            choice,
            original,
            own,
            self.turns,
            len(self.distinct),
            self.measured,
            self.whole,
            self.own,
            self.costs,
            self.dispatch,
        )

    def _bound(self) -> None:
        """Start from what is known, and bounds for the rest."""
        assert isinstance(self.source, LazySource)
        known = self.source.known(self.distinct)
        for signature, cost in zip(self.distinct, known, strict=True):
            if cost is None:
                self.missing.add(signature)
                cost = self.source.floor(signature)
            self.costs[signature] = cost

    def _follow(self, method: str) -> None:
        """Measure what the plans of a method use, until nothing new comes up."""
        while True:
            self._plan(method)
            own_first = reversed(self.found.values())
            wanted = [s for found in own_first for s in self._unknown(*found)]
            if not wanted or self.turns >= MOST_TURNS or time.monotonic() > self.deadline:
                return
            if self.left <= 0:  # no time for proofs; what is planned is measured even so
                method = "greedy-dag"
            self._ask(list(dict.fromkeys(wanted)))

    def _plan(self, method: str) -> None:
        """Look for the cheapest plans under the costs of now.

        Half of the time that is left is for each: there may be a next turn.
        """
        self.turns += 1
        for name, candidates in (("whole", self.whole), ("own", self.own)):
            start = time.monotonic()
            share = max(LEAST_SECONDS, self.left / 2)
            self.found[name] = self._extract(name, candidates, method, share)
            self.left -= time.monotonic() - start

    def _ask(self, signatures: Sequence[Signature]) -> None:
        costs = self.source.seconds(signatures, self.deadline)
        self.costs.update(zip(signatures, costs, strict=True))
        self.missing.difference_update(signatures)
        self.measured += len(signatures)
        if self.progress is not None:
            done = len(self.distinct) - len(self.missing)
            self.progress(done, len(self.distinct))

    def _unknown(self, problem: Problem, choice: Choice) -> list[Signature]:
        """What a choice is made of and has not been measured."""
        return [
            signature
            for node in choice.node_of.values()
            if (kernel := problem.behind[node]) is not None
            for signature in kernel.signatures
            if signature in self.missing
        ]

    def _extract(
        self, name: str, candidates: Candidates, method: str, seconds: float
    ) -> tuple[Problem, Choice]:
        costs = [
            kernel.fixed + sum(self.costs[s] + self.dispatch for s in kernel.signatures)
            for kernel in candidates.kernels
        ]
        problem = kernel_problem(
            candidates.kernels, costs, candidates.forms, candidates.roots
        )
        choice = self._solve(problem, method, seconds)
        if method == "ilp":
            self.bounds[name] = max(choice.bound, self.bounds.get(name, 0.0))
            if choice.status != "optimal":
                # Where the time did not suffice, local search may have been luckier.
                other = self._solve(problem, "search", min(seconds / 3, MOST_SEARCH))
                choice = min(choice, other, key=_cost)
        if choice.status != "optimal" and name in self.bounds:
            # What was planned before may be better still. Costs only rise as they become
            # known, so the last bound holds as well.
            if name in self.found:
                choice = min(choice, again(*self.found[name], problem), key=_cost)
            bound = min(self.bounds[name], choice.cost)
            choice = replace(choice, method="ilp", bound=bound, status="timed out")
        return problem, choice

    def _solve(self, problem: Problem, method: str, seconds: float) -> Choice:
        graph = problem.egraph
        return extract(graph, method=method, seconds=seconds, seed=self.seed, workers=1)


def _cost(choice: Choice) -> float:
    return choice.cost

"""Generation from end to end: size by size, enumerate, close under laws, prune, minimise.

A size begins with what the laws of the sizes before say about all its terms at once (see
`rulesets.closure`). What they leave open is looked at in chunks, the simplest first; a law
that is kept is applied to all terms again, so that its instances are never looked at.

Everything finished is a file in the state folder: ``chunk-S-N.json`` what became of some
candidates of size S, ``size-S.json`` the numbers of a size, ``laws.toml`` and
``counts.json`` the result. Each is written in one step, so a killed run continues where it
was and writes nothing twice.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from rulesets.bank import Bank
from rulesets.candidates import Open, mergeable, open_equations, simplicity, widest
from rulesets.closure import Closure
from rulesets.elsewhere import Elsewhere
from rulesets.enumerate import Layer, layer
from rulesets.equation import Equation, without_instances
from rulesets.errors import RulesetsError
from rulesets.family import Family
from rulesets.ground_json import from_json, to_json
from rulesets.law import Law
from rulesets.merge_outputs import merging_laws
from rulesets.minimize import (
    Derivable,
    Outcome,
    Prove,
    minimize,
    proof_line,
    proved_text,
    prune,
)
from rulesets.parallel import Workers
from rulesets.rule import Rule
from rulesets.store import parse_file
from rulesets.verify import Verdict

CHUNK = 32
"""Candidates in one state file."""

PROVED = frozenset({"all-sizes", "at-sizes"})

type Progress = Callable[[str, int, int], None]
"""Called with a stage, how much is done, and how much there is (0 if unknown)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to generate.

    Attributes:
        family: The family.
        size: Largest number of operators.
        folder: The state folder.
        seed: Of the evaluation points.
        accept: Verdicts with which a rule is kept.
        sample: Take every k-th open equation of the largest size only.
        known: Rules of earlier runs; what they derive is not found again.
        widening: Whether every law is made as wide as it can be, at a price in proofs.
    """

    family: Family
    size: int
    folder: Path
    seed: int = 0
    accept: frozenset[str] = PROVED
    sample: int = 1
    known: tuple[Rule, ...] = ()
    widening: bool = False

    def key(self) -> dict[str, object]:
        """Return what must not change between runs in one folder."""
        return {
            "family": self.family.name,
            "size": self.size,
            "seed": self.seed,
            "accept": sorted(self.accept),
            "sample": self.sample,
            "known": [rule.name for rule in self.known],
            "widening": self.widening,
        }


@dataclass(frozen=True, slots=True)
class Count:
    """The numbers of one size.

    Attributes:
        size: Number of operators.
        terms: Terms evaluated.
        new: Representatives: values that no smaller term has.
        raw: Equations found.
        open: What the laws of smaller sizes leave open of them, up to renaming.
        candidates: Of these, what was looked at: in general form, true at other sizes,
            and not an instance of a law kept meanwhile.
        derived: Candidates that follow from laws kept before.
        refused: Candidates that were not proved.
        kept: Proved laws that did not follow and remain after minimising.
    """

    size: int
    terms: int
    new: int
    raw: int
    open: int
    candidates: int = 0
    derived: int = 0
    refused: int = 0
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Generated:
    """The result.

    Attributes:
        laws: The minimal set.
        counts: The numbers of each size.
        refused: Candidates that were not proved, with the reason.
        merges: Rules with two roots.
    """

    laws: tuple[Law, ...]
    counts: tuple[Count, ...]
    refused: tuple[Outcome, ...]
    merges: tuple[Law, ...]


def generate(
    plan: Plan, derivable: Derivable, prove: Prove, workers: Workers, progress: Progress
) -> Generated:
    """Generate laws, or continue a run that was interrupted.

    Raises:
        RulesetsError: The folder holds another plan.
    """
    plan.folder.mkdir(parents=True, exist_ok=True)
    _check_plan(plan)
    run = _Run(plan, derivable, prove, workers, progress)
    with workers.session():
        run.search()
    outcomes = [one for size in range(1, plan.size + 1) for one in run.outcomes(size)]
    laws = [one.law for one in outcomes if one.law is not None]
    least = _least(plan, laws, derivable, progress)
    names = {one.name for one in least}
    table = tuple(run.count(size, names) for size in range(1, plan.size + 1))
    write(
        plan.folder / "counts.json", json.dumps([_fields(one) for one in table], indent=1)
    )
    refused = tuple(one for one in outcomes if one.status in ("refused", "unwritable"))
    return Generated(tuple(least), table, refused, _merges(plan, prove, workers))


def _check_plan(plan: Plan) -> None:
    file = plan.folder / "plan.json"
    if not file.exists():
        write(file, json.dumps(plan.key()))
        return
    found = json.loads(file.read_text())
    if found != plan.key():
        raise RulesetsError(
            f"{plan.folder} holds the run {found}; asked for {plan.key()}; "
            "use another folder or remove it"
        )


def write(path: Path, text: str) -> None:
    """Write a file in one step: a killed run leaves the old one or the new one."""
    part = path.with_suffix(path.suffix + f".{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


# -- the search --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Run:
    """One run: a plan and what decides."""

    plan: Plan
    derivable: Derivable
    prove: Prove
    workers: Workers
    progress: Progress

    def search(self) -> None:
        """Do the sizes that have no file yet."""
        sizes = range(1, self.plan.size + 1)
        if all(self._file(size).exists() for size in sizes):
            return
        bank = Bank(self.plan.family, self.plan.seed)
        elsewhere = Elsewhere(bank)
        laws: list[Law] = []
        for size in sizes:
            smaller, last = len(bank.terms), size == self.plan.size
            elsewhere.extend()
            found = layer(
                bank, size, last=last, progress=partial(self._told, f"size {size}: terms")
            )
            if not self._file(size).exists():
                closure = Closure(bank, found, smaller, elsewhere)
                self._size(bank, found, closure, laws)
            laws += [one.law for one in self.outcomes(size) if one.law is not None]

    def _size(
        self, bank: Bank, found: Layer, closure: Closure, kept: Sequence[Law]
    ) -> None:
        """Look at what the laws kept so far leave open of one size."""
        plan, size = self.plan, found.size
        rules = [*plan.known, *(rule for one in kept for rule in one.rules)]
        closure.saturate(rules)
        sample = plan.sample if size == plan.size else 1
        told = partial(self._told, f"size {size}: open")
        waiting = open_equations(plan.family, closure, sample, told)
        count = Count(size, found.terms, found.new, len(found.lhs), len(waiting))
        merges = list(map(to_json, mergeable(bank, found)))
        self._chunks(size, closure, waiting, list(kept))
        write(self._file(size), json.dumps({"count": _fields(count), "merges": merges}))

    def _chunks(
        self, size: int, closure: Closure, waiting: list[Open], laws: list[Law]
    ) -> None:
        """Prune chunk after chunk; each law that is kept closes more."""
        whole, seen, number = len(waiting), set[Equation](), 0
        while waiting:
            chunk, waiting = self._next(waiting, seen)
            if not chunk:
                break
            file = self.plan.folder / f"chunk-{size}-{number}.json"
            if not file.exists():
                made = prune(
                    chunk,
                    laws,
                    sizes=self.plan.family.sizes,
                    derivable=self.derivable,
                    prove=self.prove,
                    accept=self.plan.accept,
                    workers=self.workers,
                    known=self.plan.known,
                    widening=self.plan.widening,
                )
                write(file, json.dumps([_outcome(one) for one in made]))
            new = [one.law for one in _read_outcomes(file) if one.law is not None]
            laws += new
            number += 1
            if new and waiting:
                closure.saturate([rule for one in new for rule in one.rules])
                apart = closure.apart(np.array([one.node for one in waiting]))
                waiting = [w for w, still in zip(waiting, apart, strict=True) if still]
            self.progress(f"size {size}: prune", whole - len(waiting), whole)

    def _next(
        self, waiting: list[Open], seen: set[Equation]
    ) -> tuple[list[Equation], list[Open]]:
        """Return the next candidates, and what waits behind them."""
        chunk: dict[Equation, None] = {}
        for place, one in enumerate(waiting):
            found = widest(self.plan.family, one.equation)
            if found is not None and found not in seen:
                seen.add(found)
                chunk[found] = None
                if len(chunk) == CHUNK:
                    return _ordered(chunk), waiting[place + 1 :]
        return _ordered(chunk), []

    def _told(self, stage: str, done: int) -> None:
        self.progress(stage, done, 0)

    # -- files ---------------------------------------------------------------------------

    def _file(self, size: int) -> Path:
        return self.plan.folder / f"size-{size}.json"

    def outcomes(self, size: int) -> list[Outcome]:
        """Return what became of the candidates of a size."""
        files = self.plan.folder.glob(f"chunk-{size}-*.json")
        ordered = sorted(files, key=lambda file: int(file.stem.rpartition("-")[2]))
        return [one for file in ordered for one in _read_outcomes(file)]

    def count(self, size: int, names: set[str]) -> Count:
        """Return the numbers of a size, given the names of the laws that remain."""
        count = Count(**json.loads(self._file(size).read_text())["count"])
        mine = self.outcomes(size)
        return replace(
            count,
            candidates=len(mine),
            derived=sum(one.status == "derived" for one in mine),
            refused=sum(one.status in ("refused", "unwritable") for one in mine),
            kept=sum(one.law is not None and one.law.name in names for one in mine),
        )


def _ordered(chunk: Mapping[Equation, None]) -> list[Equation]:
    return sorted(without_instances(chunk), key=simplicity)


def _outcome(one: Outcome) -> dict[str, object]:
    texts = list(one.law.texts) if one.law else []
    name = one.law.name if one.law else ""
    equation = to_json(one.equation)
    return {
        "status": one.status,
        "equation": equation,
        "name": name,
        "texts": texts,
        "reason": one.reason,
    }


def _read_outcomes(file: Path) -> Iterator[Outcome]:
    for value in json.loads(file.read_text()):
        equation = from_json(value["equation"])
        texts, made = tuple(value["texts"]), None
        if texts:
            rules = tuple(r for text in texts for r in parse_file(text, "generated.toml"))
            made = Law(value["name"], equation, texts, rules)
        yield Outcome(equation, value["status"], made, value["reason"])


def _fields(count: Count) -> dict[str, int]:
    return {name: getattr(count, name) for name in Count.__slots__}


# -- the result --------------------------------------------------------------------------


def _least(
    plan: Plan, laws: Sequence[Law], derivable: Derivable, progress: Progress
) -> list[Law]:
    """The minimal set, from ``laws.json`` if it is there."""
    file = plan.folder / "laws.json"
    if not file.exists():
        done = 0

        def step() -> None:
            nonlocal done
            done += 1
            progress("minimise", done, len(laws))

        least = minimize(
            laws,
            sizes=plan.family.sizes,
            derivable=derivable,
            known=plan.known,
            progress=step,
        )
        write(plan.folder / "laws.toml", "\n".join(t for one in least for t in one.texts))
        write(file, json.dumps([one.name for one in least]))
    names = set(json.loads(file.read_text()))
    return [one for one in laws if one.name in names]


def _proved_merge(prove: Prove, made: Law) -> tuple[str, Verdict]:
    return proved_text(made.texts[0], made.rules[0], prove)


def _merges(plan: Plan, prove: Prove, workers: Workers) -> tuple[Law, ...]:
    """The proved rules with two roots, from ``merges.json`` if it is there."""
    file = plan.folder / "merges.json"
    if not file.exists():
        equations = [
            from_json(one)
            for size in range(1, plan.size + 1)
            for one in json.loads((plan.folder / f"size-{size}.json").read_text())["merges"]
        ]
        found = merging_laws(equations, (), plan.family.sizes)
        proofs = workers.map(partial(_proved_merge, prove), found)
        outcomes = [
            (made, text + proof_line(verdict))
            for made, (text, verdict) in zip(found, proofs, strict=True)
            if verdict.tier in plan.accept
        ]
        write(plan.folder / "merges.toml", "\n".join(text for _, text in outcomes))
        kept = [[made.name, to_json(made.equation), text] for made, text in outcomes]
        write(file, json.dumps(kept))
    return tuple(
        Law(name, from_json(equation), (text,), parse_file(text, "generated.toml"))
        for name, equation, text in json.loads(file.read_text())
    )

"""Generation from end to end: enumerate, gather candidates, prune, minimise, write.

Everything finished is a file in the state folder: ``layer-N.json`` holds the candidates of
a size, ``chunk-N.json`` what became of some of them, ``laws.toml`` and ``counts.json`` the
result. Each is written in one step, so a killed run continues where it was and writes
nothing twice.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rulesets.bank import Bank
from rulesets.candidates import candidates, simplicity
from rulesets.enumerate import layer
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

CHUNK = 64
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
        sample: Take every k-th equation of the largest size only.
        known: Rules of earlier runs; what they derive is not found again.
    """

    family: Family
    size: int
    folder: Path
    seed: int = 0
    accept: frozenset[str] = PROVED
    sample: int = 1
    known: tuple[Rule, ...] = ()

    def key(self) -> dict[str, object]:
        """Return what must not change between runs in one folder."""
        return {
            "family": self.family.name,
            "size": self.size,
            "seed": self.seed,
            "accept": sorted(self.accept),
            "sample": self.sample,
            "known": [rule.name for rule in self.known],
        }


@dataclass(frozen=True, slots=True)
class Count:
    """The numbers of one size.

    Attributes:
        size: Number of operators.
        terms: Terms evaluated.
        new: Representatives: values that no smaller term has.
        raw: Equations found.
        distinct: Up to renaming and orientation.
        candidates: Without instances, and true at other sizes.
        tested: Of these, how many were tried (fewer in a sample).
        derived: Followed from laws kept before.
        kept: Proved laws that did not.
        refused: Not proved.
    """

    size: int
    terms: int
    new: int
    raw: int
    distinct: int
    candidates: int
    tested: int = 0
    derived: int = 0
    kept: int = 0
    refused: int = 0


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
    counts = enumerated(plan, progress)
    chosen = _chosen(plan)
    outcomes = _pruned(plan, chosen, derivable, prove, workers, progress)
    laws = [one.law for one in outcomes if one.law is not None]
    least = _least(plan, laws, derivable, progress)
    table = tuple(_counted(count, plan.size, outcomes, least) for count in counts)
    write(
        plan.folder / "counts.json", json.dumps([_fields(one) for one in table], indent=1)
    )
    refused = tuple(one for one in outcomes if one.status in ("refused", "unwritable"))
    return Generated(tuple(least), table, refused, _merges(plan, prove))


def _merges(plan: Plan, prove: Prove) -> tuple[Law, ...]:
    """The proved rules with two roots, from ``merges.json`` if it is there."""
    file = plan.folder / "merges.json"
    if not file.exists():
        outcomes = []
        for made in merging_laws(_found(plan), (), plan.family.sizes):
            text, verdict = proved_text(made.texts[0], made.rules[0], prove)
            if verdict.tier in plan.accept:
                outcomes.append((made, text + proof_line(verdict)))
        write(plan.folder / "merges.toml", "\n".join(text for _, text in outcomes))
        kept = [[made.name, to_json(made.equation), text] for made, text in outcomes]
        write(file, json.dumps(kept))
    return tuple(
        Law(name, from_json(equation), (text,), parse_file(text, "generated.toml"))
        for name, equation, text in json.loads(file.read_text())
    )


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


# -- candidates --------------------------------------------------------------------------


def enumerated(plan: Plan, progress: Progress) -> list[Count]:
    """Enumerate the sizes that have no file yet; return the numbers of all sizes."""
    files = [plan.folder / f"layer-{size}.json" for size in range(1, plan.size + 1)]
    if not all(file.exists() for file in files):
        bank = Bank(plan.family, plan.seed)
        for size, file in enumerate(files, 1):
            _enumerate(bank, size, file, plan, progress)
    return [Count(**json.loads(file.read_text())["count"]) for file in files]


def _enumerate(bank: Bank, size: int, file: Path, plan: Plan, progress: Progress) -> None:
    last = size == plan.size
    stage = f"size {size}: terms"
    found = layer(bank, size, last=last, progress=lambda done: progress(stage, done, 0))
    if file.exists():
        return
    stage = f"size {size}: equations"
    sample = plan.sample if last else 1
    result = candidates(bank, found, sample, lambda done: progress(stage, done, 0))
    count = Count(
        size, found.terms, found.new, result.raw, result.distinct, len(result.equations)
    )
    content = {"count": _fields(count), "equations": list(map(to_json, result.equations))}
    write(file, json.dumps(content))


def _chosen(plan: Plan) -> list[Equation]:
    """All candidates in order, without instances of one another."""
    found = _found(plan)
    return sorted(without_instances(dict.fromkeys(found)), key=simplicity)


def _found(plan: Plan) -> list[Equation]:
    """The candidates of all sizes."""
    texts = [
        (plan.folder / f"layer-{size}.json").read_text() for size in range(1, plan.size + 1)
    ]
    return [from_json(one) for text in texts for one in json.loads(text)["equations"]]


# -- pruning -----------------------------------------------------------------------------


def _pruned(
    plan: Plan,
    chosen: Sequence[Equation],
    derivable: Derivable,
    prove: Prove,
    workers: Workers,
    progress: Progress,
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    kept: list[Law] = []
    with workers.session():
        for start in range(0, len(chosen), CHUNK):
            file = plan.folder / f"chunk-{start // CHUNK}.json"
            chunk = chosen[start : start + CHUNK]
            if not file.exists():
                made = prune(
                    chunk,
                    kept,
                    sizes=plan.family.sizes,
                    derivable=derivable,
                    prove=prove,
                    accept=plan.accept,
                    workers=workers,
                    known=plan.known,
                )
                write(file, json.dumps([_outcome(one) for one in made]))
            read = _read_outcomes(json.loads(file.read_text()), chunk)
            outcomes += read
            kept += [one.law for one in read if one.law is not None]
            progress("prune", start + len(chunk), len(chosen))
    return outcomes


def _outcome(one: Outcome) -> dict[str, object]:
    texts = list(one.law.texts) if one.law else []
    name = one.law.name if one.law else ""
    return {"status": one.status, "name": name, "texts": texts, "reason": one.reason}


def _read_outcomes(
    values: Sequence[Mapping[str, object]], chunk: Sequence[Equation]
) -> list[Outcome]:
    result = []
    for value, equation in zip(values, chunk, strict=True):
        texts = tuple(map(str, value["texts"]))  # type: ignore[call-overload]
        made = None
        if texts:
            rules = tuple(r for text in texts for r in parse_file(text, "generated.toml"))
            made = Law(str(value["name"]), equation, texts, rules)
        result.append(Outcome(equation, value["status"], made, str(value["reason"])))  # type: ignore[arg-type]
    return result


def _least(
    plan: Plan, laws: Sequence[Law], derivable: Derivable, progress: Progress
) -> list[Law]:
    """The minimal set, from ``laws.toml`` if it is there."""
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


def _counted(
    count: Count, last: int, outcomes: Sequence[Outcome], least: Sequence[Law]
) -> Count:
    """Fill in what pruning did; a law made more general may be larger than its layer."""

    def here(equation: Equation) -> bool:
        return min(max(equation.size, 1), last) == count.size

    mine = [one for one in outcomes if here(one.equation)]
    fields = _fields(count)
    fields["tested"] = len(mine)
    fields["derived"] = sum(one.status == "derived" for one in mine)
    fields["kept"] = sum(here(one.equation) for one in least)
    fields["refused"] = sum(one.status in ("refused", "unwritable") for one in mine)
    return Count(**fields)


def _fields(count: Count) -> dict[str, int]:
    return {name: getattr(count, name) for name in Count.__slots__}

"""Commands about finding rules: ``generate``, ``prune`` and ``derive``.

Derivability is decided in the e-graph, which is tensat's. The packages import one way, so
the test is looked up by name here and passed in; without tensat these commands say so.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from rulesets.corpus import Read
from rulesets.corpus import read as read_corpus
from rulesets.equation import Equation
from rulesets.errors import OperatorError, RuleError, RulesetsError
from rulesets.families import FAMILIES, family_of
from rulesets.generate import PROVED, Count, Plan, generate, write
from rulesets.ground import shape_of
from rulesets.instantiate import instantiate
from rulesets.law_file import with_laws, worth_shipping
from rulesets.parallel import BACKENDS, Workers
from rulesets.rule import Rule
from rulesets.store import load, parse_file
from rulesets.verify import verify

TEST = "tensat.derive"
"""Where the derivability test is."""

BAD_ARGUMENTS = 2

PROOF = 3.0
"""Seconds of processor time for a candidate; a shipped law is proved again by ``audit``."""

console = Console()

Family = Annotated[str, typer.Option(help=f"one of {', '.join(FAMILIES)}")]
Jobs = Annotated[int, typer.Option(help="processes on this machine")]
Backend = Annotated[str, typer.Option(help=f"one of {', '.join(BACKENDS)}")]
Scheduler = Annotated[str, typer.Option(metavar="HOST:PORT", help="of a dask scheduler")]
RuleFiles = Annotated[
    list[Path] | None,
    typer.Option("--rules", help="rule files or folders; default: all that are shipped"),
]
Rounds = Annotated[int, typer.Option(help="steps of saturation")]


def add_commands(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command("generate")(generate_command)
    app.command("prune")(prune_command)
    app.command("derive")(derive_command)


@contextmanager
def faults() -> Iterator[None]:
    """Print an error of ours in one line instead of a traceback."""
    try:
        yield
    except RulesetsError as error:
        console.print(f"[red]{error}[/red]", highlight=False)
        raise typer.Exit(BAD_ARGUMENTS) from error


def derivability() -> Any:
    """Return the module that decides derivability.

    Raises:
        RulesetsError: It is not installed.
    """
    try:
        return import_module(TEST)
    except ImportError as error:
        raise RulesetsError(f"derivability needs {TEST}, which is not installed") from error


@contextmanager
def _bars() -> Iterator[Callable[[str, int, int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as bars:
        tasks: dict[str, Any] = {}

        def progress(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total or None)
            bars.update(tasks[stage], completed=done, total=total or None)

        yield progress


def generate_command(
    family: Family = "linear",
    size: Annotated[int, typer.Option(min=1, help="most operators of a side")] = 3,
    jobs: Jobs = 1,
    backend: Backend = "processes",
    scheduler: Scheduler = "",
    folder: Annotated[
        Path | None, typer.Option(help="state; a killed run continues from it")
    ] = None,
    sample: Annotated[
        int, typer.Option(min=1, help="take every k-th equation of the largest size only")
    ] = 1,
    seed: Annotated[int, typer.Option(help="of the evaluation points")] = 0,
    known: Annotated[
        list[Path] | None,
        typer.Option("--known", help="rule files; what they derive is not found again"),
    ] = None,
    widen: Annotated[
        bool, typer.Option("--widen", help="make each law as wide as it can be; slow")
    ] = False,
    seconds: Annotated[float, typer.Option(help="that one proof may take")] = PROOF,
    laws_file: Annotated[
        Path | None, typer.Option("--laws", help="a file of laws to put the result into")
    ] = None,
    about: Annotated[
        list[str] | None,
        typer.Option(help="with --laws: put in laws with one of these operators only"),
    ] = None,
) -> None:
    """Enumerate terms and keep the proved laws that smaller ones do not derive."""
    with faults():
        place = folder or Path(f"generated-{family}-{size}")
        rules = tuple(_given(known)) if known else ()
        plan = Plan(family_of(family), size, place, seed, PROVED, sample, rules, widen)
        prove = partial(verify, seconds=seconds)
        workers = Workers(jobs, backend, scheduler)
        with _bars() as progress:
            result = generate(plan, derivability().derivable, prove, workers, progress)
        _show_counts(result.counts)
        if laws_file is not None:
            before = laws_file.read_text(encoding="utf-8") if laws_file.exists() else ""
            texts = [text for one in result.laws for text in one.texts]
            kept = worth_shipping(texts, about or ())
            write(laws_file, with_laws(before, family, size, kept))
        console.print(f"{len(result.laws)} laws in {place / 'laws.toml'}")
        console.print(
            f"{len(result.merges)} rules with two roots in {place / 'merges.toml'}"
        )


def _show_counts(counts: tuple[Count, ...]) -> None:
    table = Table(*(name for name in Count.__slots__))
    for count in counts:
        table.add_row(*(f"{getattr(count, name):,}" for name in Count.__slots__))
    console.print(table)


def prune_command(
    file: Annotated[Path, typer.Argument(help="a rule file")],
    rules: RuleFiles = None,
    rounds: Rounds = 4,
) -> None:
    """Say which rules of a file the others (of it, and given) derive; fewest kept."""
    with faults():
        engine = derivability()
        mine = parse_file(file.read_text(encoding="utf-8"), file.name)
        given = list(_given(rules)) if rules else []
        kept = list(mine)
        for rule in reversed(mine):
            others = given + [one for one in kept if one is not rule]
            if _rule_derived(engine, rule, others, rounds):
                kept.remove(rule)
        for rule in mine:
            mark = "kept   " if rule in kept else "derived"
            console.print(f"{mark} {rule.name}", highlight=False)
        console.print(f"{len(kept)} of {len(mine)} kept")


def _rule_derived(engine: Any, rule: Rule, others: list[Rule], rounds: int) -> bool:
    try:
        made = instantiate(rule)
    except (RuleError, OperatorError):
        return False
    return all(
        engine.derive(one, others, {}, rounds=rounds, constants=made.constants).derived
        for one in made.equations
    )


def derive_command(
    file: Annotated[Path, typer.Argument(help="published equations, or a rule file")],
    rules: RuleFiles = None,
    rounds: Rounds = 4,
    report: Annotated[Path | None, typer.Option(help="JSON: one record each")] = None,
) -> None:
    """Say which equations of a file follow from rules within some rounds, and which not."""
    with faults():
        engine = derivability()
        known = tuple(_given(rules))
        records = []
        with _bars() as progress:
            found = list(_equations(file))
            for done, (text, equation, reason, constants) in enumerate(found, 1):
                record: dict[str, object] = {"equation": text, "reason": reason}
                if equation is not None:
                    result = engine.derive(
                        equation, known, {}, rounds=rounds, constants=constants
                    )
                    record |= {"rounds": result.rounds, "stop": result.stop}
                records.append(record)
                progress("derive", done, len(found))
        _show_derived(records, len(known))
        if report is not None:
            write(report, json.dumps(records, indent=1))


def _show_derived(records: list[dict[str, object]], rules: int) -> None:
    for record in records:
        if record.get("rounds") is None:
            why = record["reason"] or record.get("stop")
            console.print(f"not derived ({why}): {record['equation']}", highlight=False)
    counted = Counter(record.get("rounds") for record in records)
    table = Table("rounds", "equations")
    for rounds in sorted(each for each in counted if isinstance(each, int)):
        table.add_row(str(rounds), str(counted[rounds]))
    table.add_row("not derived", str(counted[None]))
    console.print(table)
    console.print(f"{len(records) - counted[None]} of {len(records)} from {rules} rules")


def _equations(
    file: Path,
) -> Iterator[tuple[str, Equation | None, str, frozenset[str]]]:
    """Yield text, equation or None with a reason, and the names of constants."""
    text = file.read_text(encoding="utf-8")
    none: frozenset[str] = frozenset()
    if file.suffix != ".toml":
        for one in read_corpus(text, file.name):
            if isinstance(one, Read):
                yield one.source.text, one.equation, "", none
            else:
                yield one[0].text, None, one[1], none
        return
    for rule in parse_file(text, file.name):
        try:
            made = instantiate(rule)
            for equation in made.equations:
                shape_of(equation.lhs)
                yield rule.name, equation, "", made.constants
        except (RuleError, OperatorError) as error:
            yield rule.name, None, str(error), none


def _given(paths: list[Path] | None) -> Iterator[Rule]:
    if paths is None:
        yield from load()
        yield from laws()
        return
    for path in paths:
        if path.is_dir():
            yield from load(path)
        else:
            yield from parse_file(path.read_text(encoding="utf-8"), path.name)


def laws() -> tuple[Rule, ...]:
    """Return the shipped laws: what is true, in every direction, not what pays."""
    folder = Path(__file__).parent / "data" / "laws"
    return load(folder) if folder.exists() else ()

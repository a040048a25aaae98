"""The commands of `python -m rulesets`: list, show, verify, audit, and generation."""

from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from rulesets import audit as auditing
from rulesets import deviation, manifest
from rulesets.condition import describe
from rulesets.errors import RulesetsError
from rulesets.ops import extended, operators_of
from rulesets.rule import Rule
from rulesets.store import load, parse_file
from rulesets.verify import Verdict, verify

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)
console = Console()

Folder = Annotated[Path | None, typer.Option(help="of rule files; default: those shipped")]
Seconds = Annotated[float, typer.Option(help="that one proof may take")]
Jobs = Annotated[int, typer.Option(help="processes on this machine")]


def folder_of(folder: Path | None) -> Path:
    """Return a folder of rule files, by default the shipped one."""
    return folder if folder is not None else Path(str(files("rulesets"))) / "data"


@app.command("list")
def list_command(folder: Folder = None) -> None:
    """List the rules with what is known about them."""
    table = Table("rule", "family", "verdict", "ranks", "float", "origin")
    for rule in load(folder_of(folder)):
        said = (rule.verdict, rule.ranks, rule.float_tag, str(rule.origin or ""))
        table.add_row(rule.name, rule.family, *said)
    console.print(table)


@app.command("show")
def show_command(name: str, folder: Folder = None, seconds: Seconds = 10) -> None:
    """Show one rule: conditions in English, and the verdict found now."""
    rules = {rule.name: rule for rule in load(folder_of(folder))}
    if name not in rules:
        near = [each for each in rules if name.lower() in each.lower()][:5]
        console.print(f"no rule {name!r}; near: {', '.join(near) or 'none'}")
        raise typer.Exit(2)
    rule = rules[name]
    console.print(f"[bold]{rule.name}[/bold] ({rule.family}, {rule.float_tag})")
    for condition in rule.where:
        console.print(f"  if {describe(condition)}")
    if rule.note:
        console.print(f"  note: {rule.note}")
    if rule.origin is not None:
        console.print(f"  origin: {rule.origin}", markup=False)
    measured = deviation.load_deviations().get(name) if folder is None else None
    if measured is not None:
        console.print(
            f"  float32: {measured.sides:.1e} between the sides, "
            f"{measured.float64:.1e} from float64 (relative to the largest value)"
        )
    _print(rule, verify(rule, seconds=seconds))


@app.command("verify")
def verify_command(
    file: Path,
    seconds: Seconds = 10,
    operators: Annotated[
        Path | None, typer.Option(metavar="FILE.py", help="operators specified here")
    ] = None,
) -> None:
    """Verify the rules of a file; exit code 1 if one is not proved."""
    proved = True
    try:
        with extended(*(operators_of(str(operators)) if operators else ())):
            for rule in parse_file(file.read_text(encoding="utf-8"), file.name):
                verdict = verify(rule, seconds=seconds)
                proved = proved and verdict.proved
                _print(rule, verdict)
    except (OSError, RulesetsError) as error:
        console.print(str(error), markup=False)
        raise typer.Exit(2) from error
    raise typer.Exit(0 if proved else 1)


@app.command("audit")
def audit_command(
    folder: Folder = None,
    jobs: Jobs = 2,
    seconds: Seconds = 10,
    deep: Annotated[bool, typer.Option(help="go on to higher ranks")] = False,
    write: Annotated[bool, typer.Option(help="write the verdicts; deep")] = False,
) -> None:
    """Prove every rule again; exit code 1 if one fails or a better verdict is kept."""
    place = folder_of(folder)
    rules = load(place)
    results = []
    found = auditing.audit(rules, jobs=jobs, seconds=seconds, deep=deep or write)
    for result in track(found, "proving", total=len(rules), console=console):
        results.append(result)  # noqa: PERF402
    _summary(results)
    rows = auditing.by_row(results)
    if write:
        auditing.write(place, rows)
        manifest.write(place / manifest.FILE, manifest.manifest_of(place))
    worse, better = auditing.differences(load(place), rows)
    for text in (*worse, *better):
        console.print(text)
    unproved = [rule for rule, verdict in results if not verdict.proved]
    raise typer.Exit(1 if worse or unproved else 0)


def _summary(results: Sequence[tuple[Rule, Verdict]]) -> None:
    for rule, verdict in results:
        if verdict.tier != "all-sizes":
            _print(rule, verdict)
    families = sorted({rule.family for rule, _ in results})
    tiers = list(dict.fromkeys(verdict.tier for _, verdict in results))
    table = Table("family", *tiers)
    for family in families:
        count = Counter(verdict.tier for rule, verdict in results if rule.family == family)
        table.add_row(family, *(str(count[tier]) for tier in tiers))
    console.print(table)


def _print(rule: Rule, verdict: Verdict) -> None:
    console.print(
        f"{rule.name}: {verdict.tier} {verdict.ranks} ({verdict.seconds:.2f} s) "
        f"{verdict.reason}",
        markup=False,
    )
    for condition in verdict.conditions:
        console.print(f"  needs {condition}", markup=False)
    if verdict.counterexample is not None:
        console.print(f"  counterexample: {verdict.counterexample}", markup=False)


def main() -> None:
    """Run the commands."""
    from rulesets import cli_generate, cli_origins, cli_records

    cli_generate.add_commands(app)
    cli_origins.add_command(app)
    cli_records.add_commands(app)
    try:
        app()
    except RulesetsError as error:
        console.print(f"rulesets: {error}", markup=False)
        raise SystemExit(2) from None

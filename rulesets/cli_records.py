"""Commands that renew what is recorded beside the rules.

``refute`` counterexamples of wrong rewrites, ``measure`` rounding, ``manifest`` counts.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from rulesets import deviation, manifest, refused
from rulesets.errors import RulesetsError
from rulesets.store import load, shipped_folder

BAD_ARGUMENTS = 2
SHOWN = 10

console = Console()

Write = Annotated[bool, typer.Option("--write", help="write what is found")]


def add_commands(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command("refute")(refute_command)
    app.command("measure")(measure_command)
    app.command("manifest")(manifest_command)


def refute_command(
    file: Annotated[
        Path | None, typer.Argument(help="published equations; default: those kept")
    ] = None,
    source: Annotated[str, typer.Option(help="where FILE was published")] = "",
    write: Write = False,
) -> None:
    """Refute the known wrong rewrites again; exit code 1 if one is not, or otherwise.

    With FILE, refute what can be refuted of its equations.
    """
    place = shipped_folder() / refused.FILE
    try:
        if file is not None:
            text = file.read_text(encoding="utf-8")
            found = list(refused.refutable(text, file.name, source or file.name))
            failed = 0
        else:
            found, failed = _again()
        for row in found:
            console.print(f"{row.name}\n  {row.counterexample}", markup=False)
        if write:
            refused.write(place, found)
    except (OSError, RulesetsError) as error:
        console.print(f"[red]{error}[/red]", highlight=False)
        raise typer.Exit(BAD_ARGUMENTS) from error
    console.print(f"{len(found)} refuted, {failed} not as kept")
    raise typer.Exit(1 if failed and not write else 0)


def _again() -> tuple[list[refused.Refused], int]:
    """Refute what is kept; also count what fails or comes out otherwise."""
    rows, failed = [], 0
    kept = refused.load_refused()
    for row in track(kept, "refuting", console=console):
        found = refused.refute(row.wrong)
        if found is None:
            console.print(f"NOT refuted: {row.name}", markup=False)
            failed += 1
            continue
        failed += str(found) != row.counterexample
        rows.append(replace(row, counterexample=str(found)))
    return rows, failed


def measure_command(write: Write = False) -> None:
    """Measure again what rounding to float32 does to each shipped rule; the worst first."""
    rules = load()
    found = [(rule, deviation.measure(rule)) for rule in track(rules, console=console)]
    for rule, one in sorted(found, key=lambda pair: -pair[1].sides)[:SHOWN]:
        console.print(f"{one.sides:.1e} {rule.name} ({rule.float_tag})", markup=False)
    same = sum(not one.sides for _, one in found)
    console.print(f"{same} of {len(found)} rules have the same bits on both sides")
    if write:
        deviation.write(shipped_folder() / deviation.FILE, found)


def manifest_command(write: Write = False) -> None:
    """Compare the manifest with the files, or write it; exit code 1 if it is stale."""
    place = shipped_folder() / manifest.FILE
    versions = manifest.read(place).versions if place.exists() else {}
    found = manifest.manifest_of(versions=versions)
    if write:
        manifest.write(place, found)
    wrong = manifest.stale(manifest.read(place), found) if place.exists() else ["missing"]
    for text in wrong:
        console.print(text, markup=False)
    raise typer.Exit(1 if wrong else 0)

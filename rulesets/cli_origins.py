"""The command ``origins``: where each row written by hand comes from, found again."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from rulesets.audit import row_of
from rulesets.cli_generate import derivability, faults, laws
from rulesets.instantiate import Instantiated
from rulesets.origin import KINDS, Origin
from rulesets.rederive import Found, Sources, origin, rows, sources
from rulesets.rule import Rule
from rulesets.store import load

console = Console()

NODES, SECONDS = 4_000, 600.0
"""Limits of one derivation: e-nodes, and a wall time that none comes near."""


def add_command(app: typer.Typer) -> None:
    """Register the command."""
    app.command("origins")(origins_command)


def origins_command(
    family: Annotated[str, typer.Option(help="one file of rows; default: all")] = "",
    jobs: Annotated[int, typer.Option(help="processes on this machine")] = 2,
    write: Annotated[bool, typer.Option(help="write the origins into the rows")] = False,
) -> None:
    """Derive every row written by hand; exit code 1 if a row says another origin."""
    with faults():
        rules = load()
        known = sources(laws(), rules)
        chosen = [row for row in rows(rules, row_of) if family in ("", row[0].family)]
        found = origins_of(chosen, known, jobs)
        origins = list(track(found, "deriving", total=len(chosen), console=console))
    names = [row_of(row[0].name) for row in chosen]
    _show(chosen, origins)
    if write:
        folder = Path(__file__).parent / "data"
        write_origins(folder, dict(zip(names, origins, strict=True)))
        return
    wrong = [
        f"{name}: says {row[0].origin or 'nothing'}, found {one}"
        for name, row, one in zip(names, chosen, origins, strict=True)
        if not agrees(row[0].origin, one)
    ]
    for text in wrong:
        console.print(text, markup=False)
    raise typer.Exit(1 if wrong else 0)


def origins_of(
    chosen: Sequence[Sequence[Rule]], known: Sources, jobs: int = 1
) -> Iterator[Origin]:
    """Yield the origin of each row, in their order."""
    find = partial(found_origin, known)
    if jobs == 1:
        yield from map(find, chosen)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(find, chosen, chunksize=2)


def found_origin(known: Sources, row: Sequence[Rule]) -> Origin:
    """Return where a row comes from, by the e-graph's derivability test."""
    return origin(row, known, _derive)


def _derive(made: Instantiated, known: Sequence[Rule], rounds: int) -> Found:
    """Rounds in which all equations follow, or None and why one does not."""
    engine: Any = derivability()
    most, used = 0, dict[str, None]()
    for equation in made.equations:
        result = engine.derive(
            equation,
            known,
            {},
            rounds=rounds,
            nodes=NODES,
            seconds=SECONDS,
            constants=made.constants,
            drawn=True,
        )
        if result.rounds is None:
            return None, ()
        most = max(most, result.rounds)
        used |= dict.fromkeys(result.rules)
    return most, tuple(used)


def agrees(said: Origin | None, found: Origin) -> bool:
    """Say whether a row tells the truth; which of several laws, it may choose."""
    if said is None or said.kind != found.kind:
        return False
    return said.kind != "derived" or said.rounds == found.rounds


def _show(chosen: Sequence[Sequence[Rule]], origins: Sequence[Origin]) -> None:
    table = Table("file", "rows", *KINDS)
    pairs = [(row[0].family, one.kind) for row, one in zip(chosen, origins, strict=True)]
    counted = Counter(pairs)
    for family in dict.fromkeys(name for name, _ in pairs):
        counts = [counted[family, kind] for kind in KINDS]
        table.add_row(family, str(sum(counts)), *map(str, counts))
    total = Counter(kind for _, kind in pairs)
    table.add_row("all", str(len(pairs)), *(str(total[kind]) for kind in KINDS))
    console.print(table)
    for row, one in zip(chosen, origins, strict=True):
        if one.kind == "left":
            console.print(f"{row_of(row[0].name)}: {one}", markup=False)


def write_origins(folder: Path, origins: Mapping[str, Origin]) -> None:
    """Write origins into the rule files of a folder, each behind its row's proof."""
    for path in sorted(folder.glob("*.toml")):
        lines = path.read_text(encoding="utf-8").split("\n")
        path.write_text("\n".join(_written(lines, origins)), encoding="utf-8")


def _written(lines: Iterable[str], origins: Mapping[str, Origin]) -> Iterator[str]:
    row = ""
    for line in lines:
        name = re.match(r'name\s*=\s*"([^"]*)"', line)
        if name is not None:
            row = name[1]
        if row in origins and re.match(r"origin\s*=", line):
            continue
        yield line
        if row in origins and re.match(r"proof\s*=", line):
            yield f"origin = {origins[row].table()}"

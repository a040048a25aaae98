"""The commands `tensat costs …`: measured costs are made, shown, moved and removed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tensat.cli_errors import check_folder, errors_in_one_line
from tensat.errors import ModelError, UsageError
from tensat.model.put_file import put_file

if TYPE_CHECKING:
    from tensat.costs.exchange import Costs
    from tensat.costs.selection import Selection
    from tensat.costs.store import Setting

costs = typer.Typer(
    name="costs",
    help="Measured costs: measure, list, export, import, compare, clear.",
    no_args_is_help=True,
)

CostDb = Annotated[
    Path | None, typer.Option(metavar="FILE", help="measured costs; default: user's cache")
]
Source = Annotated[
    Path | None,
    typer.Option(
        "--cost-db", metavar="FILE", help="database or exported file; default: user's cache"
    ),
]
Device = Annotated[
    list[str] | None,
    typer.Option(metavar="TEXT", help="of devices with this in their name; repeatable"),
]
Runtime = Annotated[
    str, typer.Option(metavar="TEXT", help="of runtimes with this in their name")
]
Threads = Annotated[int | None, typer.Option(metavar="N", help="of this many threads")]


def add_costs_commands(app: typer.Typer) -> None:
    """Add the group of commands to a command line."""
    app.add_typer(costs)


@costs.command()
def measure(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="ONNX model")],
    input_shape: Annotated[
        list[str] | None,
        typer.Option(
            "--input-shape", metavar="NAME:1,3,224,224", help="sizes to measure for"
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(help="time for search and measuring")] = 60.0,
    threads: Annotated[int, typer.Option(help="threads that compute")] = 1,
    target: Annotated[
        str,
        typer.Option(
            metavar="portable|ort-cpu|ort-cuda", help="what will be optimized for"
        ),
    ] = "portable",
    cost: Annotated[
        str,
        typer.Option(
            metavar="cpu|cuda",
            help="what is measured; default: the device of the target",
            show_default=False,
        ),
    ] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="measure what no plan needs, too")
    ] = False,
    cost_db: CostDb = None,
    seed: Annotated[int, typer.Option(help="for random inputs and the solver")] = 0,
) -> None:
    """Measure what an optimization of MODEL needs, and store it."""
    with errors_in_one_line():
        # Imported here: --help and bad arguments need none of it.
        from tensat.check.feeds import parse_input_shapes
        from tensat.costs.store import default_path
        from tensat.measure_costs import measure_costs
        from tensat.options import Options

        options = Options(
            input_shapes=parse_input_shapes(input_shape or []),
            seconds=seconds,
            cost=cost,
            cost_db=cost_db or default_path(),
            target=target,
            measure_all=everything,
            seed=seed,
            threads=threads,
        )
        found = measure_costs(str(model), options)
        if found.reason:
            raise ModelError(f"'{model}': nothing was measured: {found.reason}")
        typer.echo(
            f"{found.known} known, {found.measured} measured, {found.refused} refused by "
            f"the runtime, {found.seconds:.1f} s in all"
        )
        if found.unsteady:
            typer.echo(
                f"{found.unsteady} varied too much to be stored; "
                "a machine with nothing else to do measures them"
            )
        if found.scaled:
            typer.echo(
                f"{found.scaled} were not measured in time; "
                "once more, or --seconds, measures them"
            )


@costs.command("list")
def list_costs(
    op: Annotated[
        str | None, typer.Option(metavar="NAME", help="of this operator only")
    ] = None,
    device: Device = None,
    runtime: Runtime = "",
    threads: Threads = None,
    most: Annotated[
        int, typer.Option(min=0, metavar="N", help="rows at most; 0: all")
    ] = 40,
    report: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="write all of it as JSON")
    ] = None,
    cost_db: Source = None,
) -> None:
    """Show what is stored, the largest costs first."""
    with errors_in_one_line():
        check_folder(report, "--json")
        found = _read(cost_db, _selection(device, runtime, threads))
        if op is not None:
            found = _of_operator(found, op)
        if report is not None:
            _put(report, _json(found))
        if str(report) != "-":
            _show(found, most)


@costs.command("export")
def export_costs(
    target: Annotated[
        Path, typer.Argument(metavar="FILE", help="text file; - writes standard output")
    ],
    device: Device = None,
    runtime: Runtime = "",
    threads: Threads = None,
    cost_db: Source = None,
) -> None:
    """Write costs as text that can be shipped and used on any machine."""
    with errors_in_one_line():
        check_folder(target, "FILE")
        from tensat.costs.exchange import to_text
        from tensat.costs.store_file import is_database

        if is_database(target):
            raise UsageError(f"FILE '{target}' is a database; a text would replace it")
        found = _read(cost_db, _selection(device, runtime, threads))
        if not found:
            raise UsageError(f"'{_path(cost_db)}' holds no costs to export")
        _put(target, to_text(found))
        if str(target) != "-":
            for where, records in found.items():
                typer.echo(f"{len(records)} costs of '{where}'")


@costs.command("import")
def import_costs(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="exported text or a database; - reads standard input"
        ),
    ],
    cost_db: CostDb = None,
) -> None:
    """Add costs that are new, or newer than those that are there; all or nothing."""
    with errors_in_one_line():
        from tensat.costs.exchange import from_text, read_costs
        from tensat.costs.store import CostStore

        if str(source) == "-":
            found = from_text(sys.stdin.buffer.read(), "standard input")
        else:
            found = read_costs(source)
        with CostStore.open(_path(cost_db)) as store:
            merged = store.merge(found)
        typer.echo(
            f"{merged.added} added, {merged.replaced} replaced by newer ones, "
            f"{merged.kept} not newer than those there"
        )


@costs.command("compare")
def compare_costs(
    first: Annotated[Path, typer.Argument(metavar="A", help="database or exported file")],
    second: Annotated[
        Path | None,
        typer.Argument(metavar="B", help="another; without it, A must hold two settings"),
    ] = None,
    device: Device = None,
    runtime: Runtime = "",
    threads: Threads = None,
) -> None:
    """Compare two recordings: the ratios of costs that both hold, and the worst of them."""
    with errors_in_one_line():
        from rich.console import Console

        from tensat.cost_tables import summary, worst
        from tensat.costs.agreement import agreement
        from tensat.costs.exchange import read_costs

        chosen = _selection(device, runtime, threads)
        files = [first] if second is None else [first, second]
        sides = []
        for file in files:
            found = read_costs(file)
            settings = _some(chosen, found, file, 2 // len(files))
            sides += [(f"{file}: {where}", found[where]) for where in settings]
        (a, of_a), (b, of_b) = sides
        found_out = agreement(of_a, of_b)
        typer.echo("\n".join(summary(a, b, found_out)))
        if found_out.pairs:
            typer.echo()
            Console().print(worst(found_out))


@costs.command()
def clear(
    device: Device = None,
    runtime: Runtime = "",
    threads: Threads = None,
    everything: Annotated[bool, typer.Option("--all", help="of all settings")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
    cost_db: CostDb = None,
) -> None:
    """Remove costs from the database."""
    with errors_in_one_line():
        chosen = _selection(device, runtime, threads)
        if bool(chosen) == everything:
            raise UsageError(
                "what is to be removed? Either --all, or --device, --runtime, --threads"
            )
        from tensat.costs.store import CostStore

        path = _path(cost_db)
        if not path.exists():
            raise UsageError(f"cost database {path}: there is no such file")
        with CostStore.open(path) as store:
            counts = store.settings()
            doomed = chosen.among(counts, path)
            for where in doomed:
                typer.echo(f"{counts[where]} costs of '{where}'")
            if doomed and not yes:
                typer.confirm(f"Remove them from '{path}'?", abort=True)
            typer.echo(f"{store.remove(doomed)} costs were removed from '{path}'")


def _selection(device: list[str] | None, runtime: str, threads: int | None) -> Selection:
    from tensat.costs.selection import Selection

    return Selection(tuple(device or ()), runtime, threads)


def _path(cost_db: Path | None) -> Path:
    from tensat.costs.store import default_path

    return default_path() if cost_db is None else cost_db


def _read(cost_db: Path | None, chosen: Selection) -> Costs:
    """The costs of the settings that are meant; none if the user has no database yet."""
    from tensat.costs.exchange import read_costs

    path = _path(cost_db)
    if cost_db is None and not path.exists():
        return {}
    found = read_costs(path)
    return {where: found[where] for where in chosen.among(found, path)}


def _some(chosen: Selection, found: Costs, path: Path, number: int) -> list[Setting]:
    """As many settings as are needed.

    Raises:
        UsageError: There are more, or fewer; the text names those that there are.
    """
    from tensat.costs.selection import names

    settings = chosen.among(found, path)
    if len(settings) != number:
        raise UsageError(
            f"'{path}' has {len(settings)} such settings, {number} needed: "
            f"{names(settings) or 'it is empty'}; --device, --runtime, --threads choose"
        )
    return settings


def _of_operator(found: Costs, op: str) -> Costs:
    from tensat.costs.signature_text import operator_of

    result = {
        where: {
            signature: record
            for signature, record in records.items()
            if operator_of(signature).casefold() == op.casefold()
        }
        for where, records in found.items()
    }
    if found and not any(result.values()):
        there = {operator_of(signature) for known in found.values() for signature in known}
        raise UsageError(
            f"no costs of '{op}'; there are some of {', '.join(sorted(there))}"
        )
    return {where: records for where, records in result.items() if records}


def _show(found: Costs, most: int) -> None:
    from rich.console import Console

    from tensat.cost_tables import listing

    if not found:
        typer.echo("no costs are stored")
    for where, records in found.items():
        typer.echo(f"{len(records)} costs of '{where}'")
        Console().print(listing(records, most))
        if 0 < most < len(records):
            typer.echo(f"… and {len(records) - most} more; --most 0 shows all")


def _json(found: Costs) -> str:
    from tensat.costs.exchange import record_fields, setting_fields

    rows = [
        {
            **setting_fields(where),
            "costs": [record_fields(*each) for each in sorted(records.items())],
        }
        for where, records in found.items()
    ]
    return json.dumps(rows, indent=1, allow_nan=False) + "\n"


def _put(path: Path, text: str) -> None:
    if str(path) == "-":
        typer.echo(text, nl=False)
    else:
        put_file(path, lambda file: file.write(text.encode()))

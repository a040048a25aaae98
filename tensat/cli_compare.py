"""The command `tensat compare MODEL…`: backtracking against extraction, in a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tensat.cli_errors import check_files, errors_in_one_line, named_as_options
from tensat.errors import UsageError
from tensat.model.put_file import put_file

if TYPE_CHECKING:
    from tensat.compare import CompareOptions
    from tensat.comparison.row import Comparison


def add_compare_command(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command("compare")(compare)


def compare(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL…",
            help="ONNX files, or networks (tensat network list); all: all networks",
        ),
    ],
    seconds: Annotated[float, typer.Option(help="time for each search")] = 20.0,
    cost: Annotated[
        str, typer.Option(metavar="roofline|cpu|cuda|table", help="where costs come from")
    ] = "roofline",
    cost_db: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="measured costs; default: user's cache"),
    ] = None,
    cost_table: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="recorded costs of any device, for --cost table"),
    ] = None,
    max_nodes: Annotated[
        int, typer.Option(help="e-nodes at which an e-graph stops")
    ] = 50_000,
    input_shape: Annotated[
        list[str] | None,
        typer.Option(
            "--input-shape", metavar="NAME:1,3,224,224", help="sizes to compare for"
        ),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="time every result against the original")
    ] = False,
    report: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="write all of it as JSON")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg|png|pdf", help="draw predicted cost over time"),
    ] = None,
    seed: Annotated[int, typer.Option(help="for random inputs and the solver")] = 0,
    threads: Annotated[int, typer.Option(help="threads for measuring")] = 1,
) -> None:
    """Compare TASO's backtracking search with greedy and exact extraction."""
    with errors_in_one_line():
        check_files({"--json": report, "--plot": plot}, models)
        # Imported here: --help and bad arguments need none of it.
        from tensat.check.feeds import parse_input_shapes
        from tensat.compare import CompareOptions
        from tensat.comparison.plot import check_plot

        if plot is not None:
            check_plot(plot)
        shapes = parse_input_shapes(input_shape or [])
        with named_as_options(CompareOptions.__slots__):
            options = CompareOptions(
                input_shapes=shapes,
                seconds=seconds,
                max_nodes=max_nodes,
                cost=cost,
                cost_db=cost_db,
                cost_table=cost_table,
                measure=measure,
                seed=seed,
                threads=threads,
            )
        found = [_show(name, options) for name in _names(models)]
        _save(found, report, plot)


def _names(models: list[str]) -> list[str]:
    """The models asked for.

    Raises:
        UsageError: One is neither a file nor a network.
    """
    from tensat.networks import NETWORKS

    names = [name for model in models for name in (NETWORKS if model == "all" else [model])]
    for name in names:
        if name not in NETWORKS and not Path(name).is_file():
            known = ", ".join((*NETWORKS, "all"))
            raise UsageError(f"'{name}' is neither a file nor a network; networks: {known}")
    return names


def _show(name: str, options: CompareOptions) -> Comparison:
    from rich.console import Console

    from tensat.compare import compare as run
    from tensat.comparison.table import render
    from tensat.networks import NETWORKS, build

    model = build(name).model() if name in NETWORKS else name
    found = run(model, options, name=name if name in NETWORKS else None)
    Console().print(render(found))
    return found


def _save(found: list[Comparison], report: Path | None, plot: Path | None) -> None:
    if report is not None:
        text = json.dumps([each.as_dict() for each in found], indent=1, allow_nan=False)
        put_file(report, lambda file: file.write(f"{text}\n".encode()))
    if plot is not None:
        from tensat.comparison.plot import draw

        draw(found, plot)

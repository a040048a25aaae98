"""The command `tensat profile MODEL`: what each kernel takes, the sum, and the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tensat.cli_errors import check_files, errors_in_one_line
from tensat.model.put_file import put_file


def add_profile_command(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command("profile")(profile)


def profile(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="ONNX model")],
    threads: Annotated[int, typer.Option(min=1, help="threads that compute")] = 1,
    every_node: Annotated[
        bool, typer.Option("--all", help="each node, not the nodes of a kernel together")
    ] = False,
    input_shape: Annotated[
        list[str] | None,
        typer.Option(
            "--input-shape", metavar="NAME:1,3,224,224", help="sizes to profile for"
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0, help="time for measuring kernels")] = 60,
    cost_db: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="measured costs; default: user's cache"),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="write all of it as JSON")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="for random inputs")] = 0,
) -> None:
    """Show what each kernel of MODEL takes, and how well the sum predicts the whole."""
    with errors_in_one_line():
        check_files({"--json": report}, [model])
        # Imported here: --help and bad arguments need none of it.
        from rich.console import Console

        from tensat.check.feeds import parse_input_shapes
        from tensat.profile import ProfileOptions
        from tensat.profile import profile as run
        from tensat.profiling.table import render

        options = ProfileOptions(
            input_shapes=parse_input_shapes(input_shape or []),
            threads=threads,
            cost_db=cost_db,
            seconds=seconds,
            seed=seed,
        )
        found = run(model, options)
        if str(report) == "-":
            typer.echo(found.to_json())
            return
        if report is not None:
            text = found.to_json()
            put_file(report, lambda file: file.write(f"{text}\n".encode()))
        Console().print(render(found, every_node))

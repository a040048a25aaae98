"""The command `tensat target MODEL`: whether a model is for this machine."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tensat.cli_errors import errors_in_one_line


def add_target_command(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command("target")(target)


def target(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="ONNX model")],
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="print the file to load and nothing else")
    ] = False,
) -> None:
    """Say whether MODEL is for this machine, and which file to load here.

    Exit status 0 if MODEL itself can be loaded, 1 if not.
    """
    with errors_in_one_line():
        # Imported here: --help needs none of it.
        from tensat.runtime import Runtime
        from tensat.target import fit, this_machine

        with Runtime() as runtime:
            found = fit(model, partial(this_machine, runtime))
    if not quiet:
        made = found.target
        if made is None:
            typer.echo("made for: any machine")
        else:
            typer.echo(
                f"made for: {made.name}, {made.kind}, ONNX Runtime {made.runtime}, "
                f"{made.processor}"
            )
        here = found.here
        facts = [here.kind, f"ONNX Runtime {here.runtime}"] if here.runtime else []
        typer.echo(", ".join([f"here: {here.name}", *facts, here.processor]))
        typer.echo(f"fits: {f'no, {found.misfit}' if found.misfit else 'yes'}")
    if found.load is None:
        typer.echo(f"load: nothing, {found.trouble}", err=quiet)
    else:
        typer.echo(str(found.load) if quiet else f"load: {found.load}")
    raise typer.Exit(1 if found.misfit else 0)

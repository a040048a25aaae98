"""The command `tensat network NAME OUT`: write one of the published networks."""

from __future__ import annotations

from typing import Annotated

import typer

from tensat.errors import TensatError, UsageError, WriteError, one_line

BAD_ARGUMENTS, BAD_RESULT = 2, 3


def add_network_command(app: typer.Typer) -> None:
    """Add the command to a command line."""
    app.command("network")(network)


def network(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="bert, resnet50, …; list shows all")
    ],
    target: Annotated[
        str, typer.Argument(metavar="OUT", help="where it goes; - writes standard output")
    ] = "-",
    batch: Annotated[int, typer.Option(metavar="N", help="size of the batch")] = 1,
    seed: Annotated[int, typer.Option(metavar="N", help="for the weights")] = 0,
) -> None:
    """Write one of the networks of the TASO and tensat papers as ONNX."""
    # Imported here: --help needs none of it.
    from tensat.networks import NETWORKS

    if name == "list":
        typer.echo("\n".join(NETWORKS))
        return
    try:
        _write(name, target, batch, seed)
    except UsageError as error:
        _fail(error, BAD_ARGUMENTS)
    except WriteError as error:
        _fail(error, BAD_RESULT)
    except TensatError as error:
        _fail(error, 1)


def _write(name: str, target: str, batch: int, seed: int) -> None:
    import sys
    from pathlib import Path

    from tensat.model.onnx_write import write, write_stream
    from tensat.networks import build

    if target != "-" and not Path(target).parent.is_dir():
        raise UsageError(f"OUT '{target}': there is no folder '{Path(target).parent}'")
    model = build(name, batch, seed).model()
    if target == "-":
        write_stream(model, sys.stdout.buffer)
    else:
        write(model, target)


def _fail(error: TensatError, code: int) -> None:
    typer.echo(f"tensat: {one_line(error, 2000)}", err=True)
    raise typer.Exit(code)

"""The command `tensat network NAME OUT`: write one of the published networks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tensat.cli_errors import check_folder, errors_in_one_line, named_as_options


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
    with errors_in_one_line():
        check_folder(Path(target), "OUT")
        with named_as_options(("batch", "seed")):
            _write(name, target, batch, seed)


def _write(name: str, target: str, batch: int, seed: int) -> None:
    import sys

    from tensat.model.onnx_write import write, write_stream
    from tensat.networks import build

    model = build(name, batch, seed).model()
    if target == "-":
        write_stream(model, sys.stdout.buffer)
    else:
        write(model, target)

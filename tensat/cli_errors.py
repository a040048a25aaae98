"""Errors of a command: one line on standard error and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from tensat.errors import ModelError, TensatError, UsageError, WriteError, one_line

BAD_ARGUMENTS, BAD_MODEL = 2, 3

MOST_TEXT = 2000
"""Characters of a line."""


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Turn our errors into one line and an exit code.

    Raises:
        typer.Exit: With 2 for bad arguments, 3 for a model that cannot be read or a result
            that cannot be written, 1 for faults of ours.
    """
    try:
        yield
    except UsageError as error:
        _fail(str(error), BAD_ARGUMENTS)
    except (ModelError, WriteError) as error:
        _fail(str(error), BAD_MODEL)
    except TensatError as error:
        _fail(f"{error} (a fault of tensat; please report it)", 1)


def check_folder(path: Path | None, what: str) -> None:
    """Make sure that a file can be put somewhere.

    Raises:
        UsageError: There is no such folder, or it is a folder itself.
    """
    if path is None or str(path) == "-":
        return
    if not path.parent.is_dir():
        raise UsageError(f"{what} '{path}': there is no folder '{path.parent}'")
    if path.is_dir():
        raise UsageError(f"{what} '{path}' is a folder; a file name is needed")


def _fail(text: str, code: int) -> None:
    typer.echo(f"tensat: {one_line(text, MOST_TEXT)}", err=True)
    raise typer.Exit(code)

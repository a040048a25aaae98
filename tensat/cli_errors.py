"""Errors of a command: one line on standard error and an exit code."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from tensat.errors import ModelError, TensatError, UsageError, WriteError, one_line
from tensat.model.put_file import is_special

BAD_ARGUMENTS, BAD_MODEL = 2, 3

MOST_TEXT = 2000
"""Characters of a line."""

_Refusal: Any = typer.BadParameter.__bases__[0]
"""What typer raises for arguments that it refuses; releases keep it in several places."""


class OneLineGroup(TyperGroup):
    """Commands whose arguments are refused in one line, as all else is."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and end the process with its exit code."""
        given = (args, prog_name, complete_var, False, windows_expand_args)
        if not standalone_mode:
            return super().main(*given, **extra)
        try:
            code = super().main(*given, **extra)
        except _Refusal as error:
            text = error.format_message()
            if "\n" in text:  # no arguments at all: the help
                error.show()
            else:
                asked = error.ctx.command_path if error.ctx else self.name
                typer.echo(f"tensat: {text.rstrip('.')}; see {asked} --help", err=True)
            sys.exit(BAD_ARGUMENTS)
        except typer.Abort:
            typer.echo("tensat: aborted", err=True)
            sys.exit(1)
        sys.exit(code or 0)


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


@contextmanager
def named_as_options(names: Collection[str]) -> Iterator[None]:
    """Let errors about parameters speak of options: `max_nodes` is `--max-nodes`.

    Args:
        names: The parameters.

    Raises:
        UsageError: Inside one was raised; what stands in quotes is left as it is.
    """
    try:
        yield
    except UsageError as error:
        pattern = rf"(?<!['\w])({'|'.join(names)})(?!['\w])"
        text = re.sub(pattern, lambda found: f"--{found[0].replace('_', '-')}", str(error))
        raise UsageError(text) from error


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


def check_files(
    files: Mapping[str, Path | None],
    models: Collection[str | Path] = (),
    *,
    replacing: str = "",
) -> None:
    """Make sure that files can be put where they are to go, and that none replaces another.

    Args:
        files: Where each goes, by what the command line calls it; None for nowhere.
        models: What is read; no file may take the place of one.
        replacing: The name in `files` of the one that may.

    Raises:
        UsageError: One cannot go there.
    """
    taken: dict[Path, str] = {}
    for what, path in files.items():
        if path is None:
            continue
        check_folder(path, what)
        if what != replacing and str(path) != "-":
            _spare(path, what, models)
        where = path if str(path) == "-" else path.resolve()
        if where in taken and not is_special(where):
            place = "standard output" if str(path) == "-" else f"'{path}'"
            raise UsageError(f"{taken[where]} and {what} cannot both be {place}")
        taken[where] = what


def _spare(path: Path, what: str, models: Collection[str | Path]) -> None:
    if not path.is_file():
        return
    for model in map(Path, models):
        if model.is_file() and path.samefile(model):
            raise UsageError(f"{what} '{path}' is the model itself; give another file")


def _fail(text: str, code: int) -> None:
    typer.echo(f"tensat: {one_line(text, MOST_TEXT)}", err=True)
    raise typer.Exit(code)

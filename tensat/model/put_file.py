"""A file appears under its name when it is complete, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from tensat.errors import WriteError

__all__ = ["is_special", "put_file"]


def is_special(path: Path) -> bool:
    """Whether a path is a device, a pipe or the like: nothing to be replaced by a file."""
    return path.exists() and not path.is_file() and not path.is_dir()


def put_file(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    """Write a file in one step.

    A link is followed, the permissions of an existing file stay, and a device or pipe is
    written to as it is.

    Args:
        path: The file.
        fill: Writes the contents to an open file.

    Raises:
        WriteError: It cannot be written; nothing half-written is left behind.
    """
    target = Path(os.path.realpath(path))
    try:
        if is_special(target):
            with target.open("wb") as file:
                fill(file)
            return
        with tempfile.TemporaryDirectory(prefix=".tensat-", dir=target.parent) as folder:
            complete = Path(folder) / target.name
            with complete.open("wb") as file:
                fill(file)
            if target.exists():
                shutil.copymode(target, complete)
            complete.replace(target)
    except OSError as error:
        raise WriteError(f"cannot write '{path}': {error.strerror or error}") from error

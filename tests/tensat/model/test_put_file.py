"""A file is written in one step, or to a device as it is."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import BinaryIO

import pytest

from tensat.errors import WriteError
from tensat.model.put_file import is_special, put_file


def _hello(file: BinaryIO) -> None:
    file.write(b"hello")


def test_a_new_file(tmp_path: Path) -> None:
    """It has its contents, and nothing lies beside it."""
    put_file(tmp_path / "new", _hello)
    assert (tmp_path / "new").read_bytes() == b"hello"
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_an_old_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    """Also where a link leads to it: the link stays a link."""
    old, link = tmp_path / "old", tmp_path / "link"
    old.write_bytes(b"a much longer text")
    old.chmod(0o640)
    link.symlink_to(old)
    put_file(link, _hello)
    assert link.is_symlink()
    assert old.read_bytes() == b"hello"
    assert stat.S_IMODE(old.stat().st_mode) == 0o640


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    """Whatever was written until then is gone."""
    old = tmp_path / "old"
    old.write_bytes(b"old")

    def full(file: BinaryIO) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(WriteError, match=r"cannot write '.*old': No space left on device"):
        put_file(old, full)
    assert old.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    """It passes through as it is."""

    def interrupted(file: BinaryIO) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        put_file(tmp_path / "new", interrupted)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    """The text names the file."""
    with pytest.raises(WriteError, match=r"cannot write '.*none/new': No such file"):
        put_file(tmp_path / "none" / "new", _hello)


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    """What is no ordinary file is never replaced by one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert is_special(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    put_file(pipe, _hello)
    reader.join(timeout=10)
    assert read == [b"hello"]
    assert is_special(pipe)


@pytest.mark.parametrize("name", ["file", "folder", "nothing"])
def test_files_and_folders_are_not_special(tmp_path: Path, name: str) -> None:
    """Nor is what does not exist."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    assert not is_special(tmp_path / name)

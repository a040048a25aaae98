"""The cost database keeps what it is given and refuses what is not its own."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tensat.costs.store import CostStore, Record, Setting, default_path
from tensat.errors import UsageError

HERE = Setting("a processor", "a runtime 1", 1)


def test_what_is_saved_is_found_by_another_opener(tmp_path: Path) -> None:
    """A record survives closing; infinity and the note come back too."""
    path = tmp_path / "new folder" / "costs.sqlite"
    no_kernel = Record(math.inf, note="no kernel")
    with CostStore.open(path) as store:
        store.save(HERE, {"a": Record(1e-6, 0.1, 9), "b": no_kernel})
    with CostStore.open(path) as store:
        found = store.find(HERE, ["a", "b", "c"])
    assert found == {"a": Record(1e-6, 0.1, 9), "b": no_kernel}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Setting("another", "a runtime 1", 1), id="device"),
        pytest.param(Setting("a processor", "a runtime 2", 1), id="runtime"),
        pytest.param(Setting("a processor", "a runtime 1", 2), id="threads"),
    ],
)
def test_a_cost_holds_in_its_setting_only(other: Setting) -> None:
    """Another device, runtime or number of threads knows nothing of it."""
    with CostStore.in_memory() as store:
        store.save(HERE, {"a": Record(1e-6)})
        assert store.find(other, ["a"]) == {}


def test_many_signatures_are_asked_at_once() -> None:
    """More signatures than one statement of SQLite may name are found all the same."""
    with CostStore.in_memory() as store:
        store.save(HERE, {str(k): Record(float(k)) for k in range(3000)})
        found = store.find(HERE, [str(k) for k in range(3000)])
    assert len(found) == 3000
    assert found["2999"].seconds == 2999.0


def test_a_damaged_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    """Bytes that are no database stay as they are."""
    path = tmp_path / "costs.sqlite"
    path.write_bytes(b"this is no database, and long enough to be looked at" * 20)
    before = path.read_bytes()
    with pytest.raises(UsageError, match=r"costs\.sqlite is damaged or no cost database"):
        CostStore.open(path)
    assert path.read_bytes() == before


def test_a_truncated_database_is_refused(tmp_path: Path) -> None:
    """A file of ours that lost its end is not used."""
    path = tmp_path / "costs.sqlite"
    with CostStore.open(path) as store:
        store.save(HERE, {f"signature number {k}": Record(1.0) for k in range(2000)})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match="left as it is"):
        CostStore.open(path)


def test_a_foreign_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    """An SQLite file of another program stays as it is."""
    path = tmp_path / "costs.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE cost (x)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(UsageError, match="an SQLite file of another program"):
        CostStore.open(path)
    assert path.read_bytes() == before


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    """The text names the path."""
    with pytest.raises(UsageError, match=r"cost database .* cannot"):
        CostStore.open(tmp_path)


def test_two_processes_write_to_one_database(tmp_path: Path) -> None:
    """Neither gets a lock error and no row is lost."""
    path = tmp_path / "costs.sqlite"
    program = """
import sys
from tensat.costs.store import CostStore, Record, Setting
with CostStore.open(sys.argv[1]) as store:
    for k in range(100):
        store.save(Setting("d", "r", 1), {f"{sys.argv[2]} {k}": Record(1.0)})
"""
    children = [
        subprocess.Popen([sys.executable, "-c", program, str(path), name]) for name in "ab"
    ]
    assert [child.wait(timeout=60) for child in children] == [0, 0]
    with CostStore.open(path) as store:
        assert len(store) == 200


def test_the_cache_folder_of_the_user_is_respected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """XDG_CACHE_HOME moves the default database; a relative one does not count."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "tensat" / "costs.sqlite"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_path().parts[-3:] == (".cache", "tensat", "costs.sqlite")
    CostStore.in_memory().close()

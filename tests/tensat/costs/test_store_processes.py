"""Processes that share one database wait for each other, and lose nothing when killed."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tensat.costs.store import CostStore, Setting

HERE = Setting("d", "r", 1)

WRITE = """
import sys
from tensat.costs.store import CostStore, Record, Setting
path, name, times, each = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
here, saved = Setting("d", "r", 1), []
for k in range(times):
    with CostStore.open(path) as store:
        for j in range(each):
            saved.append(f"{name} {k} {j}")
            store.save(here, {saved[-1]: Record(1.0), "shared": Record(float(k))})
        assert len(store.find(here, [*saved, "shared"])) == len(saved) + 1
"""

REPORT = """
import sys
from tensat.costs.store import CostStore, Record, Setting
with CostStore.open(sys.argv[1]) as store:
    for k in range(1_000_000):
        store.save(Setting("d", "r", 1), {f"{sys.argv[2]} {k}": Record(1.0)})
        print(k, flush=True)
"""


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a program in a process of its own."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def check_whole(path: Path) -> None:
    """Check that SQLite finds nothing wrong in any part of the file."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize(
    ("times", "each"),
    [
        pytest.param(1, 150, id="open for long"),
        pytest.param(50, 3, id="opened again and again"),
    ],
)
def test_processes_write_to_one_database(tmp_path: Path, times: int, each: int) -> None:
    """From a file that is not there yet on: no lock error, and no row is lost."""
    path = tmp_path / "new" / "costs.sqlite"
    children = [start(WRITE, path, name, times, each) for name in "abc"]
    assert [child.communicate(timeout=120)[0] for child in children] == [""] * 3
    assert [child.returncode for child in children] == [0] * 3
    with CostStore.open(path) as store:
        wanted = {f"{n} {k} {j}" for n in "abc" for k in range(times) for j in range(each)}
        assert set(store.records(HERE)) == {*wanted, "shared"}
    check_whole(path)
    assert [each.name for each in path.parent.iterdir()] == ["costs.sqlite"]


@pytest.mark.parametrize("number", [1, 700])
def test_a_killed_process_loses_at_most_its_last_row(tmp_path: Path, number: int) -> None:
    """All that it reported as saved is there, and another process goes on meanwhile."""
    path = tmp_path / "costs.sqlite"
    other = start(WRITE, path, "other", 20, 5)
    child = start(REPORT, path, "killed")
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(number)]
    child.send_signal(signal.SIGKILL)
    lines += child.stdout.read().splitlines(keepends=True)
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    reported = [int(line) for line in lines if line.endswith("\n")]
    with CostStore.open(path) as store:
        found = [name for name in store.records(HERE) if name.startswith("killed")]
        assert {f"killed {k}" for k in reported} <= set(found)
        assert len(found) <= len(reported) + 1
    other.communicate(timeout=120)
    assert other.returncode == 0
    with CostStore.open(path) as store:
        assert len(store) == len(found) + 20 * 5 + 1
    check_whole(path)


def test_a_database_of_format_1_is_converted_once(tmp_path: Path) -> None:
    """Several processes that open it at once all find its rows."""
    path = tmp_path / "costs.sqlite"
    with CostStore.open(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE cost DROP COLUMN crc")
        rows = [("d", "r", 1, f"old {k}", 1.0, 0.0, 1, "", 5.0) for k in range(500)]
        connection.executemany("INSERT INTO cost VALUES (?,?,?,?,?,?,?,?,?)", rows)
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
    children = [start(WRITE, path, name, 3, 3) for name in "ab"]
    assert [child.communicate(timeout=120)[0] for child in children] == [""] * 2
    assert [child.returncode for child in children] == [0] * 2
    with CostStore.open(path) as store:
        assert len(store.records(HERE)) == 500 + 2 * 9 + 1

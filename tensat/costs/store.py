"""The table of measured costs: one SQLite file that several processes may share.

Write-ahead logging lets others read while one writes; every measurement is a transaction
of its own or part of a short batch, so a process that is killed loses at most the last
ones. A file that is not ours, or is damaged, is refused and never changed.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tensat.errors import UsageError, one_line

_APPLICATION = 0x7E25A700  # in the file's header: this database is ours
_VERSION = 1
_TABLE = """
CREATE TABLE IF NOT EXISTS cost (
    device TEXT NOT NULL, runtime TEXT NOT NULL, threads INTEGER NOT NULL,
    signature TEXT NOT NULL,
    seconds REAL, spread REAL NOT NULL, runs INTEGER NOT NULL, note TEXT NOT NULL,
    measured REAL NOT NULL,
    PRIMARY KEY (device, runtime, threads, signature)
) WITHOUT ROWID
"""
_ATTEMPTS = 100
_ASK_AT_ONCE = 400  # SQLite limits the variables of one statement


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a cost holds.

    Attributes:
        device: Name of the processor.
        runtime: Name and version of the runtime.
        threads: Threads that compute.
    """

    device: str
    runtime: str
    threads: int


@dataclass(frozen=True, slots=True)
class Record:
    """One measured cost.

    Attributes:
        seconds: Infinity where the operator cannot run.
        spread: Relative spread of the repetitions.
        runs: Number of repetitions.
        note: Why it cannot run; empty otherwise.
    """

    seconds: float
    spread: float = 0.0
    runs: int = 0
    note: str = ""


def default_path() -> Path:
    """Return the user's cost database, below `XDG_CACHE_HOME` or `~/.cache`."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(folder) if os.path.isabs(folder) else Path.home() / ".cache"
    return root / "tensat" / "costs.sqlite"


class CostStore:
    """Costs by setting and signature text, in a file or in memory.

    Attributes:
        path: The file; None for memory.
    """

    def __init__(self, path: Path | None, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @staticmethod
    def open(path: str | Path, patience: float = 30.0) -> CostStore:
        """Open a database, or make one where there is no file.

        Args:
            path: The file; its folder is made.
            patience: Seconds to wait while another process writes.

        Raises:
            UsageError: The file is damaged, not a cost database, or of another version,
                or it cannot be opened.
        """
        file = Path(path)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(file, timeout=patience, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"cost database {file}: cannot open: {error}") from error
        try:
            with _explained(file):
                _prepare(connection, file)
        except BaseException:
            connection.close()
            raise
        return CostStore(file, connection)

    @staticmethod
    def in_memory() -> CostStore:
        """Return an empty store that ends with the process."""
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.execute(_TABLE)
        return CostStore(None, connection)

    @staticmethod
    def open_default() -> CostStore:
        """Open the user's database; memory if his cache folder cannot be written.

        Raises:
            UsageError: There is a file, but it is damaged or not ours.
        """
        path = default_path()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            writable = os.access(path if path.exists() else path.parent, os.W_OK)
        except OSError:
            writable = False
        return CostStore.open(path) if writable else CostStore.in_memory()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; nothing more can be asked."""
        self._connection.close()

    def find(self, setting: Setting, signatures: Sequence[str]) -> dict[str, Record]:
        """Return what is known about these signatures."""
        result: dict[str, Record] = {}
        for start in range(0, len(signatures), _ASK_AT_ONCE):
            part = signatures[start : start + _ASK_AT_ONCE]
            marks = ",".join("?" * len(part))
            question = (
                "SELECT signature, seconds, spread, runs, note FROM cost WHERE device = ? "
                f"AND runtime = ? AND threads = ? AND signature IN ({marks})"
            )
            values = (setting.device, setting.runtime, setting.threads, *part)
            with _explained(self.path):
                rows = self._connection.execute(question, values).fetchall()
            for signature, seconds, spread, runs, note in rows:
                known = math.inf if seconds is None else seconds
                result[signature] = Record(known, spread, runs, note)
        return result

    def save(self, setting: Setting, records: Mapping[str, Record]) -> None:
        """Store costs, replacing older ones of the same signatures, all or none."""
        now = time.time()
        rows = [
            (
                *(setting.device, setting.runtime, setting.threads, signature),
                None if math.isinf(record.seconds) else record.seconds,
                *(record.spread, record.runs, record.note, now),
            )
            for signature, record in records.items()
        ]
        with _explained(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(
                    "INSERT OR REPLACE INTO cost VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
                )
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def __len__(self) -> int:
        """Return the number of costs in it, of all settings."""
        with _explained(self.path):
            count: int = self._connection.execute("SELECT count(*) FROM cost").fetchone()[0]
        return count


@contextmanager
def _explained(path: Path | None) -> Iterator[None]:
    """Turn SQLite's errors into one line with the file's name."""
    try:
        yield
    except sqlite3.Error as error:
        kind = "is damaged or no cost database"
        if isinstance(error, sqlite3.OperationalError):
            kind = "cannot be used"
        text = f"cost database {path} {kind} ({one_line(error)}); it was left as it is: "
        raise UsageError(text + "name another file or move it away") from error


def _prepare(connection: sqlite3.Connection, file: Path) -> None:
    """Check that the file is ours, or empty, before anything is written to it."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if tables and application != _APPLICATION:
        text = f"cost database {file} is an SQLite file of another program; "
        raise UsageError(text + "it was left as it is: name another file")
    if tables and version != _VERSION:
        text = f"cost database {file} has format {version}, this program reads {_VERSION}; "
        raise UsageError(text + "it was left as it is: name another file")
    if tables and connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        text = f"cost database {file} is damaged; it was left as it is: "
        raise UsageError(text + "name another file or move it away")
    _log_ahead(connection)
    connection.execute("PRAGMA synchronous = NORMAL")
    if not tables:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute(_TABLE)
        connection.execute("COMMIT")


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; the switch itself does not wait for others."""
    for attempt in range(_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(0.02)
        else:
            return

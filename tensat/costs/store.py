"""The table of measured costs: one SQLite file that several processes may share.

Write-ahead logging lets others read while one writes; what is saved by one call is one
transaction, so a process that is killed loses at most what it was just saving. Each row
carries a check sum. `store_file` says how a file is made, looked at and refused.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tensat.costs.store_file import (
    INSERT,
    Row,
    check_sum,
    connect,
    connect_to_read,
    damaged,
    explained,
    in_memory,
    transaction,
)

_ASK_AT_ONCE = 400  # SQLite limits the variables of one statement
_HERE = "device = ? AND runtime = ? AND threads = ?"


@dataclass(frozen=True, slots=True, order=True)
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

    def __str__(self) -> str:
        plural = "" if self.threads == 1 else "s"
        return f"{self.device} / {self.runtime} / {self.threads} thread{plural}"


@dataclass(frozen=True, slots=True)
class Record:
    """One measured cost.

    Attributes:
        seconds: Infinity where the operator cannot run.
        spread: Relative spread of the repetitions.
        runs: Number of repetitions.
        note: Why it cannot run; empty otherwise.
        measured: When, in whole seconds since 1970 UTC; 0 for the moment it is saved.
    """

    seconds: float
    spread: float = 0.0
    runs: int = 0
    note: str = ""
    measured: float = field(default=0.0, compare=False)

    def __post_init__(self) -> None:
        assert self.seconds >= 0, f"a cost cannot be {self.seconds}"


@dataclass(frozen=True, slots=True)
class Merged:
    """What became of records that were merged into a store.

    Attributes:
        added: Of signatures that were not known.
        replaced: Newer than those that were there.
        kept: Not newer than those that were there, which stay.
    """

    added: int = 0
    replaced: int = 0
    kept: int = 0


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
            UsageError: The file is damaged, empty, not a cost database, or of a newer
                format, or it cannot be opened; it was not changed.
        """
        return CostStore(Path(path), connect(path, patience))

    @staticmethod
    def open_to_read(path: str | Path, patience: float = 30.0) -> CostStore:
        """Open a database that exists; nothing can be saved to it.

        A file that may be written is opened as `open` does, and brought to the present
        format where it is older.

        Raises:
            UsageError: As for `open`, or there is no such file.
        """
        if os.access(path, os.W_OK) and os.access(Path(path).parent, os.W_OK):
            return CostStore.open(path, patience)
        return CostStore(Path(path), connect_to_read(path, patience))

    @staticmethod
    def in_memory() -> CostStore:
        """Return an empty store that ends with the process."""
        return CostStore(None, in_memory())

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
        """Return what is known about these signatures.

        Raises:
            UsageError: A row is not as it was written.
        """
        result: dict[str, Record] = {}
        for start in range(0, len(signatures), _ASK_AT_ONCE):
            part = signatures[start : start + _ASK_AT_ONCE]
            marks = ",".join("?" * len(part))
            result |= self._read(setting, f"AND signature IN ({marks})", part)
        return result

    def records(self, setting: Setting) -> dict[str, Record]:
        """Return all that is known in a setting, ordered by signature.

        Raises:
            UsageError: A row is not as it was written.
        """
        return self._read(setting, "ORDER BY signature", ())

    def settings(self) -> dict[Setting, int]:
        """Return the settings of which something is known, and of how many signatures."""
        question = (
            "SELECT device, runtime, threads, count(*) FROM cost "
            "GROUP BY device, runtime, threads ORDER BY device, runtime, threads"
        )
        with explained(self.path):
            rows = self._connection.execute(question).fetchall()
        return {Setting(*row[:3]): row[3] for row in rows}

    def save(self, setting: Setting, records: Mapping[str, Record]) -> None:
        """Store costs, replacing older ones of the same signatures, all or none."""
        with explained(self.path), transaction(self._connection):
            self._put(setting, records)

    def merge(self, records: Mapping[Setting, Mapping[str, Record]]) -> Merged:
        """Store costs that are new or newer than what is there, all or none."""
        added = replaced = kept = 0
        with explained(self.path), transaction(self._connection):
            for setting, given in records.items():
                known = self.find(setting, list(given))
                newer = {
                    signature: record
                    for signature, record in given.items()
                    if signature not in known or record.measured > known[signature].measured
                }
                self._put(setting, newer)
                fresh = len(newer.keys() - known.keys())
                added += fresh
                replaced += len(newer) - fresh
                kept += len(given) - len(newer)
        return Merged(added, replaced, kept)

    def remove(self, settings: Iterable[Setting]) -> int:
        """Remove all costs of some settings, all or none; return how many there were."""
        count = 0
        with explained(self.path), transaction(self._connection):
            for setting in settings:
                values = (setting.device, setting.runtime, setting.threads)
                command = f"DELETE FROM cost WHERE {_HERE}"
                count += self._connection.execute(command, values).rowcount
        return count

    def __len__(self) -> int:
        """Return the number of costs in it, of all settings."""
        with explained(self.path):
            count: int = self._connection.execute("SELECT count(*) FROM cost").fetchone()[0]
        return count

    def _read(
        self, setting: Setting, rest: str, values: Sequence[str]
    ) -> dict[str, Record]:
        key = (setting.device, setting.runtime, setting.threads)
        question = f"SELECT * FROM cost WHERE {_HERE} {rest}"
        with explained(self.path):
            rows = self._connection.execute(question, (*key, *values)).fetchall()
        result = {}
        for *row, crc in rows:
            if check_sum((*row,)) != crc:
                raise damaged(self.path, "the check sum of a row is wrong")
            seconds, *others = row[4:]
            known = math.inf if seconds is None else seconds
            result[row[3]] = Record(known, *others)
        return result

    def _put(self, setting: Setting, records: Mapping[str, Record]) -> None:
        now = time.time()
        rows: list[Row] = [
            (
                *(setting.device, setting.runtime, setting.threads, signature),
                None if math.isinf(record.seconds) else _real(record.seconds),
                *(_real(record.spread), int(record.runs), record.note),
                float(int(record.measured or now)),
            )
            for signature, record in records.items()
        ]
        self._connection.executemany(INSERT, [(*row, check_sum(row)) for row in rows])


def _real(number: float) -> float:
    """Return a number as SQLite gives it back, which knows no negative zero."""
    return float(number) + 0.0

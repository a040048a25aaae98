"""The file of a cost database: made whole, looked at before it is touched, or refused.

A new database is filled under another name and then linked to its own, so that no process
ever meets half of one. A file that exists is first read by a connection that cannot write,
and refused if it is damaged, another program's or of a newer format; a file that is refused
is never changed. Databases of an older format are brought to the present one.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from tensat.errors import UsageError, one_line

APPLICATION = 0x7E25A700
"""In the file's header: this database is ours."""

VERSION = 2
"""Of the format; 1 had no check sums."""

_FIRST = (
    *("device", "runtime", "threads", "signature"),
    *("seconds", "spread", "runs", "note", "measured"),
)
COLUMNS = {1: _FIRST, 2: (*_FIRST, "crc")}
"""What the table holds in each format that can be read."""

TABLE = """
CREATE TABLE cost (
    device TEXT NOT NULL, runtime TEXT NOT NULL, threads INTEGER NOT NULL,
    signature TEXT NOT NULL,
    seconds REAL, spread REAL NOT NULL, runs INTEGER NOT NULL, note TEXT NOT NULL,
    measured REAL NOT NULL, crc INTEGER NOT NULL,
    PRIMARY KEY (device, runtime, threads, signature)
) WITHOUT ROWID
"""

INSERT = (
    f"INSERT OR REPLACE INTO cost ({', '.join(COLUMNS[VERSION])}) "
    f"VALUES ({', '.join('?' * len(COLUMNS[VERSION]))})"
)
"""Puts a row; the check sum stands last.

The columns are named: if another process has just converted the table, SQLite then looks at
it again instead of objecting to the number of values.
"""

Row = tuple[str, str, int, str, float | None, float, int, str, float]
"""A row without its check sum, as `COLUMNS` of format 1 names it."""

_SMALLEST = 512  # bytes of a page; SQLite takes anything shorter for a new database
_LEFT = "it was left as it is: name another file or move it away"


def connect(path: str | Path, patience: float) -> sqlite3.Connection:
    """Open a database for reading and writing; make it where there is no file.

    Args:
        path: The file; its folder is made.
        patience: Seconds to wait while another process writes.

    Raises:
        UsageError: See `connect_to_read`; or the file cannot be written.
    """
    file = Path(os.path.realpath(path))
    with explained(file):
        if not _exists(file):
            _create(file)
        _check(file, patience)
        if not os.access(file, os.W_OK):
            raise UsageError(f"cost database {file} cannot be written: name another file")
        connection = _open(file, "rw", patience)
        try:
            connection.execute("PRAGMA synchronous = NORMAL")
            if _number(connection, "user_version") != VERSION:
                _migrate(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def connect_to_read(path: str | Path, patience: float) -> sqlite3.Connection:
    """Open a database that exists, without ever changing it.

    Raises:
        UsageError: The file does not exist, is damaged, empty, not a cost database, or of
            an older or newer format, or it cannot be opened.
    """
    file = Path(os.path.realpath(path))
    with explained(file):
        if not _exists(file):
            raise UsageError(f"cost database {file}: there is no such file")
        if _check(file, patience) != VERSION:
            text = f"cost database {file} has an older format and cannot be written; "
            raise UsageError(text + "a copy that can be written is brought up to date")
        return _open(file, "ro", patience)


def in_memory() -> sqlite3.Connection:
    """Return an empty database that ends with the process."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(TABLE)
    return connection


def is_database(path: str | Path) -> bool:
    """Whether a file is SQLite's, ours or not.

    SQLite itself looks: whoever closes a file that this process also holds open in SQLite
    takes the locks of that other connection away.
    """
    file = Path(os.path.realpath(path))
    if not file.is_file() or file.stat().st_size < _SMALLEST:
        return False
    try:
        with closing(_open(file, "ro", 1.0)) as connection:
            connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.DatabaseError as error:
        return error.sqlite_errorcode != sqlite3.SQLITE_NOTADB
    return True


def check_sum(row: Row) -> int:
    """Return the check sum of a row: damage that SQLite does not see is seen by it."""
    return zlib.crc32(repr(row).encode())


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write all that is written inside, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors have already ended it
            connection.execute("ROLLBACK")
        raise


@contextmanager
def explained(path: Path | None) -> Iterator[None]:
    """Turn errors of SQLite and of the system into one line with the file's name."""
    try:
        yield
    except sqlite3.OperationalError as error:
        text = f"cost database {path} cannot be used ({one_line(error)}); {_LEFT}"
        raise UsageError(text) from error
    except (sqlite3.Error, UnicodeError) as error:
        reason = f"is damaged or no cost database ({one_line(error)})"
        raise UsageError(f"cost database {path} {reason}; {_LEFT}") from error
    except OSError as error:
        reason = error.strerror or one_line(error)
        raise UsageError(f"cost database {path}: cannot open: {reason}") from error


def damaged(path: Path | None, what: str) -> UsageError:
    """Return the error for a file in which something is not as it was written."""
    return UsageError(f"cost database {path} is damaged ({what}); {_LEFT}")


def _exists(file: Path) -> bool:
    """Whether the file is there.

    Raises:
        UsageError: Its log is there without it: SQLite would take the log for a new
            file's own.
    """
    log = Path(f"{file}-wal")
    orphan = log.exists()  # asked first: another process may be making both
    if file.exists():
        return True
    if orphan:
        text = f"cost database {file} does not exist, but its log '{log.name}' does; "
        raise UsageError(text + "nothing was changed: move the log away")
    return False


def _create(file: Path) -> None:
    """Make an empty database appear under its name, unless another process is faster."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".tensat-", dir=file.parent) as folder:
        new = Path(folder) / "costs.sqlite"
        with closing(sqlite3.connect(new, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            with transaction(connection):
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
                connection.execute(TABLE)
        try:
            os.link(new, file)
        except FileExistsError:
            return
        except OSError:  # no links on this file system; then a race is not excluded
            if not file.exists():
                new.rename(file)


def _check(file: Path, patience: float) -> int:
    """Return the format of a file that is ours and whole.

    Raises:
        UsageError: It is not.
    """
    if file.is_dir():
        raise UsageError(f"cost database {file} is a folder; a file name is needed")
    if not file.is_file():
        raise UsageError(f"cost database {file} is a device or a pipe; a file is needed")
    size = file.stat().st_size
    if size < _SMALLEST:
        text = f"cost database {file} holds {size} bytes and is none; {_LEFT}"
        raise UsageError(text)
    with closing(_open(file, "ro", patience)) as connection:
        if _number(connection, "application_id") != APPLICATION:
            text = f"cost database {file} is an SQLite file of another program; "
            raise UsageError(text + "it was left as it is: name another file")
        version = _number(connection, "user_version")
        if version not in COLUMNS:
            text = f"cost database {file} has format {version}, this program reads "
            raise UsageError(f"{text}{min(COLUMNS)} to {VERSION}; {_LEFT}")
        found = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found is None or found[0] != "ok":
            raise damaged(file, one_line(found[0] if found else "no answer"))
        columns = tuple(row[1] for row in connection.execute("PRAGMA table_info(cost)"))
        if columns != COLUMNS[version]:
            raise damaged(file, f"its table has the columns {', '.join(columns) or 'none'}")
    return version


def _open(file: Path, mode: str, patience: float) -> sqlite3.Connection:
    """Connect to a file that exists.

    A folder that cannot be written has no place for SQLite's lock files; a file in it that
    nobody can be writing to is read without.
    """
    still = mode == "ro" and not os.access(file.parent, os.W_OK)
    fixed = "&immutable=1" if still and not Path(f"{file}-wal").exists() else ""
    name = f"file:{quote(str(file))}?mode={mode}{fixed}"
    return sqlite3.connect(name, timeout=patience, isolation_level=None, uri=True)


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    value: int = connection.execute(f"PRAGMA {pragma}").fetchone()[0]
    return value


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring format 1 to format 2, unless another process just did."""
    with transaction(connection):
        if _number(connection, "user_version") == 1:
            rows: list[Row] = connection.execute("SELECT * FROM cost").fetchall()
            connection.execute("DROP TABLE cost")
            connection.execute(TABLE)
            connection.executemany(INSERT, [(*row, check_sum(row)) for row in rows])
            connection.execute(f"PRAGMA user_version = {VERSION}")

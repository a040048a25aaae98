"""A database file is whole and ours, or it is refused with one line and stays as it is."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tensat.costs.store import CostStore, Record, Setting
from tensat.costs.store_file import APPLICATION, INSERT, VERSION, check_sum, is_database
from tensat.errors import UsageError

HERE = Setting("a processor", "a runtime 1", 1)
SAVED = {
    f"Conv@17[group={k}](float32[1x{k}x8x8])": Record(k * 1e-6, 0.1, k, measured=k)
    for k in range(1, 150)
}


def filled(path: Path) -> Path:
    """Make a database with some costs."""
    with CostStore.open(path) as store:
        store.save(HERE, SAVED)
    return path


def killed(path: Path) -> Path:
    """Make a database whose rows are still in its log, as after a kill."""
    with CostStore.open(path.with_name("source")) as store:
        store.save(HERE, SAVED)
        shutil.copy(path.with_name("source"), path)
        shutil.copy(path.with_name("source-wal"), f"{path}-wal")
    return path


def contents(path: Path) -> dict[str, bytes]:
    """Return the bytes of a database and of its log, without the lock files."""
    files = (path, Path(f"{path}-wal"))
    found = {file.name: file.read_bytes() for file in files if file.is_file()}
    return {name: data for name, data in found.items() if data}


def refuse(path: Path, text: str) -> None:
    """Check that each way to open it fails with this text and changes nothing."""
    before = contents(path)
    for way in (CostStore.open, CostStore.open_to_read):
        with pytest.raises(UsageError, match=text) as caught:
            way(path)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)
        assert contents(path) == before


def _text(path: Path) -> None:
    path.write_bytes(b"this is no database, and long enough to be looked at" * 20)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _short(path: Path) -> None:
    path.write_bytes(filled(path).read_bytes()[:50])


def _half(path: Path) -> None:
    data = filled(path).read_bytes()
    path.write_bytes(data[: len(data) // 2])


def _foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE cost (x)")


def _foreign_log(path: Path) -> None:
    source = path.with_name("source")
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE cost (x)")
        shutil.copy(source, path)
        shutil.copy(f"{source}-wal", f"{path}-wal")


def _foreign_journal(path: Path) -> None:
    source = path.with_name("source")
    with closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("CREATE TABLE cost (x)")
        connection.execute("BEGIN")
        for _ in range(100):
            connection.execute("INSERT INTO cost VALUES (?)", ("x" * 3000,))
        shutil.copy(source, path)
        shutil.copy(f"{source}-journal", f"{path}-journal")


def _bare(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("VACUUM")


def _newer(path: Path) -> None:
    filled(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")


def _newer_log(path: Path) -> None:
    source = filled(path.with_name("source"))
    with closing(sqlite3.connect(source)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
        shutil.copy(source, path)
        shutil.copy(f"{source}-wal", f"{path}-wal")


def _other_table(path: Path) -> None:
    filled(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE cost RENAME COLUMN seconds TO minutes")


def _no_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _folder(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        pytest.param(_text, "is damaged or no cost database", id="text"),
        pytest.param(_empty, "holds 0 bytes and is none", id="zero bytes"),
        pytest.param(_short, "holds 50 bytes and is none", id="cut in the header"),
        pytest.param(_half, "is damaged", id="cut in the middle"),
        pytest.param(_foreign, "SQLite file of another program", id="foreign"),
        pytest.param(_foreign_log, "SQLite file of another", id="foreign, killed"),
        pytest.param(_foreign_journal, "cannot be used", id="foreign, killed in writing"),
        pytest.param(_bare, "SQLite file of another program", id="no tables"),
        pytest.param(_newer, "has format 3, this program reads 1 to 2", id="newer"),
        pytest.param(_newer_log, "has format 3, this", id="newer, killed"),
        pytest.param(_other_table, "has the columns device", id="another table"),
        pytest.param(_no_table, "has the columns none", id="table missing"),
        pytest.param(_folder, "is a folder", id="folder"),
        pytest.param(_pipe, "is a device or a pipe", id="pipe"),
    ],
)
def test_a_file_that_is_refused_stays_as_it_is(
    tmp_path: Path, make: Callable[[Path], None], text: str
) -> None:
    """The error is one line that names the file; no byte of it or of its log changes."""
    path = tmp_path / "costs.sqlite"
    make(path)
    refuse(path, text)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
@pytest.mark.parametrize("mode", [0o000, 0o444], ids=["unreadable", "read only"])
def test_a_file_without_permission_is_refused(tmp_path: Path, mode: int) -> None:
    """What may be read but not written cannot take new costs."""
    path = filled(tmp_path / "costs.sqlite")
    path.chmod(mode)
    with pytest.raises(UsageError, match="cannot be"):
        CostStore.open(path)


def test_a_file_that_may_only_be_read_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where neither file nor folder can be written, costs are found all the same."""
    path = filled(tmp_path / "costs.sqlite")
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    before = sorted(os.listdir(tmp_path)), path.read_bytes()
    with CostStore.open_to_read(path) as store:
        assert store.records(HERE) == SAVED
        with pytest.raises(UsageError, match="readonly"):
            store.save(HERE, SAVED)
    assert (sorted(os.listdir(tmp_path)), path.read_bytes()) == before
    with pytest.raises(UsageError, match="cannot be written: name another file"):
        CostStore.open(path)


def test_a_file_to_read_must_exist(tmp_path: Path) -> None:
    """Reading makes no file."""
    with pytest.raises(UsageError, match="there is no such file"):
        CostStore.open_to_read(tmp_path / "costs.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_is_alone(tmp_path: Path) -> None:
    """Neither a log nor a temporary file stays beside it."""
    filled(tmp_path / "costs.sqlite")
    assert os.listdir(tmp_path) == ["costs.sqlite"]


def test_a_link_is_followed(tmp_path: Path) -> None:
    """The database is made where a link points to, and found through it."""
    (tmp_path / "link").symlink_to(tmp_path / "real")
    filled(tmp_path / "link")
    with CostStore.open(tmp_path / "real") as store:
        assert store.records(HERE) == SAVED
    assert (tmp_path / "link").is_symlink()


def test_a_log_without_its_database_is_not_taken_for_a_new_ones(tmp_path: Path) -> None:
    """Its pages would be read into the new file."""
    path = killed(tmp_path / "costs.sqlite")
    path.unlink()
    before = contents(path)
    with pytest.raises(UsageError, match=r"its log 'costs\.sqlite-wal' does"):
        CostStore.open(path)
    assert contents(path) == before
    assert not path.exists()


def test_a_file_system_without_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new file then is moved to its place."""

    def forbid(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", forbid)
    filled(tmp_path / "costs.sqlite")
    assert os.listdir(tmp_path) == ["costs.sqlite"]


def test_what_a_killed_process_wrote_is_read(tmp_path: Path) -> None:
    """Rows that are in the log only are found by either way to open."""
    path = killed(tmp_path / "costs.sqlite")
    with CostStore.open_to_read(path) as store:
        assert store.records(HERE) == SAVED


def first_format(path: Path) -> Path:
    """Make a database as it was before there were check sums."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute("PRAGMA user_version = 1")
        connection.execute(
            "CREATE TABLE cost (device TEXT NOT NULL, runtime TEXT NOT NULL, "
            "threads INTEGER NOT NULL, signature TEXT NOT NULL, seconds REAL, "
            "spread REAL NOT NULL, runs INTEGER NOT NULL, note TEXT NOT NULL, "
            "measured REAL NOT NULL, "
            "PRIMARY KEY (device, runtime, threads, signature)) WITHOUT ROWID"
        )
        row = ("a processor", "a runtime 1", 1, "a", 1, 0.5, 9, "", 1700000000.5)
        connection.execute("INSERT INTO cost VALUES (?,?,?,?,?,?,?,?,?)", row)
        connection.commit()
    return path


def test_format_1_is_brought_to_the_present(tmp_path: Path) -> None:
    """Its rows are found, with their dates, and the file has the new format for good."""
    path = first_format(tmp_path / "costs.sqlite")
    for _ in range(2):
        with CostStore.open(path) as store:
            assert store.find(HERE, ["a"]) == {"a": Record(1.0, 0.5, 9)}
            assert store.find(HERE, ["a"])["a"].measured == 1700000000.5
            store.save(HERE, {"b": Record(1.0)})
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)


def test_a_table_that_another_process_converts_meanwhile(tmp_path: Path) -> None:
    """Who has read the old table's columns before can write the new one's rows."""
    path = first_format(tmp_path / "costs.sqlite")
    row = ("a processor", "a runtime 1", 1, "b", 2.0, 0.5, 9, "", 1700000000.0)
    with closing(sqlite3.connect(path, isolation_level=None)) as early:
        early.execute("SELECT count(*) FROM cost").fetchone()
        CostStore.open(path).close()
        early.execute(INSERT, (*row, check_sum(row)))
    with CostStore.open(path) as store:
        assert store.find(HERE, ["b"]) == {"b": Record(2.0, 0.5, 9)}


def test_a_changed_row_is_seen(tmp_path: Path) -> None:
    """A cost that SQLite would take for good has the wrong check sum."""
    path = filled(tmp_path / "costs.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE cost SET seconds = 2 * seconds WHERE runs = 7")
        connection.commit()
    with CostStore.open(path) as store:
        first, record = next(iter(SAVED.items()))
        assert store.find(HERE, [first]) == {first: record}
        with pytest.raises(
            UsageError, match=r"damaged \(the check sum of a row is wrong\)"
        ):
            store.find(HERE, list(SAVED))


def test_a_check_sum_covers_each_column() -> None:
    """Any other value gives another sum."""
    row = ("d", "r", 1, "s", 1.0, 0.5, 9, "n", 3.0)
    other = ("e", "q", 2, "t", None, 0.6, 8, "m", 4.0)
    sums = {check_sum((*row[:k], value, *row[k + 1 :])) for k, value in enumerate(other)}  # type: ignore[arg-type]
    assert len({check_sum(row), *sums}) == 10


@pytest.mark.parametrize("make", [filled, killed])
@pytest.mark.parametrize("seed", range(4))
def test_random_damage(tmp_path: Path, make: Callable[[Path], Path], seed: int) -> None:
    """Whatever bytes change: what is found was saved, or one clear error and no change."""
    path = make(tmp_path / "costs.sqlite")
    whole = contents(path)
    chance = random.Random(seed)
    outcomes = {True: 0, False: 0}
    for _ in range(60):
        for name, data in whole.items():
            (tmp_path / name).write_bytes(_damage(data, chance))
        before = contents(path)
        opened, error = _read_all(path)
        assert "\n" not in error
        assert opened or contents(path) == before
        outcomes[opened] += 1
        for rest in tmp_path.glob("costs.sqlite*"):
            rest.unlink()
    assert min(outcomes.values()) > 0


def _read_all(path: Path) -> tuple[bool, str]:
    """Whether the file was opened, and what was then said against it."""
    opened = False
    try:
        with CostStore.open(path) as store:
            opened = True
            found = store.records(HERE)
            assert found.items() <= SAVED.items()
            assert store.find(HERE, list(SAVED)) == found
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",)
    except UsageError as error:
        return opened, str(error)
    return opened, ""


def _damage(data: bytes, chance: random.Random) -> bytes:
    """Change some bytes, or cut the end off."""
    if chance.random() < 0.2:
        return data[: chance.randrange(len(data))]
    damaged = bytearray(data)
    for _ in range(chance.choice([1, 1, 4, 60])):
        place = chance.choice([len(data), min(len(data), 400)])
        damaged[chance.randrange(place)] = chance.randrange(256)
    return bytes(damaged)


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        pytest.param(filled, True, id="ours"),
        pytest.param(_foreign, True, id="foreign"),
        pytest.param(_empty, False, id="empty"),
        pytest.param(_text, False, id="text"),
        pytest.param(_folder, False, id="folder"),
        pytest.param(_pipe, False, id="pipe"),
        pytest.param(lambda path: path, False, id="nothing"),
    ],
)
def test_databases_are_told_from_other_files(
    tmp_path: Path, make: Callable[[Path], object], answer: bool
) -> None:
    """By what SQLite says, not by the name."""
    make(tmp_path / "file")
    assert is_database(tmp_path / "file") is answer

"""Costs go through text and back unchanged, and what is no such text is refused."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tensat.costs.exchange import Costs, date, from_text, read_costs, to_text
from tensat.costs.store import CostStore, Record, Setting
from tensat.errors import UsageError

ONE, TWO = Setting("prozessor µ", "runtime 1", 1), Setting("prozessor µ", "runtime 1", 2)
COSTS: Costs = {
    TWO: {"Relu@17[](float32[4])->(float32[4])": Record(1 / 3, 0.1, 7, measured=1e9)},
    ONE: {
        "b": Record(math.inf, note='no "kernel"\nat all', measured=1.7e9),
        "a": Record(1.5e-6, 0.25, 9, measured=1764497109.0),
    },
}
TEXT = to_text(COSTS).encode()
LINES = TEXT.splitlines()


def same(first: Costs, second: Costs) -> bool:
    """Whether all is equal, dates too, which records do not compare."""
    return first == second and to_text(first) == to_text(second)


def test_text_gives_the_costs_back() -> None:
    """All digits, infinity, notes of several lines, dates and settings."""
    found = from_text(TEXT, "x")
    assert same(found, COSTS)
    assert found[ONE]["a"].measured == 1764497109.0


def test_equal_costs_give_equal_bytes() -> None:
    """Whatever order they were put in."""
    turned = {where: dict(reversed(known.items())) for where, known in COSTS.items()}
    assert to_text(dict(reversed(turned.items()))) == TEXT.decode()


def test_the_form_is_as_documented() -> None:
    """Line by line; a change needs another version."""
    assert [json.loads(line) for line in LINES[:4]] == [
        {"format": "tensat costs", "version": 1, "settings": 2},
        {"device": "prozessor µ", "runtime": "runtime 1", "threads": 1, "costs": 2},
        {
            "signature": "a",
            "seconds": 1.5e-6,
            "spread": 0.25,
            "runs": 9,
            "note": "",
            "measured": "2025-11-30T10:05:09Z",
        },
        {
            "signature": "b",
            "seconds": None,
            "spread": 0.0,
            "runs": 0,
            "note": 'no "kernel"\nat all',
            "measured": "2023-11-14T22:13:20Z",
        },
    ]
    assert TEXT.isascii()


def test_a_database_and_its_export_read_alike(tmp_path: Path) -> None:
    """Either kind of file is recognized by what is in it."""
    database, text = tmp_path / "a", tmp_path / "b"
    with CostStore.open(database) as store:
        for setting, records in COSTS.items():
            store.save(setting, records)
    text.write_bytes(TEXT)
    assert same(read_costs(database), COSTS)
    assert same(read_costs(text), COSTS)


def test_no_costs_are_costs(tmp_path: Path) -> None:
    """An empty database gives a text of one line."""
    with CostStore.open(tmp_path / "a"):
        pass
    assert to_text(read_costs(tmp_path / "a")).count("\n") == 1
    assert from_text(to_text({}).encode(), "x") == {}


def _with(line: int, **changes: object) -> bytes:
    found = {**json.loads(LINES[line - 1]), **changes}
    return b"\n".join([*LINES[: line - 1], json.dumps(found).encode(), *LINES[line:]])


def _instead(line: int, text: bytes) -> bytes:
    return b"\n".join([*LINES[: line - 1], text, *LINES[line:]])


BAD = {
    "empty": (b"", "line 1: the file ends here"),
    "binary": (b"\x80\x81" * 300, "it is no UTF-8 text"),
    "other text": (b"hello\n", "line 1: it is no JSON"),
    "other JSON": (b"[1, 2]\n", "line 1: found list; needed: format, version"),
    "other object": (b'{"a": 1}\n', "line 1: found a; needed: format"),
    "other format": (_with(1, format="x"), "line 1: format is 'x'; possible: 'tensat"),
    "newer": (_with(1, version=2), "line 1: version is 2; possible: 1"),
    "no version": (_with(1, version=True), "version is True"),
    "settings": (_with(1, settings=-1), "settings is -1; possible: a whole number"),
    "cut": (b"\n".join(LINES[:-1]), "line 6: the file ends here, but more was announced"),
    "cut in a line": (TEXT[:-30], "line 6: it is no JSON"),
    "more": (TEXT + LINES[-1], "line 7: nothing more was announced"),
    "blank line": (TEXT + b"\n", "line 7: nothing more was announced"),
    "fewer announced": (_with(2, costs=1), "line 4: found signature, seconds"),
    "more announced": (_with(2, costs=3), "line 5: found device"),
    "twice a setting": (
        _with(5, threads=1),
        "line 5: 'prozessor µ / runtime 1 / 1 thread'",
    ),
    "twice a cost": (_instead(4, LINES[2]), "line 4: a was there before"),
    "negative": (_with(3, seconds=-1.0), "line 3: seconds is -1.0; possible: a number"),
    "NaN": (_with(3, seconds=math.nan), "line 3: it is no JSON .NaN is no number"),
    "infinite": (_instead(3, LINES[2].replace(b"1.5e-06", b"1e999")), "seconds is inf"),
    "huge": (_with(3, seconds=10**400), "line 3: seconds is 1000"),
    "text for a number": (_with(3, seconds="1"), "line 3: seconds is '1'"),
    "truth for a number": (_with(3, seconds=True), "line 3: seconds is True"),
    "runs": (_with(3, runs=2**80), "line 3: runs is 120"),
    "no threads": (_with(2, threads=0), "line 2: threads is 0; possible: a whole number f"),
    "half a character": (_with(3, signature="\ud800"), "line 3: signature is '.ud800'"),
    "no signature": (_with(3, signature=""), "line 3: signature is ''; possible: a line"),
    "two lines": (_with(2, device="a\nb"), "line 2: device is 'a.nb'; possible: a line"),
    "no date": (_with(3, measured=5), "line 3: measured is 5; possible: a moment such"),
    "no such date": (_with(3, measured="2026-02-30T00:00:00Z"), "measured is '2026-02-30"),
    "local time": (_with(3, measured="2026-02-03T00:00:00"), "measured is '2026-02-03"),
    "another key": (_with(3, unit="s"), "line 3: found signature, seconds"),
    "depth": (_instead(3, b"[" * 100_000), "line 3: it is no JSON"),
}


@pytest.mark.parametrize(("data", "text"), BAD.values(), ids=BAD)
def test_what_is_no_export_is_refused(data: bytes, text: str) -> None:
    """One line that names the file, the line, what was found and what is possible."""
    with pytest.raises(UsageError, match=text) as caught:
        from_text(data, "some.costs")
    assert str(caught.value).startswith("'some.costs' is no file of exported costs")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("seed", range(4))
def test_random_damage(seed: int) -> None:
    """A changed byte is refused, or changes what is read, but is never another error."""
    chance = random.Random(seed)
    refused = 0
    for _ in range(300):
        data = bytearray(TEXT)
        for _ in range(chance.choice([1, 1, 5])):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            from_text(bytes(data), "x")
        except UsageError:
            refused += 1
    assert 0 < refused < 300


def test_any_cut_is_noticed() -> None:
    """But for the last line's end, which says nothing."""
    for end in range(len(TEXT) - 1):
        with pytest.raises(UsageError, match="no file of exported costs, line"):
            from_text(TEXT[:end], "x")


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        pytest.param(lambda path: None, "cannot read: No such file", id="missing"),
        pytest.param(_folder, "cannot read: Is a directory", id="folder"),
        pytest.param(lambda path: path.write_bytes(b""), "line 1: the file", id="empty"),
    ],
)
def test_files_that_cannot_be_read(
    tmp_path: Path, make: Callable[[Path], object], text: str
) -> None:
    """One line with the name."""
    make(tmp_path / "x")
    with pytest.raises(UsageError, match=text):
        read_costs(tmp_path / "x")


def test_dates_are_in_utc() -> None:
    """Whole seconds."""
    assert date(1764497109.9) == "2025-11-30T10:05:09Z"

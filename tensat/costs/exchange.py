"""Costs as text that goes from machine to machine: one JSON object a line.

    {"format": "tensat costs", "version": 1, "settings": 1}
    {"device": "…", "runtime": "…", "threads": 1, "costs": 2}
    {"signature": "…", "seconds": 1.5e-06, "spread": 0.01, "runs": 9, "note": "",
     "measured": "2026-11-30T10:05:09Z"}                        (one line in the file)
    {"signature": "…", "seconds": null, …, "note": "no kernel for it", …}

A setting is followed by as many costs as it announces, so a file that was cut is noticed.
Settings and signatures are ordered: equal costs make equal bytes. Seconds are null where
the runtime has no kernel. A file with anything else in it is refused as a whole.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from tensat.costs.store import CostStore, Record, Setting
from tensat.costs.store_file import is_database
from tensat.errors import UsageError, one_line

Costs = dict[Setting, dict[str, Record]]
"""Records by setting and signature."""

FORMAT = "tensat costs"
VERSION = 1
_MOST = 2**31


def to_text(costs: Mapping[Setting, Mapping[str, Record]]) -> str:
    """Return costs as text; equal costs give equal text."""
    return "".join(f"{json.dumps(each)}\n" for each in _lines(costs))


def from_text(data: bytes, name: str) -> Costs:
    """Return the costs that a text holds.

    Args:
        data: The text, in UTF-8.
        name: What errors call it.

    Raises:
        UsageError: It is no such text, or of a newer format, or not all of it is there.
    """
    return _Reader(data, name).costs()


def read_costs(path: str | Path) -> Costs:
    """Return the costs of a database or of an exported file, whichever it is.

    Raises:
        UsageError: It is neither, or damaged, or it cannot be read.
    """
    if is_database(path):
        with CostStore.open_to_read(path) as store:
            return {setting: store.records(setting) for setting in store.settings()}
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"costs file {path}: cannot read: {error.strerror}") from error
    return from_text(data, str(path))


def _lines(costs: Mapping[Setting, Mapping[str, Record]]) -> Iterator[dict[str, object]]:
    yield {"format": FORMAT, "version": VERSION, "settings": len(costs)}
    for setting, records in sorted(costs.items()):
        yield {**setting_fields(setting), "costs": len(records)}
        for signature, record in sorted(records.items()):
            yield record_fields(signature, record)


def setting_fields(setting: Setting) -> dict[str, object]:
    """Return a setting as plain values."""
    return {
        "device": setting.device,
        "runtime": setting.runtime,
        "threads": setting.threads,
    }


def record_fields(signature: str, record: Record) -> dict[str, object]:
    """Return a cost as plain values, without infinity."""
    return {
        "signature": signature,
        "seconds": None if math.isinf(record.seconds) else record.seconds,
        "spread": record.spread,
        "runs": record.runs,
        "note": record.note,
        "measured": date(record.measured),
    }


def date(seconds: float) -> str:
    """Return a moment in whole seconds of UTC, such as `2026-11-30T10:05:09Z`."""
    moment = datetime.fromtimestamp(int(seconds), UTC)
    return moment.replace(tzinfo=None).isoformat() + "Z"


class _Reader:
    """Reads a text line by line; knows where it is when something is wrong."""

    def __init__(self, data: bytes, name: str) -> None:
        self._name = name
        self._line = 0
        try:
            lines = data.decode().split("\n")
        except UnicodeDecodeError as error:
            self._refuse(f"it is no UTF-8 text ({error.reason} at byte {error.start})")
        self._rest = iter(lines[:-1] if lines[-1] == "" else lines)

    def costs(self) -> Costs:
        """Return all costs."""
        head = self._read(_HEAD)
        result: Costs = {}
        for _ in range(head["settings"]):
            where = self._read(_SETTING)
            count = where.pop("costs")
            setting = Setting(**where)
            if setting in result:
                self._refuse(f"'{setting}' was there before")
            result[setting] = self._records(count)
        if next(self._rest, None) is not None:
            self._line += 1
            self._refuse("nothing more was announced")
        return result

    def _records(self, count: int) -> dict[str, Record]:
        result: dict[str, Record] = {}
        for _ in range(count):
            found = self._read(_COST)
            signature = found.pop("signature")
            if signature in result:
                self._refuse(f"{one_line(signature, 80)} was there before")
            if found["seconds"] is None:
                found["seconds"] = math.inf
            found["measured"] = datetime.fromisoformat(found["measured"]).timestamp()
            result[signature] = Record(**found)
        return result

    def _read(self, wanted: Mapping[str, tuple[_Test, str]]) -> dict[str, Any]:
        """Return the object on the next line, which has exactly the keys wanted."""
        self._line += 1
        line = next(self._rest, None)
        if line is None:
            self._refuse("the file ends here, but more was announced")
        try:
            found = json.loads(line, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            self._refuse(f"it is no JSON ({one_line(error, 80)})")
        if not isinstance(found, dict) or found.keys() != wanted.keys():
            names = ", ".join(found) if isinstance(found, dict) else type(found).__name__
            self._refuse(f"found {one_line(names, 80)}; needed: {', '.join(wanted)}")
        for key, (test, possible) in wanted.items():
            if not test(found[key]):
                value = one_line(repr(found[key]), 80)
                self._refuse(f"{key} is {value}; possible: {possible}")
        return found

    def _refuse(self, text: str) -> NoReturn:
        line = f", line {self._line}" if self._line else ""
        raise UsageError(f"'{self._name}' is no file of exported costs{line}: {text}")


_Test = Callable[[object], bool]


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _whole(value: object) -> bool:
    return type(value) is int and 0 <= value < _MOST


def _number(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value <= sys.float_info.max  # type: ignore[operator]


def _text(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()  # half a surrogate pair cannot be stored
    except UnicodeEncodeError:
        return False
    return True


def _line(value: object) -> bool:
    return _text(value) and bool(value) and len(str(value).splitlines()) == 1


def _moment(value: object) -> bool:
    """Whether it is what `date` writes."""
    try:
        return value == date(datetime.fromisoformat(str(value)).timestamp())
    except (ValueError, OverflowError):
        return False


_WHOLE = (_whole, f"a whole number from 0 to {_MOST - 1}")
_LINE = (_line, "a line of text")
_NUMBER = (_number, "a number from 0 on")
_HEAD = {
    "format": (lambda value: value == FORMAT, f"{FORMAT!r}"),
    "version": (lambda value: value == VERSION and type(value) is int, f"{VERSION}"),
    "settings": _WHOLE,
}
_SETTING = {
    "device": _LINE,
    "runtime": _LINE,
    "threads": (lambda value: _whole(value) and value != 0, "a whole number from 1 on"),
    "costs": _WHOLE,
}
_COST: Mapping[str, tuple[_Test, str]] = {
    "signature": _LINE,
    "seconds": (lambda value: value is None or _number(value), "a number from 0 on, null"),
    "spread": _NUMBER,
    "runs": _WHOLE,
    "note": (_text, "a text"),
    "measured": (_moment, "a moment such as 2026-11-30T10:05:09Z"),
}

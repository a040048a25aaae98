"""The cost database keeps what it is given, by setting and signature."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pytest

from tensat.costs.store import CostStore, Merged, Record, Setting, default_path

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


def test_the_cache_folder_of_the_user_is_respected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """XDG_CACHE_HOME moves the default database; a relative one does not count."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "tensat" / "costs.sqlite"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_path().parts[-3:] == (".cache", "tensat", "costs.sqlite")
    CostStore.in_memory().close()


def test_settings_are_listed_in_order() -> None:
    """With the number of costs in each; a setting without costs is none."""
    other = Setting("a processor", "a runtime 1", 2)
    with CostStore.in_memory() as store:
        assert store.settings() == {}
        store.save(other, {"a": Record(1.0), "b": Record(2.0)})
        store.save(HERE, {"a": Record(3.0)})
        assert list(store.settings().items()) == [(HERE, 1), (other, 2)]
        assert list(store.records(other)) == ["a", "b"]
        assert str(other) == "a processor / a runtime 1 / 2 threads"


def test_removing_leaves_other_settings_alone() -> None:
    """The number of rows removed comes back."""
    other = Setting("a processor", "a runtime 1", 2)
    with CostStore.in_memory() as store:
        store.save(HERE, {"a": Record(1.0), "b": Record(2.0)})
        store.save(other, {"a": Record(3.0)})
        assert store.remove([HERE]) == 2
        assert store.settings() == {other: 1}


def test_the_date_is_that_of_saving_unless_it_is_given() -> None:
    """In whole seconds, so that exports give it back exactly."""
    with CostStore.in_memory() as store:
        before = int(time.time())
        store.save(HERE, {"now": Record(1.0), "then": Record(1.0, measured=1234.0)})
        found = store.records(HERE)
    assert before <= found["now"].measured <= time.time()
    assert found["now"].measured == int(found["now"].measured)
    assert found["then"].measured == 1234.0


def test_merging_takes_what_is_newer() -> None:
    """Older and equally old costs do not replace those that are there."""
    with CostStore.in_memory() as store:
        store.save(HERE, {name: Record(1.0, measured=50.0) for name in "abc"})
        given = {
            "a": Record(2.0, measured=49.0),
            "b": Record(2.0, measured=50.0),
            "c": Record(2.0, measured=51.0),
            "d": Record(2.0, measured=1.0),
        }
        assert store.merge({HERE: given}) == Merged(added=1, replaced=1, kept=2)
        seconds = {name: found.seconds for name, found in store.records(HERE).items()}
        assert seconds == {"a": 1.0, "b": 1.0, "c": 2.0, "d": 2.0}
        assert store.merge({HERE: given}) == Merged(kept=4)


def test_numbers_of_any_kind_come_back_as_floats() -> None:
    """NumPy's numbers, whole ones and negative zero pass the check sum."""
    record = Record(np.float64(0.5), -0.0, np.int64(3))  # type: ignore[arg-type]
    with CostStore.in_memory() as store:
        store.save(HERE, {"a": record, "b": Record(2)})
        found = store.records(HERE)
    assert found == {"a": Record(0.5, 0.0, 3), "b": Record(2.0)}
    assert type(found["b"].seconds) is float


@pytest.mark.parametrize("seconds", [-1e-9, math.nan])
def test_a_cost_is_never_negative(seconds: float) -> None:
    """Such a record cannot be made."""
    with pytest.raises(AssertionError, match="a cost cannot be"):
        Record(seconds)

"""The source that options name is opened with its own file, and closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensat.cost_sources import cost_source, counts_of
from tensat.costs.source import Argument, Signature
from tensat.costs.store import CostStore, Record, Setting, default_path
from tensat.costs.table import TableCosts
from tensat.errors import UsageError
from tensat.runtime import Runtime

FAR = Setting("another device", "runtime 1", 3)
RELU = Signature("Relu", (), (Argument("float32", (4,)),), (Argument("float32", (4,)),), 17)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_table_needs_neither_runtime_nor_database(tmp_path: Path) -> None:
    """The child process is not started, and no file is made."""
    with CostStore.open(tmp_path / "t") as store:
        store.save(FAR, {RELU.text(): Record(5e-6)})
    with Runtime() as runtime:
        with cost_source("table", runtime, table=tmp_path / "t", threads=1) as source:
            assert isinstance(source, TableCosts)
            assert source.seconds([RELU]) == [5e-6]
            assert counts_of(source) == {"known": 1}
        with cost_source("roofline", runtime) as source:
            assert counts_of(source) == {}
    assert not default_path().exists()


def test_measured_costs_go_to_the_file_that_is_named(tmp_path: Path) -> None:
    """The user's own is not touched."""
    with (
        Runtime() as runtime,
        cost_source("cpu", runtime, database=tmp_path / "d", threads=1) as source,
    ):
        assert source.seconds([RELU])[0] > 0
        assert counts_of(source) == {"measured": 1}
    with CostStore.open(tmp_path / "d") as store:
        assert len(store) > 0
    assert not default_path().exists()


@pytest.mark.parametrize("name", ["gpu", "table"])
def test_what_is_no_source_is_refused(name: str) -> None:
    """A table without a file is none either."""
    with (
        Runtime() as runtime,
        pytest.raises(UsageError, match=rf"cost '{name}' is unknown; possible: cpu"),
        cost_source(name, runtime),
    ):
        pass

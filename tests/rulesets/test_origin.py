"""Origins of rows: what a row says, and the check behind it."""

import re
from pathlib import Path

import pytest

from rulesets.audit import row_of
from rulesets.cli_generate import laws
from rulesets.cli_origins import agrees, found_origin, write_origins
from rulesets.errors import RuleError
from rulesets.origin import KINDS, Origin, read_origin, weakest
from rulesets.rederive import Sources, by_hand, rows, sources
from rulesets.store import load, parse_file

RULES = load()
ROWS = {row_of(row[0].name): row for row in rows(RULES, row_of)}
KNOWN = sources(laws(), RULES)
SAMPLE = (
    *("relu-of-relu", "pow-three-quarters", "neg-of-sub", "flatten-is-reshape"),
    *("add-of-constants", "gemm-trans-b", "product-of-negs"),
)
ROW = """[[rule]]
name = "one"
lhs = "(Relu (Relu ?x))"
rhs = "(Relu ?x)"
float = { tag = "exact" }
proof = { verdict = "all-sizes", ranks = "any" }
instances = [{ x = "2,3" }]
"""


def test_every_row_written_by_hand_says_where_it_comes_from() -> None:
    """None is silent, and none that is left lacks a reason."""
    silent = [name for name, row in ROWS.items() if row[0].origin is None]
    assert silent == []
    assert all(
        row[0].origin.reason
        for row in ROWS.values()
        if row[0].origin is not None and row[0].origin.kind == "left"
    )


@pytest.mark.parametrize("name", SAMPLE)
def test_a_row_tells_the_truth(name: str) -> None:
    """A fast sample of the command's check."""
    row = ROWS[name]
    assert agrees(row[0].origin, found_origin(KNOWN, row))


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_all_rows_tell_the_truth(name: str) -> None:
    """The command's check, all of it."""
    row = ROWS[name]
    assert agrees(row[0].origin, found_origin(KNOWN, row))


def test_the_named_law_exists() -> None:
    """What a row is an instance of is among the laws or the generated rules."""
    names = {law.name for law in (*KNOWN.generated, *KNOWN.definitions)}
    named = {row[0].origin.law for row in ROWS.values() if row[0].origin is not None}
    assert named - {""} <= names


def test_sources_hold_nothing_written_by_hand_but_definitions() -> None:
    """No row may be derived from itself or from another row."""
    assert not {law.name for law in KNOWN.generated} & {
        rule.name for rule in RULES if by_hand(rule)
    }
    assert all(law.family != "constants" for law in KNOWN.generated)
    assert {law.family for law in KNOWN.definitions} == {"definitions"}


def test_nothing_follows_from_nothing() -> None:
    """Without laws a row is left, with the reason."""
    none = Sources((), (), ())
    found = found_origin(none, ROWS["relu-of-relu"])
    assert (found.kind, bool(found.reason)) == ("left", True)


def test_a_false_row_is_left() -> None:
    """The laws derive no equation that does not hold."""
    rules = parse_file(ROW.replace('(Relu ?x)"\nfloat', '(Abs ?x)"\nfloat'), "wrong.toml")
    assert found_origin(KNOWN, rules).kind == "left"


def test_a_row_is_as_weak_as_its_weakest_version() -> None:
    """Kinds in their order, then rounds."""
    found = [Origin("generated", law="a"), Origin("derived", rounds=2)]
    assert weakest([*found, Origin("derived", rounds=3)]).rounds == 3
    assert weakest(found).kind == "derived"
    assert KINDS.index("generated") < KINDS.index("left")


@pytest.mark.parametrize(
    "one",
    [
        Origin("generated", law="ring/neg-sub-is-sub"),
        Origin("definition", law="gelu-by-definition"),
        Origin("derived", rounds=2),
        Origin("left", reason="it does not follow"),
    ],
    ids=str,
)
def test_an_origin_is_written_as_it_is_read(one: Origin) -> None:
    """The inline table of a row, there and back."""
    (rule,) = parse_file(f"{ROW}origin = {one.table()}\n", "test.toml")
    assert rule.origin == one


def test_origins_are_written_behind_proofs(tmp_path: Path) -> None:
    """Once for each row, replacing what it said before."""
    file = tmp_path / "test.toml"
    file.write_text(ROW)
    for rounds in (1, 2):
        write_origins(tmp_path, {"one": Origin("derived", rounds=rounds)})
    assert re.findall("^origin.*$", file.read_text(), re.MULTILINE) == [
        'origin = { kind = "derived", rounds = 2 }'
    ]


@pytest.mark.parametrize(
    "value",
    ["derived", {"kind": "found"}, {"kind": "derived"}, {"kind": "left", "rounds": 2}],
    ids=str,
)
def test_another_origin_is_refused(value: object) -> None:
    """The error says what is possible."""
    with pytest.raises(RuleError, match=r"'origin' is .*; possible: .*derived"):
        read_origin(value)

"""Wrong rewrites of history: each is refused or visibly wrong, and none is shipped."""

from pathlib import Path

import numpy as np
import pytest

from rulesets.corpus_text import Published
from rulesets.errors import RuleFileError, ShapeError
from rulesets.refused import FILE, Refused, load_refused, refutable, refute, write
from rulesets.rule import Match, Rule, build, holds
from rulesets.store import load, shipped_folder
from tests.rulesets.term_graph import TermGraph, build_left, find, leaves_of

KEPT = load_refused()
REFUSED = [row.wrong for row in KEPT if isinstance(row.wrong, Rule)]
SHIPPED = load()
COUNTS = (1, 2, 3)


def counterexamples(rule: Rule) -> list[tuple[TermGraph, tuple[int, ...]]]:
    """Build the left side of a wrong rule at each of its counterexamples."""
    built = []
    for instance in rule.instances:
        graph = TermGraph()
        roots = build_left(rule, instance, graph, leaves_of(instance, graph, seed=1))
        built.append((graph, roots))
    return built


def equal(rule: Rule, match: Match, graph: TermGraph) -> bool:
    """Apply a rule; whether both sides have equal values, infinities included."""
    results = build(rule, match, graph)
    return all(
        np.allclose(
            graph.values[left][0],
            graph.values[right][0],
            rtol=1e-5,
            atol=1e-6,
            equal_nan=True,
        )
        for left, right in zip(match.roots, results, strict=True)
    )


@pytest.mark.parametrize("rule", REFUSED, ids=lambda rule: rule.name)
def test_the_counterexample_refutes(rule: Rule) -> None:
    """At its counterexample a wrong rule is ill-shaped or computes something else."""
    for graph, roots in counterexamples(rule):
        matches = find(rule, graph, roots)
        assert matches
        for match in matches:
            try:
                right = equal(rule, match, graph)
            except ShapeError:
                continue
            assert not right, rule.note


@pytest.mark.parametrize("rule", REFUSED, ids=lambda rule: rule.name)
def test_shipped_rules_are_right_there(rule: Rule) -> None:
    """Every shipped rule that fires on the same left side keeps its value."""
    for graph, roots in counterexamples(rule):
        for shipped in SHIPPED:
            if len(shipped.lhs) > 1:
                continue
            for count in COUNTS if shipped.variadic else (1,):
                expanded = shipped.at_arity(count)
                for match in find(expanded, graph, roots):
                    if not holds(expanded, match, graph):
                        continue
                    try:
                        right = equal(expanded, match, graph)
                    except ShapeError:
                        continue
                    assert right, f"{shipped.name} does what {rule.name} does"


@pytest.mark.parametrize("row", KEPT, ids=lambda row: row.name)
def test_the_kept_line_is_found_again(row: Refused) -> None:
    """The counterexample that stands in the file comes out of the verifier."""
    assert str(refute(row.wrong)) == row.counterexample


def test_there_are_enough() -> None:
    """The list of wrong rewrites does not shrink."""
    assert len(REFUSED) >= 41
    assert sum(isinstance(row.wrong, Published) for row in KEPT) >= 58


def test_writing_again_changes_nothing(tmp_path: Path) -> None:
    """The file is what the command writes; a changed counterexample is put right."""
    copy = tmp_path / FILE
    text = (shipped_folder() / FILE).read_text(encoding="utf-8")
    copy.write_text(text.replace("at [0, 0, 4]: 0 left", "at [0, 0, 0]: 1 left"))
    assert copy.read_text() != text
    write(copy, KEPT)
    assert copy.read_text(encoding="utf-8") == text


def test_equations_that_fail_are_added(tmp_path: Path) -> None:
    """Of a published file the equations that fail are kept, with their lines."""
    copy = tmp_path / FILE
    copy.write_text("")
    text = (
        "# two\n\n"
        "matmul(input_4,input_5) == matmul(input_5,input_4)\n"
        "ewadd(input_4,input_5) == ewadd(input_5,input_4)\n"
    )
    found = list(refutable(text, "some.txt", "somebody"))
    write(copy, found)
    (row,) = load_refused(copy)
    assert row.counterexample == found[0].counterexample
    assert row.source == "somebody, line 3"
    assert row.counterexample.startswith("at [")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[equation]]\ntext = 'relu(input_1) == input_1'", "has no 'source'"),
        ("[[law]]", "has the table 'law'; possible:"),
        ("[[rule]]\nname = 'x'\nsource = 'y'", "rule 'x' .* has no 'lhs'"),
        ("[[", "is not TOML"),
    ],
    ids=["no source", "table", "no sides", "no TOML"],
)
def test_a_wrong_row_is_named(tmp_path: Path, text: str, message: str) -> None:
    """The error says which row is wrong and what is possible."""
    path = tmp_path / FILE
    path.write_text(text)
    with pytest.raises(RuleFileError, match=message):
        load_refused(path)

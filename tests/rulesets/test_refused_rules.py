"""Wrong rewrites of history: each is refused or visibly wrong, and none is shipped."""

from pathlib import Path

import numpy as np
import pytest

from rulesets.errors import ShapeError
from rulesets.rule import Match, Rule, build, holds
from rulesets.store import load, parse_file
from tests.rulesets.term_graph import TermGraph, build_left, find, leaves_of

FILE = Path(__file__).with_name("refused.toml")
REFUSED = parse_file(FILE.read_text(encoding="utf-8"), FILE.name)
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


def test_there_are_enough() -> None:
    """The list of wrong rewrites does not shrink."""
    assert len(REFUSED) >= 38

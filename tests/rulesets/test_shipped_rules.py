"""Every shipped rule on its instances: it fires, and both sides have equal values."""

import numpy as np
import pytest

from rulesets.errors import ShapeError
from rulesets.instance import Instance
from rulesets.rule import Match, Rule, build, holds
from rulesets.store import load
from tests.rulesets.mutants import mutants_of, random_mutants
from tests.rulesets.term_graph import TermGraph, build_left, find, leaves_of

RULES = load()
SEEDS = (0, 1, 2)
SCALES = (0.5, 4.0)
MUTANTS = 60


def firing(
    rule: Rule, instance: Instance, seed: int, scale: float
) -> tuple[TermGraph, list[Match]]:
    """Build an instance; the graph and the matches whose conditions hold."""
    graph = TermGraph()
    expanded = rule.at_arity(instance.count)
    leaves = leaves_of(instance, graph, seed, scale)
    roots = build_left(expanded, instance, graph, leaves)
    return graph, [m for m in find(expanded, graph, roots) if holds(expanded, m, graph)]


def deviation(rule: Rule, match: Match, graph: TermGraph) -> float:
    """Apply a rule; the largest difference relative to the largest value."""
    worst = 0.0
    for left, right in zip(match.roots, build(rule, match, graph), strict=True):
        one, other = graph.values[left][0], graph.values[right][0]
        finite = np.isfinite(one)
        if not finite.any():
            continue
        assert np.isfinite(other[finite]).all(), rule.name
        if one.dtype == bool:
            worst = max(worst, float((one != other).any()))
            continue
        largest = max(np.abs(one[finite]).max(), 1e-30)
        worst = max(worst, float(np.abs(one - other)[finite].max() / largest))
    return worst


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_sides_are_equal(rule: Rule) -> None:
    """On every instance a rule fires, and its sides are equal up to rounding."""
    for number, instance in enumerate(rule.instances):
        for seed in SEEDS:
            for scale in SCALES:
                graph, matches = firing(rule, instance, seed, scale)
                assert matches, f"instance {number} of {rule.name} does not fire"
                expanded = rule.at_arity(instance.count)
                for match in matches:
                    assert deviation(expanded, match, graph) < 2e-6, f"instance {number}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_where_it_fires_on_mutants_it_is_right(rule: Rule) -> None:
    """On changed shapes, constants and attributes a rule is silent or right."""
    for instance in rule.instances:
        several = random_mutants(instance, MUTANTS, seed=5)
        for seed, mutant in enumerate((*mutants_of(instance), *several)):
            try:
                graph, matches = firing(rule, mutant, seed, 1.0)
            except (ShapeError, ValueError, LookupError, ArithmeticError):
                # There is no such left side.
                continue
            for match in matches:
                try:
                    found = deviation(rule.at_arity(mutant.count), match, graph)
                except ShapeError:
                    continue
                assert found < 2e-6, f"{rule.name} is wrong at {mutant}"

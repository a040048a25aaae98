"""The verifier against numbers: nothing that numbers refute is ever proved."""

import random
from dataclasses import replace

import pytest

from rulesets.errors import RulesetsError
from rulesets.rule import Rule
from rulesets.store import load
from rulesets.trial import deviations
from rulesets.values import deadline_in
from rulesets.verify import at_every_size, at_given_sizes
from tests.rulesets.mutants import random_mutants
from tests.rulesets.perturb import perturbed

FEW, MANY = 60, 1500
SECONDS = 3
SEED = 4


def sample(count: int) -> list[Rule]:
    """Return wrong rules, spread over all shipped rules."""
    rng = random.Random(SEED)
    several = [list(perturbed(rule)) for rule in load()]
    everything = [each for rules in several for each in rules]
    return rng.sample(everything, min(count, len(everything)))


def refuted(rule: Rule) -> bool:
    """Say whether the sides of a rule differ on an instance or on a changed one."""
    for instance in rule.instances:
        for number, changed in enumerate((instance, *random_mutants(instance, 12, seed=3))):
            try:
                found = deviations(rule, changed, number)
            except (RulesetsError, ValueError, TypeError, LookupError, ArithmeticError):
                continue
            if any(not one < 1e-5 for one in found):
                return True
    return False


def proved(rule: Rule) -> str:
    """Return how a rule is proved, empty if it is not."""
    if at_every_size(rule, deadline_in(SECONDS))[0].holds:
        return "all-sizes"
    return "at-sizes" if at_given_sizes(rule, deadline_in(SECONDS)).holds else ""


def check(rules: list[Rule]) -> tuple[int, int]:
    """Count the rules that numbers refute and those that are proved; none is both."""
    wrong = right = 0
    for rule in rules:
        if refuted(rule):
            wrong += 1
            assert at_every_size(rule, deadline_in(SECONDS))[0].holds is False, rule
            assert not rule.instances or not _refuted_where_it_stands(rule), rule
        else:
            right += bool(proved(rule))
    return wrong, right


def _refuted_where_it_stands(rule: Rule) -> bool:
    """Say whether a rule is proved at the sizes of instances that refute it."""
    here = replace(rule, instances=rule.instances[:1])
    found = [deviations(rule, rule.instances[0], seed) for seed in range(3)]
    differs = any(not one < 1e-5 for each in found for one in each)
    return differs and at_given_sizes(here, deadline_in(SECONDS)).holds


def test_few_perturbed_rules() -> None:
    """Of perturbed rules none is proved that numbers refute."""
    wrong, _ = check(sample(FEW))
    assert wrong > FEW / 4


@pytest.mark.slow
def test_many_perturbed_rules() -> None:
    """Of many perturbed rules none is proved that numbers refute."""
    wrong, _ = check(sample(MANY))
    assert wrong > MANY / 4

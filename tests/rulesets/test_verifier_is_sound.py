"""The verifier against numbers: nothing that numbers refute is ever proved."""

import random
from dataclasses import replace

import pytest

from rulesets.deadline import deadline_in
from rulesets.errors import RulesetsError
from rulesets.rule import Rule
from rulesets.store import load
from rulesets.trial import deviations
from rulesets.verify import at_every_size, at_given_sizes
from tests.rulesets.mutants import random_mutants
from tests.rulesets.perturb import perturbed

FEW, MANY = 40, 1500
SECONDS = 2
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


def check(rules: list[Rule]) -> int:
    """Count the rules that numbers refute, and insist that none of them is proved."""
    wrong = [rule for rule in rules if refuted(rule)]
    for rule in wrong:
        assert not at_every_size(rule, deadline_in(SECONDS))[0].holds, rule
        here = replace(rule, instances=rule.instances[:1])
        # The first match is the instance itself; others exchange commutative arguments,
        # and with them attributes, of which a proof at given sizes says nothing.
        found = [next(iter(deviations(rule, here.instances[0], s)), 0.0) for s in range(3)]
        if any(not one < 1e-5 for one in found):
            assert not at_given_sizes(here, deadline_in(SECONDS)).holds, rule
    return len(wrong)


@pytest.mark.parametrize("rule", load(), ids=lambda rule: rule.name)
def test_shipped_rules_hold_at_zeros_too(rule: Rule) -> None:
    """Shipped rules survive constant, zero and negative values: none cancels a divisor.

    A law that divides by the same tensor on both sides of a fraction is true over the
    reals, but turns NaN into numbers where that tensor is zero.
    """
    assert not refuted(rule)


def test_few_perturbed_rules() -> None:
    """Of perturbed rules none is proved that numbers refute."""
    assert check(sample(FEW)) > FEW / 4


@pytest.mark.slow
def test_many_perturbed_rules() -> None:
    """Of many perturbed rules none is proved that numbers refute."""
    assert check(sample(MANY)) > MANY / 4

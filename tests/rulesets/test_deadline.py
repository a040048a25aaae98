"""A proof gives up at its deadline, wherever it is."""

import pytest

from rulesets.deadline import OutOfTimeError, check_time, deadline_in, until
from rulesets.integers import Integers
from rulesets.prove import OUT_OF_TIME
from rulesets.scenario import DeadError, Scenario, State, scenarios
from rulesets.size import symbol
from rulesets.store import load
from rulesets.verify import at_every_size

PAST = 0.0


def test_time_is_not_limited_outside_a_proof() -> None:
    """Without a deadline `check_time` returns."""
    check_time()


def test_scenarios_that_yield_nothing_end_at_the_deadline() -> None:
    """Runs that all come to nothing are stopped as well."""

    def run(scenario: Scenario) -> None:
        scenario.choose("which", range(1_000_000))
        raise DeadError

    with until(PAST), pytest.raises(OutOfTimeError, match="out of time"):
        list(scenarios(run, State(), 10))


def test_a_question_about_integers_ends_at_the_deadline() -> None:
    """No solver is started once time is over; what was cut short is not remembered."""
    a, b = symbol("a"), symbol("b")
    known = Integers([a - 2 * b, b - 3])
    with until(PAST), pytest.raises(OutOfTimeError, match="out of time"):
        known.implied(a - 6)
    assert known.implied(a - 6)


def test_a_proof_without_time_says_so() -> None:
    """The reason is the time, not what the proof was about to find."""
    rule = next(each for each in load() if each.name == "matmul-of-constants")
    assert at_every_size(rule, deadline_in(60))[0].holds
    proof, ranks = at_every_size(rule, PAST)
    assert (proof.holds, proof.reason, ranks) == (False, OUT_OF_TIME, "")

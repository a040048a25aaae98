"""The proof of one rule: both sides in every scenario, element by element.

The left side is assumed to be well-formed and to have no empty axis; equations that its
shape rules and the conditions ask for are facts. The shapes of the right side are proved;
what does not follow is noted as a condition. Then, at a symbolic index, the difference of
the two elements must be 0, and every denominator and radicand of the right side must be one
of the left side or obviously allowed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from rulesets.deadline import OutOfTimeError, until
from rulesets.errors import NotModelledError, ShapeError
from rulesets.judge import judging
from rulesets.normal_form import TooLargeError
from rulesets.rule import Rule
from rulesets.scenario import DeadError, Scenario, State, scenarios
from rulesets.sides import Limits, Sides, Subject
from rulesets.symbols import Tensors
from rulesets.values import Evidence


@dataclass(frozen=True)
class Proof:
    """What a proof found.

    Attributes:
        holds: Whether every scenario is proved.
        needs: Conditions that the right side needs, as texts.
        reason: Why not, in one line.
        checked: In how many scenarios elements were compared.
        ranks: The ranks of the tensor variables in these scenarios.
    """

    holds: bool
    needs: tuple[str, ...] = ()
    reason: str = ""
    checked: int = 0
    ranks: frozenset[int] = frozenset()


@dataclass(frozen=True)
class _Outcome:
    reason: str
    needs: tuple[str, ...]
    ranks: frozenset[int]
    compared: bool


NOWHERE = "no scenario is well-formed"
"""The reason where no ranks and sizes fit a rule."""

OUT_OF_TIME = "out of time"
"""The reason where the deadline came first."""

_FAULTS = (
    *(AssertionError, TypeError, ValueError),
    *(LookupError, ArithmeticError, RecursionError),
)
"""What a term beyond the prover's model may raise; it is not proved then."""


def prove(rule: Rule, dtypes: Mapping[str, str], limits: Limits) -> Proof:
    """Try to prove a rule without rest variables.

    Args:
        rule: The rule.
        dtypes: The element types of the tensor variables.
        limits: How far to go.
    """
    needs: dict[str, None] = {}
    ranks: set[int] = set()
    checked = 0
    run = partial(_run, Subject(rule, dtypes, limits))
    try:
        with until(limits.deadline):
            for outcome in scenarios(run, State(), limits.runs):
                if outcome.reason:
                    return Proof(False, tuple(needs), outcome.reason, checked)
                checked += outcome.compared
                if outcome.compared:
                    needs.update(dict.fromkeys(outcome.needs))
                    ranks |= outcome.ranks
    except OutOfTimeError:
        return Proof(False, tuple(needs), OUT_OF_TIME, checked)
    except NotModelledError as error:
        return Proof(False, tuple(needs), f"not modelled: {error}", checked)
    except (TooLargeError, *_FAULTS) as error:
        return Proof(False, tuple(needs), f"{type(error).__name__}: {error}", checked)
    if not checked:
        return Proof(False, tuple(needs), NOWHERE, checked)
    return Proof(True, tuple(needs), "", checked, frozenset(ranks))


def _run(subject: Subject, scenario: Scenario) -> _Outcome:
    """Compare both sides in one scenario."""
    sides = Sides(subject, scenario)
    with judging(scenario):
        try:
            lefts = _lefts(sides)
            scenario.right = True
            sides.binding.meaning = sides.rights
            rights = [
                sides.right(term, left.dtype)
                for term, left in zip(subject.rule.rhs, lefts, strict=True)
            ]
        except ShapeError:
            # There is no such left side, or the engine's shape check keeps the rule away.
            return _Outcome("", (), frozenset(), compared=False)
        pairs = list(zip(lefts, rights, strict=True))
        if not all(_same_type(scenario, left, right) for left, right in pairs):
            return _Outcome("", (), frozenset(), compared=False)
        evidence = Evidence(scenario, sides.lefts, sides.rights)
        reasons = (evidence.compare(left, right) for left, right in pairs)
        reason = next((each for each in reasons if each), "")
        if reason:
            reason = f"at {sides.shapes_text()}: {reason}"
        variables = [each for each in sides.binding.tensors.values() if each.name]
        ranks = frozenset(len(each.shape) for each in variables)
        return _Outcome(reason, tuple(scenario.needs), ranks, compared=True)


def _lefts(sides: Sides) -> list[Tensors]:
    """Build the left sides, and take the conditions for granted."""
    sides.early()
    lefts = [sides.left(term) for term in sides.rule.lhs]
    sides.settle()
    if sides.pending:
        raise NotModelledError(f"the condition {sides.pending[0][0].text}")
    if sides.scenario.integers.impossible(stages=1):
        raise DeadError
    return lefts


def _same_type(scenario: Scenario, left: Tensors, right: Tensors) -> bool:
    if left.dtype != right.dtype or len(left.shape) != len(right.shape):
        return False
    return all(scenario.equal(a, b) for a, b in zip(left.shape, right.shape, strict=True))

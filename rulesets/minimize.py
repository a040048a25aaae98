"""Pruning as Ruler does it: keep what the laws kept so far do not derive.

Candidates come in order, the simplest first. A chunk is tested against the laws kept so far
on all workers; what is not derived is tested again in order, written as rules and proved.
Whether an equation follows is decided by a function that is passed in.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from rulesets.equation import Equation
from rulesets.errors import RuleError
from rulesets.law import Law, forms, name_of
from rulesets.parallel import Workers
from rulesets.rule import Rule
from rulesets.rule_text import reversed_text
from rulesets.store import parse_file
from rulesets.verify import Verdict, elementwise
from rulesets.widen import Wide, unconditional, widen, written_out

PATIENCE = 2.0
"""Seconds of processor time for wider forms of a direction that is not proved."""

WIDE = "all-sizes"
"""The verdict without which no form of a rule but the plainest is kept."""

type Derivable = Callable[[Equation, Sequence[Rule], Mapping[str, int]], bool]
"""Whether an equation follows from rules at these sizes; the third argument."""

type Prove = Callable[[Rule], Verdict]
type Status = Literal["derived", "kept", "refused", "unwritable"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a candidate.

    Attributes:
        equation: The candidate.
        status: ``derived`` from laws kept before, ``kept`` as a law, ``refused`` by the
            verifier, or ``unwritable`` as a rule.
        law: The law, if kept.
        reason: Of a refusal.
    """

    equation: Equation
    status: Status
    law: Law | None = None
    reason: str = ""


def prune(
    equations: Iterable[Equation],
    kept: Sequence[Law],
    *,
    sizes: Mapping[str, int],
    derivable: Derivable,
    prove: Prove,
    accept: frozenset[str],
    workers: Workers,
    known: Sequence[Rule] = (),
    widening: bool = False,
) -> list[Outcome]:
    """Decide about one chunk of candidates.

    Args:
        equations: Candidates, the simplest first.
        kept: The laws kept so far.
        sizes: Values for the symbols of the candidates' shapes.
        derivable: The derivability test.
        prove: The verifier.
        accept: The verdicts with which a rule is kept.
        workers: Where the first test runs.
        known: Rules that need not be found again.
        widening: Whether every law is made as wide as it can be, see `rulesets.widen`;
            else only those about single elements.
    """
    laws = list(kept)
    rules = [*known, *(rule for one in laws for rule in one.rules)]
    before = len(rules)
    chunk = list(equations)
    tests = workers.map(partial(_test, derivable, tuple(rules), dict(sizes)), chunk)
    outcomes = []
    for equation, derived in zip(chunk, tests, strict=True):
        grown = len(rules) > before
        if derived or (grown and derivable(equation, rules, sizes)):
            outcomes.append(Outcome(equation, "derived"))
            continue
        outcome = judge(
            equation, laws, sizes=sizes, prove=prove, accept=accept, widening=widening
        )
        outcomes.append(outcome)
        if outcome.law is not None:
            laws.append(outcome.law)
            rules += outcome.law.rules
    return outcomes


def _test(
    derivable: Derivable, rules: tuple[Rule, ...], sizes: dict[str, int], equation: Equation
) -> bool:
    return derivable(equation, rules, sizes)


def judge(
    equation: Equation,
    laws: Sequence[Law],
    *,
    sizes: Mapping[str, int],
    prove: Prove,
    accept: frozenset[str],
    widening: bool = False,
) -> Outcome:
    """Write a candidate as rules and prove them, each direction in its widest true form."""
    name = name_of(equation, [one.name for one in laws])
    directions = forms(equation, name, sizes)
    if not directions:
        return Outcome(equation, "unwritable")
    proved: list[tuple[str, Rule]] = []
    for alternatives in directions:
        back, narrow = _back(proved, prove, accept) if widening else (None, False)
        if back is not None:
            proved.append(back)
            continue
        wider = (unconditional if narrow else widen) if widening else None
        found, why = _widest(alternatives, prove, accept, wider)
        if found is not None:
            proved.append(found)
        elif not proved:  # the way back alone would only make terms larger
            return Outcome(equation, "refused", reason=why)
    texts, rules = zip(*proved, strict=True)
    return Outcome(equation, "kept", Law(name, equation, texts, rules))


def _back(
    proved: Sequence[tuple[str, Rule]], prove: Prove, accept: frozenset[str]
) -> tuple[tuple[str, Rule] | None, bool]:
    """The way back of a wide rule, without the conditions that only the way there needs.

    Returns:
        The way back, None if it is not proved; and whether it can only be a narrow rule,
        because the right side of a wide one computes numbers from those of the left.
    """
    if not proved:
        return None, False
    turned = reversed_text(proved[0][0])
    try:
        better, verdict = proved_text(turned, _parsed(turned), prove)
    except RuleError:
        return None, not written_out(proved[0][0])
    if verdict.tier not in accept or verdict.tier != WIDE:
        return None, False
    wide = unconditional(Wide(better, _parsed(better), verdict), prove)
    better = wide.text + proof_line(wide.verdict)
    return (better, _parsed(better)), False


def _widest(
    alternatives: Sequence[tuple[str, Rule]],
    prove: Prove,
    accept: frozenset[str],
    wider: Callable[[Wide, Prove], Wide] | None,
) -> tuple[tuple[str, Rule] | None, str]:
    """Return the first form that is proved, or None and why the last is not.

    The form that was found comes last; those before it are wider, and tried as long as
    there is patience. They must be proved at all sizes: a proof at the sizes of an instance
    says nothing of the axes and attributes that they leave open.
    """
    reason, spent = "", 0.0
    for place, (text, rule) in enumerate(alternatives):
        last = place == len(alternatives) - 1
        if spent > PATIENCE and not last:
            continue
        better, verdict = proved_text(text, rule, prove)
        spent += verdict.seconds
        if verdict.tier in accept and (last or verdict.tier == WIDE):
            wide = Wide(better, _parsed(better), verdict)
            # Of what is about single elements every proof is fast.
            if verdict.tier == WIDE and (wider or elementwise(wide.rule)):
                wide = (wider or widen)(wide, prove)
            better = wide.text + proof_line(wide.verdict)
            return (better, _parsed(better)), ""
        reason = f"{verdict.tier}: {verdict.reason or verdict.counterexample}"
    return None, reason


def proof_line(verdict: Verdict) -> str:
    """Return the line of a rule's table that says what was proved."""
    ranks = verdict.ranks or "as stated"
    return f'proof = {{ verdict = "{verdict.tier}", ranks = "{ranks}" }}\n'


def proved_text(text: str, rule: Rule, prove: Prove) -> tuple[str, Verdict]:
    """Prove a rule; conditions that the proof asks for are added, and proved again.

    Returns:
        The rule's text with those conditions, and the last verdict.
    """
    verdict = prove(rule)
    missing = [each for each in verdict.conditions if f'"{each}"' not in text]
    if not verdict.proved or not missing:
        return text, verdict
    more = "".join(f', "{each}"' for each in missing)
    lines = [
        line[:-1].rstrip() + more + "]" if line.startswith("where = [") else line
        for line in text.splitlines()
    ]
    better = "\n".join(lines).replace("[, ", "[") + "\n"
    try:
        return better, prove(_parsed(better))
    except RuleError as error:
        return text, Verdict("unknown", reason=f"a condition cannot be stated: {error}")


def _parsed(text: str) -> Rule:
    (rule,) = parse_file(text, "generated.toml")
    return rule


def minimize(
    laws: Sequence[Law],
    *,
    sizes: Mapping[str, int],
    derivable: Derivable,
    known: Sequence[Rule] = (),
    progress: Callable[[], None] | None = None,
) -> list[Law]:
    """Drop laws that the others (and known rules) derive, the largest first."""
    kept = list(laws)
    for one in reversed(laws):
        others = [rule for other in kept if other is not one for rule in other.rules]
        others += known
        if derivable(one.equation, others, sizes):
            kept.remove(one)
        if progress is not None:
            progress()
    return kept

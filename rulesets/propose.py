"""Which laws are worth having as rules: those that make a term smaller.

Laws are equations and hold both ways; a rule set for optimization wants directions that
end. A direction is proposed if its right side has fewer operators than its left side and no
more of the expensive ones, and if the rules that exist do not derive it already.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from rulesets.errors import OperatorError, RuleError
from rulesets.instantiate import Instantiated, instantiate
from rulesets.rule import Rule
from rulesets.term import Apply, Term, applications

HEAVY = frozenset({"MatMul", "Gemm", "Conv", "ConvTranspose"})

type Derives = Callable[[Instantiated, Sequence[Rule]], bool]
"""Whether the equations of a rule's instance follow from rules."""


def shrinks(rule: Rule) -> bool:
    """Say whether a rule makes terms smaller, and no more expensive."""
    before, after = (_count(sides) for sides in (rule.lhs, rule.rhs))
    return after[0] <= before[0] and after[1] < before[1]


def _count(sides: tuple[Term, ...]) -> tuple[int, int]:
    """Different expensive operators, and different operators; a Split is one."""
    found = {repr(a): a for side in sides for a in applications(side)}
    counted = [a for a in found.values() if a.op != "Output" and _computed(a)]
    return sum(a.op in HEAVY for a in counted), len(counted)


def _computed(application: Apply) -> bool:
    return bool(application.arguments)


def propose(laws: Sequence[Rule], rules: Sequence[Rule], derives: Derives) -> list[Rule]:
    """Return the directions of laws that are worth having beside the rules there are.

    Args:
        laws: Proved rules.
        rules: What exists.
        derives: The derivability test.
    """
    chosen: list[Rule] = []
    for law in laws:
        if not shrinks(law):
            continue
        try:
            made = instantiate(law)
        except (RuleError, OperatorError):
            continue
        if not derives(made, [*rules, *chosen]):
            chosen.append(replace(law, name=law.name.removesuffix(".reverse")))
    return chosen

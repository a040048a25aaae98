"""The verifier: is a rule true, at which sizes and ranks, under which conditions.

Tiers, the best first:

    all-sizes  proved for every size, at the ranks named
    at-sizes   proved exactly, for all values, at the small sizes of its instances
    tested     equal on random values; never enabled by default
    refuted    a counterexample is known
    unknown    none of these; the reason says where the proof stopped

Only the first two are proofs. A proof is over the reals: rounding, overflow, infinities
and NaN are outside, and every axis of the left side has at least one element.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rulesets.rule import Rule

type Tier = Literal["all-sizes", "at-sizes", "tested", "refuted", "unknown"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about a rule.

    Attributes:
        tier: One of the five tiers.
        ranks: For which ranks it holds: ``any``, ``2-4``, or what was tried.
        conditions: What the rule needs beyond its own conditions, in their vocabulary.
        counterexample: Values at which the sides differ, for ``refuted``.
        reason: Where a proof stopped, in one line; empty if it did not.
        seconds: How long the verifier took.
    """

    tier: Tier
    ranks: str = ""
    conditions: tuple[str, ...] = ()
    counterexample: Mapping[str, object] | None = None
    reason: str = ""
    seconds: float = 0.0

    @property
    def proved(self) -> bool:
        """Whether this is a proof."""
        return self.tier in ("all-sizes", "at-sizes")


def verify(rule: Rule, *, seconds: float = 10) -> Verdict:
    """Prove or refute a rule.

    Args:
        rule: Any rule; it need not be in a file.
        seconds: Give up after this long.
    """
    return Verdict("unknown", reason=f"no prover yet for {rule.name!r} ({seconds} s)")

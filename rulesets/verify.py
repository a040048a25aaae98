"""The verifier: is a rule true, at which sizes and ranks, under which conditions.

Tiers, the best first:

    all-sizes  proved for every size, at the ranks named
    at-sizes   proved exactly, for all values, at the small sizes of its instances
    tested     equal on random values; never enabled by default
    refuted    a counterexample is known
    unknown    none of these; the reason says where the proof stopped

Only the first two are proofs. A proof is over the reals: rounding, overflow, infinities
and NaN are outside, and every axis of the left side has at least one element. A rule for
elementwise operators alone holds at any rank once it holds for single elements: such an
operator reads every argument at the same index.
"""

import time
from dataclasses import dataclass, replace
from typing import Literal

from rulesets.condition import Condition
from rulesets.counterexample import Counterexample, differing
from rulesets.expression import Sequenced
from rulesets.instance import Instance
from rulesets.ops import OPERATORS
from rulesets.prove import NOWHERE, OUT_OF_TIME, Proof, prove
from rulesets.rule import Rule
from rulesets.sides import Limits
from rulesets.term import applications
from rulesets.trial import TOLERANCE, bundles, deviations

type Tier = Literal["all-sizes", "at-sizes", "tested", "refuted", "unknown"]

COUNTS = (1, 2, 3)
MOST_RUNS = 20_000
FEW_SCENARIOS, FURTHER_RUNS, MOST_RANK = 60, 1500, 5
SEEDS = (0, 1, 2)
SCALES = (0.5, 4.0)
WINDOWED = ("Conv", "ConvTranspose", "MaxPool", "AveragePool")


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
    counterexample: Counterexample | None = None
    reason: str = ""
    seconds: float = 0.0

    @property
    def proved(self) -> bool:
        """Whether this is a proof."""
        return self.tier in ("all-sizes", "at-sizes")


def verify(rule: Rule, *, seconds: float = 10, deep: bool = False) -> Verdict:
    """Prove or refute a rule.

    Args:
        rule: Any rule; it need not be in a file. Its instances serve to refute it, to show
            that it can apply at all, and as the sizes of a proof at given sizes.
        seconds: Give up the proof after so much processor time.
        deep: Go on to higher ranks where a proof has few scenarios.
    """
    start = time.process_time()
    # What an earlier proof said must not decide where the rule applies now.
    verdict = _verdict(replace(rule, verdict="", ranks=""), start + seconds, deep)
    return replace(verdict, seconds=time.process_time() - start)


def _verdict(rule: Rule, deadline: float, deep: bool) -> Verdict:
    fired, counterexample = _tried(rule)
    if counterexample is not None:
        return Verdict("refuted", counterexample=counterexample, reason="the sides differ")
    if rule.instances and not fired:
        return Verdict("unknown", reason="vacuous: it fires on none of its instances")
    if not rule.instances:
        return Verdict("unknown", reason="no instance shows that it can apply")
    proof, ranks = at_every_size(rule, deadline, deep=deep)
    if proof.holds:
        return Verdict("all-sizes", ranks, proof.needs)
    reason = proof.reason
    sizes = at_given_sizes(rule, deadline)
    if sizes.holds:
        return Verdict("at-sizes", _ranks(sizes.ranks), sizes.needs, reason=reason)
    return Verdict("tested", reason=f"{reason}; at its sizes: {sizes.reason}")


def _tried(rule: Rule) -> tuple[bool, Counterexample | None]:
    """Say whether a rule fires on its instances, and where its sides differ."""
    fired = 0
    for instance in rule.instances:
        found = False
        for seed in SEEDS:
            for scale in SCALES:
                each = deviations(rule, instance, seed, scale)
                found = found or bool(each)
                if any(not one < TOLERANCE for one in each):
                    return True, differing(rule, instance, seed, scale)
        fired += found
    return bool(fired) and fired == len(rule.instances), None


def dtypes_of(rule: Rule) -> dict[str, str]:
    """Return the element types of the tensor variables, from the instances."""
    names = {"float": "float32"}
    return {
        name: names.get(sample.dtype, sample.dtype)
        for instance in rule.instances
        for name, sample in instance.tensors.items()
    }


def elementwise(rule: Rule) -> bool:
    """Say whether a rule is about single elements: it holds at any rank or at none."""
    for side in (*rule.lhs, *rule.rhs):
        for application in applications(side):
            shape = dict(application.attributes).get("shape")
            scalar = application.op == "Fill" and shape == Sequenced(())
            if not (OPERATORS[application.op].elementwise or scalar):
                return False
    return True


def _on_shapes(condition: Condition) -> bool:
    words = ("rank", "dim", "shape", "fits", "nested", "along", "moves-ones")
    return any(word in condition.text for word in words)


def at_every_size(rule: Rule, deadline: float, *, deep: bool = False) -> tuple[Proof, str]:
    """Try to prove a rule at every size; also say at which ranks."""
    if elementwise(rule):
        # Single elements have no shape, so conditions on shapes say nothing here.
        where = tuple(each for each in rule.where if not _on_shapes(each))
        proof = _proved(replace(rule, where=where), Limits(0, MOST_RUNS, deadline))
        return proof, "any"
    operators = {each.op for s in (*rule.lhs, *rule.rhs) for each in applications(s)}
    ranks = (4, 3) if operators & set(WINDOWED) else (3, 2)
    proof = Proof(False)
    left = deadline - time.process_time()
    for attempt, rank in enumerate(ranks):
        share = time.process_time() + left * (0.6 if attempt == 0 else 0.25)
        proof = _proved(rule, Limits(rank, MOST_RUNS, share))
        if proof.reason == NOWHERE:  # the rule is about higher ranks
            proof = _proved(rule, Limits(MOST_RANK, MOST_RUNS, share))
        if proof.holds:
            further = _further(rule, proof, rank, deadline) if deep else proof
            arguments = f", 1-{COUNTS[-1]} arguments" if rule.variadic else ""
            return further, _ranks(further.ranks) + arguments
        if proof.reason != OUT_OF_TIME:
            break
    return proof, ""


def _further(rule: Rule, proof: Proof, rank: int, deadline: float) -> Proof:
    """Try one rank more where there are few scenarios."""
    while proof.checked <= FEW_SCENARIOS and rank < MOST_RANK:
        rank += 1
        more = _proved(rule, Limits(rank, FURTHER_RUNS, deadline))
        if not more.holds or not more.ranks > proof.ranks:
            break
        proof = more
    return proof


def _proved(rule: Rule, limits: Limits) -> Proof:
    """Prove a rule, with 1 to 3 arguments for a rest variable."""
    counts = COUNTS if rule.variadic else (1,)
    proofs = []
    for count in counts:
        proof = prove(rule.at_arity(count), dtypes_of(rule), limits)
        if not proof.holds and proof.reason != NOWHERE:
            return proof
        proofs.append(proof)
    if not any(proof.holds for proof in proofs):
        return proofs[0]
    return Proof(
        True,
        tuple(dict.fromkeys(need for proof in proofs for need in proof.needs)),
        "",
        sum(proof.checked for proof in proofs),
        frozenset().union(*(proof.ranks for proof in proofs)),
    )


def at_given_sizes(rule: Rule, deadline: float) -> Proof:
    """Prove a rule at the sizes of its instances, for all values."""
    proofs = []
    for instance in rule.instances:
        expanded = rule.at_arity(instance.count)
        proof = prove(expanded, dtypes_of(rule), _limits(expanded, instance, deadline))
        if not proof.holds:
            return proof
        proofs.append(proof)
    ranks = frozenset[int]().union(*(proof.ranks for proof in proofs))
    return Proof(True, (), "", len(proofs), ranks)


def _limits(rule: Rule, instance: Instance, deadline: float) -> Limits:
    shapes = {name: sample.shape for name, sample in instance.tensors.items()}
    return Limits(
        0,
        200,
        max(deadline, time.process_time() + 3),
        shapes,
        bundles(rule, instance.attributes),
    )


def _ranks(ranks: frozenset[int]) -> str:
    if not ranks:
        return ""
    low, high = min(ranks), max(ranks)
    return f"{low}" if low == high else f"{low}-{high}"

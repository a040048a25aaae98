"""Deriving the rows that were written by hand: the check behind `rulesets.origin`.

A row is taken at each of its instances, where it says equations between ground terms. They
are derived in the e-graph from what was generated and from the definitions of composite
operators. If one round is enough, each law that took part is tried alone: one that does it
has the row as an instance. Constants of an instance have values drawn at
random, and arithmetic of constants is computed, as it is in a model.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rulesets.errors import OperatorError, RuleError
from rulesets.instantiate import Instantiated, instantiate
from rulesets.origin import Origin, weakest
from rulesets.rule import Rule

ROUNDS = 4
"""Steps of saturation after which a row counts as not derived."""

DEFINITIONS = "definitions"
BY_HAND = frozenset({"constants", DEFINITIONS})
"""Files of laws that no enumeration wrote."""

BROAD = frozenset({"batched", "conv", "layout", "norm"})
"""Families of many operators at few shapes; their laws are many and narrow."""

type Found = tuple[int | None, tuple[str, ...]]
"""Rounds in which an instance's equations follow, or None, and which laws took part."""

type Derive = Callable[[Instantiated, Sequence[Rule], int], Found]
"""The derivability test: what follows from rules within some rounds."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What rows may be derived from.

    Attributes:
        wide: Laws found by enumeration of narrow families, and made wide: tried first.
        generated: All laws found by enumeration.
        definitions: Definitions of composite operators.
    """

    wide: tuple[Rule, ...]
    generated: tuple[Rule, ...]
    definitions: tuple[Rule, ...]


def sources(laws: Sequence[Rule], rules: Sequence[Rule]) -> Sources:
    """Return what rows may be derived from.

    Args:
        laws: The shipped laws.
        rules: The shipped rules; of these the generated ones are taken.
    """
    found = [law for law in laws if law.family not in BY_HAND]
    found += [rule for rule in rules if not by_hand(rule)]
    return Sources(
        tuple(law for law in found if law.family not in BROAD),
        tuple(found),
        tuple(law for law in laws if law.family == DEFINITIONS),
    )


def by_hand(rule: Rule) -> bool:
    """Say whether a shipped rule is of a file that was written by hand."""
    return not rule.family.startswith("generated")


def origin(versions: Sequence[Rule], known: Sources, derive: Derive) -> Origin:
    """Return where a row comes from.

    Args:
        versions: The rules that the row stands for.
        known: What it may be derived from.
        derive: The derivability test.
    """
    found = []
    for rule in versions:
        for which in range(len(rule.instances)):
            one = _at_instance(rule, which, known, derive)
            if one.kind == "left":
                return one
            found.append(one)
    return weakest(found)


def _at_instance(rule: Rule, which: int, known: Sources, derive: Derive) -> Origin:
    try:
        made = instantiate(rule, which)
    except (RuleError, OperatorError) as error:
        return Origin("left", reason=f"not read: {error}".replace('"', "'"))
    for laws in (known.wide, known.generated):
        rounds, took_part = derive(made, (*laws, *known.definitions), ROUNDS)
        if rounds is not None:
            break
    if rounds is None:
        return Origin("left", reason=f"{rule.name} does not follow in {ROUNDS} rounds")
    if rounds <= 1:
        for kind, laws in (
            ("generated", known.generated),
            ("definition", known.definitions),
        ):
            law = _single(made, [law for law in laws if law.name in took_part], derive)
            if law is not None:
                return Origin(kind, law=law)
    return Origin("derived", rounds=max(rounds, 1))


def _single(made: Instantiated, laws: Sequence[Rule], derive: Derive) -> str | None:
    """The one law that derives an instance alone and in one round."""
    for law in laws:
        if derive(made, (law,), 1)[0] is not None:
            return law.name
    return None


def rows(rules: Sequence[Rule], row_of: Callable[[str], str]) -> Iterator[list[Rule]]:
    """Yield the rules of each row written by hand, in their order."""
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        if by_hand(rule):
            found.setdefault(row_of(rule.name), []).append(rule)
    yield from found.values()

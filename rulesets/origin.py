"""Where a rule comes from, as its row says it.

    generated   it follows in one step from one law that the generator found
    definition  it follows in one step from one definition of a composite operator
    derived     both sides become one within some rounds of saturation under generated laws
                and definitions, without the row and without any other row written by hand
    left        none of these; the reason is stated

What a row says is checked by `rulesets.rederive`, at each of its instances and in each of
its versions; that the rule is true at all sizes is the proof's business.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rulesets.errors import RuleError

KINDS = ("generated", "definition", "derived", "left")
"""The kinds of origins, in the order in which they are looked for."""

_NEEDED = {"generated": "law", "definition": "law", "derived": "rounds", "left": "reason"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a rule comes from.

    Attributes:
        kind: One of `KINDS`.
        law: The law or definition it is an instance of, for ``generated`` and
            ``definition``; where versions of a row come from several, the first one.
        rounds: Rounds of saturation, for ``derived``.
        reason: Why nothing else applies, for ``left``.
    """

    kind: str
    law: str = ""
    rounds: int = 0
    reason: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "derived":
                return f"derived in {self.rounds} round{'s' if self.rounds > 1 else ''}"
            case "left":
                return f"left: {self.reason}"
        return f"{self.kind}: {self.law}"

    def table(self) -> str:
        """Return the inline table that a rule file holds."""
        key = _NEEDED[self.kind]
        value = getattr(self, key)
        shown = str(value) if isinstance(value, int) else f'"{value}"'
        return f'{{ kind = "{self.kind}", {key} = {shown} }}'


def read_origin(value: object) -> Origin | None:
    """Read the ``origin`` of a row; None if it has none.

    Raises:
        RuleError: The value is no origin.
    """
    if value is None:
        return None
    if isinstance(value, Mapping) and value.get("kind") in KINDS:
        kind = str(value["kind"])
        key = _NEEDED[kind]
        wanted = int if key == "rounds" else str
        if set(value) == {"kind", key} and isinstance(value[key], wanted):
            return Origin(**value)
    raise RuleError(
        f"'origin' is {value!r}; possible: "
        + ", ".join(f'{{ kind = "{kind}", {_NEEDED[kind]} = ... }}' for kind in KINDS)
    )


def weakest(origins: list[Origin]) -> Origin:
    """Return the origin of a row from those of its versions: the one that says least."""
    return max(origins, key=lambda one: (KINDS.index(one.kind), one.rounds))

"""What an optimization changed and why, as plain values.

An `Explanation` holds two lists of nodes, before and after, and between them *links*: one
application of one rule each. Every new node has a chain of links that leads from the
original graph to it; every node that is gone names the rules because of which it went.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

KEPT, NEW, GONE = "kept", "new", "gone"

VERDICTS = {
    "all-sizes": "proved for all sizes",
    "at-sizes": "proved at sizes",
    "tested": "tested, not proved",
    "unknown": "not proved",
    "refuted": "refuted",
    "": "not judged",
}
"""How the verdicts of the verifier are said."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node of one of the two graphs.

    Attributes:
        operator: Its operator; domain and type of an ONNX node that is kept as it is.
        name: Name of the node, or of its result where it has none.
        shape: Type and shape of its first result.
        attributes: Its attributes, those with their default left out.
        inputs: Numbers of the nodes in the same list whose results it reads.
        constants: How many of its inputs are constants.
        seconds: Predicted cost.
        state: ``kept``, or ``gone`` (before) or ``new`` (after).
    """

    operator: str
    name: str
    shape: str
    attributes: str
    inputs: tuple[int, ...]
    constants: int
    seconds: float
    state: str

    def __str__(self) -> str:
        """Operator and name."""
        return f"{self.operator} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class Link:
    """One application of a rule.

    Attributes:
        rule: Its name.
        proof: What was proved of the rule, in words.
        before: The e-nodes of the left sides, in words, outside first.
        after: The e-nodes that became equal to them.
    """

    rule: str
    proof: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        """Rule, both sides, proof."""
        sides = f"{' · '.join(self.before)} → {' · '.join(self.after)}"
        return f"{self.rule}: {sides} ({self.proof})"


@dataclass(frozen=True, slots=True)
class Change:
    """A new node, or a node that is gone.

    Attributes:
        node: Its number in ``after`` or in ``before``.
        others: Numbers of the nodes in the other list that it replaces, or that replace it.
        chain: Numbers of the links that lead to it.
        why: Of a node that is gone, what became of it.
    """

    node: int
    others: tuple[int, ...]
    chain: tuple[int, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Which rules did what.

    Attributes:
        improved: Whether the result is the graph explained here; else it is the original,
            and this is about the best other graph found.
        reason: Why the result is what it is, in one sentence.
        fired: How often each rule changed the e-graph.
        proofs: What was proved of each of these rules, in words.
        before: The nodes of the original graph, constants left out.
        after: The nodes of the graph found.
        links: Applications of rules on which new or gone nodes depend, in order.
        new: One change for each new node.
        gone: One for each node that is gone.
    """

    improved: bool
    reason: str
    fired: Mapping[str, int] = field(default_factory=dict)
    proofs: Mapping[str, str] = field(default_factory=dict)
    before: tuple[NodeView, ...] = ()
    after: tuple[NodeView, ...] = ()
    links: tuple[Link, ...] = ()
    new: tuple[Change, ...] = ()
    gone: tuple[Change, ...] = ()

    @property
    def used(self) -> dict[str, int]:
        """How often each rule is a link, most often first."""
        counts: dict[str, int] = {}
        for link in self.links:
            counts[link.rule] = counts.get(link.rule, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def rules(self, change: Change) -> tuple[str, ...]:
        """Names of the rules behind a change, in order, each once."""
        return tuple(dict.fromkeys(self.links[index].rule for index in change.chain))

    def to_json(self) -> str:
        """The explanation as JSON text."""
        return json.dumps(asdict(self), indent=1) + "\n"

    def __str__(self) -> str:
        """The explanation as text to read."""
        # Imported here: the text is a file of its own, which knows this one.
        from tensat.explanation_text import explanation_text

        return explanation_text(self)


def proof_text(verdict: str, ranks: str) -> str:
    """A verdict in words."""
    text = VERDICTS.get(verdict, verdict)
    return (
        f"{text} (ranks {ranks})"
        if ranks and verdict in ("all-sizes", "at-sizes")
        else text
    )

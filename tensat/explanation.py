"""What an optimization changed and why, as plain values.

An `Explanation` holds two lists of nodes, before and after, and between them *links*: one
application of one rule each. Every new node has a chain of links that leads from the
original graph to it; every node that is gone names the rules because of which it went.
As text, changes of one kind are told once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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

MOST_LINKS = 12
"""Links of a chain that are written out."""

MOST_NAMES = 6
"""Names of nodes that are written out."""

WIDTH = 100
"""Characters of one side of a link."""


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
        return "\n".join(_lines(self)) + "\n"


def proof_text(verdict: str, ranks: str) -> str:
    """A verdict in words."""
    text = VERDICTS.get(verdict, verdict)
    return (
        f"{text} (ranks {ranks})"
        if ranks and verdict in ("all-sizes", "at-sizes")
        else text
    )


# ------------------------------------------------------------------ as text
def _lines(found: Explanation) -> Iterator[str]:
    yield found.reason
    if not found.before:
        return
    if not found.improved and found.new:
        yield "What follows is about the best other graph that was found."
    kept = len(found.before) - len(found.gone)
    yield (
        f"{len(found.before)} nodes before, {len(found.after)} after: {kept} kept, "
        f"{len(found.gone)} gone, {len(found.new)} new."
    )
    yield ""
    yield from _rules(found)
    for title, changes in (("New nodes", found.new), ("Gone nodes", found.gone)):
        if changes:
            yield ""
            yield title
            yield from _changes(found, changes, title.startswith("New"))


def _rules(found: Explanation) -> Iterator[str]:
    if not found.fired:
        yield "No rule changed anything."
        return
    used = found.used
    width = max(map(len, found.fired))
    yield f"{'Rules':{width}}  fired   used  proof"
    for name, count in sorted(
        found.fired.items(), key=lambda i: (-used.get(i[0], 0), -i[1])
    ):
        times = str(used.get(name, "-"))
        yield f"{name:{width}} {count:6} {times:>6}  {found.proofs.get(name, '')}"
    yield "fired: how often in the search; used: how often on the way to the graph found"


def _changes(found: Explanation, changes: tuple[Change, ...], new: bool) -> Iterator[str]:
    groups: dict[object, list[Change]] = {}
    for change in changes:
        groups.setdefault(_kind(found, change, new), []).append(change)
    for group in groups.values():
        yield from _change(found, group, new)


def _kind(found: Explanation, change: Change, new: bool) -> object:
    """Equal for changes that are told together."""
    mine, theirs = _sides(found, new)
    others = tuple(theirs[i].operator for i in change.others)
    why = "" if change.others else change.why
    return (mine[change.node].operator, others, found.rules(change), why)


def _sides(found: Explanation, new: bool) -> tuple[tuple[NodeView, ...], ...]:
    return (found.after, found.before) if new else (found.before, found.after)


def _change(found: Explanation, group: list[Change], new: bool) -> Iterator[str]:
    first = group[0]
    more = f"  (and {len(group) - 1} more like this)" if len(group) > 1 else ""
    if new:
        node = found.after[first.node]
        yield f"  + {node} {node.shape}, {_time(node.seconds)}{more}"
        if first.others:
            yield f"      in place of {_names(found, first)}"
    else:
        node = found.before[first.node]
        yield f"  - {node} {node.shape}, {_time(node.seconds)}{more}"
        yield f"      {first.why}"
    if not new:
        rules = found.rules(first)
        if rules:
            yield f"      because of {', '.join(rules[:MOST_LINKS])}"
        return
    for index in first.chain[:MOST_LINKS]:
        link = found.links[index]
        sides = f"{_cut(' · '.join(link.before))} → {_cut(' · '.join(link.after))}"
        yield f"      {link.rule} [{link.proof}]"
        yield f"          {sides}"
    if len(first.chain) > MOST_LINKS:
        yield f"      … and {len(first.chain) - MOST_LINKS} more applications"


def _names(found: Explanation, change: Change) -> str:
    names = [str(found.before[i]) for i in change.others]
    rest = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {rest} others" if rest > 0 else "")


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.4g} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.3g} µs"

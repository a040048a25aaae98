"""An explanation as text for a terminal: changes of one kind are told once."""

from __future__ import annotations

from collections.abc import Iterator

from tensat.explanation import Change, Explanation, NodeView

MOST_LINKS = 12
"""Links of a chain that are written out."""

MOST_NAMES = 6
"""Names of nodes that are written out."""

WIDTH = 100
"""Characters of one side of a link."""


def explanation_text(explanation: Explanation) -> str:
    """The explanation as lines."""
    return "\n".join(_lines(explanation)) + "\n"


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

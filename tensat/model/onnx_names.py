"""Names for the values of an exported model.

Names of inputs, outputs and captured values are fixed by the model. Other values keep their
original name where it is still free; new names avoid every name in the model, those inside
subgraphs included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tensat.errors import InternalError
from tensat.model.captures import names_inside
from tensat.model.graph import CONSTANT, INPUT, OPAQUE, Graph, Ref

__all__ = ["Names", "assign"]


@dataclass(slots=True)
class Names:
    """The names of one exported model.

    Attributes:
        of: Name of each value that has one so far.
        aliases: Further names that a value must be known by.
        taken: All names that are in use.
    """

    of: dict[Ref, str] = field(default_factory=dict)
    aliases: dict[Ref, list[str]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    _counts: dict[str, int] = field(default_factory=dict)

    def fresh(self, base: str) -> str:
        """A name that nothing else has."""
        count = self._counts.get(base, 0)
        while (name := f"{base}_{count}") in self.taken:
            count += 1
        self._counts[base] = count + 1
        self.taken.add(name)
        return name

    def name(self, ref: Ref, base: str) -> str:
        """The name of a value; it gets a fresh one if it has none."""
        if ref not in self.of:
            self.of[ref] = self.fresh(base)
        return self.of[ref]


def assign(graph: Graph, resolve: Callable[[Ref], Ref]) -> Names:
    """Names of inputs, outputs, captured values, and of all values that keep theirs.

    Args:
        graph: The graph.
        resolve: From a value to the one that is emitted in its place.

    Raises:
        InternalError: one name is demanded for two values.
    """
    names = Names()
    names.taken.update(name for name, _ in graph.outputs)
    for node in graph.nodes:
        if node.op == OPAQUE:
            record = graph.opaque[node.key]
            names.taken.update(record.captures)
            names.taken.update(names_inside(record.node))
    for index in graph.inputs:
        name = graph.nodes[index].attribute("name")
        names.of[Ref(index)] = name
        names.taken.add(name)
    _assign_demanded(graph, resolve, names)
    for original, name in graph.names.items():
        ref = resolve(original)
        if ref not in names.of and name not in names.taken:
            names.of[ref] = name
            names.taken.add(name)
    return names


def _assign_demanded(graph: Graph, resolve: Callable[[Ref], Ref], names: Names) -> None:
    owner = {name: ref for ref, name in names.of.items()}
    outputs, kept = graph.outputs, graph.kept
    for position, (name, original) in enumerate((*outputs, *kept)):
        ref = resolve(original)
        if owner.setdefault(name, ref) != ref:
            raise InternalError(f"the name '{name}' is demanded for two different values")
        fixed = graph.nodes[ref.node].op in (INPUT, CONSTANT)
        if ref not in names.of and not (fixed and position < len(outputs)):
            names.of[ref] = name
        elif names.of.get(ref) != name and name not in names.aliases.get(ref, ()):
            names.aliases.setdefault(ref, []).append(name)

"""The e-graph: e-nodes grouped into e-classes, and the e-classes wanted.

Vocabulary: an *e-node* is an operator over child *e-classes* and has a cost; an *e-class*
is a set of e-nodes that mean the same; a *root* is an e-class the extraction must derive.
E-nodes are named by their position in `EGraph.nodes`, e-classes by whatever hashable
identifier the caller uses; inside, e-classes are also numbered 0, 1, … in order of first
appearance, and everything an algorithm needs is a tuple over those numbers.
"""

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from extraction.errors import CostError, MissingRootError

type ClassId = Hashable


@dataclass(frozen=True, slots=True)
class ENode:
    """One operator over e-classes.

    Attributes:
        op: The operator's name; no meaning is attached to it.
        eclass: The e-class this e-node belongs to.
        children: The e-classes of the arguments; repetitions are allowed.
        cost: A finite cost >= 0 in any unit, or infinity for "never choose".
    """

    op: str
    eclass: ClassId
    children: tuple[ClassId, ...] = ()
    cost: float = 1.0


@dataclass(frozen=True, slots=True, init=False, eq=False)
class EGraph:
    """A frozen e-graph, checked when made.

    Attributes:
        nodes: The e-nodes as given.
        roots: The root e-classes as given.
        ids: The identifier of each e-class number.
        number_of: The number of each e-class identifier.
        class_of: For each e-node the number of its e-class.
        children_of: For each e-node the numbers of its child e-classes, without
            repetitions, in order of appearance.
        members: For each e-class number its e-nodes of finite cost, ascending.
    """

    nodes: tuple[ENode, ...]
    roots: tuple[ClassId, ...]
    ids: tuple[ClassId, ...] = field(repr=False)
    number_of: Mapping[ClassId, int] = field(repr=False)
    class_of: tuple[int, ...] = field(repr=False)
    children_of: tuple[tuple[int, ...], ...] = field(repr=False)
    members: tuple[tuple[int, ...], ...] = field(repr=False)

    def __init__(self, nodes: Iterable[ENode], roots: Iterable[ClassId]) -> None:
        """Number the e-classes and check costs and roots.

        Args:
            nodes: The e-nodes. A child e-class without e-nodes is allowed and underivable.
            roots: The e-classes to derive; at least one.

        Raises:
            CostError: A cost is negative or NaN.
            MissingRootError: There is no root, or a root has no e-node.
        """
        nodes, roots = tuple(nodes), tuple(roots)
        number_of: dict[ClassId, int] = {}
        for node in nodes:
            number_of.setdefault(node.eclass, len(number_of))
        _check_roots(roots, number_of)
        for node in nodes:
            for child in node.children:
                if child not in number_of:
                    number_of[child] = len(number_of)
        class_of = tuple([number_of[node.eclass] for node in nodes])
        number = number_of.__getitem__
        set_field = object.__setattr__
        set_field(self, "nodes", nodes)
        set_field(self, "roots", roots)
        set_field(self, "ids", tuple(number_of))
        set_field(self, "number_of", MappingProxyType(number_of))
        set_field(self, "class_of", class_of)
        set_field(
            self,
            "children_of",
            tuple([tuple(dict.fromkeys(map(number, node.children))) for node in nodes]),
        )
        set_field(self, "members", _members(nodes, class_of, len(number_of)))

    @property
    def root_numbers(self) -> tuple[int, ...]:
        """The numbers of the root e-classes, without repetitions."""
        return tuple(dict.fromkeys(self.number_of[root] for root in self.roots))

    def __repr__(self) -> str:
        """Return sizes instead of thousands of e-nodes."""
        return (
            f"EGraph({len(self.nodes)} e-nodes, {len(self.ids)} e-classes, "
            f"{len(self.roots)} roots)"
        )


def _check_roots(roots: tuple[ClassId, ...], known: Mapping[ClassId, int]) -> None:
    if not roots:
        raise MissingRootError("the e-graph has no roots; at least one is needed")
    for root in roots:
        if root not in known:
            some = ", ".join(repr(one) for one in list(known)[:3])
            raise MissingRootError(
                f"root {root!r} has no e-node; the {len(known)} e-classes are {some}, …"
            )


def _members(
    nodes: tuple[ENode, ...], class_of: tuple[int, ...], classes: int
) -> tuple[tuple[int, ...], ...]:
    members: list[list[int]] = [[] for _ in range(classes)]
    for index, node in enumerate(nodes):
        cost = node.cost
        if 0 <= cost < math.inf:
            members[class_of[index]].append(index)
        elif not cost >= 0:
            raise CostError(
                f"e-node {index} ({node.op!r} in e-class {node.eclass!r}) has cost {cost}; "
                "a cost is a number >= 0, or infinity to leave the e-node out"
            )
    return tuple(map(tuple, members))

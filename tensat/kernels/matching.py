"""Which e-nodes can be computed by one kernel: fusions matched in the e-graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType

from rulesets.errors import SizeError
from rulesets.tensor import Tensor
from tensat.costs.source import Argument, Signature, priced_opset
from tensat.egraph.encode import ABSENT
from tensat.egraph.engine import ENodeRow
from tensat.egraph.price import concrete, handle_of_row, operator_of, question
from tensat.egraph.tensor_egraph import TensorEGraph
from tensat.kernels.kernel import Application, Fusion, Layout, Members, Tree

MOST_MATCHES = 64
"""Matches of one fusion at one e-node; classes with very many equal forms have more."""


@dataclass(frozen=True, slots=True)
class Group:
    """E-nodes that one kernel can compute.

    Attributes:
        fusion: The fusion that matched; None for an e-node by itself.
        rows: The e-nodes: the root first, then as in `Members`.
        members: What they compute, at concrete sizes; empty where sizes are not known.
        arguments: Classes that the kernel takes, in order.
    """

    fusion: Fusion | None
    rows: tuple[ENodeRow, ...]
    members: Members
    arguments: tuple[int, ...]


class Matcher:
    """Finds groups in a saturated e-graph."""

    def __init__(
        self,
        egraph: TensorEGraph,
        rows: Sequence[ENodeRow],
        computed: Container[int],
        sizes: Mapping[str, int],
        fusions: Sequence[Fusion],
        opset: int,
        roots: Container[int] = (),
        known: Mapping[int, float] = MappingProxyType({}),
    ) -> None:
        """Prepare to match.

        Args:
            egraph: The e-graph, refreshed.
            rows: Its e-nodes, without those of classes that are computed before.
            computed: Classes that are computed before the model runs.
            sizes: Value of each symbolic dimension.
            fusions: What the runtime fuses.
            opset: The model's version of the default operator set.
            roots: Classes that are wanted as results.
            known: Seconds of e-nodes, by handle, that need not be asked for.
        """
        self.roots = roots
        self.egraph, self.rows, self.computed = egraph, rows, computed
        self.sizes, self.opset = sizes, opset
        self.cost: dict[ENodeRow, float] = {}
        self._applications: dict[ENodeRow, Application] = {}
        self._by_class: dict[tuple[int, str], list[ENodeRow]] = defaultdict(list)
        self._readers: dict[int, list[ENodeRow]] | None = None
        self._fusions: dict[str, list[Fusion]] = defaultdict(list)
        for fusion in fusions:
            self._fusions[fusion.tree.op].append(fusion)
        for row in rows:
            seconds = known.get(handle_of_row(egraph, row)) if known else None
            answer = question(egraph, row, sizes, opset) if seconds is None else seconds
            if isinstance(answer, Signature):
                self._applications[row] = Application(
                    answer.op, dict(answer.attributes), answer.inputs, answer.outputs,
                    row.children, row.eclass, tuple(map(self._type, row.children)),
                    egraph.outputs[handle_of_row(egraph, row)],
                )  # fmt: skip
                self._by_class[row.eclass, answer.op].append(row)
            else:
                self.cost[row] = answer

    def groups(self) -> Iterator[Group]:
        """Every e-node by itself, then every match of every fusion at it."""
        for row in self.rows:
            alone = self._applications.get(row)
            members = () if alone is None else (alone,)
            yield self._group(None, (row,), members)
            for fusion in self._fusions.get(operator_of(row.symbol), ()) if alone else ():
                for rows in islice(self._matches(fusion.tree, row), MOST_MATCHES):
                    if _closed(fusion.tree, rows):
                        found = tuple(self._applications[each] for each in rows)
                        yield self._group(fusion, rows, found)

    def signature(self, application: Application) -> Signature:
        """What an operator by itself is asked for."""
        attributes = tuple(sorted(application.attributes.items()))
        return Signature(
            application.op,
            attributes,
            application.inputs,
            application.outputs,
            priced_opset(application.op, self.opset),
        )

    def operator(self, row: ENodeRow) -> str:
        """The operator of an e-node."""
        return operator_of(row.symbol)

    def handle(self, row: ENodeRow) -> int:
        """The handle of an e-node."""
        return handle_of_row(self.egraph, row)

    def original(self, rows: Sequence[ENodeRow]) -> bool:
        """Whether e-nodes are all the model's own."""
        return all(
            self.egraph.rule_of[handle_of_row(self.egraph, row)] is None for row in rows
        )

    def _type(self, eclass: int) -> Tensor | None:
        absent = self.egraph.key_of[eclass].operator == ABSENT
        return None if absent else self.egraph.tensor(eclass)

    def read_within(self, eclass: int, rows: Container[ENodeRow]) -> bool:
        """Whether nothing in the model but these e-nodes reads a class."""
        if self._readers is None:
            self._readers = defaultdict(list)
            for row in self.rows:
                if self.original((row,)):
                    for child in row.children:
                        self._readers[child].append(row)
        readers = self._readers.get(eclass, ())
        return eclass not in self.roots and all(row in rows for row in readers)

    def argument(self, eclass: int, layout: Layout, block: int) -> Argument:
        """The type of a class as it lies in memory; of unknown size none at all."""
        try:
            plain = concrete(self.egraph.tensor(eclass), self.sizes)
        except SizeError:
            return Argument(self.egraph.tensor(eclass).dtype, ())
        if layout is Layout.PLAIN:
            return replace(plain, constant=self.egraph.constant(eclass))
        batch, channels, *rest = plain.dims
        if layout is Layout.CHANNELS_LAST:
            return replace(plain, dims=(batch, *rest, channels))
        return replace(plain, dims=(batch, -(-channels // block) * block, *rest))

    def _matches(self, tree: Tree, row: ENodeRow) -> Iterator[tuple[ENodeRow, ...]]:
        """Every way in which an e-node is the root of a tree."""
        found: list[tuple[ENodeRow, ...]] = [(row,)]
        for position, inner in tree.inner:
            if position >= len(row.children):
                return
            child = row.children[position]
            if child in self.computed:
                return
            below = [
                match
                for made in self._by_class.get((child, inner.op), ())
                for match in self._matches(inner, made)
            ]
            found = [(*before, *match) for before in found for match in below]
        yield from found

    def _group(
        self, fusion: Fusion | None, rows: tuple[ENodeRow, ...], members: Members
    ) -> Group:
        made = {row.eclass for row in rows[1:]}
        taken = (
            child
            for row in rows
            for child in row.children
            if child not in made and self.egraph.key_of[child].operator != ABSENT
        )
        return Group(fusion, rows, members, tuple(dict.fromkeys(taken)))


def _closed(tree: Tree, rows: Sequence[ENodeRow]) -> bool:
    """Whether values made inside are read only where the tree says so.

    In ``y + y`` with ``y`` a convolution, one reading is inside and the other is not: that
    is no fusion.
    """
    made = {row.eclass for row in rows[1:]}
    waiting = iter(rows)
    outside: list[int] = []

    def walk(part: Tree) -> None:
        row, inside = next(waiting), {position for position, _ in part.inner}
        outside.extend(c for at, c in enumerate(row.children) if at not in inside)
        for _, inner in part.inner:
            walk(inner)

    walk(tree)
    return not made.intersection(outside)

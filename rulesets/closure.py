"""Which equations of a layer follow from laws, for the whole layer at once.

The terms of a layer that have a value in common with others are the nodes of a graph, and
so are the representatives that they equal. A law that leads from one to another is an edge.
What hangs together with its representative is derived; pairs that do not hang together are
what is left to look at. As in an e-graph, terms of the layer that are derived may then
stand in the place of their representative below others.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from rulesets.bank import Bank, join
from rulesets.column_match import Flags, Index, Longs, UnfitError
from rulesets.column_rule import ColumnRule
from rulesets.elsewhere import Elsewhere
from rulesets.enumerate import Layer
from rulesets.ground import Ground
from rulesets.rule import Rule
from rulesets.shelf import Shelf

BATCH = 800_000
"""Terms to which a rule is applied together."""

DEPTH = 3
"""How often derived terms may make others derived."""


class Closure:
    """The equations of a layer, and which of their sides laws make equal.

    Args:
        bank: Holds the terms of all smaller sizes.
        layer: The layer.
        smaller: How many terms the bank held before the layer was enumerated.
        elsewhere: Their values at other sizes.
    """

    def __init__(
        self, bank: Bank, layer: Layer, smaller: int, elsewhere: Elsewhere
    ) -> None:
        self.bank = bank
        self.elsewhere = elsewhere
        self.shelf = Shelf(bank)
        self.below = bank.terms.take(np.arange(smaller)), bank.of[:smaller]
        self.index = Index(bank, *self.below)
        own, lead = (self.index.codes_of(side) for side in (layer.lhs, layer.rhs))
        leaders, first, leader = np.unique(lead, return_index=True, return_inverse=True)
        self.count = len(own)
        self.rows = join([layer.lhs, layer.rhs.take(first)])
        nodes = len(own) + len(leaders)
        self.leader = np.concatenate([len(own) + leader, np.arange(len(own), nodes)])
        self.known_as = self.index.class_of(np.concatenate([own, leaders]))
        self.part = np.arange(nodes)
        self._codes = np.concatenate([own, leaders])
        self._order = np.argsort(self._codes)
        self._codes = self._codes[self._order]

    def saturate(self, rules: Sequence[Rule]) -> None:
        """Unite what rules make equal, below the root too."""
        for _ in range(DEPTH):
            rules = self.apply(rules)
            if not self.deepen():
                break

    def apply(self, rules: Iterable[Rule]) -> list[Rule]:
        """Unite what rules make equal, looking at pairs that are still apart.

        Returns:
            The rules that could be applied; the others are a matter for the e-graph.
        """
        applied = []
        for rule in rules:
            try:
                one = ColumnRule(rule, self.shelf)
                nodes = self._waiting()
                for start in range(0, len(nodes), BATCH):
                    some = nodes[start : start + BATCH]
                    row, *right = one.edges(self.index, self.rows.take(some))
                    self._unite(some[row], *right)
            except UnfitError:
                continue
            applied.append(rule)
        return applied

    def _waiting(self) -> Longs:
        """Return the terms that are still apart, and their representatives."""
        lead = self.leader[: self.count]
        apart = self.part[: self.count] != self.part[lead]
        wanted = np.zeros(len(self.part), np.bool_)
        wanted[: self.count] = apart
        wanted[lead[apart]] = True
        return np.flatnonzero(wanted)

    def deepen(self) -> bool:
        """Let derived terms of the layer stand below others; say whether there are more."""
        before = len(self.index.rows)
        lead = self.leader[: self.count]
        derived = self.part[: self.count] == self.part[lead]
        classes = self.known_as[lead]
        more = np.flatnonzero(derived & (classes >= 0))
        rows, of = self.below
        of = np.concatenate([of, classes[more].astype(np.int32)])
        self.index = Index(self.bank, join([rows, self.rows.take(more)]), of)
        return len(self.index.rows) > before

    def _unite(self, node: Longs, classes: Longs, codes: Longs) -> None:
        """Take the edges from nodes to right sides, of which class or code is known."""
        known = classes >= 0
        rows = self.bank.rows.take(np.where(known, classes, 0))
        codes = np.where(known, self.index.codes_of(rows), codes)
        place = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        other = self._order[place]
        # Laws connect equal values only; anything else is a fault of rounding.
        fits = (self._codes[place] == codes) & (self.leader[node] == self.leader[other])
        self._join(node[fits], other[fits])

    def _join(self, one: Longs, other: Longs) -> None:
        while len(one):
            a, b = self.part[one], self.part[other]
            apart = a != b
            if not apart.any():
                break
            one, other, a, b = one[apart], other[apart], a[apart], b[apart]
            np.minimum.at(self.part, np.maximum(a, b), np.minimum(a, b))
            up = self.part[self.part]
            while not np.array_equal(up, self.part):
                self.part, up = up, up[up]

    def apart(self, nodes: Longs) -> Flags:
        """Say which nodes do not hang together with their representative."""
        found: Flags = self.part[nodes] != self.part[self.leader[nodes]]
        return found

    def open(self) -> Longs:
        """Return one node of each part that lacks its representative.

        What fails at other sizes was an accident and is left out.

        Equations that differ by renaming appear once for each renaming; those in which
        neither side uses its leaves in order are left out, and ordered sides preferred.
        """
        nodes = np.arange(self.count)
        nodes = nodes[self.apart(nodes)]
        ordered = self.bank.canonical(self.rows.take(nodes))
        nodes = nodes[np.argsort(~ordered, kind="stable")]
        _, first = np.unique(self.part[nodes], return_index=True)
        nodes = np.sort(nodes[first])
        sides = nodes, self.leader[nodes]
        either = [self.bank.canonical(self.rows.take(side)) for side in sides]
        nodes = nodes[either[0] | either[1]]
        sides = nodes, self.leader[nodes]
        return nodes[self.elsewhere.agree(*(self.rows.take(side) for side in sides))]

    def sides(self, node: int) -> tuple[Ground, Ground]:
        """Return a node and its representative as terms."""
        rows = self.rows
        one, other = (
            self.bank.term(int(rows.step[k]), int(rows.left[k]), int(rows.right[k]))
            for k in (node, int(self.leader[node]))
        )
        return one, other

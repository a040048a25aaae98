"""The bank: one representative term for each value found, with what is needed to go on.

Only representatives become arguments of larger terms, as in Ruler: a law about a term that
equals a smaller one follows from that equation. The bank holds columns, not objects: a term
is a step and the numbers of its arguments.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import numpy as np
import numpy.typing as npt

from rulesets.family import Family, Step
from rulesets.fingerprint import POINTS, hashes, inputs, value_of
from rulesets.ground import Ground, Leaf, numbers, resize, shape_of
from rulesets.kernels import Array, apply, part
from rulesets.ops import Value
from rulesets.tensor import Shape

type Ints = npt.NDArray[np.int32]
type Keys = npt.NDArray[np.uint64]

LEAF = -1
"""In the step column: a leaf or a constant."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Terms as columns of equal length.

    Attributes:
        step: Number of the step, or `LEAF`.
        left: Number of the first argument; of a leaf its own place.
        right: Number of the second argument, or -1.
    """

    step: Ints
    left: Ints
    right: Ints

    def __len__(self) -> int:
        return len(self.step)

    def take(self, which: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> "Rows":
        """Return some of the rows."""
        return Rows(self.step[which], self.left[which], self.right[which])


def join(parts: list[Rows]) -> Rows:
    """Return rows one after the other."""
    if not parts:
        none = np.zeros(0, np.int32)
        return Rows(none, none, none)
    return Rows(
        *(
            np.concatenate([getattr(p, name) for p in parts])
            for name in ("step", "left", "right")
        )
    )


class Bank:
    """Representatives of all sizes so far.

    Args:
        family: What is enumerated.
        seed: Of the evaluation points.
    """

    def __init__(self, family: Family, seed: int = 0) -> None:
        self.family = family
        self.steps: list[Step] = []
        self.result: list[int] = []
        self.types: list[Shape] = []
        self.base: list[Ground] = [*family.leaves, *family.constants]
        self.type = np.zeros(0, np.int32)
        self.size = np.zeros(0, np.int32)
        self.nodes = np.zeros((0, 0), np.int32)
        self.rows = join([])
        self.keys: Keys = np.zeros(0, np.uint64)
        self.terms = join([])
        self.of = np.zeros(0, np.int32)
        self._place = np.zeros(0, np.int32)
        self._values: list[Array] = []
        self._type_of: dict[Shape, int] = {}
        self._step_of: dict[tuple[Step, int], int] = {}
        self._applicable: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._orders = {g: _codes(len(m)) for g, m in family.groups.items()}
        self.order = {name: np.zeros(0, np.int32) for name in self._orders}
        self._start(inputs(family.leaves, family.sizes, exact=family.exact, seed=seed))

    def _start(self, values: dict[Leaf, Array]) -> None:
        keys, types, stored = [], [], defaultdict(list)
        for term in self.base:
            value = value_of(term, self.family.sizes, values)
            value = np.broadcast_to(value, (1, POINTS, *value.shape[2:]))
            number = self.type_number(shape_of(term))
            types.append(number)
            stored[number].append(value)
            keys.append(self.key(value, number)[0][0])
        count = len(self.base)
        places = [types[:k].count(types[k]) for k in range(count)]
        rows = Rows(
            np.full(count, LEAF, np.int32),
            np.arange(count, dtype=np.int32),
            np.full(count, -1, np.int32),
        )
        self._values = [np.concatenate(stored[k]) for k in range(len(self.types))]
        self._grow(rows, np.array(types, np.int32), 0, np.array(keys, np.uint64))
        self._place = np.array(places, np.int32)
        self.remember(rows, rows.left)
        for name, members in self.family.groups.items():
            table = self._orders[name]
            codes = [
                table.number[(members.index(term),)] if term in members else 0
                for term in self.base
            ]
            self.order[name] = np.array(codes, np.int32)

    # ------------------------------------------------------------------ types and steps
    def type_number(self, shape: Shape) -> int:
        """Return the number of a type, new or known."""
        if shape not in self._type_of:
            self._type_of[shape] = len(self.types)
            self.types.append(shape)
            self._values.append(np.zeros((0, POINTS, *numbers(shape, self.family.sizes))))
        return self._type_of[shape]

    def applicable(self, *types: int) -> tuple[int, ...]:
        """Return the numbers of the steps for arguments of these types."""
        known = self._applicable.get(types)
        if known is None:
            found = self.family.steps(*(self.types[each] for each in types))
            known = tuple(self._step_number(one, self.type_number(s)) for one, s in found)
            self._applicable[types] = known
        return known

    def _step_number(self, one: Step, result: int) -> int:
        key = (one, result)
        if key not in self._step_of:
            self._step_of[key] = len(self.steps)
            self.steps.append(one)
            self.result.append(result)
        return self._step_of[key]

    # ------------------------------------------------------------------ values
    def compute(self, step: int, left: Ints, right: Ints | None) -> Array:
        """Return the values of terms, [terms, points, *shape]."""
        arguments = [self.values_of(left)]
        if right is not None:
            arguments.append(self.values_of(right))
        one = self.steps[step]
        attributes = plain(one, self.family.sizes)
        with np.errstate(all="ignore"):
            if one.index is not None:
                return part(attributes, one.index, arguments[0])
            return apply(one.op, attributes, *arguments)

    def values_of(self, ids: Ints) -> Array:
        """Return the values of representatives of one type."""
        found: Array = self._values[self.type[ids[0]]][self._place[ids]]
        return found

    def key(self, values: Array, type_: int) -> tuple[Keys, npt.NDArray[np.bool_]]:
        """Return a number for type and values, and whether it can be trusted."""
        found, usable = hashes(values, exact=self.family.exact)
        return found ^ np.uint64((type_ + 1) * 0xD6E8FEB86659FD93 % 2**64), usable

    # ------------------------------------------------------------------ growing
    def add(self, rows: Rows, types: Ints, keys: Keys, size: int) -> None:
        """Store new representatives of one size, with their values."""
        old = len(self.rows)
        self._grow(rows, types, size, keys)
        places = np.zeros(len(rows), np.int32)
        for step in np.unique(rows.step):
            which = np.flatnonzero(rows.step == step)
            number = self.result[step]
            blocks = [self._values[number]]
            for start in range(0, len(which), 20_000):
                some = which[start : start + 20_000]
                right = None if rows.right[some[0]] < 0 else rows.right[some]
                by_type = _same_types(self, rows.left[some], right)
                values = np.zeros((len(some), *blocks[0].shape[1:]))
                for group in by_type:
                    inner = None if right is None else right[group]
                    values[group] = self.compute(step, rows.left[some][group], inner)
                blocks.append(values)
            places[which] = len(self._values[number]) + np.arange(len(which))
            self._values[number] = np.concatenate(blocks)
        self._place = np.concatenate([self._place, places])
        for name in self.order:
            self.order[name] = np.concatenate([self.order[name], self.orders(rows, name)])
        assert len(self._place) == old + len(rows)

    def remember(self, rows: Rows, of: Ints) -> None:
        """Keep terms, representatives or not, with their classes."""
        self.terms = join([self.terms, rows])
        self.of = np.concatenate([self.of, of])

    def _grow(self, rows: Rows, types: Ints, size: int, keys: Keys) -> None:
        count, old = len(rows), len(self.rows)
        self.rows = join([self.rows, rows])
        self.type = np.concatenate([self.type, types])
        self.size = np.concatenate([self.size, np.full(count, size, np.int32)])
        self.keys = np.concatenate([self.keys, keys])
        if size == 0:
            self.nodes = np.zeros((count, 0), np.int32)
            return
        own = np.arange(old, old + count, dtype=np.int32)[:, None]
        below = self.nodes[rows.left]
        others = np.where((rows.right < 0)[:, None], -1, self.nodes[rows.right])
        merged = np.concatenate([own, below, others], 1)
        merged = -np.sort(-merged, 1)
        merged[:, 1:][merged[:, 1:] == merged[:, :-1]] = -1
        merged = -np.sort(-merged, 1)[:, :size]
        grown = np.full((old, size), -1, np.int32)
        grown[:, : self.nodes.shape[1]] = self.nodes
        self.nodes = np.concatenate([grown, merged])

    # ------------------------------------------------------------------ leaf order
    def orders(self, rows: Rows, group: str) -> Ints:
        """Return for each term the code of the order in which leaves of a group appear."""
        table, known = self._orders[group], self.order[group]
        left = known[rows.left]
        right = np.where(rows.right < 0, 0, known[rows.right])
        return table.after[left, right]

    def canonical(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Say which terms use the leaves of each group in order: x0 before x1 before x2."""
        result = np.ones(len(rows), np.bool_)
        leaf = rows.step == LEAF
        for group, table in self._orders.items():
            codes = np.zeros(len(rows), np.int32)
            codes[~leaf] = self.orders(rows.take(~leaf), group)
            codes[leaf] = self.order[group][rows.left[leaf]]
            result &= table.ordered[codes]
        return result

    # ------------------------------------------------------------------ reading
    def term(self, step: int, left: int, right: int) -> Ground:
        """Return a row as a term."""
        if step == LEAF:
            return self.base[left]
        arguments = [self._term(left)] + ([self._term(right)] if right >= 0 else [])
        return self.steps[step].of(*arguments)

    def _term(self, number: int) -> Ground:
        return _cached(self, number)


@lru_cache(maxsize=500_000)
def _cached(bank: Bank, number: int) -> Ground:
    rows = bank.rows
    return bank.term(
        int(rows.step[number]), int(rows.left[number]), int(rows.right[number])
    )


def _same_types(bank: Bank, left: Ints, right: Ints | None) -> list[npt.NDArray[np.intp]]:
    """Split terms of one step by the types of their arguments."""
    code = bank.type[left].astype(np.int64) * 100_000
    if right is not None:
        code = code + bank.type[right]
    return [np.flatnonzero(code == one) for one in np.unique(code)]


def plain(one: Step, env: Mapping[str, int]) -> dict[str, Value]:
    """Return the complete attributes of a step under values for the symbols of sizes."""
    leafless = one.of(*_placeholders(one))
    inner = leafless.arguments[0] if one.index is not None else leafless
    assert not isinstance(inner, Leaf)
    sized = resize(type(inner)(inner.op, inner.attributes), env)
    assert not isinstance(sized, Leaf)
    return dict(sized.attributes)


def _placeholders(one: Step) -> tuple[Leaf, ...]:
    return (Leaf("a", ()),)


@dataclass(frozen=True, slots=True)
class _Codes:
    """Orders of appearance of the members of a group, numbered; 0 is none at all."""

    number: dict[tuple[int, ...], int]
    after: Ints
    ordered: npt.NDArray[np.bool_]


def _codes(members: int) -> _Codes:
    orders = [
        order for n in range(members + 1) for order in permutations(range(members), n)
    ]
    number = {order: k for k, order in enumerate(orders)}
    after = np.array(
        [[number[tuple(dict.fromkeys((*a, *b)))] for b in orders] for a in orders], np.int32
    )
    ordered = np.array([order == tuple(range(len(order))) for order in orders])
    return _Codes(number, after, ordered)

"""The terms of a bank at a second choice of sizes and at real values.

Two terms that agree at a family's first sizes may do so by accident: one part of a
concatenation lies within another one, say. Here whole columns of equations are tried at the
family's other sizes, before any of them is looked at.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from rulesets.bank import LEAF, Bank, Ints, Rows, plain
from rulesets.column_match import Flags, Longs
from rulesets.fingerprint import POINTS, inputs, value_of
from rulesets.kernels import Array, apply, part

SEED = 7
CLOSE = 1e-9
"""Difference, relative to the largest value, up to which two values are one."""

CHUNK = 20_000


class Elsewhere:
    """Values of representatives at the family's other sizes.

    Args:
        bank: The bank; what it gains later is computed by `extend`.
    """

    def __init__(self, bank: Bank) -> None:
        self.bank = bank
        self.sizes = bank.family.others
        given = inputs(bank.family.leaves, self.sizes, exact=False, seed=SEED)
        self._base = [value_of(term, self.sizes, given) for term in bank.base]
        self._values: dict[int, Array] = {}
        self._place = np.zeros(0, np.int64)

    def extend(self) -> None:
        """Compute what the bank has gained."""
        bank, known = self.bank, len(self._place)
        self._place = np.concatenate([self._place, np.zeros(len(bank.rows) - known, int)])
        for size in range(int(bank.size.max(initial=0)) + 1):
            mine = np.flatnonzero(bank.size[known:] == size) + known
            for group in self._groups(bank.rows.take(mine)):
                ids = mine[group]
                value = self._of_group(bank.rows.take(ids))
                number = int(bank.type[ids[0]])
                before = self._values.get(number, value[:0])
                self._place[ids] = len(before) + np.arange(len(ids))
                self._values[number] = np.concatenate([before, value])

    def agree(self, one: Rows, other: Rows) -> Flags:
        """Say which pairs of terms have one value; NaN agrees with nothing."""
        result = np.zeros(len(one), np.bool_)
        for group in self._groups(one, other):
            a, b = (self._of_group(side.take(group)) for side in (one, other))
            a, b = (value.reshape(len(group), -1) for value in (a, b))
            scale = np.maximum(np.abs(a).max(1, initial=0.0), 1.0)
            with np.errstate(invalid="ignore"):
                near = np.abs(a - b) <= CLOSE * scale[:, None]
            result[group] = near.all(1)
        return result

    def _groups(self, *sides: Rows) -> Iterator[Longs]:
        """Yield the places of rows with equal steps over equal types, on every side."""
        types = self.bank.type.astype(np.int64)
        code = np.zeros(len(sides[0]), np.int64)
        for rows in sides:
            left = np.where(rows.step == LEAF, -1, types[rows.left])
            right = np.where(rows.right < 0, -1, types[rows.right])
            own = np.where(rows.step == LEAF, rows.left, 0)
            for column in (rows.step, left, right, own):
                _, number = np.unique(column, return_inverse=True)
                _, code = np.unique(
                    code * (int(number.max(initial=0)) + 1) + number, return_inverse=True
                )
        order = np.argsort(code, kind="stable")
        bounds = np.flatnonzero(np.diff(code[order], prepend=-1))
        for start, end in pairwise([*bounds.tolist(), len(order)]):
            for begin in range(start, end, CHUNK):
                yield order[begin : min(begin + CHUNK, end)]

    def _of_group(self, rows: Rows) -> Array:
        """Return the values of terms with one step over equal types."""
        step = int(rows.step[0])
        if step == LEAF:
            value = self._base[int(rows.left[0])]
            return np.broadcast_to(value, (len(rows), POINTS, *value.shape[2:]))
        one = self.bank.steps[step]
        attributes = plain(one, self.sizes)
        arguments = [self._of(rows.left)]
        if rows.right[0] >= 0:
            arguments.append(self._of(rows.right))
        with np.errstate(all="ignore"):
            if one.index is not None:
                return part(attributes, one.index, arguments[0])
            return apply(one.op, attributes, *arguments)

    def _of(self, ids: Longs | Ints) -> Array:
        found: Array = self._values[int(self.bank.type[ids[0]])][self._place[ids]]
        return found

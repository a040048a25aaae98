"""Bottom-up enumeration of terms by size, the number of different operators.

Size n: each step over operands whose operators together are n-1. Operands are disjoint, or
they share subterms; pairs of the second kind come from a join on shared subterms. A layer's
terms are evaluated in chunks and only their hashes are kept; what is new becomes a
representative, what is not is an equation.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rulesets.bank import Bank, Ints, Keys, Rows, join

CHUNK = 20_000
"""Terms in one NumPy call."""

type Pairs = tuple[Ints, Ints]


@dataclass(frozen=True, slots=True)
class Layer:
    """All terms of one size.

    Attributes:
        size: Number of operators.
        terms: How many were evaluated.
        dropped: How many had values too large to tell.
        new: How many have a value that no smaller term has, counted once.
        lhs: One side of each equation found: the term that came later.
        rhs: The other side: the representative.
    """

    size: int
    terms: int
    dropped: int
    new: int
    lhs: Rows
    rhs: Rows


def layer(
    bank: Bank, size: int, *, last: bool, progress: Callable[[int], None] | None = None
) -> Layer:
    """Enumerate the terms of one size.

    Args:
        bank: Holds all smaller sizes; it grows unless `last`.
        size: At least 1.
        last: No larger size will follow: keep hashes only.
        progress: Called with the number of terms after each chunk.
    """
    rows: list[Rows] = []
    keys: list[Keys] = []
    terms = dropped = 0
    for step, left, right in chunks(bank, size):
        values = bank.compute(step, left, right)
        found, usable = bank.key(values, bank.result[step])
        terms += len(left)
        dropped += int(len(left) - usable.sum())
        none = np.full(len(left), -1, np.int32)
        one = Rows(
            np.full(len(left), step, np.int32), left, none if right is None else right
        )
        rows.append(one if usable.all() else one.take(usable))
        keys.append(found[usable])
        if progress is not None:
            progress(terms)
    table = join(rows)
    key = np.concatenate(keys) if keys else np.zeros(0, np.uint64)
    return _sorted_out(bank, size, table, key, terms, dropped, last=last)


def _sorted_out(
    bank: Bank, size: int, table: Rows, key: Keys, terms: int, dropped: int, *, last: bool
) -> Layer:
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    first = np.ones(len(key), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    leader = order[np.maximum.accumulate(np.where(first, np.arange(len(key)), 0))]
    known_order = np.argsort(bank.keys)
    place = np.searchsorted(bank.keys[known_order], ordered)
    place = np.minimum(place, len(known_order) - 1)
    match = known_order[place]
    known = bank.keys[match] == ordered
    old = np.flatnonzero(known)
    twins = np.flatnonzero(~known & ~first)
    lhs = join([table.take(order[old]), table.take(order[twins])])
    rhs = join([bank.rows.take(match[old]), table.take(leader[twins])])
    new = np.sort(order[first & ~known])
    if not last:
        rows = table.take(new)
        results = np.array(bank.result, np.int32)
        number = np.zeros(len(table), np.int32)
        number[new] = len(bank.rows) + np.arange(len(new))
        bank.add(rows, results[rows.step], key[new], size)
        bank.remember(rows, number[new])
        bank.remember(table.take(order[old]), match[old].astype(np.int32))
        bank.remember(table.take(order[twins]), number[leader[twins]])
    return Layer(size, terms, dropped, len(new), lhs, rhs)


def chunks(bank: Bank, size: int) -> Iterator[tuple[int, Ints, Ints | None]]:
    """Yield step, first arguments and second arguments of all terms of one size."""
    by_type = {
        number: [_members(bank, number, n) for n in range(size)]
        for number in range(len(bank.types))
    }
    for number, sizes in by_type.items():
        for step in bank.applicable(number):
            yield from ((step, some, None) for some in _cut(sizes[size - 1]))
    for left, right in _disjoint(bank, by_type, size):
        yield from _applied(bank, left, right)
    for left, right in _shared(bank, size):
        yield from _by_types(bank, left, right)


def _members(bank: Bank, number: int, size: int) -> Ints:
    which = (bank.type == number) & (bank.size == size)
    return np.flatnonzero(which).astype(np.int32)


def _cut(ids: Ints) -> Iterator[Ints]:
    for start in range(0, len(ids), CHUNK):
        yield ids[start : start + CHUNK]


def _disjoint(bank: Bank, by_type: dict[int, list[Ints]], size: int) -> Iterator[Pairs]:
    for a, left_sizes in by_type.items():
        for b, right_sizes in by_type.items():
            if not bank.applicable(a, b):
                continue
            for n in range(size):
                lefts, rights = left_sizes[n], right_sizes[size - 1 - n]
                if not len(lefts) or not len(rights):
                    continue
                rows = max(1, CHUNK // len(rights))
                for start in range(0, len(lefts), rows):
                    some = lefts[start : start + rows]
                    left, right = np.repeat(some, len(rights)), np.tile(rights, len(some))
                    if n and size - 1 - n:
                        apart = _union(bank, left, right) == size - 1
                        left, right = left[apart], right[apart]
                    yield left, right


def _union(bank: Bank, left: Ints, right: Ints) -> npt.NDArray[np.int32]:
    """The number of different operators in two terms together."""
    count = bank.size[left] + bank.size[right]
    mine, other = bank.nodes[left], bank.nodes[right]
    for column in range(mine.shape[1]):
        one = mine[:, column]
        for another in range(other.shape[1]):
            count -= (one == other[:, another]) & (one >= 0)
    return count


def _shared(bank: Bank, size: int) -> Iterator[Pairs]:
    """Pairs of operands that have operators in common."""
    whole = np.flatnonzero(bank.size == size - 1).astype(np.int32)
    if size > 1:
        for column in range(bank.nodes.shape[1]):
            inner = bank.nodes[whole, column]
            left, right = whole[inner >= 0], inner[inner >= 0]
            yield left, right
            smaller = left != right
            yield right[smaller], left[smaller]
    for a in range(2, size - 1):
        for b in range(2, size - 1):
            if a + b > size - 1:
                yield from _joined(bank, a, b, size - 1)


def _joined(bank: Bank, a: int, b: int, union: int) -> Iterator[Pairs]:
    """Pairs of terms of sizes a and b that share operators and have `union` together."""
    lefts, left_nodes = _incidence(bank, a)
    rights, right_nodes = _incidence(bank, b)
    starts = np.searchsorted(right_nodes, left_nodes, "left")
    counts = np.searchsorted(right_nodes, left_nodes, "right") - starts
    for begin in range(0, len(lefts), CHUNK):
        some = slice(begin, begin + CHUNK)
        left = np.repeat(lefts[some], counts[some])
        within = np.arange(len(left)) - np.repeat(
            np.cumsum(counts[some]) - counts[some], counts[some]
        )
        right = rights[np.repeat(starts[some], counts[some]) + within]
        fits = _union(bank, left, right) == union
        code = left[fits].astype(np.int64) << 32 | right[fits]
        unique = np.unique(code)
        yield (unique >> 32).astype(np.int32), (unique & 0xFFFFFFFF).astype(np.int32)


def _incidence(bank: Bank, size: int) -> tuple[Ints, Ints]:
    """Terms of a size beside each operator in them, ascending by operator."""
    ids = np.flatnonzero(bank.size == size).astype(np.int32)
    nodes = bank.nodes[ids][:, :size]
    flat, owner = nodes.ravel(), np.repeat(ids, nodes.shape[1])
    kept = flat >= 0
    flat, owner = flat[kept], owner[kept]
    order = np.argsort(flat, kind="stable")
    return owner[order], flat[order]


def _by_types(
    bank: Bank, left: Ints, right: Ints
) -> Iterator[tuple[int, Ints, Ints | None]]:
    if not len(left):
        return
    code = bank.type[left].astype(np.int64) * len(bank.types) + bank.type[right]
    order = np.argsort(code, kind="stable")
    bounds = np.flatnonzero(np.diff(code[order])) + 1
    for group in np.split(order, bounds):
        for start in range(0, len(group), CHUNK):
            some = group[start : start + CHUNK]
            yield from _applied(bank, left[some], right[some])


def _applied(
    bank: Bank, left: Ints, right: Ints
) -> Iterator[tuple[int, Ints, Ints | None]]:
    """The steps for pairs of one pair of types."""
    if not len(left):
        return
    a, b = int(bank.type[left[0]]), int(bank.type[right[0]])
    for step in bank.applicable(a, b):
        if bank.steps[step].commutative and a == b:
            kept = left <= right
            if kept.any():
                yield step, left[kept], right[kept]
        else:
            yield step, left, right

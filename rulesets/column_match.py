"""Where a side of a rule stands among the terms of a bank, found for all terms at once.

A rule is matched as an e-graph would match it: below the root a pattern may be any known
term of the argument's class, not only its representative. Matches are columns, one entry
for each match so far. What is no matter of columns (attributes, conditions, the types of
the other side) depends on the steps and types of a match alone, of which there are few; it
is decided once for each combination, see `rulesets.column_rule`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rulesets.bank import Bank, Ints, Rows
from rulesets.expression import Expression
from rulesets.ops import OPERATORS
from rulesets.term import Apply, Term, Variable, subterms

type Longs = npt.NDArray[np.int64]
type Flags = npt.NDArray[np.bool_]
type Columns = dict[str, Longs]
"""``?x`` holds the class of a variable, ``#k`` the step of the k-th operator of the
pattern, ``row`` the place of the root."""

MOST = 8_000_000
"""Matches of one batch of roots; a pattern with more is left alone."""

WIDEST = 2**62
"""Largest number in which a combination of columns is written."""


class UnfitError(Exception):
    """A rule that cannot be matched on columns; no fault, the e-graph can."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """An operator of a pattern, one output of a Split being one operator.

    Attributes:
        number: Its place among the operators of the pattern, the root first.
        term: The application that holds its attributes.
        output: Of a Split, which output.
        arguments: Patterns, names of variables, or terms without a variable.
        label: The variable that stands for its value.
    """

    number: int
    term: Apply
    output: Expression | None
    arguments: tuple["Pattern | str | Apply", ...]
    label: str | None

    @property
    def all(self) -> Iterator["Pattern"]:
        """This operator and those below it."""
        yield self
        for argument in self.arguments:
            if isinstance(argument, Pattern):
                yield from argument.all


def pattern_of(term: Term) -> Pattern:
    """Return a side as a pattern.

    Raises:
        UnfitError: It is a variable, or has something other than one or two arguments.
    """
    if not isinstance(term, Apply) or not _open(term):
        raise UnfitError
    numbers = iter(range(1000))

    def made(one: Apply) -> Pattern:
        output, label, number = None, one.label, next(numbers)
        if one.op == "Output":
            (inner,), output = one.arguments, dict(one.attributes)["index"]
            if not isinstance(inner, Apply) or inner.op != "Split" or inner.label:
                raise UnfitError
            one = inner
        if (one.op == "Split" and output is None) or not 1 <= len(one.arguments) <= 2:
            raise UnfitError
        arguments = tuple(map(argument, one.arguments))
        return Pattern(number, one, output, arguments, label)

    def argument(one: Term) -> Pattern | str | Apply:
        if isinstance(one, Variable):
            return one.name
        if not isinstance(one, Apply):
            raise UnfitError
        return made(one) if _open(one) else one

    return made(term)


def _open(term: Apply) -> bool:
    """Whether a term has a tensor variable."""
    return any(isinstance(each, Variable) for each in subterms(term))


@dataclass(slots=True)
class Index:
    """Known terms by class and by what they are.

    Attributes:
        bank: The classes: a class has the number of its representative.
        rows: All terms of the smaller sizes, representatives or not.
        of: The class of each.
    """

    bank: Bank
    rows: Rows
    of: Ints
    _codes: Longs = field(init=False)
    _order: Longs = field(init=False)
    _by_op: dict[str, tuple[Longs, Longs]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        codes = self.codes_of(self.rows)
        self._order = np.argsort(codes)
        self._codes = codes[self._order]

    def codes(self, step: Longs | Ints, left: Longs | Ints, right: Longs | Ints) -> Longs:
        """Return a number for each term."""
        base = len(self.bank.rows) + 2
        one = (step.astype(np.int64) + 1) * base + left + 1
        return one * base + right + 1

    def codes_of(self, rows: Rows) -> Longs:
        """Return a number for each row."""
        return self.codes(rows.step, rows.left, rows.right)

    def class_of(self, codes: Longs) -> Longs:
        """Return the class of terms, -1 for a term that is not known."""
        place = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        return np.where(self._codes[place] == codes, self.of[self._order[place]], -1)

    def members(self, op: str, classes: Longs) -> tuple[Longs, Longs]:
        """Return the terms of some operator in classes: (place in `classes`, row)."""
        if op not in self._by_op:
            steps = steps_of(self.bank, op)
            mine = np.flatnonzero(np.isin(self.rows.step, steps))
            mine = mine[np.argsort(self.of[mine], kind="stable")]
            bounds = np.arange(len(self.bank.rows) + 1)
            self._by_op[op] = np.searchsorted(self.of[mine], bounds), mine
        starts, mine = self._by_op[op]
        begin, counts = starts[classes], starts[classes + 1] - starts[classes]
        total = int(counts.sum())
        if total > MOST:
            raise UnfitError
        which = np.repeat(np.arange(len(classes)), counts)
        ends = np.cumsum(counts)
        within = np.arange(total) - np.repeat(ends - counts, counts)
        return which, mine[np.repeat(begin, counts) + within]


def steps_of(bank: Bank, op: str) -> list[int]:
    """Return the numbers of the steps of an operator."""
    return [number for number, one in enumerate(bank.steps) if one.op == op]


def matches(
    pattern: Pattern, index: Index, roots: Rows, closed: Mapping[Apply, Longs]
) -> Columns:
    """Find a pattern at terms.

    Args:
        pattern: What to find.
        index: The terms below the roots.
        roots: The terms; those of another operator are passed over.
        closed: For each part without a variable the constants that it may be.

    Raises:
        UnfitError: There are too many matches.
    """
    steps = steps_of(index.bank, pattern.term.op)
    row = np.flatnonzero(np.isin(roots.step, steps))
    return _at(pattern, {"row": row}, roots, row, index, closed)


def _at(
    pattern: Pattern,
    columns: Columns,
    rows: Rows,
    which: Longs,
    index: Index,
    closed: Mapping[Apply, Longs],
) -> Columns:
    """Go on with matches whose next operator is known to be some row each."""
    columns = {**columns, f"#{pattern.number}": rows.step[which].astype(np.int64)}
    given = [rows.left[which].astype(np.int64), rows.right[which].astype(np.int64)]
    given = given[: len(pattern.arguments)]
    if len(given) == 2 and OPERATORS[pattern.term.op].commutative:
        swapped = given[0] != given[1]
        columns = {n: np.concatenate([c, c[swapped]]) for n, c in columns.items()}
        one, other = given
        given = [
            np.concatenate([one, other[swapped]]),
            np.concatenate([other, one[swapped]]),
        ]
    for place, classes in enumerate(given):
        columns[f"argument {pattern.number} {place}"] = classes
    for place, argument in enumerate(pattern.arguments):
        classes = columns.pop(f"argument {pattern.number} {place}")
        columns = _argument(argument, columns, classes, index, closed)
    return columns


def _argument(
    argument: Pattern | str | Apply,
    columns: Columns,
    classes: Longs,
    index: Index,
    closed: Mapping[Apply, Longs],
) -> Columns:
    if isinstance(argument, str):
        name = f"?{argument}"
        if name not in columns:
            return {**columns, name: classes}
        return taken(columns, columns[name] == classes)
    if isinstance(argument, Apply):
        known = np.isin(classes, closed[argument])
        return {**taken(columns, known), f"={argument}": classes[known]}
    which, rows = index.members(argument.term.op, classes)
    columns = taken(columns, which)
    if argument.label is not None:
        columns[f"?{argument.label}"] = classes[which]
    return _at(argument, columns, index.rows, rows, index, closed)


def taken(columns: Columns, which: Longs | Flags) -> Columns:
    """Return some of the matches."""
    return {name: column[which] for name, column in columns.items()}


def combinations(columns: Columns, names: Sequence[str]) -> tuple[Longs, Longs]:
    """Number the different combinations in some columns.

    Returns:
        The combinations, one a row, and the number of each entry's.
    """
    code, span = np.zeros(len(columns[names[0]]), np.int64), 1
    for name in names:
        width = int(columns[name].max(initial=0)) + 1
        if span * width > WIDEST:
            _, code = np.unique(code, return_inverse=True)
            span = int(code.max(initial=0)) + 1
        code, span = code * width + columns[name], span * width
    _, first, number = np.unique(code, return_index=True, return_inverse=True)
    return np.stack([columns[name][first] for name in names], 1), number

"""A rule on the terms of a bank: which pairs of terms does it make equal?

For each combination of steps and types at which the left side stands, attributes are bound,
conditions tested and the right side planned, by the functions that the engine uses. A plan
is the steps to apply; on columns each step is one look-up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rulesets.bank import Rows
from rulesets.column_match import (
    Columns,
    Flags,
    Index,
    Longs,
    Pattern,
    UnfitError,
    combinations,
    matches,
    pattern_of,
    taken,
)
from rulesets.condition import holds
from rulesets.errors import RulesetsError
from rulesets.expression import Number, evaluate
from rulesets.ground import Ground, Node, resize
from rulesets.match import Match
from rulesets.ops import OPERATORS, Attributes, freeze
from rulesets.rule import Rule, attributes_of, bind
from rulesets.shelf import Shelf
from rulesets.tensor import Tensor
from rulesets.term import Apply, Term, Variable, subterms


@dataclass(frozen=True, slots=True)
class Facts:
    """The types of the variables of a match; nothing is a constant.

    Attributes:
        tensors: By handle.
    """

    tensors: tuple[Tensor, ...]

    def tensor(self, handle: int, /) -> Tensor:
        """Return type and shape."""
        return self.tensors[handle]

    def constant(self, handle: int, /) -> bool:
        """Say no."""
        return False

    def array(self, handle: int, /) -> None:
        """Return nothing."""

    def scalar(self, handle: int, /) -> None:
        """Return nothing."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A right side to look up: a step over plans, a variable, or a constant's class."""

    step: int
    arguments: tuple["Plan | str | int", ...]


class ColumnRule:
    """A rule with one root and without rest variables, ready for columns.

    Args:
        rule: The rule.
        shelf: The steps of the bank.

    Raises:
        UnfitError: It cannot be matched on columns.
    """

    def __init__(self, rule: Rule, shelf: Shelf) -> None:
        if len(rule.lhs) != 1 or rule.variadic:
            raise UnfitError
        self.rule = rule
        self.shelf = shelf
        self.pattern = pattern_of(rule.lhs[0])
        self.operators = list(self.pattern.all)
        self.closed = self._closed()
        self._decided: dict[tuple[int, ...], Plan | str | int | None] = {}

    def _closed(self) -> dict[Apply, Longs]:
        """For each part without a variable, the constants that it may be."""
        found: dict[Apply, Longs] = {}
        for part in (x for one in self.operators for x in one.arguments):
            if isinstance(part, Apply):
                terms = [
                    resize(t, self.shelf.bank.family.sizes) for t in self.shelf.bank.base
                ]
                fits = [_bound_constant(part, term, Match()) is not None for term in terms]
                found[part] = np.flatnonzero(fits)
        return found

    def _constant(self, part: Apply, place: int, match: Match) -> Match:
        term = resize(self.shelf.bank.base[place], self.shelf.bank.family.sizes)
        found = _bound_constant(part, term, match)
        if found is None:
            raise UnfitError
        return found

    def edges(self, index: Index, roots: Rows) -> tuple[Longs, Longs, Longs]:
        """Apply the rule to terms.

        Returns:
            For each match with a right side that is known or whose parts are: the place of
            the root, the class of the right side or -1, and its code.
        """
        columns = matches(self.pattern, index, roots, self.closed)
        none = np.zeros(0, np.int64)
        found = [(none, none, none)]
        if len(columns["row"]):
            bank = self.shelf.bank
            variables = sorted(name for name in columns if name.startswith("?"))
            constants = sorted(name for name in columns if name.startswith("="))
            kinds = {
                **{f"#{one.number}": columns[f"#{one.number}"] for one in self.operators},
                **{name: bank.type[columns[name]].astype(np.int64) for name in variables},
                **{name: columns[name] for name in constants},
            }
            different, number = combinations(kinds, list(kinds))
            order = np.argsort(number, kind="stable")
            bounds = np.searchsorted(number[order], np.arange(len(different) + 1))
            for k, combination in enumerate(different.tolist()):
                plan = self._plan(tuple(combination), variables, constants)
                if plan is None:
                    continue
                some = taken(columns, order[bounds[k] : bounds[k + 1]])
                found.append(_looked_up(plan, some, index))
        return tuple(map(np.concatenate, zip(*found, strict=True)))  # type: ignore[return-value]

    def _plan(
        self,
        combination: tuple[int, ...],
        variables: Sequence[str],
        constants: Sequence[str],
    ) -> Plan | str | int | None:
        if combination not in self._decided:
            try:
                plan = self._planned(combination, variables, constants)
            except (RulesetsError, UnfitError, LookupError):
                plan = None
            self._decided[combination] = plan
        return self._decided[combination]

    def _planned(
        self,
        combination: tuple[int, ...],
        variables: Sequence[str],
        constants: Sequence[str],
    ) -> Plan | str | int | None:
        count = len(self.operators)
        steps = combination[:count]
        types = combination[count : count + len(variables)]
        places = combination[count + len(variables) :]
        names = [name[1:] for name in variables]
        tensors = [self.shelf.tensor(each) for each in types]
        root = self.shelf.bank.result[steps[0]]
        handles = {name: place for place, name in enumerate(names)}
        tensors.append(self.shelf.tensor(root))
        if self.pattern.label is not None:
            handles[self.pattern.label] = len(tensors) - 1
        match = Match(handles, {}, (len(tensors) - 1,))
        for one, step in zip(self.operators, steps, strict=True):
            match = self._bound(one, step, match)
        parts = {f"={part}": part for part in self.closed}
        for name, place in zip(constants, places, strict=True):
            match = self._constant(parts[name], place, match)
        facts = Facts(tuple(tensors))
        if not all(holds(condition, match, facts) for condition in self.rule.where):
            return None
        type_of = dict(zip(names, types, strict=True))
        plan, found = self._right(self.rule.rhs[0], match, facts, type_of)
        return plan if found == root else None

    def _bound(self, one: Pattern, step: int, match: Match) -> Match:
        found = bind(one.term, self.shelf.attributes(step), match)
        output = self.shelf.bank.steps[step].index
        wanted = output if one.output is None else one.output
        if found is None or (wanted != output and wanted != Number(output or 0)):
            raise UnfitError
        return found

    def _right(
        self, term: Term, match: Match, facts: Facts, type_of: Mapping[str, int]
    ) -> tuple[Plan | str | int, int]:
        """Return the plan of a right side, and its type."""
        bank = self.shelf.bank
        if isinstance(term, Variable):
            return f"?{term.name}", type_of[term.name]
        if not isinstance(term, Apply):
            raise UnfitError
        if not any(isinstance(each, Variable) for each in subterms(term)):
            place = self.shelf.constant(_ground(term, match, facts))
            if place is None:
                raise UnfitError
            return place, int(bank.type[place])
        output = None
        if term.op == "Output":
            output = evaluate(dict(term.attributes)["index"], match, facts)
            (inner,) = term.arguments
            assert isinstance(inner, Apply)
            term = inner
        parts = [self._right(each, match, facts, type_of) for each in term.arguments]
        attributes = _attributes(term, match, facts)
        orders = [parts, parts[::-1]] if OPERATORS[term.op].commutative else [parts]
        for order in orders:
            types = tuple(each for _, each in order)
            step = self.shelf.step(term.op, attributes, output, types)
            if step is not None:
                return Plan(step, tuple(each for each, _ in order)), bank.result[step]
        raise UnfitError


def _attributes(term: Apply, match: Match, facts: Facts) -> Attributes:
    return attributes_of(term, match, facts)  # type: ignore[return-value]


def _ground(term: Apply, match: Match, facts: Facts) -> Node:
    arguments = tuple(_ground(each, match, facts) for each in term.arguments)  # type: ignore[arg-type]
    return Node(term.op, freeze(_attributes(term, match, facts)), arguments)


def _bound_constant(part: Apply, term: Ground, match: Match) -> Match | None:
    """Match a part without a variable with a constant."""
    if not isinstance(term, Node) or term.op != part.op:
        return None
    if len(term.arguments) != len(part.arguments):
        return None
    found = bind(part, dict(term.attributes), match)
    for one, other in zip(part.arguments, term.arguments, strict=True):
        if found is not None:
            assert isinstance(one, Apply)
            found = _bound_constant(one, other, found)
    return found


def _looked_up(
    plan: Plan | str | int, columns: Columns, index: Index
) -> tuple[Longs, Longs, Longs]:
    row = columns["row"]
    if not isinstance(plan, Plan):
        classes = columns[plan] if isinstance(plan, str) else np.full(len(row), plan)
        return row, classes, np.full(len(row), -1, np.int64)
    codes, known = _codes(plan, columns, index)
    codes, row = codes[known], row[known]
    return row, index.class_of(codes), codes


def _codes(plan: Plan, columns: Columns, index: Index) -> tuple[Longs, Flags]:
    """Return the codes of the terms that a plan makes, and where its parts are known."""
    count = len(columns["row"])
    known = np.ones(count, np.bool_)
    arguments = []
    for each in plan.arguments:
        if isinstance(each, Plan):
            inner, fine = _codes(each, columns, index)
            classes = np.where(fine, index.class_of(inner), -1)
            known &= classes >= 0
        else:
            classes = columns[each] if isinstance(each, str) else np.full(count, each)
        arguments.append(classes)
    left, right = arguments if len(arguments) == 2 else (arguments[0], np.full(count, -1))
    types = index.bank.type
    if index.bank.steps[plan.step].commutative and count:
        same = types[left] == types[right]
        left, right = (
            np.where(same, np.minimum(left, right), left),
            np.where(same, np.maximum(left, right), right),
        )
    return index.codes(np.full(count, plan.step), left, right), known

"""A rule with a variable in place of every number that is an axis, an offset or a list.

The generator finds a selection of a transpose at numbers: ``Slice[axes=[0]]`` of
``Transpose[perm=[1, 2, 0]]`` is a transpose of ``Slice[axes=[1]]``. Here each number of the
left side gets a variable, and each number of the right side is written as what a small
vocabulary computes from these: ``Slice[axes=[(at ?perm ?axis)]]``. Where several ways give
the number, all are proposed; which of them is true, the verifier says.

Conditions are proposed in the same way: everything that compares offsets and axes and
happens to be true at the instance. Those that a proof does not need are dropped later.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, product

from rulesets.bound import Bound, Shapes
from rulesets.expression import Call, Expression, Number, Parameter, Sequenced
from rulesets.match import Match, Value
from rulesets.rule import Rule
from rulesets.term import Apply, Term

AXES, OFFSETS = frozenset({"axis", "axes"}), frozenset({"starts", "ends"})
LISTS, ITEMS = frozenset({"perm", "pads", "shape"}), frozenset({"steps", "parts"})
SHAPED = frozenset({"Reshape", "Expand"})
OWN_SHAPE = Call("shape", (Parameter("y"),))
"""The shape of the left side, which is then called ``?y``."""

MOST = 24
"""Right sides that are proposed for one rule."""

type Numbers = int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """A rule's sides with variables.

    Attributes:
        lhs: The left side.
        rhs: The right side, in one of the ways that give its numbers.
        values: What the variables are at the instance.
        conditions: What is true of them there, as text.
    """

    lhs: Term
    rhs: Term
    values: Mapping[str, Value]
    conditions: tuple[str, ...]


def opened(rule: Rule) -> Iterator[Opened]:
    """Yield a rule's sides with variables; the widest first.

    Args:
        rule: A rule with one left side and one instance.
    """
    yield from _opened(rule, frozenset())
    yield from _opened(rule, frozenset({"steps"}))
    yield from _opened(rule, AXES)


def _opened(rule: Rule, closed: frozenset[str]) -> Iterator[Opened]:
    (lhs,), (rhs,), instance = rule.lhs, rule.rhs, rule.instances[0]
    shapes = [sample.shape for sample in instance.tensors.values()]
    handles = {name: place for place, name in enumerate(instance.tensors)}
    given = {k: v for k, v in instance.attributes.items() if not k.startswith("..")}
    bound = Bound(given, Match(handles), Shapes(shapes))
    left = _Left(bound, closed)
    wide = left.term(lhs)
    if wide == lhs:
        return
    assert isinstance(wide, Apply)
    ways = [left.ways(*each) for each in _numbers(rhs)]
    if isinstance(rhs, Apply) and rhs.op in SHAPED:
        # What a reshape at the root must give is the shape of the left side.
        ways[0] = [*(one for one in ways[0] if isinstance(one, Parameter)), OWN_SHAPE]
    conditions = tuple(bound.conditions())
    for chosen in islice(product(*ways), MOST):
        labelled = replace(wide, label="y") if OWN_SHAPE in chosen else wide
        made = _placed(rhs, iter(chosen))
        yield Opened(labelled, made, dict(bound.values), conditions)


def _kind(name: str, value: Expression) -> Numbers | Expression | None:
    """The number or list of numbers that may become a variable; a shape is written."""
    if name == "shape":
        return value
    if name == "axis" and isinstance(value, Number) and isinstance(value.value, int):
        return value.value
    if name not in AXES | OFFSETS | LISTS | ITEMS or not isinstance(value, Sequenced):
        return None
    numbers = tuple(one.value for one in value.items if isinstance(one, Number))
    if len(numbers) < len(value.items) or not all(isinstance(n, int) for n in numbers):
        return None
    if len(numbers) == 1 and name not in LISTS:
        return int(numbers[0])
    return tuple(int(n) for n in numbers) if name not in OFFSETS | ITEMS else None


def _numbers(term: Term) -> Iterator[tuple[str, Numbers | Expression]]:
    if isinstance(term, Apply) and term.arguments:
        for name, value in term.attributes:
            found = _kind(name, value)
            if found is not None:
                yield name, found
        for one in term.arguments:
            yield from _numbers(one)


def _placed(term: Term, chosen: Iterator[Expression]) -> Term:
    if not isinstance(term, Apply) or not term.arguments:
        return term
    attributes = tuple(
        (
            name,
            _item(name, value, next(chosen)) if _kind(name, value) is not None else value,
        )
        for name, value in term.attributes
    )
    inner = tuple(_placed(one, chosen) for one in term.arguments)
    return replace(term, attributes=attributes, arguments=inner)


def _written(given: Numbers | Expression) -> Expression:
    if isinstance(given, tuple):
        return Sequenced(tuple(map(Number, given)))
    return Number(given) if isinstance(given, int) else given


def _item(name: str, value: Expression, made: Expression) -> Expression:
    """The expression as one item of a list where there was a list of one number."""
    if name in LISTS:
        return made
    single = isinstance(value, Sequenced) and len(value.items) == 1
    return Sequenced((made,)) if single and not isinstance(made, Sequenced) else made


@dataclass(slots=True)
class _Left:
    """What the left side binds.

    Attributes:
        bound: Its variables at the instance.
        closed: Attributes whose numbers stay.
    """

    bound: Bound
    closed: frozenset[str]

    def term(self, term: Term) -> Term:
        """Return the left side with a variable for each number."""
        names = (self._variable(name, value) for name, value in _numbers(term))
        return _placed(term, iter([*names]))

    def _variable(self, kind: str, given: Numbers | Expression) -> Expression:
        value = self._numbered(given)
        if kind in self.closed or value is None:
            return _written(given)
        kind = "axes" if kind == "axis" else kind
        for name, other in self.bound.kinds.items():
            if other == kind and self.bound.values[name] == value:
                return Parameter(name)
        name = next(f"q{k}" for k in range(100) if f"q{k}" not in self.bound.values)
        self.bound.values[name], self.bound.kinds[name] = value, kind
        return Parameter(name)

    def _numbered(self, given: Numbers | Expression) -> Numbers | None:
        value = given if isinstance(given, int | tuple) else self.bound.at_instance(given)
        return value if isinstance(value, int | tuple) else None  # type: ignore[return-value]

    # -- the right side ------------------------------------------------------------------

    def ways(self, kind: str, given: Numbers | Expression) -> list[Expression]:
        """Return expressions that give a number of the right side, the best first."""
        value = self._numbered(given)
        candidates = self._lists() if isinstance(value, tuple) else self._of_number(kind)
        found = [one for one in candidates if self.bound.at_instance(one) == value]
        return [*dict.fromkeys(found), _written(given)][:4]

    def _lists(self) -> Iterator[Expression]:
        given = [
            Parameter(name)
            for name in self.bound.kinds
            if isinstance(self.bound.values[name], tuple)
        ]
        yield from given
        yield from (Call("shape", (one,)) for one in self.bound.tensors())
        for one in given:
            yield Call("inverse", (one,))
            for other in given:
                yield Call("pick", (one, other))
                yield Call("sorted", (Call("pick", (one, other)),))
                yield Call("plus", (one, other))

    def _of_number(self, kind: str) -> Iterator[Expression]:
        if kind in OFFSETS:
            yield from self._offsets(kind)
            return
        axes = self.bound.named("axes" if kind in AXES else kind)
        for perm in self.bound.named("perm"):
            for axis in axes:
                yield Call("at", (perm, axis))
                yield Call("at", (Call("inverse", (perm,)), axis))
        yield from axes
        for axis in axes:
            if kind not in AXES:
                continue
            for by in (1, -1):
                yield Call("+", (axis, Number(by)))
            for small, large in product(self.bound.tensors(), repeat=2):
                ranks = (Call("rank", (one,)) for one in (small, large))
                own, whole = ranks
                yield Call("-", (Call("+", (axis, own)), whole))

    def _offsets(self, kind: str) -> Iterator[Expression]:
        same = self.bound.named(kind)
        others = self.bound.named("starts") + self.bound.named("ends")
        yield from same
        for one in same:
            for other in others:
                if other != one:
                    first, second = sorted((one, other), key=lambda each: each.name)
                    yield Call("+", (first, second))
            for size in self._sizes():
                yield Call("-", (one, size))
                yield Call("+", (one, size))
                yield Call("*", (one, size))

    def _sizes(self) -> list[Expression]:
        """Sizes that the left side has bound, and those of tensors."""
        given = [
            Parameter(name) for name in self.bound.values if name not in self.bound.kinds
        ]
        inner = [
            Call("product", (Call("slice", (shape, after, Call("length", (shape,)))),))
            for shape in self.bound.named("shape")
            for after in (Call("+", (axis, Number(1))) for axis in self.bound.named("axes"))
        ]
        return [*self.bound.dims(), *given, *inner]

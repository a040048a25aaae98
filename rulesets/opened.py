"""A rule with a variable in place of every number that is an axis, an offset or a list.

The generator finds a selection of a transpose at numbers: ``Slice[axes=[0]]`` of
``Transpose[perm=[1, 2, 0]]`` is a transpose of ``Slice[axes=[1]]``. Here each number of the
left side gets a variable, and each number of the right side is written as what a small
vocabulary computes from these: ``Slice[axes=[(at ?perm ?axis)]]``. Where several ways give
the number, all are proposed; which of them is true, the verifier says.

Conditions are proposed in the same way: everything that compares offsets and axes and
happens to be true at the instance. Those that a proof does not need are dropped later.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice, product

from rulesets.expression import (
    Call,
    Each,
    Expression,
    Number,
    Parameter,
    Sequenced,
    evaluate,
)
from rulesets.match import Facts, Match, Value
from rulesets.rule import Rule
from rulesets.tensor import Tensor
from rulesets.term import Apply, Term

AXES, OFFSETS = frozenset({"axis", "axes"}), frozenset({"starts", "ends"})
LISTS, ITEMS = frozenset({"perm", "pads", "shape"}), frozenset({"steps", "parts"})
SHAPED = frozenset({"Reshape", "Expand"})
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
    bound = {k: v for k, v in instance.attributes.items() if not k.startswith("..")}
    left = _Left(dict(bound), Match(handles), _Shapes(shapes), closed)
    wide = left.term(lhs)
    if wide == lhs:
        return
    assert isinstance(wide, Apply)
    ways = [left.ways(*each) for each in _numbers(rhs)]
    if isinstance(rhs, Apply) and rhs.op in SHAPED:
        # What a reshape at the root must give is the shape of the left side.
        wide, ways[0] = replace(wide, label="y"), [Call("shape", (Parameter("y"),))]
    conditions = tuple(left.conditions())
    for chosen in islice(product(*ways), MOST):
        made = _placed(rhs, iter(chosen))
        yield Opened(wide, made, dict(left.values), conditions)


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


def _shown(size: Call) -> str:
    tensor, axis = size.arguments
    assert isinstance(tensor, Parameter)
    assert isinstance(axis, Parameter)
    return f"({size.function} ?{tensor.name} ?{axis.name})"


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


@dataclass(frozen=True, slots=True)
class _Shapes:
    """Facts about tensors of which only shapes are known."""

    shapes: Sequence[tuple[int, ...]]

    def tensor(self, handle: int, /) -> Tensor:
        """Return type and shape."""
        return Tensor("float32", self.shapes[handle])

    def constant(self, _: int, /) -> bool:
        """Say that it is none."""
        return False

    def array(self, _: int, /) -> None:
        """Say that it is not known."""

    def scalar(self, _: int, /) -> None:
        """Say that it is not known."""


@dataclass(slots=True)
class _Left:
    """What the left side binds.

    Attributes:
        values: Its variables at the instance.
        match: What tensors stand for.
        facts: About these tensors.
        closed: Attributes whose numbers stay.
        kinds: The attribute of each new variable.
    """

    values: dict[str, Value]
    match: Match
    facts: Facts
    closed: frozenset[str]
    kinds: dict[str, str] = field(default_factory=dict)

    def term(self, term: Term) -> Term:
        """Return the left side with a variable for each number."""
        names = (self._variable(name, value) for name, value in _numbers(term))
        return _placed(term, iter([*names]))

    def _variable(self, kind: str, given: Numbers | Expression) -> Expression:
        value = self._numbered(given)
        if kind in self.closed or value is None:
            return _written(given)
        kind = "axes" if kind == "axis" else kind
        for name, other in self.kinds.items():
            if other == kind and self.values[name] == value:
                return Parameter(name)
        name = next(f"q{k}" for k in range(100) if f"q{k}" not in self.values)
        self.values[name], self.kinds[name] = value, kind
        return Parameter(name)

    def _numbered(self, given: Numbers | Expression) -> Numbers | None:
        value = given if isinstance(given, int | tuple) else self._at_instance(given)
        return value if isinstance(value, int | tuple) else None  # type: ignore[return-value]

    # -- the right side ------------------------------------------------------------------

    def ways(self, kind: str, given: Numbers | Expression) -> list[Expression]:
        """Return expressions that give a number of the right side, the best first."""
        value = self._numbered(given)
        candidates = self._lists() if isinstance(value, tuple) else self._of_number(kind)
        found = [one for one in candidates if self._at_instance(one) == value]
        return [*dict.fromkeys(found), _written(given)][:4]

    def _named(self, *kinds: str) -> list[Parameter]:
        return [Parameter(name) for name, kind in self.kinds.items() if kind in kinds]

    def _lists(self) -> Iterator[Expression]:
        given = [
            Parameter(name) for name in self.kinds if isinstance(self.values[name], tuple)
        ]
        yield from given
        yield from (Call("shape", (one,)) for one in self._tensors())
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
        axes = self._named("axes" if kind in AXES else kind)
        for perm in self._named("perm"):
            for axis in axes:
                yield Call("at", (perm, axis))
                yield Call("at", (Call("inverse", (perm,)), axis))
        yield from axes
        for axis in axes:
            if kind not in AXES:
                continue
            for by in (1, -1):
                yield Call("+", (axis, Number(by)))
            for small, large in product(self._tensors(), repeat=2):
                ranks = (Call("rank", (one,)) for one in (small, large))
                own, whole = ranks
                yield Call("-", (Call("+", (axis, own)), whole))

    def _offsets(self, kind: str) -> Iterator[Expression]:
        same = self._named(kind)
        others = self._named("starts") + self._named("ends")
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

    def _tensors(self) -> list[Parameter]:
        return [Parameter(name) for name in self.match.variables]

    def _sizes(self) -> list[Expression]:
        """Sizes that the left side has bound, and those of tensors."""
        given = [Parameter(name) for name in self.values if name not in self.kinds]
        inner = [
            Call("product", (Call("slice", (shape, after, Call("length", (shape,)))),))
            for shape in self._named("shape")
            for after in (Call("+", (axis, Number(1))) for axis in self._named("axes"))
        ]
        return [*self._dims(), *given, *inner]

    def _dims(self) -> list[Call]:
        """Sizes of tensors along the axes that are named."""
        axes = self._named("axes")
        dims = [Call("dim", (one, axis)) for one in self._tensors() for axis in axes]
        return [one for one in dims if self._at_instance(one) is not None]

    def _at_instance(self, expression: Expression | Each) -> Value | None:
        assert not isinstance(expression, Each)
        match = Match(self.match.variables, self.values)
        try:
            return evaluate(expression, match, self.facts)
        except Exception:
            return None

    # -- conditions ----------------------------------------------------------------------

    def conditions(self) -> Iterator[str]:
        """Yield what is true of the variables at the instance.

        What is more likely an accident comes first: conditions are dropped in this order.
        """
        yield from self._on_offsets()
        yield from self._on_lists()
        yield from self._prefixes()
        yield from self._on_axes()

    def _on_axes(self) -> Iterator[str]:
        numbers = [
            one for one in self._named("axes") if isinstance(self.values[one.name], int)
        ]
        ranks = {one: self._at_instance(Call("rank", (one,))) for one in self._tensors()}
        largest = [one for one in ranks if ranks[one] == max(ranks.values())]  # type: ignore[type-var]
        for one, tensor in product(numbers, largest):
            for behind in (1, 2):
                text = f"(- (rank ?{tensor.name}) {behind})"
                if ranks[tensor] == self.values[one.name] + behind:  # type: ignore[operator]
                    yield f"?{one.name} = {text}"
        for first, second in combinations(self._dims(), 2):
            same_axis = first.arguments[1] == second.arguments[1]
            if same_axis and self._at_instance(first) == self._at_instance(second):
                yield f"{_shown(first)[1:-1]} = {_shown(second)}"
        for one, other in product(numbers, repeat=2):
            if self.values[one.name] < self.values[other.name]:  # type: ignore[operator]
                yield f"?{one.name} < ?{other.name}"

    def _on_offsets(self) -> Iterator[str]:
        offsets = self._named("starts", "ends")
        for one in offsets:
            yield f"?{one.name} {'>=' if self.values[one.name] else '='} 0"
        for start, end, last in product(self._named("starts"), *[self._named("ends")] * 2):
            both = Call("+", (start, end))
            if end != last and self._least(both, last):
                yield f"(+ ?{start.name} ?{end.name}) <= ?{last.name}"
        pairs = product(self._named("shape"), self._named("axes"))
        parts = [Call("at", pair) for pair in pairs]
        parts = [one for one in parts if self._at_instance(one) is not None]
        for one, size in product(offsets, [*self._dims(), *parts]):
            mine, other = self._at_instance(one), self._at_instance(size)
            if mine == other:
                yield f"?{one.name} = {_shown(size)}"
            elif self._least(one, size):
                yield f"?{one.name} <= {_shown(size)}"
            elif self._least(size, one):
                yield f"?{one.name} >= {_shown(size)}"

    def _on_lists(self) -> Iterator[str]:
        """What permutations, paddings and shapes are to tensors."""
        yield from (f"?{one.name} >= 0" for one in self._named("pads"))
        for perm, one in product(self._named("perm"), self._tensors()):
            shape = self._at_instance(Call("shape", (one,)))
            order = self.values[perm.name]
            assert isinstance(shape, tuple)
            assert isinstance(order, tuple)
            kept = [axis for axis in order if axis < len(shape) and shape[axis] != 1]  # type: ignore[operator,index]
            if len(order) == len(shape) and kept == sorted(kept) and len(kept) < len(shape):  # type: ignore[type-var]
                yield f"moves-ones ?{one.name} ?{perm.name}"
        for shape, one in product(self._named("shape"), self._tensors()):
            length = Call("length", (shape,))
            wide = Call("aligned", (Call("shape", (one,)), length))
            if self._at_instance(wide) == self.values[shape.name]:
                text = f"(aligned (shape ?{one.name}) (length ?{shape.name}))"
                yield f"?{shape.name} = {text}"

    def _prefixes(self) -> Iterator[str]:
        """How far shapes of reshapes agree with those of tensors, up to a named axis."""
        for shape, axis, one in product(
            self._named("shape"), self._named("axes"), self._tensors()
        ):
            own, at = self.values[shape.name], self.values[axis.name]
            whole = self._at_instance(Call("shape", (one,)))
            if not isinstance(at, int) or not isinstance(own, tuple):
                continue
            assert isinstance(whole, tuple)
            if own[: at + 1] == whole[: at + 1]:
                end = f"(+ ?{axis.name} 1)"
                yield f"slice ?{shape.name} 0 {end} = (slice (shape ?{one.name}) 0 {end})"
                yield f"?{axis.name} < (rank ?{one.name})"
            elif own[:at] == whole[:at]:
                end = f"?{axis.name}"
                yield f"slice ?{shape.name} 0 {end} = (slice (shape ?{one.name}) 0 {end})"
                if len(whole) == at + 1:
                    yield f"rank ?{one.name} = (+ {end} 1)"

    def _least(self, one: Expression, other: Expression) -> bool:
        first, second = self._at_instance(one), self._at_instance(other)
        return isinstance(first, int) and isinstance(second, int) and first <= second

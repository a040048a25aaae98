"""What the left side of a rule binds, as it is at the rule's instance.

Expressions over these variables can be evaluated there, and everything that compares them
and happens to be true there can be said: proposals for the conditions of a wider rule.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from rulesets.errors import RuleError, ShapeError, SizeError
from rulesets.expression import Call, Each, Expression, Parameter, evaluate
from rulesets.match import Facts, Match, Value
from rulesets.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Shapes:
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
class Bound:
    """Variables at an instance.

    Attributes:
        values: Variables of attributes, by name.
        match: The handles of tensors.
        facts: About these tensors.
        kinds: Of the variables that were made here, the attribute each stands in.
    """

    values: dict[str, Value]
    match: Match
    facts: Facts
    kinds: dict[str, str] = field(default_factory=dict)

    def named(self, *kinds: str) -> list[Parameter]:
        """Return the variables that stand in attributes of these names."""
        return [Parameter(name) for name, kind in self.kinds.items() if kind in kinds]

    def tensors(self) -> list[Parameter]:
        """Return the tensors."""
        return [Parameter(name) for name in self.match.variables]

    def dims(self) -> list[Call]:
        """Sizes of tensors along the axes that are named."""
        axes = self.named("axes")
        dims = [Call("dim", (one, axis)) for one in self.tensors() for axis in axes]
        return [one for one in dims if self.at_instance(one) is not None]

    def at_instance(self, expression: Expression | Each) -> Value | None:
        """Return the value of an expression, None if it has none there."""
        assert not isinstance(expression, Each)
        match = Match(self.match.variables, self.values)
        try:
            return evaluate(expression, match, self.facts)
        except (RuleError, ShapeError, SizeError, TypeError, ValueError, LookupError):
            return None

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
            one for one in self.named("axes") if isinstance(self.values[one.name], int)
        ]
        ranks = {one: self.at_instance(Call("rank", (one,))) for one in self.tensors()}
        largest = [one for one in ranks if ranks[one] == max(ranks.values())]  # type: ignore[type-var]
        for one, tensor in product(numbers, largest):
            for behind in (1, 2):
                text = f"(- (rank ?{tensor.name}) {behind})"
                if ranks[tensor] == self.values[one.name] + behind:  # type: ignore[operator]
                    yield f"?{one.name} = {text}"
        yield from self._broadcast(numbers, largest)
        for first, second in combinations(self.dims(), 2):
            same_axis = first.arguments[1] == second.arguments[1]
            if same_axis and self.at_instance(first) == self.at_instance(second):
                yield f"{_shown(first)[1:-1]} = {_shown(second)}"
        for one, other in product(numbers, repeat=2):
            if self.values[one.name] < self.values[other.name]:  # type: ignore[operator]
                yield f"?{one.name} < ?{other.name}"

    def _broadcast(
        self, axes: Sequence[Parameter], largest: Sequence[Parameter]
    ) -> Iterator[str]:
        """Where operands of lower rank have one element along an axis, or all of it."""
        smaller = [one for one in self.tensors() if one not in largest]
        for small, whole, axis in product(smaller, largest, axes):
            rank, shape = Call("rank", (whole,)), Call("shape", (small,))
            along = self.at_instance(Call("at", (Call("aligned", (shape, rank)), axis)))
            text = f"at (aligned (shape ?{small.name}) (rank ?{whole.name})) ?{axis.name}"
            if along == 1:
                yield f"{text} = 1"
            elif along == self.at_instance(Call("dim", (whole, axis))):
                yield f"{text} = (dim ?{whole.name} ?{axis.name})"

    def _on_offsets(self) -> Iterator[str]:
        offsets = self.named("starts", "ends")
        for one in offsets:
            yield f"?{one.name} {'>=' if self.values[one.name] else '='} 0"
        for start, end, last in product(self.named("starts"), *[self.named("ends")] * 2):
            both = Call("+", (start, end))
            if end != last and self._least(both, last):
                yield f"(+ ?{start.name} ?{end.name}) <= ?{last.name}"
        pairs = product(self.named("shape"), self.named("axes"))
        parts = [Call("at", pair) for pair in pairs]
        parts = [one for one in parts if self.at_instance(one) is not None]
        for one, size in product(offsets, [*self.dims(), *parts]):
            mine, other = self.at_instance(one), self.at_instance(size)
            if mine == other:
                yield f"?{one.name} = {_shown(size)}"
            elif self._least(one, size):
                yield f"?{one.name} <= {_shown(size)}"
            elif self._least(size, one):
                yield f"?{one.name} >= {_shown(size)}"

    def _on_lists(self) -> Iterator[str]:
        """What permutations, paddings and shapes are to tensors."""
        yield from (f"?{one.name} >= 0" for one in self.named("pads"))
        for perm, one in product(self.named("perm"), self.tensors()):
            order = self._integers(perm)
            sizes = self._integers(Call("shape", (one,)))
            kept = [axis for axis in order if sizes[axis : axis + 1] != (1,)]
            if len(order) == len(sizes) > len(kept) and kept == sorted(kept):
                yield f"moves-ones ?{one.name} ?{perm.name}"
        for shape, one in product(self.named("shape"), self.tensors()):
            length = Call("length", (shape,))
            wide = Call("aligned", (Call("shape", (one,)), length))
            if self.at_instance(wide) == self.values[shape.name]:
                text = f"(aligned (shape ?{one.name}) (length ?{shape.name}))"
                yield f"?{shape.name} = {text}"

    def _integers(self, expression: Expression) -> tuple[int, ...]:
        """The whole numbers of a list."""
        value = self.at_instance(expression)
        return (
            tuple(n for n in value if isinstance(n, int))
            if isinstance(value, tuple)
            else ()
        )

    def _prefixes(self) -> Iterator[str]:
        """How far shapes of reshapes agree with those of tensors, up to a named axis."""
        for shape, axis, one in product(
            self.named("shape"), self.named("axes"), self.tensors()
        ):
            own, at = self.values[shape.name], self.values[axis.name]
            whole = self.at_instance(Call("shape", (one,)))
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
        first, second = self.at_instance(one), self.at_instance(other)
        return isinstance(first, int) and isinstance(second, int) and first <= second


def _shown(size: Call) -> str:
    tensor, axis = size.arguments
    assert isinstance(tensor, Parameter)
    assert isinstance(axis, Parameter)
    return f"({size.function} ?{tensor.name} ?{axis.name})"

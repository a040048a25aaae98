"""Expressions and conditions of rules, read by the prover.

Sizes are polynomials, attributes of kind float are symbolic scalars. A condition is taken
for granted: it becomes an equation between sizes, a bound, a choice of sizes that are 1,
or a property of the elements of a tensor. A condition that says nothing about values is
ignored; ignoring one only makes more to prove.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import inf
from typing import Any

from rulesets.condition import Condition
from rulesets.errors import NotModelledError, RuleError, ShapeError, SizeError
from rulesets.expression import (
    FUNCTIONS,
    Call,
    Expression,
    Number,
    Parameter,
    Sequenced,
    Text,
)
from rulesets.scalar import Read, of_atom, plus, scaled
from rulesets.scenario import DeadError, Scenario
from rulesets.size import Poly, Size, floor_div
from rulesets.symbols import Symbols, Tensors, Value
from rulesets.tensor import Tensor


@dataclass
class Binding:
    """What the variables of a rule stand for in a scenario; also the facts about them.

    Attributes:
        scenario: The scenario.
        meaning: The symbolic meaning of the side that is read.
        tensors: The tensor variables, labels included.
        attributes: The attribute variables; bundles under ``..k``.
    """

    scenario: Scenario
    meaning: Symbols
    tensors: dict[str, Tensors] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)

    def tensor(self, handle: Any, /) -> Tensor:
        """Return type and shape; the handle is the name."""
        found = self.tensors[handle]
        return Tensor(found.dtype, found.shape)


def evaluate(expression: Expression, binding: Binding) -> Any:
    """Compute an expression.

    Raises:
        ShapeError: It has no value here.
        NotModelledError: Its value is not known to the prover.
    """
    match expression:
        case Number(value=value) | Text(value=value):
            return value
        case Parameter(name=name):
            if name not in binding.attributes:
                raise RuleError(f"variable ?{name} is not bound")
            return binding.attributes[name]
        case Sequenced(items=items):
            return tuple(evaluate(item, binding) for item in items)  # type: ignore[arg-type]
        case Call(function=function, arguments=arguments):
            return _called(function, arguments, binding)
    raise NotModelledError(f"the expression {expression}")


def _called(name: str, arguments: Sequence[Expression], binding: Binding) -> Any:
    values: list[Any] = []
    if FUNCTIONS[name].on_tensor:
        (first, *arguments) = arguments
        assert isinstance(first, Parameter)
        if first.name not in binding.tensors:
            raise RuleError(f"variable ?{first.name} is not bound")
        if name == "value":
            return _value(binding.tensors[first.name], binding)
        values = [binding, first.name]
    values += [evaluate(argument, binding) for argument in arguments]
    special = _SPECIAL.get(name)
    if special is not None:
        return special(binding, *values)
    try:
        return FUNCTIONS[name].compute(*values)
    except (IndexError, ZeroDivisionError, ValueError) as error:
        raise ShapeError(f"({name} ...) has no value here: {error}") from error
    except TypeError as error:
        raise NotModelledError(f"({name} ...) of symbols") from error


def _value(tensor: Tensors, binding: Binding) -> Any:
    for size in tensor.shape:
        binding.scenario.learn_equal(size, 1)
    index = (0,) * len(tensor.shape)
    if tensor.dtype.startswith(("int", "uint")):
        name = f"{tensor.name}[]"
        return binding.scenario.symbol(name, f"(value ?{tensor.name})", None)
    return tensor[index]


def _real(binding: Binding, value: Any) -> Value:
    if isinstance(value, Poly):
        return binding.meaning.real(value)
    return value if isinstance(value, Value) else binding.meaning.number(value)


def _is_real(value: Any) -> bool:
    return isinstance(value, Value | float)


def _ratio(binding: Binding, one: Any, other: Any) -> Any:
    meaning = binding.meaning
    return _real(binding, one) * meaning.function(
        "div", meaning.number(1), _real(binding, other)
    )


def _extreme(sign: int) -> Callable[..., Any]:
    """Return max (sign 1) or min (sign -1) on numbers, infinite ones too, and symbols."""

    def compute(binding: Binding, first: Any, *others: Any) -> Any:
        for other in others:
            first = _two(sign, binding, first, other)
        return first

    return compute


def _two(sign: int, binding: Binding, one: Any, other: Any) -> Any:
    for a, b in ((one, other), (other, one)):
        if not isinstance(a, Value) and a in (inf, -inf):
            return a if a == sign * inf else b
    if not isinstance(one, Value | Poly) and not isinstance(other, Value | Poly):
        return (max if sign > 0 else min)(one, other)
    if isinstance(one, Poly) or isinstance(other, Poly):
        raise NotModelledError("the larger of two sizes")
    a, b = _real(binding, one), _real(binding, other)
    return binding.meaning.larger(a, b) if sign > 0 else -binding.meaning.larger(-a, -b)


def _remainder(binding: Binding, one: Any, other: Any) -> Any:
    if isinstance(one, int) and isinstance(other, int):
        return one % other
    known = binding.scenario.integers
    for moved in (one, one + other):
        if known.implied(moved) and known.implied(other - moved - 1):
            return moved
    raise NotModelledError("a remainder")


def _quotient(binding: Binding, one: Any, other: Any) -> Any:
    if isinstance(other, int) and other < 1:
        raise ShapeError("division by a number that is not positive")
    return floor_div(one, other)


def _arithmetic(name: str) -> Callable[..., Any]:
    """Compute + - * on sizes and numbers, or on symbols where one is a symbol."""

    def compute(binding: Binding, *values: Any) -> Any:
        if any(isinstance(value, Value) for value in values):
            values = tuple(_real(binding, value) for value in values)
            if name == "-" and len(values) == 1:
                return -values[0]
            result = values[0]
            for value in values[1:]:
                if name == "+":
                    result = result + value
                else:
                    result = result * value if name == "*" else result - value
            return result
        return FUNCTIONS[name].compute(*values)

    return compute


def _integer(binding: Binding, value: Any) -> Any:
    if isinstance(value, Value):
        raise NotModelledError("the whole part of a symbol")
    return value if isinstance(value, Poly) else int(value)


def _ones_lost(binding: Binding, before: Any, after: Any) -> Any:
    """Choose which axes of size 1 are lost, and learn that the others are equal."""
    lost = len(before) - len(after)
    if lost < 0:
        raise ShapeError("the second shape has more axes")
    options = tuple(combinations(range(len(before)), lost))
    axes: tuple[int, ...] = binding.scenario.choose(("ones lost", before, after), options)
    for axis in axes:
        _equal(binding, before[axis], 1)
    kept = [size for axis, size in enumerate(before) if axis not in axes]
    _equal(binding, tuple(kept), tuple(after))
    return axes


_SPECIAL: Mapping[str, Callable[..., Any]] = {
    "/": _ratio,
    "min": _extreme(-1),
    "max": _extreme(1),
    "int": _integer,
    "%": _remainder,
    "//": _quotient,
    "+": _arithmetic("+"),
    "-": _arithmetic("-"),
    "*": _arithmetic("*"),
    "ones-lost": _ones_lost,
}


# -- conditions --------------------------------------------------------------------------


def assume(condition: Condition, binding: Binding) -> None:
    """Take a condition for granted.

    Raises:
        DeadError: It never holds here.
    """
    try:
        values = [evaluate(each, binding) for each in condition.expressions]
        tensors = [each.name for each in condition.tensors]
        READINGS[condition.word](binding, *tensors, *values)
    except (ShapeError, SizeError) as error:
        # What has no value does not hold.
        raise DeadError from error


def _equal(binding: Binding, one: Any, other: Any) -> None:
    if isinstance(one, tuple) and isinstance(other, tuple):
        if len(one) != len(other):
            raise DeadError
        for a, b in zip(one, other, strict=True):
            _equal(binding, a, b)
    elif isinstance(one, Value) or isinstance(other, Value):
        _equal_reals(binding, one, other)
    elif isinstance(one, Poly) or isinstance(other, Poly):
        binding.scenario.learn_equal(one, other)
    elif one != other:
        raise DeadError


def _equal_reals(binding: Binding, one: Any, other: Any) -> None:
    for a, b in ((one, other), (other, one)):
        if isinstance(a, Value) and not isinstance(b, Value):
            if b in (inf, -inf):
                raise DeadError
            term = a.sum.terms[0] if len(a.sum.terms) == 1 else None
            if term is not None and term.coefficient == 1 and len(term.factors) == 1:
                atom, power = term.factors[0]
                if isinstance(atom, Read) and power == 1 and not atom.index:
                    binding.scenario.set_real(atom.name, binding.meaning.number(b).sum)


def _bound(binding: Binding, one: Any, other: Any, margin: int = 0) -> None:
    """Learn `one + margin <= other`, value by value for lists."""
    if isinstance(one, tuple) or isinstance(other, tuple):
        size = len(one) if isinstance(one, tuple) else len(other)
        ones = one if isinstance(one, tuple) else (one,) * size
        others = other if isinstance(other, tuple) else (other,) * size
        if len(ones) != len(others):
            raise DeadError
        for a, b in zip(ones, others, strict=True):
            _bound(binding, a, b, margin)
    elif isinstance(one, Value) or isinstance(other, Value):
        _bound_reals(binding, one, other, strict=bool(margin))
    elif isinstance(one, float) or isinstance(other, float):
        if not (one < other or (not margin and one == other)):
            raise DeadError
    elif isinstance(one, int | Poly) and isinstance(other, int | Poly):
        binding.scenario.learn_at_least(other, one + margin)
    else:
        raise DeadError


def _bound_reals(binding: Binding, one: Any, other: Any, *, strict: bool) -> None:
    for value, worst in ((one, inf), (other, -inf)):
        if not isinstance(value, Value) and value == worst:
            raise DeadError
    if any(not isinstance(v, Value) and v in (inf, -inf) for v in (one, other)):
        return
    difference = plus(_real(binding, other).sum, scaled(_real(binding, one).sum, -1))
    binding.scenario.real_facts.append((difference, strict))


def _unequal(binding: Binding, one: Any, other: Any) -> None:
    if isinstance(one, Poly | int) and isinstance(other, Poly | int):
        if one == other:
            raise DeadError
        if other == 1 and binding.scenario.integers.implied(one - 1):
            binding.scenario.learn_at_least(one, 2)
    elif not isinstance(one, Value) and not isinstance(other, Value) and one == other:
        raise DeadError


def _scalar(binding: Binding, name: str) -> None:
    for size in binding.tensors[name].shape:
        binding.scenario.learn_equal(size, 1)


def _fits(binding: Binding, small: str, large: str) -> None:
    one, other = binding.tensors[small].shape, binding.tensors[large].shape
    if len(one) > len(other):
        raise DeadError
    for size, whole in zip(reversed(one), reversed(other), strict=False):
        _one_or(binding, size, whole)


def _one_or(binding: Binding, size: Size, whole: Size) -> None:
    if size in (1, whole):
        return
    answer = binding.scenario.choose(("fits", size, whole), ("equal", "one"))
    if answer == "equal":
        binding.scenario.learn_equal(size, whole)
    else:  # where both are 1, they are equal
        binding.scenario.learn_large(whole)
        binding.scenario.learn_equal(size, 1)


def _nested(binding: Binding, one: str, other: str) -> None:
    order = binding.scenario.choose(("nested", one, other), ((one, other), (other, one)))
    _fits(binding, *order)


def _along(binding: Binding, name: str, like: str, axis: int) -> None:
    one, other = binding.tensors[name].shape, binding.tensors[like].shape
    if len(one) > len(other) or not other:
        raise DeadError
    axis, offset = axis % len(other), len(other) - len(one)
    for at, size in enumerate(one):
        if at + offset == axis:
            _one_or(binding, size, other[axis])
        else:
            binding.scenario.learn_equal(size, 1)


def _moves_ones(binding: Binding, name: str, permutation: tuple[int, ...]) -> None:
    shape, scenario = binding.tensors[name].shape, binding.scenario
    large = []
    for axis in permutation:
        if shape[axis] != 1 and scenario.choose(("one", name, axis), (True, False)):
            scenario.learn_equal(shape[axis], 1)
        elif shape[axis] != 1:
            scenario.learn_at_least(shape[axis], 2)
            large.append(axis)
    if large != sorted(large):
        raise DeadError


def _every(binding: Binding, name: str, value: Any) -> None:
    binding.scenario.set_real(name, binding.meaning.number(value).sum)


def _finite(binding: Binding, value: Any) -> None:
    if not isinstance(value, Value) and value in (inf, -inf):
        raise DeadError


def _nothing(binding: Binding, *others: Any) -> None:
    """A condition on where values come from says nothing about them."""


READINGS: Mapping[str, Callable[..., None]] = {
    "=": _equal,
    "!=": _unequal,
    "<=": _bound,
    ">=": lambda binding, one, other: _bound(binding, other, one),
    "<": lambda binding, one, other: _bound(binding, one, other, 1),
    ">": lambda binding, one, other: _bound(binding, other, one, 1),
    "const": _nothing,
    "varying": _nothing,
    "scalar": _scalar,
    "positive": lambda binding, name: binding.scenario.positive_reads.add(name),
    "nonzero": lambda binding, name: binding.scenario.nonzero_reads.add(name),
    "every": _every,
    "nested": _nested,
    "fits": _fits,
    "along": _along,
    "moves-ones": _moves_ones,
    "zeros": lambda binding, values: _equal(binding, values, (0,) * len(values)),
    "finite": _finite,
}


def parameter(scenario: Scenario, meaning: Symbols, name: str) -> Value:
    """Return a real attribute: what it is known to be, or an atom."""
    known = scenario.state.reals.get(name)
    return Value(meaning, known if known is not None else of_atom(Read(name)))

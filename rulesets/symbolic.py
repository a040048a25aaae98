"""Symbolic attributes: every value an attribute of the left side can have.

Axes, permutations and flags are chosen one by one; strides, pads, offsets and sizes are
symbols; float attributes are symbolic scalars. Offsets of `Slice` may count from the end.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import inf
from typing import Any

from rulesets.assume import parameter
from rulesets.errors import NotModelledError, ShapeError
from rulesets.ops import END, OPERATORS
from rulesets.scenario import Scenario
from rulesets.size import Size
from rulesets.symbols import Symbols
from rulesets.tensor import Tensor


@dataclass(frozen=True)
class Asked:
    """The question what an attribute is.

    Attributes:
        scenario: The scenario that chooses.
        meaning: Where symbolic scalars live.
        op: The operator.
        inputs: The types of its arguments.
        known: The attributes known already.
        key: A name that tells this attribute from all others of the rule.
        text: How the vocabulary of rules says it, if it can.
        rank: The greatest rank tried.
        opaque: Whether the rule passes the attribute on without looking into it.
    """

    scenario: Scenario
    meaning: Symbols
    op: str
    inputs: tuple[Tensor, ...]
    known: Mapping[str, Any]
    key: str
    text: str
    rank: int
    opaque: bool = True

    @property
    def shape(self) -> tuple[Size, ...]:
        """The shape of the first argument."""
        shape = self.inputs[0].shape if self.inputs else ()
        assert shape is not None
        return shape

    def choose(self, options: Sequence[Any]) -> Any:
        """Choose among values."""
        return self.scenario.choose(("attribute", self.key), options)

    def symbol(self, position: int | None = None, least: int | None = 1) -> Size:
        """Return a symbol for the attribute or one of its numbers."""
        if position is None:
            return self.scenario.symbol(self.key, self.text, least)
        name, text = f"{self.key}.{position}", f"(at {self.text} {position})"
        return self.scenario.symbol(name, text, least)


def attribute(asked: Asked, name: str, position: int | None = None) -> Any:
    """Return an attribute, or one number of a list whose length the rule writes out."""
    if position is not None:
        return _member(asked, name, position)
    if name in _ATTRIBUTES:
        return _ATTRIBUTES[name](asked)
    kind = OPERATORS[asked.op].kinds[name]
    if kind == "float":
        return parameter(asked.scenario, asked.meaning, asked.key)
    raise NotModelledError(f"attribute {name} of {asked.op}")


def order_of(op: str, names: Sequence[str]) -> list[str]:
    """Return attributes in an order in which each may use those before."""
    first = ("axes", "axis", "steps", "starts")
    return [*(n for n in first if n in names), *(n for n in names if n not in first)]


def _subsets(count: int, least: int = 1) -> list[tuple[int, ...]]:
    return [c for n in range(least, count + 1) for c in combinations(range(count), n)]


def _axis(asked: Asked) -> Any:
    more = 1 if asked.op == "Flatten" else 0
    return asked.choose(range(len(asked.shape) + more))


def _axes(asked: Asked) -> Any:
    if asked.op != "Unsqueeze":
        return asked.choose(_subsets(len(asked.shape)))
    rank = len(asked.shape)
    return asked.choose(
        [
            axes
            for count in range(1, max(2, asked.rank + 1 - rank))
            for axes in combinations(range(rank + count), count)
        ]
    )


def _numbers(per_axis: int, least: int | None, skip: int = 2) -> Callable[[Asked], Any]:
    def numbers(asked: Asked) -> Any:
        count = per_axis * (len(asked.shape) - skip)
        if count < 1:
            raise ShapeError("too few axes")
        return tuple(asked.symbol(position, least) for position in range(count))

    return numbers


def _pads(asked: Asked) -> Any:
    return _numbers(2, None, 0)(asked) if asked.op == "Pad" else _numbers(2, 0)(asked)


def _shape(asked: Asked) -> Any:
    length = asked.choose(range(asked.rank + 1))
    return tuple(asked.symbol(position) for position in range(length))


def _parts(asked: Asked) -> Any:
    length = asked.choose(range(1, 4))
    return tuple(asked.symbol(position) for position in range(length))


def _limit(sign: float) -> Callable[[Asked], Any]:
    def limit(asked: Asked) -> Any:
        if asked.choose(("finite", "infinite")) == "infinite":
            return sign
        return parameter(asked.scenario, asked.meaning, asked.key)

    return limit


def _offsets(name: str) -> Callable[[Asked], Any]:
    return lambda asked: tuple(
        _member(asked, name, position) for position in range(len(asked.known["axes"]))
    )


def _to(asked: Asked) -> Any:
    own = asked.inputs[0].dtype
    other = "float64" if own != "float64" else "float32"
    return asked.choose((own, other, "int64" if own != "int64" else "int32"))


_ATTRIBUTES: Mapping[str, Callable[[Asked], Any]] = {
    "perm": lambda asked: asked.choose(tuple(permutations(range(len(asked.shape))))),
    "axis": _axis,
    "axes": _axes,
    "index": lambda asked: asked.choose(range(len(asked.inputs))),
    "parts": _parts,
    "shape": _shape,
    "strides": _numbers(1, 1),
    "dilations": _numbers(1, 1),
    "kernel": _numbers(1, 1),
    "output_padding": _numbers(1, 0),
    "pads": _pads,
    "group": lambda asked: asked.symbol(),
    **dict.fromkeys(("size", "rows", "cols"), lambda asked: asked.symbol()),
    **dict.fromkeys(("lower", "upper"), lambda asked: asked.symbol(None, None)),
    "dtype": lambda asked: asked.choose(("float32", "int64")),
    "starts": _offsets("starts"),
    "ends": _offsets("ends"),
    "steps": _offsets("steps"),
    "min": _limit(-inf),
    "max": _limit(inf),
    "to": _to,
    "approximate": lambda asked: asked.choose(("none", "tanh")),
    **dict.fromkeys(
        ("keepdims", "transA", "transB", "count_include_pad", "ceil_mode"),
        lambda asked: asked.choose((0, 1)),
    ),
}


def _member(asked: Asked, name: str, position: int) -> Any:
    """Return one number of a list."""
    whole = (*asked.known["axes"],) if "axes" in asked.known else ()
    if name in ("starts", "ends", "steps") and position < len(whole):
        return _OFFSETS[name](asked, position, asked.shape[whole[position]])
    if name in ("axes", "axis"):
        one = Asked(**{**vars(asked), "key": f"{asked.key}.{position}"})
        return one.choose(range(len(asked.shape)))
    if name in ("parts", "shape"):
        return asked.symbol()
    raise NotModelledError(f"one number of {name} of {asked.op}")


def _step(asked: Asked, position: int, size: Size) -> Size:
    question = ("sign", asked.key, position)
    step = asked.symbol(position)
    return step if asked.scenario.choose(question, ("+", "-")) == "+" else -step


def _raw(asked: Asked, position: int) -> Size:
    """Return an offset that stands for every way to write a position."""
    offset = asked.symbol(position, None)
    asked.scenario.opaque.add(f"{asked.key}.{position}")
    return offset


def _start(asked: Asked, position: int, size: Size) -> Size:
    if asked.opaque:
        return _raw(asked, position)
    if _backwards(asked, position):
        start = asked.symbol(position, 0)
        asked.scenario.learn_at_least(size, start + 1)
        return start
    front = asked.scenario.choose(("from", asked.key, position), ("front", "end"))
    return _offset(asked, position, size, front == "front")


def _end(asked: Asked, position: int, size: Size) -> Size:
    if asked.opaque:
        return _raw(asked, position)
    if _backwards(asked, position):
        end = asked.symbol(position, None)
        asked.scenario.learn_at_least(end, -1)
        asked.scenario.learn_at_least(size, end + 1)
        return end
    where = asked.scenario.choose(("from", asked.key, position), ("front", "end", "all"))
    if where != "all":
        return _offset(asked, position, size, where == "front")
    asked.scenario.learn_at_least(END - 1, size)
    return END


def _offset(asked: Asked, position: int, size: Size, front: bool) -> Size:
    offset = asked.symbol(position, 0 if front else 1)
    asked.scenario.learn_at_least(size, offset)
    return offset if front else -offset


def _backwards(asked: Asked, position: int) -> bool:
    step = asked.known["steps"][position] if "steps" in asked.known else 1
    return asked.scenario.integers.implied(-step - 1)


_OFFSETS: Mapping[str, Callable[[Asked, int, Size], Size]] = {
    "steps": _step,
    "starts": _start,
    "ends": _end,
}

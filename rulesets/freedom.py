"""Which sizes of an equation are free of one another.

The generator finds equations at a family's shapes, where many axes share a symbol. Here
every axis (and every size in an attribute) gets a symbol of its own, and those are put
together again that must be equal for both sides to be well-shaped and of equal shape. The
shape rules of the operators decide; nothing is said twice.

An axis whose size is *forced* is one the left side's own validity decides, so that a rule
need not test it. Elementwise operators force nothing, since they might broadcast.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from rulesets.equation import Equation
from rulesets.errors import OperatorError, ShapeError, SizeError
from rulesets.ground import FLOAT, Ground, Leaf, Node, leaves, outputs_of, resize, shape_of
from rulesets.ops import OPERATORS, Frozen, Value
from rulesets.size import Broadcast, Poly, Size, substitute, symbol, symbols
from rulesets.tensor import Tensor

MOST_PLACES = 11
"""Places of one symbol up to which two-block partitions are tried."""

type Equations = tuple[Equation, ...]
type Blocks = dict[str, str]
"""The symbol of each place, and the symbol of its block."""


@dataclass(frozen=True, slots=True)
class Freed:
    """Equations whose sizes are as free as their shapes allow.

    Attributes:
        equations: The equations over block symbols.
        places: For each block, the places in it: ``name.axis`` of a leaf, or an attribute.
        forced: Pairs of places that the left sides' validity makes equal.
    """

    equations: tuple[Equation, ...]
    places: dict[str, tuple[str, ...]]
    forced: frozenset[frozenset[str]]


@lru_cache(maxsize=256)
def free(*equations: Equation) -> Freed:
    """Give every size of equations over common leaves as much freedom as it can have.

    Raises:
        ShapeError: The equations are ill-shaped as they are.
    """
    split, places = _apart(equations)
    whole = {place: name for name, found in places.items() for place in found}
    blocks: Blocks = {}
    for name, found in places.items():
        blocks.update(_finest(found, name, partial(_valid_with, split, whole)))
    if not _valid(split, blocks):
        if not _valid(split, whole):
            raise ShapeError(f"both sides must be of equal shape; found {equations[0]}")
        blocks = whole
    forced = _forced(split, places)
    grouped: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for place, block in blocks.items():
        grouped[block] = (*grouped[block], place)
    return Freed(_with(split, blocks), dict(grouped), forced)


def _valid_with(split: Equations, merged: Blocks, blocks: Blocks) -> bool:
    return _valid(split, {**merged, **blocks})


def _with(equations: Equations, blocks: Blocks) -> Equations:
    values: dict[str, Size] = {place: symbol(block) for place, block in blocks.items()}
    return tuple(Equation(resize(e.lhs, values), resize(e.rhs, values)) for e in equations)


# -- places ------------------------------------------------------------------------------


def _apart(equations: Equations) -> tuple[Equations, dict[str, list[str]]]:
    """Give every place a symbol of its own; the places of each old symbol."""
    places: dict[str, list[str]] = defaultdict(list)
    made: dict[Leaf, Leaf] = {}
    frozen: dict[tuple[str, Frozen], Frozen] = {}

    def place(size: Size, at: str) -> Size:
        values: dict[str, Size] = {}
        for name in sorted(symbols(size)):
            spot = f"{at}.{name}"
            places[name].append(spot)
            values[name] = symbol(spot)
        return substitute(size, values)

    def leaf(one: Leaf) -> Leaf:
        if one not in made:
            shape = tuple(
                place(s, f"{one.name}.{axis}") for axis, s in enumerate(one.shape)
            )
            made[one] = replace(one, shape=shape)
        return made[one]

    def spread(term: Ground) -> Ground:
        if isinstance(term, Leaf):
            return leaf(term)
        arguments = tuple(map(spread, term.arguments))
        # Equal attributes of one operator over equal arguments stay one value.
        key = (f"{term.op}{term.arguments}", term.attributes)
        if key not in frozen:
            number = len(frozen)
            frozen[key] = tuple(
                (name, _placed(value, f"@{number}.{name}", place))
                for name, value in term.attributes
            )
        return Node(term.op, frozen[key], arguments)

    apart = tuple(Equation(spread(one.lhs), spread(one.rhs)) for one in equations)
    return apart, dict(places)


def _placed(value: object, at: str, place: Callable[[Size, str], Size]) -> Value:
    if isinstance(value, tuple):
        return tuple(_placed(one, f"{at}.{k}", place) for k, one in enumerate(value))  # type: ignore[return-value]
    return place(value, at) if isinstance(value, Poly) else value  # type: ignore[return-value]


def _finest(found: list[str], name: str, valid: Callable[[Blocks], bool]) -> Blocks:
    """Return the finest partition of places into blocks that must be equal."""
    if len(found) == 1 or len(found) > MOST_PLACES:
        return dict.fromkeys(found, name)
    apart: list[tuple[str, ...]] = [()] * len(found)
    for bits in range(1, 2 ** (len(found) - 1)):
        side = [bits >> k & 1 for k in range(len(found))]
        if len(set(zip(apart, side, strict=True))) == len(set(apart)):
            continue  # it tells none apart that are still together
        blocks = {p: f"{name}'" if s else name for p, s in zip(found, side, strict=True)}
        if valid(blocks):
            apart = [(*a, str(s)) for a, s in zip(apart, side, strict=True)]
    names = {
        key: f"{name}{'' if k == 0 else k}" for k, key in enumerate(dict.fromkeys(apart))
    }
    return {place: names[key] for place, key in zip(found, apart, strict=True)}


# -- validity ----------------------------------------------------------------------------


def _valid(equations: Equations, blocks: Blocks) -> bool:
    for one in _with(equations, blocks):
        try:
            if shape_of(one.lhs) != shape_of(one.rhs):
                return False
        except (OperatorError, SizeError):
            return False
        if any(map(_grows, (*_nodes(one.lhs), *_nodes(one.rhs)))):
            return False
    return True


def _nodes(term: Ground) -> Iterator[Node]:
    if isinstance(term, Node):
        yield term
        for argument in term.arguments:
            yield from _nodes(argument)


def _grows(one: Node) -> bool:
    return any(
        isinstance(atom, Broadcast)
        for tensor in outputs_of(one)
        for size in tensor.shape or ()
        if isinstance(size, Poly)
        for monomial, _ in size.terms
        for atom, _ in monomial
    )


def _forced(split: Equations, places: dict[str, list[str]]) -> frozenset[frozenset[str]]:
    """Pairs of places that are equal wherever the left sides are well-shaped."""
    pairs = set()
    sides = [one.lhs for one in split]
    found_leaves = {leaf for side in sides for leaf in leaves(side)}
    own = {p for leaf in found_leaves for size in leaf.shape for p in symbols(size)}
    for name, found in places.items():
        mine = [place for place in found if place in own or place.startswith("@")]
        merged = {place: other for other, each in places.items() for place in each}

        def valid(blocks: Blocks, merged: Blocks = merged) -> bool:
            values: dict[str, Size] = {
                place: symbol(block) for place, block in {**merged, **blocks}.items()
            }
            try:
                for side in sides:
                    _loose(resize(side, values))
            except (OperatorError, SizeError):
                return False
            return True

        blocks = _finest(mine, name, valid) if mine else {}
        pairs |= {
            frozenset((one, other))
            for one in mine
            for other in mine
            if one < other and blocks[one] == blocks[other]
        }
    return frozenset(pairs)


@lru_cache(maxsize=10_000)
def _loose(term: Ground) -> tuple[Tensor, ...]:
    """Types, unknown behind whatever might broadcast."""
    if isinstance(term, Leaf) or not term.arguments:
        return outputs_of(term)
    if term.op == "Output":
        _loose(term.arguments[0])
        return (Tensor(FLOAT, None),)
    inputs = tuple(_loose(argument)[0] for argument in term.arguments)
    operator = OPERATORS[term.op]
    outputs = operator.infer(dict(term.attributes), inputs)
    if operator.elementwise and len(term.arguments) > 1 and len({*inputs}) > 1:
        return (Tensor(FLOAT, None),)
    return outputs

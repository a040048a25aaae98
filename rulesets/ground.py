"""Ground terms: operator applications over named tensors of known, perhaps symbolic, shape.

The generator enumerates them, an equation holds two, and published corpora are read into
them. Attributes are values (not expressions as in a rule) and always complete. One output
of a Split is ``Output[index](Split(x))`` and counts as one operator.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from rulesets.errors import ShapeError
from rulesets.ops import OPERATORS, Frozen, Value, complete, freeze
from rulesets.size import Poly, Size, evaluate, substitute
from rulesets.tensor import Shape, Tensor

FLOAT = "float32"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A tensor variable.

    Attributes:
        name: Its name.
        shape: Its sizes.
        group: Leaves of one group may be exchanged by a renaming.
        sign: ``any``, ``positive`` for a constant of positive elements, or ``drawn``: tried
            with positive elements only, where functions have values, but nothing is said.
        dtype: Its element type.
    """

    name: str
    shape: Shape
    group: str = ""
    sign: str = "any"
    dtype: str = FLOAT

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Node:
    """An operator over terms; without arguments it is a constant of the generator."""

    op: str
    attributes: Frozen = ()
    arguments: tuple["Ground", ...] = ()

    def __str__(self) -> str:
        values = ",".join(f"{name}={_shown(value)}" for name, value in self.attributes)
        inside = " ".join(
            [self.op + (f"[{values}]" if values else ""), *map(str, self.arguments)]
        )
        return f"({inside})"


type Ground = Leaf | Node


def node(
    op: str, attributes: Mapping[str, Value] | None = None, *arguments: Ground
) -> Node:
    """Return an application, defaults filled in."""
    return Node(op, freeze(complete(OPERATORS[op], attributes or {})), arguments)


def constant(op: str, **attributes: object) -> Node:
    """Return a constant whose attributes may be symbolic sizes (an `Eye` of size k)."""
    given = {"dtype": FLOAT, **attributes}
    return Node(op, tuple(sorted(given.items())))  # type: ignore[arg-type]


def part(axis: int, parts: tuple[Size, ...], index: int, x: Ground) -> Node:
    """Return one output of a Split."""
    return node(
        "Output", {"index": index}, node("Split", {"axis": axis, "parts": parts}, x)
    )


@lru_cache(maxsize=200_000)
def outputs_of(term: Ground) -> tuple[Tensor, ...]:
    """Return the types of a term's outputs.

    Raises:
        ShapeError: The term is ill-shaped.
    """
    if isinstance(term, Leaf):
        return (Tensor(term.dtype, term.shape),)
    attributes = dict(term.attributes)
    if term.op == "Output":
        index = attributes["index"]
        assert isinstance(index, int)
        return outputs_of(term.arguments[0])[index : index + 1]
    if term.op in ("Fill", "Eye", "Band"):
        return (Tensor(str(attributes["dtype"]), _generated(term.op, attributes)),)
    inputs = tuple(outputs_of(argument)[0] for argument in term.arguments)
    return OPERATORS[term.op].infer(attributes, inputs)


def _generated(op: str, attributes: Mapping[str, Value]) -> Shape:
    """The shape of a generator, whose sizes may be symbolic here."""
    if op == "Fill":
        return attributes["shape"]  # type: ignore[return-value]
    if op == "Eye":
        return (attributes["size"],) * 2  # type: ignore[return-value]
    return (attributes["rows"], attributes["cols"])  # type: ignore[return-value]


def shape_of(term: Ground) -> Shape:
    """Return the shape of a term's first output.

    Raises:
        ShapeError: The term is ill-shaped.
    """
    shape = outputs_of(term)[0].shape
    if shape is None:
        raise ShapeError(f"the rank of {term} is unknown; every leaf must have a shape")
    return shape


def subterms(term: Ground) -> Iterator[Ground]:
    """Yield a term and everything in it, outside first, once for each occurrence."""
    yield term
    if isinstance(term, Node):
        for argument in term.arguments:
            yield from subterms(argument)


def leaves(term: Ground) -> tuple[Leaf, ...]:
    """Return the leaves of a term in the order of their first occurrence."""
    return tuple(dict.fromkeys(each for each in subterms(term) if isinstance(each, Leaf)))


def size(term: Ground) -> int:
    """Return the number of different operators of a term, as a directed graph.

    Constant parts (without a leaf) count nothing, and an output counts with its Split.
    """
    found = {each for each in subterms(term) if isinstance(each, Node) and leaves(each)}
    return sum(each.op != "Split" for each in found)


def rename(term: Ground, names: Mapping[Leaf, Ground]) -> Ground:
    """Return a term with leaves replaced."""
    if isinstance(term, Leaf):
        return names.get(term, term)
    arguments = tuple(rename(argument, names) for argument in term.arguments)
    return replace(term, arguments=arguments)


def resize(term: Ground, values: Mapping[str, Size]) -> Ground:
    """Return a term with symbols of its sizes replaced."""
    if isinstance(term, Leaf):
        return replace(term, shape=tuple(substitute(one, values) for one in term.shape))
    attributes = tuple((name, resized(value, values)) for name, value in term.attributes)
    return Node(term.op, attributes, tuple(resize(each, values) for each in term.arguments))


def resized(value: object, values: Mapping[str, Size]) -> Value:
    """Return an attribute value with symbols of its sizes replaced."""
    if isinstance(value, tuple):
        return tuple(resized(one, values) for one in value)  # type: ignore[return-value]
    return substitute(value, values) if isinstance(value, Poly) else value  # type: ignore[return-value]


def numbers(shape: Shape, env: Mapping[str, int]) -> tuple[int, ...]:
    """Return a shape's sizes under values for the symbols."""
    return tuple(evaluate(one, env) for one in shape)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{','.join(map(str, value))}]"
    return str(value)

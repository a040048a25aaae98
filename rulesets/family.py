"""A family: which terms the generator enumerates.

It names leaves with symbolic shapes, constants, and the *steps* that may be applied to
tensors of given shapes. A step is an operator with attributes that are written out, so
split sizes, pads, groups and axes are never inferred. Shapes are symbolic and all symbols
have different values, so that two tensors fit because they must, not by accident.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rulesets.errors import OperatorError
from rulesets.ground import Ground, Leaf, Node, node, part, shape_of
from rulesets.size import Broadcast, Size, evaluate
from rulesets.tensor import Shape

type Unary = Callable[[Shape], Iterable["Step"]]
type Binary = Callable[[Shape, Shape], Iterable["Step"]]


@dataclass(frozen=True, slots=True)
class Step:
    """An operator with attributes, ready to be applied.

    Attributes:
        op: The operator; ``Split`` with an index is one of its outputs.
        attributes: Those that are not defaults; sizes may be symbolic.
        index: Which output, for a Split.
        commutative: Whether the two arguments may be exchanged.
    """

    op: str
    attributes: tuple[tuple[str, object], ...] = ()
    index: int | None = None
    commutative: bool = False

    def of(self, *arguments: Ground) -> Node:
        """Return the term that applies the step."""
        given = dict(self.attributes)
        if self.index is not None:
            axis, parts = given["axis"], given["parts"]
            assert isinstance(axis, int)
            assert isinstance(parts, tuple)
            return part(axis, parts, self.index, arguments[0])
        return node(self.op, given, *arguments)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Family:
    """What to enumerate.

    Attributes:
        name: Its name.
        leaves: Tensor variables; those of one group and shape are interchangeable.
        constants: Terms without arguments, for instance an identity matrix.
        sizes: A value for each symbol, all different.
        others: A second choice of values; an equation that fails there is an accident.
        unary: The steps for one tensor.
        binary: The steps for two tensors, in this order.
        exact: Whether integer arithmetic decides; see `rulesets.fingerprint`.
        largest: Most elements of a tensor, in units of the largest leaf.
    """

    name: str
    leaves: tuple[Leaf, ...]
    sizes: Mapping[str, int]
    others: Mapping[str, int]
    unary: Unary
    binary: Binary
    constants: tuple[Node, ...] = ()
    exact: bool = True
    largest: float = 3.0
    groups: Mapping[str, tuple[Leaf, ...]] = field(init=False)

    def __post_init__(self) -> None:
        groups: dict[str, tuple[Leaf, ...]] = {}
        for leaf in self.leaves:
            groups[leaf.group] = (*groups.get(leaf.group, ()), leaf)
        object.__setattr__(self, "groups", groups)

    def elements(self, shape: Shape) -> int:
        """Return the number of elements of a shape at `sizes`."""
        count = 1
        for size in shape:
            count *= evaluate(size, self.sizes)
        return count

    @property
    def most(self) -> int:
        """Most elements of a tensor."""
        return int(self.largest * max(self.elements(leaf.shape) for leaf in self.leaves))

    def steps(self, *shapes: Shape) -> list[tuple[Step, Shape]]:
        """Return the steps that apply to tensors of these shapes, with the results'."""
        found = self.unary(*shapes) if len(shapes) == 1 else self.binary(*shapes)
        leaves = [Leaf(f"a{k}", shape) for k, shape in enumerate(shapes)]
        result = []
        for step in found:
            try:
                shape = shape_of(step.of(*leaves))
            except OperatorError:
                continue
            if not any(map(_broadcasts, shape)) and self._fits(shape):
                result.append((step, shape))
        return result

    def _fits(self, shape: Shape) -> bool:
        """Whether a tensor is not too large, and not empty at the second sizes either."""
        least = min(
            (evaluate(size, env) for size in shape for env in (self.sizes, self.others)),
            default=1,
        )
        return least > 0 and self.elements(shape) <= self.most


def _broadcasts(size: Size) -> bool:
    """Whether a size is known only up to broadcasting: the operands need not fit."""
    if isinstance(size, int):
        return False
    return any(isinstance(atom, Broadcast) for one, _ in size.terms for atom, _ in one)


def step(op: str, *, commutative: bool = False, **attributes: object) -> Step:
    """Return a step; lists of attributes may be tuples."""
    return Step(op, tuple(sorted(attributes.items())), None, commutative)


def splits(shape: Shape, axis: int, unit: Size) -> list[Step]:
    """Return both outputs of each Split of an axis into multiples of a unit."""
    found = []
    size = shape[axis]
    for count in (1, 2):
        first = unit * count
        rest = size - first
        if isinstance(rest, int) and rest <= 0:
            continue
        if not _positive(rest):
            continue
        for index in (0, 1):
            given = (("axis", axis), ("parts", (first, rest)))
            found.append(Step("Split", given, index))
    return found


def _positive(size: Size) -> bool:
    """Whether a difference of sums of symbols is a sum of symbols."""
    if isinstance(size, int):
        return size > 0
    return all(number > 0 for _, number in size.terms)

"""The values that pass between a model and its canonical form.

*Raising* reads an ONNX node (`OnnxCall`) as a canonical operator (`Raised`); *lowering*
writes a canonical operator as ONNX nodes (`OnnxNode`). Whatever a form cannot express
exactly raises `NotExpressibleError` inside this package and becomes None outside.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isnan
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from rulesets.ops import Attributes, single
from rulesets.size import Size
from rulesets.tensor import Tensor

type Array = npt.NDArray[np.generic]
type Ref = Arg | Const | Node | Absent


class NotExpressibleError(Exception):
    """A node has no canonical form, or an operator no ONNX form at this opset."""


@dataclass(frozen=True, slots=True)
class Operand:
    """What is known of one input of an ONNX node.

    Attributes:
        tensor: Its type.
        array: Its value if it is a small constant.
        sizes: The value of an integer tensor of rank 0 or 1 whose entries are known,
            perhaps symbolically.
    """

    tensor: Tensor
    array: Array | None = None
    sizes: tuple[Size, ...] | None = None


@dataclass(frozen=True, slots=True)
class OnnxCall:
    """An ONNX node of the standard domain, with its types.

    Attributes:
        op_type: The ONNX operator.
        opset: The version of the standard domain.
        attributes: The attributes given: int, float, str, tuples of them, or an array for
            a tensor.
        inputs: The inputs, None where an optional one is absent.
        outputs: The number of outputs declared.
        used_outputs: The outputs somebody uses.
    """

    op_type: str
    opset: int
    attributes: Mapping[str, object]
    inputs: tuple[Operand | None, ...]
    outputs: int = 1
    used_outputs: frozenset[int] = frozenset({0})

    def operand(self, position: int) -> Operand:
        """Return an input that must be there.

        Raises:
            NotExpressibleError: It is absent.
        """
        found = self.optional(position)
        if found is None:
            raise NotExpressibleError
        return found

    def optional(self, position: int) -> Operand | None:
        """Return an input, None if it is absent."""
        return self.inputs[position] if position < len(self.inputs) else None

    def rank(self, position: int = 0) -> int:
        """Return the number of axes of an input.

        Raises:
            NotExpressibleError: It is unknown.
        """
        rank = self.operand(position).tensor.rank
        if rank is None:
            raise NotExpressibleError
        return rank

    def shape(self, position: int = 0) -> tuple[Size, ...]:
        """Return the shape of an input.

        Raises:
            NotExpressibleError: Its rank is unknown.
        """
        shape = self.operand(position).tensor.shape
        if shape is None:
            raise NotExpressibleError
        return shape

    def integer(self, name: str, default: int) -> int:
        """Return an int attribute."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, int) else _fail()

    def floating(self, name: str, default: float) -> float:
        """Return a float attribute that is a number."""
        value = self.attributes.get(name, default)
        if not isinstance(value, int | float) or isnan(value):
            raise NotExpressibleError
        return float(value)

    def text(self, name: str, default: str) -> str:
        """Return a string attribute."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, str) else _fail()

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return an ints attribute, None if it is not given."""
        value = self.attributes.get(name)
        if value is None:
            return None
        if not isinstance(value, tuple | list):
            raise NotExpressibleError
        return tuple([int(one) for one in value])

    def known(self, position: int) -> tuple[Size, ...] | None:
        """Return the entries of an input of rank 0 or 1, None if the input is absent.

        Raises:
            NotExpressibleError: They are not known.
        """
        found = self.optional(position)
        if found is None:
            return None
        entries = entries_of(found)
        return entries if entries is not None else _fail()

    def known_integers(self, position: int) -> tuple[int, ...] | None:
        """Return the entries of an input as integers, None if the input is absent.

        Raises:
            NotExpressibleError: One is not known or symbolic.
        """
        entries = self.known(position)
        if entries is None:
            return None
        found = tuple([one for one in entries if isinstance(one, int)])
        return found if len(found) == len(entries) else _fail()

    def scalar(self, position: int) -> float | None:
        """Return the value of an input of one element, None if the input is absent.

        Raises:
            NotExpressibleError: It is not a known number, or not a float32 value.
        """
        found = self.optional(position)
        if found is None:
            return None
        if found.array is None or found.array.size != 1 or found.array.dtype.kind in "OSU":
            raise NotExpressibleError
        # Python compares ints with floats exactly, as NumPy does not.
        value = found.array.reshape(()).item()
        return float(value) if single(value) == value else _fail()


@dataclass(frozen=True, slots=True)
class Raised:
    """The canonical form of an ONNX node.

    Attributes:
        name: The canonical operator.
        attributes: Some of its attributes; the others have their defaults.
        operands: Which inputs of the node are its arguments, in order.
    """

    name: str
    attributes: Attributes = field(default_factory=dict)
    operands: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True)
class Arg:
    """The argument of the canonical operator at a position."""

    position: int


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """A constant made for the ONNX form."""

    array: Array


@dataclass(frozen=True, slots=True)
class Node:
    """The first result of an earlier node of the same lowered form."""

    index: int


@dataclass(frozen=True, slots=True)
class Absent:
    """An optional input that is left out."""


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """One node of a lowered form.

    Attributes:
        op_type: The ONNX operator.
        attributes: int, float, str, tuples of them, or an array for a tensor.
        inputs: Where its inputs come from; trailing absent ones are not listed.
        domain: The domain of the operator; the standard one is "".
    """

    op_type: str
    attributes: Mapping[str, object]
    inputs: tuple[Ref, ...]
    domain: str = ""


@dataclass(frozen=True, slots=True)
class Lowering:
    """What a form is asked to write.

    Attributes:
        name: The canonical operator.
        attributes: All its attributes.
        inputs: The types of its arguments.
        outputs: The types of its results.
        opset: The version of the standard domain to write.
    """

    name: str
    attributes: Attributes
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    opset: int

    @property
    def arguments(self) -> tuple[Ref, ...]:
        """All arguments, in order."""
        return tuple([Arg(position) for position in range(len(self.inputs))])


def entries_of(operand: Operand) -> tuple[Size, ...] | None:
    """Return the known entries of an integer or bool tensor of rank 0 or 1, else None."""
    if operand.sizes is not None:
        return operand.sizes
    array = operand.array
    if array is None or array.ndim > 1 or array.dtype.kind not in "iub":
        return None
    return tuple([int(one) for one in array.reshape(-1)])


def vector(*numbers: int) -> Const:
    """Return a constant int64 vector."""
    return Const(np.array(numbers, np.int64))


def _fail() -> NoReturn:
    raise NotExpressibleError

"""Handles in, nodes added, handles out: what every operator method does."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from rulesets.ops import Value
from tensat.errors import InputNotFoundError, UsageError
from tensat.taso.handle import TensorHandle
from tensat.taso.model_builder import ModelBuilder
from tensat.taso.padding import activation_of, pads_of


class Adder:
    """Adds operators to one model.

    Attributes:
        builder: The model.
    """

    def __init__(self, builder: ModelBuilder) -> None:
        self.builder = builder

    def handle(self, value: ir.Value) -> TensorHandle:
        """A value as a handle."""
        return TensorHandle(value, self.builder.tensor(value))

    def checked(self, tensor: TensorHandle) -> TensorHandle:
        """The tensor itself.

        Raises:
            InputNotFoundError: It is none, or one of another graph.
        """
        if not isinstance(tensor, TensorHandle):
            raise InputNotFoundError(
                f"an operator's input is a tensor of the graph, not {type(tensor).__name__}"
            )
        if not self.builder.has(tensor.value):
            raise InputNotFoundError(
                f"tensor '{tensor.value.name}' belongs to another graph"
            )
        return tensor

    def ranked(self, tensor: TensorHandle, rank: int, what: str) -> TensorHandle:
        """The tensor itself, if it is of this graph and has that many axes."""
        found = self.checked(tensor).nDim
        if found != rank:
            raise UsageError(f"{what} needs a tensor of {rank} axes; found {found}")
        return tensor

    def apply(self, name: str, *inputs: TensorHandle, **attributes: Value) -> TensorHandle:
        """Add a canonical operator with one result."""
        (result,) = self.apply_all(name, *inputs, **attributes)
        return result

    def apply_all(
        self, name: str, *inputs: TensorHandle, **attributes: Value
    ) -> list[TensorHandle]:
        """Add a canonical operator; return all its results."""
        values = [self.checked(one).value for one in inputs]
        results = self.builder.apply(name, values, attributes)
        return [self.handle(value) for value in results]

    def apply_onnx(
        self, op_type: str, *inputs: TensorHandle, **attributes: object
    ) -> TensorHandle:
        """Add an ONNX operator that has no canonical form."""
        values = [self.checked(one).value for one in inputs]
        return self.handle(self.builder.apply_onnx(op_type, values, attributes))

    def activated(
        self, activation: str, name: str, *inputs: TensorHandle, **attributes: Value
    ) -> TensorHandle:
        """Add a canonical operator, and the activation behind it as its own node."""
        function = activation_of(activation)
        result = self.apply(name, *inputs, **attributes)
        return result if function is None else self.apply(function, result)


def window(
    input: TensorHandle, kernel: Sequence[int], strides: Sequence[int], padding: str
) -> dict[str, Value]:
    """The attributes of a window that moves over [n, c, h, w].

    Raises:
        UsageError: Kernel or strides are not two positive numbers.
    """
    for what, numbers in (("window", kernel), ("strides", strides)):
        if len(numbers) != 2 or min(numbers) < 1:
            raise UsageError(f"{what} must be two numbers >= 1, not {tuple(numbers)}")
    return {
        "strides": tuple(strides),
        "pads": pads_of(padding, input.dims[2:], kernel, strides),
        "dilations": (1, 1),
    }


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front.

    Raises:
        UsageError: There is no such axis.
    """
    if not -rank <= axis < rank:
        raise UsageError(f"axis {axis} is asked for; there are {rank}")
    return axis % rank


def axes_of(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, ascending."""
    return tuple(sorted(axis_of(axis, rank) for axis in axes))

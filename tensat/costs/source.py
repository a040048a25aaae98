"""What a cost source is asked and what it answers.

A *signature* is everything that decides how long one operator takes: operator,
attributes, dtypes, concrete sizes, and which inputs are constants. Signatures are equal
exactly when their costs are, so they are the keys of every cost table.

Costs are seconds of one execution within a running model; the price of starting the
runtime is not part of them.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

Progress = Callable[[int, int], None]
"""Called with (signatures done, signatures in all)."""

PRICED_OPSET = 23
"""Costs are asked for operators of this opset: those of others run the same kernels."""

_OTHER_KERNELS = {"AveragePool": 19}
"""From which opset on an operator has another kernel than before.

AveragePool of opset 19 got dilations, and ONNX Runtime 1.32 a kernel for them that takes 5
to 9 times as long, dilated or not.
"""

FREE_OPERATORS = frozenset({"Input", "Constant", "Output"})
"""Names for what exists anyway; using it takes no time."""

VIEW_OPERATORS = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"})
"""Operators after which the same bytes are read under another shape."""

_WIDTHS = {"bool": 1, "string": 16, "bfloat16": 2, "unknown": 4}


def priced_opset(operator: str, opset: int) -> int:
    """Return the opset in which the cost of an operator is asked for.

    Args:
        operator: Canonical name.
        opset: The version that the model has.
    """
    changed = _OTHER_KERNELS.get(operator, 0)
    return changed - 1 if opset < changed else PRICED_OPSET


@dataclass(frozen=True, slots=True)
class Argument:
    """One input or output of an operator.

    Attributes:
        dtype: Lower-case ONNX name, such as `float32`.
        dims: Concrete sizes.
        constant: Whether the value is known before the model runs.
        value: The number itself where the constant has one element and the number
            decides the kernel (`Pow` by 2 is 12 times faster than by 0.75); else None.
    """

    dtype: str
    dims: tuple[int, ...]
    constant: bool = False
    value: float | None = None

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.dims)

    @property
    def bytes(self) -> int:
        """Size in memory."""
        return math.ceil(self.elements * item_bytes(self.dtype))


@dataclass(frozen=True, slots=True)
class Signature:
    """One operator at one set of sizes.

    Attributes:
        op: Canonical operator name, or `Opaque` for a node that is kept as it is.
        attributes: Sorted (name, value) pairs; values are ints, floats, strings or
            tuples of them. Symbolic sizes are evaluated.
        inputs: The arguments; None where an optional one is absent.
        outputs: The results.
        opset: Version of the default ONNX domain in which the operator is written.
    """

    op: str
    attributes: tuple[tuple[str, object], ...]
    inputs: tuple[Argument | None, ...]
    outputs: tuple[Argument, ...]
    opset: int

    @property
    def present(self) -> tuple[Argument, ...]:
        """The inputs that are not absent."""
        return tuple(argument for argument in self.inputs if argument is not None)

    def text(self) -> str:
        """Return one line that is equal for equal signatures only; a database key."""
        attributes = ",".join(f"{name}={value!r}" for name, value in self.attributes)
        inputs = ",".join("-" if a is None else _text(a) for a in self.inputs)
        outputs = ",".join(_text(a) for a in self.outputs)
        return f"{self.op}@{self.opset}[{attributes}]({inputs})->({outputs})"

    def seed(self) -> int:
        """Return a number made from the text: the same in every process."""
        digest = hashlib.blake2b(self.text().encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little")


class CostSource(Protocol):
    """Something that knows, measures or estimates what operators cost."""

    name: str

    def seconds(
        self,
        signatures: Sequence[Signature],
        deadline: float | None = None,
        progress: Progress | None = None,
    ) -> list[float]:
        """Return the cost of each signature in seconds, in order.

        Args:
            signatures: May contain duplicates; those are looked at once.
            deadline: Value of `time.monotonic` at which measuring stops; what is not
                measured by then is estimated. None for no limit.
            progress: Told how far it is, from time to time.

        Returns:
            One cost per signature; infinity where the operator cannot run at all.
        """
        ...


def item_bytes(dtype: str) -> float:
    """Return the bytes of one element; 4-bit types take half a byte."""
    if dtype in _WIDTHS:
        return _WIDTHS[dtype]
    if dtype.startswith("float8"):
        return 1
    if dtype.endswith(("int4", "float4e2m1")):
        return 0.5
    try:
        return np.dtype(dtype).itemsize
    except TypeError:
        return _WIDTHS["unknown"]


def _text(argument: Argument) -> str:
    dims = "x".join(map(str, argument.dims))
    value = "" if argument.value is None else f"={argument.value!r}"
    return f"{argument.dtype}[{dims}]{'c' if argument.constant else ''}{value}"

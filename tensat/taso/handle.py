"""A tensor of a graph under construction, as the methods take and return it."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from rulesets.size import Size
from rulesets.tensor import Tensor
from tensat.errors import UsageError


@dataclass(frozen=True, slots=True)
class TensorHandle:
    """One value of a graph.

    Attributes:
        value: The value in the model.
        type: Its element type and sizes.
    """

    value: ir.Value
    type: Tensor

    @property
    def dims(self) -> tuple[Size, ...]:
        """All sizes; those that are not known are symbols.

        Raises:
            UsageError: Not even their number is known.
        """
        if self.type.shape is None:
            raise UsageError(f"the number of axes of '{self.value.name}' is not known")
        return self.type.shape

    @property
    def nDim(self) -> int:  # noqa: N802 (TASO's name)
        """The number of axes."""
        return len(self.dims)

    def dim(self, idx: int) -> int:
        """The size of one axis.

        Raises:
            UsageError: There is no such axis, or its size is not known.
        """
        dims = self.dims
        if not 0 <= idx < len(dims):
            raise UsageError(f"axis {idx} is asked for; there are {len(dims)}")
        size = dims[idx]
        if not isinstance(size, int):
            raise UsageError(f"axis {idx} of '{self.value.name}' has no fixed size: {size}")
        return size

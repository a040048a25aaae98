"""Sizes of the inputs of a model: static, named, or unknown.

A dimension with a name is one symbol wherever that name appears in an input; a dimension
without one is a fresh symbol ``?1``, ``?2``, …
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from rulesets.size import Size, symbol
from rulesets.tensor import Tensor
from tensat.errors import UsageError
from tensat.model.graph import dtype_name

__all__ = ["UNKNOWN", "InputTypes", "Symbols"]

UNKNOWN = Tensor("unknown", None)
"""The type of a value of which nothing is known, or that is no tensor."""

# Exporters write such "names" for dimensions that have nothing to do with each other.
_NAMELESS = re.compile(r"[\W_]*|\W?\d+|none|null|unk|unknown|dynamic|any", re.IGNORECASE)


class Symbols:
    """A source of fresh symbols ``?1``, ``?2``, … for dimensions of unknown size."""

    def __init__(self) -> None:
        self._count = 0

    def fresh(self) -> Size:
        """A symbol that was never given out before."""
        self._count += 1
        return symbol(f"?{self._count}")


class InputTypes:
    """The types of the inputs of one model.

    Args:
        inputs: Declarations of the inputs.
        shapes: Static shapes in place of the declared ones, by name. A size that they give
            to a named dimension holds for all inputs.
        symbols: Where fresh symbols come from.

    Raises:
        UsageError: ``shapes`` names no input or does not fit a declaration.
    """

    def __init__(
        self,
        inputs: Sequence[ir.Value],
        shapes: Mapping[str, Sequence[int]],
        symbols: Symbols,
    ) -> None:
        self._shapes = shapes
        self._symbols = symbols
        self._sizes: dict[str, Size] = {}
        known = {value.name: value for value in inputs}
        for name, shape in shapes.items():
            if name not in known:
                names = ", ".join(value.name or "" for value in inputs)
                raise UsageError(f"a shape is given for '{name}'; the inputs are: {names}")
            self._bind(known[name], shape)

    def tensor(self, value: ir.Value) -> Tensor:
        """The type of an input."""
        if not isinstance(value.type, ir.TensorType):
            return UNKNOWN
        dtype = dtype_name(value.type.dtype)
        shape = self._shapes.get(value.name or "")
        if shape is not None:
            return Tensor(dtype, tuple(shape))
        if value.shape is None:
            return Tensor(dtype, None)
        return Tensor(dtype, tuple(self._size(dim) for dim in value.shape))

    def shape(self, value: ir.Value) -> ir.Shape | None:
        """The shape that an input is to be declared with."""
        shape = self._shapes.get(value.name or "")
        return value.shape if shape is None else ir.Shape(shape)

    def _bind(self, value: ir.Value, shape: Sequence[int]) -> None:
        """Take over the sizes that a given shape has for named dimensions."""
        declared = value.shape
        if declared is None:
            return
        fits = len(declared) == len(shape) and all(size >= 0 for size in shape)
        for dim, size in zip(declared, shape, strict=False):
            name = _name(dim)
            expected = dim if isinstance(dim, int) else self._sizes.get(name, size)
            fits = fits and (expected == size or expected == -1)
            if name:
                self._sizes[name] = size
        if not fits:
            raise UsageError(
                f"shape {list(shape)} is given for input '{value.name}', "
                f"which is declared as {declared}"
            )

    def _size(self, dim: int | ir.SymbolicDim) -> Size:
        if isinstance(dim, int) and dim >= 0:
            return dim
        name = _name(dim)
        if not name:
            return self._symbols.fresh()
        if name not in self._sizes:
            self._sizes[name] = self._new_symbol(re.sub(r"\W", "_", name))
        return self._sizes[name]

    def _new_symbol(self, base: str) -> Size:
        clean, count = base, 1
        while symbol(clean) in self._sizes.values():
            count += 1
            clean = f"{base}_{count}"
        return symbol(clean)


def _name(dim: int | ir.SymbolicDim) -> str:
    """The name of a dimension; "" if it has none."""
    name = "" if isinstance(dim, int) else str(dim.value or "")
    return "" if _NAMELESS.fullmatch(name) else name

"""The type of a tensor: its element type and its shape.

Element types are ONNX's names in lower case, "float32" for FLOAT, "float64" for DOUBLE.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rulesets.errors import ShapeError, SizeError
from rulesets.judge import joined
from rulesets.size import Size, evaluate, product

type Shape = tuple[Size, ...]

BITS: Mapping[str, int] = {
    "bool": 8,
    **{f"{sign}int{bits}": bits for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64)},
    "float4e2m1": 4,
    "float8e4m3fn": 8,
    "float8e4m3fnuz": 8,
    "float8e5m2": 8,
    "float8e5m2fnuz": 8,
    "float8e8m0": 8,
    "float16": 16,
    "bfloat16": 16,
    "float32": 32,
    "float64": 64,
    "complex64": 64,
    "complex128": 128,
}
FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
NUMBERS = FLOATS | INTEGERS


@dataclass(frozen=True, slots=True)
class Tensor:
    """The type of a tensor.

    Attributes:
        dtype: The element type's ONNX name in lower case; "unknown" if it is not known.
        shape: The sizes of the axes, None if their number is unknown.
    """

    dtype: str
    shape: Shape | None

    @property
    def rank(self) -> int | None:
        """The number of axes, None if unknown."""
        return None if self.shape is None else len(self.shape)

    def __str__(self) -> str:
        sizes = "?" if self.shape is None else ",".join(map(str, self.shape))
        return f"{self.dtype}[{sizes}]"


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape to which shapes broadcast, as NumPy aligns them.

    Axes whose sizes are not known to fit are taken to fit; their common size is then a
    polynomial with a `Broadcast` atom.

    Raises:
        ShapeError: Two axes provably do not fit.
    """
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    rank = max(map(len, shapes))
    result: list[Size] = []
    for axis in range(-rank, 0):
        size = joined(shape[axis] for shape in shapes if len(shape) >= -axis)
        if size is None:
            texts = " and ".join(f"[{','.join(map(str, shape))}]" for shape in shapes)
            raise ShapeError(f"shapes {texts} do not broadcast at axis {axis}")
        result.append(size)
    return tuple(result)


def elements(shape: Shape) -> Size:
    """Return the number of elements of a shape."""
    return product(shape)


def bytes_of(tensor: Tensor, env: Mapping[str, int]) -> int:
    """Return the bytes of a tensor's elements under values for the symbols.

    Raises:
        SizeError: The rank is unknown, the element type has no fixed width, or a symbol
            has no value.
    """
    if tensor.shape is None or tensor.dtype not in BITS:
        raise SizeError(f"the bytes of {tensor} are unknown; type and rank must be known")
    return (evaluate(elements(tensor.shape), env) * BITS[tensor.dtype] + 7) // 8

"""Types of tensors in classes: what several say together, and how many bytes they take."""

from __future__ import annotations

from rulesets.errors import SizeError
from rulesets.tensor import Tensor, bytes_of


def unified(first: Tensor, second: Tensor) -> Tensor | None:
    """What two types of one value say together; None if they contradict each other."""
    if first == second:
        return first
    if first.dtype != second.dtype and "unknown" not in (first.dtype, second.dtype):
        return None
    dtype = second.dtype if first.dtype == "unknown" else first.dtype
    if first.shape is None or second.shape is None:
        return Tensor(dtype, second.shape if first.shape is None else first.shape)
    if len(first.shape) != len(second.shape):
        return None
    pairs = list(zip(first.shape, second.shape, strict=True))
    if any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
        return None
    return Tensor(dtype, tuple(b if isinstance(b, int) else a for a, b in pairs))


def byte_size(tensor: Tensor) -> int | None:
    """Bytes of a tensor of static shape and fixed-width elements, else None."""
    try:
        return bytes_of(tensor, {})
    except SizeError:
        return None

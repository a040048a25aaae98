"""Channels-last tensors of kernels on a GPU: their types, and constants laid as they are.

What ONNX means as [n, c, h, w] lies as [n, h, w, c]; nothing is filled up, so that every
size may be symbolic and every operator that treats all axes alike runs in either layout.
"""

from __future__ import annotations

from collections.abc import Collection

from rulesets.tensor import Tensor
from tensat.kernels.blocked_steps import Arguments, Steps
from tensat.kernels.kernel import Layout, StepRef

RANK = 4
"""Axes of an image."""

TO_LAST = (0, 2, 3, 1)
"""The permutation from [n, c, h, w] to [n, h, w, c]."""

TO_FIRST = (0, 3, 1, 2)
"""The permutation back."""

_TYPES = frozenset({"float32", "float16"})


def is_image(tensor: Tensor) -> bool:
    """Return whether a tensor can be channels-last: float32 or float16, of four axes."""
    shape = tensor.shape
    return tensor.dtype in _TYPES and shape is not None and len(shape) == RANK


def last_type(plain: Tensor) -> Tensor:
    """Return a channels-last tensor's type as the runtime sees it, from the plain one."""
    assert plain.shape is not None
    return Tensor(plain.dtype, tuple(plain.shape[axis] for axis in TO_LAST))


def last_axis(axis: int) -> int:
    """Return where an axis of a plain image is in a channels-last one."""
    return TO_LAST.index(axis)


def is_pixel(tensor: Tensor) -> bool:
    """Return whether an image is one pixel of c channels: the same bytes either way."""
    assert tensor.shape is not None
    return tensor.shape[2:] == (1, 1) and isinstance(tensor.shape[1], int)


def laid_last(
    arguments: Arguments, last: Collection[int]
) -> tuple[tuple[Layout, ...], Steps]:
    """Return the layouts of a kernel's arguments, and steps that begin with those.

    Args:
        arguments: The arguments, as `arguments_of` gives them.
        last: Numbers of the values that are taken channels-last.
    """
    layouts, types = [], {}
    for number, (place, tensor, constant) in arguments.items():
        layouts.append(Layout.CHANNELS_LAST if number in last else Layout.PLAIN)
        types[number] = (place, last_type(tensor) if number in last else tensor, constant)
    return tuple(layouts), Steps(types)


def last_constant(steps: Steps, ref: StepRef) -> StepRef:
    """Append what lays a constant operand as a channels-last image is broadcast over it."""
    shape = steps.shape(ref)
    if all(size == 1 for size in shape):
        return ref
    if len(shape) < RANK:
        ref = steps.add("Reshape", [ref], shape=(*[1] * (RANK - len(shape)), *shape))
    return steps.add("Transpose", [ref], perm=TO_LAST)

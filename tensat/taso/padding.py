"""TASO's words for padding and fused activations, as ONNX understands them.

"VALID" pads nothing. "SAME" makes the result ceil(size / stride) long. TASO pads both sides
alike, and so does this module, rounding up where the sum is odd (a 7x7 window with stride 2
on 224 pads 3 and 3, as the published networks do). With stride 1 and an even window that
would make the result one longer than the input, an error of TASO's; there the end gets
the odd one, as ONNX's SAME_UPPER does.
"""

from __future__ import annotations

from collections.abc import Sequence

from rulesets.size import Size
from tensat.errors import UsageError

PADDINGS = ("SAME", "VALID")
ACTIVATIONS = {"NONE": None, "RELU": "Relu", "SIGMOID": "Sigmoid", "TANH": "Tanh"}
"""Canonical operator of each activation string; None for no activation."""


def pads_of(
    padding: str, sizes: Sequence[Size], kernel: Sequence[int], strides: Sequence[int]
) -> tuple[int, ...]:
    """The pads of a window, all begins, then all ends.

    Args:
        padding: "SAME" or "VALID".
        sizes: Spatial sizes of the input [h, w].
        kernel: Sizes of the window.
        strides: Steps of the window.

    Raises:
        UsageError: The padding has another name, or "SAME" is asked for a size that is
            not known although the stride is not 1.
    """
    if padding not in PADDINGS:
        raise UsageError(f"padding {padding!r} is unknown; possible: {', '.join(PADDINGS)}")
    if padding == "VALID":
        return (0,) * (2 * len(kernel))
    pairs = [_same(*axis) for axis in zip(sizes, kernel, strides, strict=True)]
    return (*(begin for begin, _ in pairs), *(end for _, end in pairs))


def activation_of(activation: str) -> str | None:
    """The canonical operator of an activation string, None for "NONE".

    Raises:
        UsageError: There is no such activation.
    """
    if activation not in ACTIVATIONS:
        raise UsageError(
            f"activation {activation!r} is unknown; possible: {', '.join(ACTIVATIONS)}"
        )
    return ACTIVATIONS[activation]


def _same(size: Size, kernel: int, stride: int) -> tuple[int, int]:
    if stride == 1:
        return (kernel - 1) // 2, kernel // 2
    if not isinstance(size, int):
        raise UsageError(
            f"padding 'SAME' with stride {stride} needs a known size, not '{size}'"
        )
    missing = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return -(-missing // 2), -(-missing // 2)

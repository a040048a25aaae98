"""The ways between plain and blocked tensors.

A tensor of one pixel and whole blocks of channels is the same bytes in both layouts.

Source: ONNX Runtime's `ReorderInput` refuses channels that are no multiple of 4 and fills
the last block with zeros; `ReorderOutput` leaves out what was filled up.
"""

from __future__ import annotations

from rulesets.tensor import Tensor
from tensat.kernels.blocked_conv import ALIGNED
from tensat.kernels.blocked_steps import Steps, blocked_type, fill_up, is_image, up
from tensat.kernels.kernel import BlockedForm, Layout
from tensat.onnx_forms.call import Arg


def to_blocked(tensor: Tensor, block: int, *, targeted: bool = True) -> BlockedForm | None:
    """Return how a plain tensor becomes a blocked one.

    Args:
        tensor: Type of the plain tensor.
        block: Channels in a block.
        targeted: Whether more is possible than what the runtime does by itself.

    Returns:
        The steps; none of them where the bytes are the same. None for a tensor that
        cannot be blocked.
    """
    if not is_image(tensor):
        return None
    assert tensor.shape is not None
    n, channels, *spatial = tensor.shape
    assert isinstance(channels, int)
    steps = Steps({0: (0, tensor, False)})
    by_runtime = channels % ALIGNED == 0
    if not (targeted or by_runtime):
        return None
    pixel = targeted and spatial == [1, 1]
    filled = up(channels, ALIGNED)
    if pixel and filled < up(channels, block) and not by_runtime:
        filled = up(channels, block)
    # Batch and image keep their sizes, which may be symbolic.
    source = fill_up(steps, Arg(0), (n, filled, *spatial))
    if not (pixel and filled % block == 0):
        output = blocked_type(tensor, block)
        steps.foreign("ReorderInput", (source,), output, {"channels_last": 0})
    return BlockedForm((Layout.PLAIN,), tuple(steps.done), by_runtime)


def to_plain(tensor: Tensor, block: int, *, targeted: bool = True) -> BlockedForm | None:
    """Return how a blocked tensor becomes a plain one; arguments as for `to_blocked`.

    Args:
        tensor: Type of the plain tensor.
        block: Channels in a block.
        targeted: Whether more is possible than what the runtime does by itself.
    """
    if not is_image(tensor):
        return None
    assert tensor.shape is not None
    _, channels, *spatial = tensor.shape
    assert isinstance(channels, int)
    steps = Steps({0: (0, blocked_type(tensor, block), False)})
    if not (targeted and spatial == [1, 1] and channels % block == 0):
        attributes = {"channels": channels, "channels_last": 0}
        steps.foreign("ReorderOutput", (Arg(0),), tensor, attributes)
    return BlockedForm((Layout.BLOCKED,), tuple(steps.done), by_runtime=True)

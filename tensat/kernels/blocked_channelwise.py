"""Factors and summands per channel on blocked tensors: convolutions of one pixel.

A convolution with as many groups as channels multiplies each channel by a number and adds
one, and computes an activation behind that. The factors may come from the model itself,
as those of a squeeze-and-excitation gate do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rulesets.tensor import Tensor
from tensat.kernels.blocked_conv import folded
from tensat.kernels.blocked_steps import (
    Steps,
    arguments_of,
    blocked_type,
    fill_up,
    input_type,
    is_image,
    laid,
    lying,
    output_type,
    pack_outputs,
    standing,
    up,
)
from tensat.kernels.conv_kernel import (
    ACTIVATIONS,
    PER_CHANNEL,
    Chain,
    activation_of,
    is_channelwise,
)
from tensat.kernels.kernel import (
    Application,
    BlockedForm,
    Fusion,
    Members,
    StepRef,
    Tree,
)
from tensat.onnx_forms.call import Absent

_PIXEL: dict[str, object] = {
    "kernel_shape": (1, 1),
    "strides": (1, 1),
    "pads": (0, 0, 0, 0),
    "dilations": (1, 1),
}
_BY_RUNTIME = frozenset({"", "Relu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish"})


@dataclass(frozen=True, slots=True)
class ChannelKernel:
    """Operators per channel, and an activation behind them.

    Attributes:
        channelwise: The operators in order, each with the position of the argument that
            comes from below.
        activation: Attributes of the activation, none for none.
    """

    channelwise: tuple[tuple[Application, int], ...]
    activation: dict[str, object]


def read(chain: Chain, members: Members) -> ChannelKernel | None:
    """Return the kernel of operators that follow each other, None if none computes them.

    Which argument of the first one is the image is told by the other, which is constant.
    """
    first = members[-1]
    right = len(first.inputs) == 2 and first.inputs[0]
    position = int(bool(right and right.constant))
    image = input_type(first, position)
    if not is_image(image) or image != output_type(first):
        return None
    links = ((first.op, position), *chain[1:])
    waiting = list(zip(reversed(members), links, strict=True))
    channelwise = []
    while waiting and is_channelwise(*waiting[0], first.outputs[0].dims):
        member, (_, position) = waiting.pop(0)
        channelwise.append((member, position))
    activation: dict[str, object] = {}
    if waiting and channelwise and waiting[0][1][0] in ACTIVATIONS:
        activation = activation_of(waiting.pop(0)[0])
    return None if waiting else ChannelKernel(tuple(channelwise), activation)


def form(kernel: ChannelKernel, members: Members, block: int) -> BlockedForm:
    """Return how operators per channel run on a blocked tensor.

    Args:
        kernel: The operators.
        members: The same as a match.
        block: Channels in a block.
    """
    first, position = kernel.channelwise[0]
    image = output_type(first)
    channels = first.outputs[0].dims[1]
    layouts, steps = laid(arguments_of(members), {first.children[position]}, block)
    ones = steps.add("Fill", [], value=1.0, shape=(channels, 1, 1, 1))
    bias: StepRef
    weights, bias = folded(steps, ones, Absent(), kernel.channelwise)
    weights = pack_outputs(steps, weights, block)
    filled = up(channels, block)
    if not isinstance(bias, Absent):
        bias = fill_up(steps, bias, (filled,))
    inputs = (steps.value(first.children[position]), weights, bias)
    attributes = _PIXEL | {"group": filled} | kernel.activation
    steps.foreign("Conv", inputs, blocked_type(image, block), attributes)
    return BlockedForm(layouts, tuple(steps.done), _alike(kernel))


def alone(members: Members, block: int) -> tuple[BlockedForm, ...]:
    """Return how one operator per channel runs on a blocked tensor."""
    kernel = read(((members[0].op, 0),), members)
    return () if kernel is None else (form(kernel, members, block),)


def gate(members: Members, block: int) -> tuple[BlockedForm, ...]:
    """Return how an image is multiplied by one number per channel that is computed.

    The gate is the weights of a convolution whose groups are all channels of all images.
    The groups are a number, so of any number of images it is a product: the gate is
    repeated along a row first, since the runtime is slow where 16 numbers repeat.
    """
    (member,) = members
    image = output_type(member)
    if not is_image(image):
        return ()
    for place in (0, 1):
        if input_type(member, 1 - place) == image and _is_gate(member, place, image):
            break
    else:
        return ()
    layouts, steps = laid(arguments_of(members), set(member.children), block)
    x: StepRef = steps.value(member.children[1 - place])
    given: StepRef = steps.value(member.children[place])
    assert image.shape is not None
    if isinstance(image.shape[0], int):
        _gate_weights(steps, x, given, image.shape[0])
    else:
        _gate_rows(steps, x, given, block)
    return (BlockedForm(layouts, tuple(steps.done), by_runtime=False),)


def _gate_weights(steps: Steps, x: StepRef, given: StepRef, n: int) -> None:
    _, filled, h, w = steps.shape(x)
    assert isinstance(filled, int)
    group = n * filled
    weights = steps.add("Reshape", [given], shape=(group, 1, 1, 1))
    if n > 1:
        x = steps.add("Reshape", [x], shape=(1, group, h, w))
    output = Tensor("float32", (1, group, h, w))
    gated = steps.foreign("Conv", (x, weights), output, _PIXEL | {"group": group})
    if n > 1:
        steps.add("Reshape", [gated], shape=(n, filled, h, w))


def _gate_rows(steps: Steps, x: StepRef, given: StepRef, block: int) -> None:
    image = lying(steps, x, block)
    n, blocks, _, w, _ = steps.shape(image)
    # An image without rows has no first one; then all that follows is empty as well.
    first = {"axes": (2,), "starts": (0,), "ends": (1,), "steps": (1,)}
    row = steps.typed("Slice", [image], Tensor("float32", (n, blocks, 1, w, block)), first)
    zero = steps.add("Clip", [row], min=0.0, max=0.0)
    wide = steps.add("Add", [zero, lying(steps, given, block)])
    standing(steps, steps.add("Mul", [image, wide]))


def _is_gate(member: Application, place: int, image: Tensor) -> bool:
    argument, shape = member.inputs[place], image.shape
    assert argument is not None
    assert shape is not None
    if argument.constant:
        return False
    wanted = Tensor("float32", (*shape[:2], 1, 1))
    return input_type(member, place) == wanted != image


def _alike(kernel: ChannelKernel) -> bool:
    """Return whether the runtime makes the same convolution."""
    ((member, position), *more) = kernel.channelwise
    if more or kernel.activation.get("activation", "") not in _BY_RUNTIME:
        return False
    if member.op == "BatchNormalization":
        return True
    other = member.inputs[1 - position]
    assert other is not None
    channels = member.outputs[0].dims[1]
    return member.op == "Mul" and len(other.dims) >= 3 and other.dims[-3] == channels


def _chains() -> Iterator[Chain]:
    for first in dict.fromkeys(op for op, _ in PER_CHANNEL):
        for second in ((), *[(link,) for link in PER_CHANNEL if link[0] != first]):
            for last in ((), *[((name, 0),) for name in ACTIVATIONS]):
                if second or last:
                    yield ((first, 0), *second, *last)


def _fusion(chain: Chain) -> Fusion:
    tree = Tree(chain[0][0])
    for op, position in chain[1:]:
        tree = Tree(op, ((position, tree),))

    def blocked(members: Members, block: int) -> tuple[BlockedForm, ...]:
        kernel = read(chain, members)
        return () if kernel is None else (form(kernel, members, block),)

    return Fusion("+".join(op for op, _ in chain), tree, _nothing, blocked)


def _nothing(members: Members) -> None:
    """Say that the runtime does not fuse these on plain tensors."""


BLOCKED_CHANNELWISE: tuple[Fusion, ...] = tuple(map(_fusion, _chains()))
"""What is computed as one convolution of one pixel, at least two operators each."""

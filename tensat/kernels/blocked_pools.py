"""Pools on blocked tensors.

The runtime's global average pool on blocks adds all pixels one after another, which loses
digits on large images; rows first is as fast and does not.
"""

from __future__ import annotations

from rulesets.tensor import Tensor
from tensat.kernels.blocked_steps import (
    Steps,
    arguments_of,
    blocked_type,
    input_type,
    is_image,
    laid,
    output_type,
)
from tensat.kernels.kernel import Application, BlockedForm, Members, StepRef

_LARGE = 256
"""Pixels from which on rows are averaged first."""


def window_pool(members: Members, block: int) -> tuple[BlockedForm, ...]:
    """Return how a pool with a window runs on a blocked tensor."""
    (member,) = members
    dilated = member.attributes["dilations"] != (1, 1)
    if not is_image(input_type(member, 0)) or (dilated and member.op == "AveragePool"):
        return ()
    layouts, steps = laid(arguments_of(members), member.children, block)
    attributes = {name: member.attributes[name] for name in ("strides", "pads")}
    attributes["kernel_shape"] = member.attributes["kernel"]
    if dilated:
        attributes["dilations"] = member.attributes["dilations"]
    for name in ("ceil_mode", "count_include_pad"):
        if member.attributes.get(name):
            attributes[name] = 1
    output = blocked_type(output_type(member), block)
    steps.foreign(member.op, [steps.value(member.children[0])], output, attributes)
    return (BlockedForm(layouts, tuple(steps.done), _alike(member, block)),)


def global_pool(members: Members, block: int) -> tuple[BlockedForm, ...]:
    """Return how a pool of all pixels runs on a blocked tensor."""
    (member,) = members
    if not is_image(input_type(member, 0)):
        return ()
    return _whole(members, block, mean=member.op == "GlobalAveragePool")


def reduction(members: Members, block: int) -> tuple[BlockedForm, ...]:
    """Return how a mean or a maximum over all pixels runs as a pool."""
    (member,) = members
    over_pixels = member.attributes["axes"] == (2, 3) and member.attributes["keepdims"] == 1
    if not over_pixels or not is_image(input_type(member, 0)):
        return ()
    forms = _whole(members, block, mean=member.op == "ReduceMean")
    return tuple(
        BlockedForm(form.layouts, form.steps, by_runtime=False) for form in forms[-1:]
    )


def _whole(members: Members, block: int, *, mean: bool) -> tuple[BlockedForm, ...]:
    """Return the ways to pool all pixels, the most exact one last."""
    (member,) = members
    layouts, steps = laid(arguments_of(members), member.children, block)
    x = steps.value(member.children[0])
    output = blocked_type(output_type(member), block)
    op = "GlobalAveragePool" if mean else "GlobalMaxPool"
    steps.foreign(op, [x], output, {})
    once = BlockedForm(layouts, tuple(steps.done), _alike(member, block))
    sizes = steps.shape(x)[2:]
    height, width = sizes
    large = isinstance(height, int) and isinstance(width, int) and height * width >= _LARGE
    if not (mean and large and height != 1 and width != 1):
        return (once,)
    layouts, steps = laid(arguments_of(members), member.children, block)
    rows = _rows(steps, x, height)
    steps.foreign(op, [rows], output, {})
    twice = BlockedForm(layouts, tuple(steps.done), by_runtime=False)
    return (once, twice) if once.by_runtime else (twice,)


def _rows(steps: Steps, x: StepRef, height: object) -> StepRef:
    n, channels, _, width = steps.shape(x)
    output = Tensor("float32", (n, channels, 1, width))
    attributes = {"kernel_shape": (height, 1), "strides": (1, 1), "pads": (0, 0, 0, 0)}
    return steps.foreign("AveragePool", [x], output, attributes)


def _alike(member: Application, block: int) -> bool:
    argument = member.inputs[0]
    assert argument is not None
    return argument.dims[1] % block == 0

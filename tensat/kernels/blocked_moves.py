"""Operators that join, cut and fill up blocked tensors.

Along channels they work on whole blocks. Along the image they work on the tensor as it
lies in memory, [n, c/b, h, w, b]; reading the same bytes under that shape is a reshape.
"""

from __future__ import annotations

from rulesets.ops import END
from rulesets.size import Size
from tensat.kernels.blocked_steps import (
    arguments_of,
    blocked_type,
    input_type,
    is_image,
    laid,
    lying,
    output_type,
    standing,
)
from tensat.kernels.kernel import BlockedForm, Members, StepRef


def joined(members: Members, block: int) -> tuple[BlockedForm, ...]:
    """Return how tensors are joined on blocks.

    Along channels all but the last must be whole blocks.
    """
    (member,) = members
    types = [input_type(member, place) for place in range(len(member.inputs))]
    constant = any(one is not None and one.constant for one in member.inputs)
    if constant or not all(map(is_image, types)):
        return ()
    axis = member.attributes["axis"]
    assert isinstance(axis, int)
    layouts, steps = laid(arguments_of(members), member.children, block)
    refs: list[StepRef] = [steps.value(child) for child in member.children]
    by_runtime = False
    if axis == 1:
        partial = [_channels(one.shape) % block != 0 for one in types]
        if any(partial[:-1]):
            return ()
        by_runtime = not partial[-1]
    if axis < 2:
        steps.add("Concat", refs, axis=axis)
    else:
        whole = steps.add("Concat", [lying(steps, ref, block) for ref in refs], axis=axis)
        standing(steps, whole)
    return (BlockedForm(layouts, tuple(steps.done), by_runtime),)


def sliced(members: Members, block: int) -> tuple[BlockedForm, ...]:
    """Return how a part of a tensor is taken on blocks.

    Along channels it must begin and end with a block, or end with the tensor.
    """
    (member,) = members
    image = input_type(member, 0)
    if not is_image(image) or not is_image(output_type(member)):
        return ()
    layouts, steps = laid(arguments_of(members), member.children[:1], block)
    x: StepRef = steps.value(member.children[0])
    names = ("axes", "starts", "ends", "steps")
    columns = [member.attributes[name] for name in names]
    parts = list(zip(*columns, strict=True))
    kept = []
    for axis, start, end, step in parts:
        if axis == 1:
            cut = _blocks(_channels(image.shape), start, end, step, block)
            if cut is None:
                return ()
            start, end = cut
        kept.append((axis, start, end, step))
    given = dict(zip(names, zip(*kept, strict=True), strict=True))
    if all(axis < 2 for axis, *_ in kept):
        steps.add("Slice", [x], **given)
    elif all(axis >= 2 for axis, *_ in kept):
        standing(steps, steps.add("Slice", [lying(steps, x, block)], **given))
    else:
        return ()
    return (BlockedForm(layouts, tuple(steps.done), by_runtime=False),)


def padded(members: Members, block: int) -> tuple[BlockedForm, ...]:
    """Return how an image is framed on blocks."""
    (member,) = members
    image = input_type(member, 0)
    pads = member.attributes["pads"]
    assert isinstance(pads, tuple)
    if not is_image(image) or any(pads[:2] + pads[4:6]):
        return ()
    layouts, steps = laid(arguments_of(members), member.children[:1], block)
    x = lying(steps, steps.value(member.children[0]), block)
    value = member.attributes["value"]
    framed = (0, 0, *pads[2:4], 0, 0, 0, *pads[6:], 0)
    standing(steps, steps.add("Pad", [x], pads=framed, value=value))
    return (BlockedForm(layouts, tuple(steps.done), by_runtime=False),)


def enlarged(members: Members, block: int) -> tuple[BlockedForm, ...]:
    """Return how an image is enlarged by whole factors on blocks."""
    (member,) = members
    factors = member.attributes["factors"]
    assert isinstance(factors, tuple)
    if not is_image(input_type(member, 0)) or factors[:2] != (1, 1):
        return ()
    layouts, steps = laid(arguments_of(members), member.children, block)
    attributes = {
        "coordinate_transformation_mode": "asymmetric",
        "mode": "nearest",
        "scales": factors,
    }
    output = blocked_type(output_type(member), block)
    steps.foreign("Upsample", [steps.value(member.children[0])], output, attributes)
    return (BlockedForm(layouts, tuple(steps.done), by_runtime=True),)


def _blocks(
    channels: int, start: int, end: int, step: int, block: int
) -> tuple[int, int] | None:
    """Return where whole blocks of channels begin and end, None if they are cut."""
    end = channels if end == END else end
    if step != 1 or start % block or (end % block and end != channels):
        return None
    return start, -(-end // block) * block


def _channels(shape: tuple[Size, ...] | None) -> int:
    assert shape is not None
    assert isinstance(shape[1], int)
    return shape[1]

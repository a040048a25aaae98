"""Operators that move elements, on channels-last tensors, and the ways between layouts.

A transposition in the model may be the way from one layout to the other itself: models of
frameworks that think channels-last hold them around every convolution. Then it is nothing.
"""

from __future__ import annotations

from rulesets.tensor import Tensor
from tensat.kernels.blocked_steps import Steps, arguments_of, input_type
from tensat.kernels.kernel import BlockedForm, Layout, Members, StepRef
from tensat.kernels.nhwc_steps import (
    RANK,
    TO_FIRST,
    TO_LAST,
    is_image,
    is_pixel,
    laid_last,
    last_axis,
    last_constant,
    last_type,
)
from tensat.onnx_forms.call import Arg

_AS_IT_IS = tuple(range(RANK))


def to_last(tensor: Tensor, _block: int) -> BlockedForm | None:
    """Return how a plain tensor becomes a channels-last one; None if it cannot.

    One pixel is the same bytes in both layouts.
    """
    if not is_image(tensor):
        return None
    steps = Steps({0: (0, tensor, False)})
    if is_pixel(tensor):
        steps.add("Reshape", [Arg(0)], shape=last_type(tensor).shape)
    else:
        steps.add("Transpose", [Arg(0)], perm=TO_LAST)
    return _form((Layout.PLAIN,), steps)


def to_first(tensor: Tensor, _block: int) -> BlockedForm | None:
    """Return how a channels-last tensor becomes a plain one, as `to_last`."""
    if not is_image(tensor):
        return None
    steps = Steps({0: (0, last_type(tensor), False)})
    if is_pixel(tensor):
        steps.add("Reshape", [Arg(0)], shape=tensor.shape)
    else:
        steps.add("Transpose", [Arg(0)], perm=TO_FIRST)
    return _form((Layout.CHANNELS_LAST,), steps, Layout.PLAIN)


def transposed(members: Members, _block: int) -> tuple[BlockedForm, ...]:
    """Return how an image is transposed: from one layout, or into the other."""
    (member,) = members
    argument, perm = member.inputs[0], member.attributes["perm"]
    assert argument is not None
    assert isinstance(perm, tuple)
    image = input_type(member, 0)
    if argument.constant or not is_image(image):
        return ()
    found = []
    arguments = arguments_of(members)
    layouts, steps = laid_last(arguments, member.children)
    there = tuple(last_axis(axis) for axis in perm)
    if there != _AS_IT_IS:
        steps.add("Transpose", [steps.value(member.children[0])], perm=there)
    found.append(_form(layouts, steps, Layout.PLAIN))
    if perm == TO_FIRST:
        layouts, steps = laid_last(arguments, ())
        found.append(_form(layouts, steps))
    return tuple(found)


def joined(members: Members, _block: int) -> tuple[BlockedForm, ...]:
    """Return how tensors are joined channels-last; constant ones are laid so before."""
    (member,) = members
    types = [input_type(member, place) for place in range(len(member.inputs))]
    constant = [one is not None and one.constant for one in member.inputs]
    if all(constant) or not all(map(is_image, types)):
        return ()
    axis = member.attributes["axis"]
    assert isinstance(axis, int)
    pairs = list(zip(member.children, constant, strict=True))
    last = {child for child, known in pairs if not known}
    layouts, steps = laid_last(arguments_of(members), last)
    refs: list[StepRef] = []
    for child, known in pairs:
        ref = steps.value(child)
        refs.append(last_constant(steps, ref) if known else ref)
    steps.add("Concat", refs, axis=last_axis(axis))
    return (_form(layouts, steps),)


def sliced(members: Members, _block: int) -> tuple[BlockedForm, ...]:
    """Return how a part of a channels-last tensor is taken."""
    (member,) = members
    image = input_type(member, 0)
    if not is_image(image) or member.inputs[0] is None or member.inputs[0].constant:
        return ()
    axes = member.attributes["axes"]
    assert isinstance(axes, tuple)
    names = ("starts", "ends", "steps")
    columns = [member.attributes[name] for name in names]
    rows = sorted(zip(map(last_axis, axes), *columns, strict=True), key=lambda row: row[0])
    given = dict(zip(("axes", *names), zip(*rows, strict=True), strict=True))
    layouts, steps = laid_last(arguments_of(members), member.children[:1])
    steps.add("Slice", [steps.value(member.children[0])], **given)
    return (_form(layouts, steps),)


def padded(members: Members, _block: int) -> tuple[BlockedForm, ...]:
    """Return how a channels-last tensor is framed."""
    (member,) = members
    pads = member.attributes["pads"]
    assert isinstance(pads, tuple)
    if not is_image(input_type(member, 0)):
        return ()
    layouts, steps = laid_last(arguments_of(members), member.children[:1])
    there = tuple(pads[side + axis] for side in (0, RANK) for axis in TO_LAST)
    x, value = steps.value(member.children[0]), member.attributes["value"]
    steps.add("Pad", [x], pads=there, value=value)
    return (_form(layouts, steps),)


def enlarged(members: Members, _block: int) -> tuple[BlockedForm, ...]:
    """Return how a channels-last tensor is enlarged by whole factors."""
    (member,) = members
    factors = member.attributes["factors"]
    assert isinstance(factors, tuple)
    if not is_image(input_type(member, 0)):
        return ()
    layouts, steps = laid_last(arguments_of(members), member.children)
    there = tuple(factors[axis] for axis in TO_LAST)
    steps.add("Upsample", [steps.value(member.children[0])], factors=there)
    return (_form(layouts, steps),)


def _form(
    layouts: tuple[Layout, ...], steps: Steps, result: Layout = Layout.CHANNELS_LAST
) -> BlockedForm:
    return BlockedForm(layouts, tuple(steps.done), by_runtime=False, result=result)

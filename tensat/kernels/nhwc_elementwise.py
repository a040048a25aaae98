"""Operators that treat all elements or all axes alike, on channels-last tensors.

They run on [n, h, w, c] as on [n, c, h, w]; axes that they name are others, and operands
that are repeated along some axes have these permuted. Constant operands are laid so when
the model is written.
"""

from __future__ import annotations

from tensat.kernels.blocked_elementwise import COMBINING, FINITE, PARTIAL
from tensat.kernels.blocked_steps import Steps, arguments_of, input_type, output_type
from tensat.kernels.kernel import Application, BlockedForm, Layout, Members, StepRef
from tensat.kernels.nhwc_steps import (
    RANK,
    is_image,
    is_pixel,
    laid_last,
    last_axis,
    last_constant,
)

ONE_OPERAND = FINITE | PARTIAL | {"Cast"}
"""Functions of one number."""

SEVERAL_OPERANDS = COMBINING
"""Functions of several numbers."""

SOFTMAXES = frozenset({"Softmax", "LogSoftmax"})
"""Operators along one axis."""

REDUCTIONS = frozenset(
    {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceProd"}
)
"""Operators that take the sum, the mean, … over axes."""

_POOLS = {"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax"}
_CHANNELS, _PIXELS = 1, {2, 3}


def unary(members: Members, _block: int) -> tuple[BlockedForm, ...]:
    """Return how a function of one number runs on a channels-last tensor."""
    (member,) = members
    if not _moving(member, 0) or not is_image(output_type(member)):
        return ()
    layouts, steps = laid_last(arguments_of(members), member.children)
    steps.add(member.op, [steps.value(member.children[0])], **member.attributes)
    return (_form(layouts, steps),)


def softmax(members: Members, _block: int) -> tuple[BlockedForm, ...]:
    """Return how an operator along one axis runs on a channels-last tensor."""
    (member,) = members
    if not _moving(member, 0):
        return ()
    axis = member.attributes["axis"]
    assert isinstance(axis, int)
    layouts, steps = laid_last(arguments_of(members), member.children)
    steps.add(member.op, [steps.value(member.children[0])], axis=last_axis(axis))
    return (_form(layouts, steps),)


def combined(members: Members, _block: int) -> tuple[BlockedForm, ...]:
    """Return how a function of several numbers runs on channels-last tensors.

    Images may be repeated over one another; what is computed and has fewer axes must be a
    single number.
    """
    (member,) = members
    if not is_image(output_type(member)):
        return ()
    places = range(len(member.inputs))
    moving = [place for place in places if _moving(member, place)]
    if not moving or not all(p in moving or _fits(member, p) for p in places):
        return ()
    last = {member.children[place] for place in moving}
    layouts, steps = laid_last(arguments_of(members), last)
    refs: list[StepRef] = [steps.value(child) for child in member.children]
    for place in places:
        if _constant(member, place):
            refs[place] = last_constant(steps, refs[place])
    steps.add(member.op, refs, **member.attributes)
    return (_form(layouts, steps),)


def reduced(members: Members, _block: int) -> tuple[BlockedForm, ...]:
    """Return how a reduction runs on a channels-last tensor.

    Axes that stay and are not kept must be in the same order as they were.
    """
    (member,) = members
    axes = member.attributes["axes"]
    assert isinstance(axes, tuple)
    if not _moving(member, 0):
        return ()
    kept = bool(member.attributes["keepdims"])
    if not kept and _CHANNELS not in axes and not _PIXELS.issubset(axes):
        return ()
    layouts, steps = laid_last(arguments_of(members), member.children)
    there = tuple(sorted(last_axis(axis) for axis in axes))
    x = steps.value(member.children[0])
    steps.add(member.op, [x], axes=there, keepdims=int(kept))
    result = Layout.CHANNELS_LAST if kept else Layout.PLAIN
    return (BlockedForm(layouts, tuple(steps.done), by_runtime=False, result=result),)


def pooled(members: Members, _block: int) -> tuple[BlockedForm, ...]:
    """Return how a pool of all pixels runs: as the reduction that it is."""
    (member,) = members
    if not _moving(member, 0):
        return ()
    layouts, steps = laid_last(arguments_of(members), member.children)
    axes = tuple(sorted(last_axis(axis) for axis in _PIXELS))
    steps.add(_POOLS[member.op], [steps.value(member.children[0])], axes=axes, keepdims=1)
    return (_form(layouts, steps),)


def flattened(members: Members, _block: int) -> tuple[BlockedForm, ...]:
    """Return how one pixel is read under another shape: its bytes lie the same."""
    (member,) = members
    if not _moving(member, 0) or not is_pixel(input_type(member, 0)):
        return ()
    layouts, steps = laid_last(arguments_of(members), member.children)
    shape = output_type(member).shape
    steps.add("Reshape", [steps.value(member.children[0])], shape=shape)
    done = tuple(steps.done)
    return (BlockedForm(layouts, done, by_runtime=False, result=Layout.PLAIN),)


def _form(layouts: tuple[Layout, ...], steps: Steps) -> BlockedForm:
    done = tuple(steps.done)
    return BlockedForm(layouts, done, by_runtime=False, result=Layout.CHANNELS_LAST)


def _moving(member: Application, place: int) -> bool:
    """Return whether an operand is an image that is computed by the model."""
    return not _constant(member, place) and is_image(input_type(member, place))


def _constant(member: Application, place: int) -> bool:
    argument = member.inputs[place]
    return argument is not None and argument.constant


def _fits(member: Application, place: int) -> bool:
    """Return whether an operand that is no image fits beside channels-last ones."""
    shape = input_type(member, place).shape
    if shape is None or len(shape) > RANK:
        return False
    return _constant(member, place) or all(size == 1 for size in shape)

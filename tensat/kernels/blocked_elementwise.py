"""Elementwise operators on blocked tensors: they run on the buffer as it is.

The last block of a tensor whose channels do not fill it holds numbers that nobody asked
for: zeros, or what operators made of zeros. They are multiplied with zero weights by the
next convolution, so they must stay finite. Operators that can make an infinity or no
number out of a finite one (`Reciprocal`, `Log`, `Sqrt`, `Exp`, a division by a blocked
tensor, most powers) run on whole blocks only.
"""

from __future__ import annotations

from dataclasses import replace

from rulesets.ops import single
from rulesets.tensor import Tensor
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
from tensat.kernels.kernel import (
    Application,
    BlockedForm,
    Fusion,
    Members,
    StepRef,
)

FINITE = frozenset(
    {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "Erf", "Neg", "Abs", "HardSigmoid"}
    | {"HardSwish", "Gelu", "Softplus", "Elu", "Floor", "Ceil", "Round", "Sign"}
    | {"Sin", "Cos", "Clip"}
)
"""Functions of one number that make finite numbers out of finite ones."""

PARTIAL = frozenset({"Exp", "Log", "Sqrt", "Reciprocal"})
"""Functions of one number that do not."""

COMBINING = frozenset({"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum"})
"""Functions of several numbers."""

_BY_RUNTIME = frozenset({"Relu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Gelu"})
_SUMS = frozenset({"Add", "Sum"})
_GELUS = frozenset({"com.microsoft:Gelu", "com.microsoft:QuickGelu"})
_HARD_SWISH = {"alpha": single(1 / 6), "beta": 0.5}


def unary(members: Members, block: int) -> tuple[BlockedForm, ...]:
    """Return how a function of one number runs on a blocked tensor."""
    (member,) = members
    image = input_type(member, 0)
    whole = member.op in PARTIAL
    if not is_image(image) or not is_image(output_type(member)):
        return ()
    if whole and not _fills(image, block):
        return ()
    arguments = arguments_of(members)
    layouts, steps = laid(arguments, set(arguments), block)
    x = steps.value(member.children[0])
    if member.op == "HardSwish":
        # The runtime has no kernel of that name; this is what it runs for it.
        steps.add("Mul", [x, steps.add("HardSigmoid", [x], **_HARD_SWISH)])
    elif member.op == "Gelu":
        # Older opsets know only the runtime's own; both are one kernel.
        if member.attributes["approximate"] != "none":
            return ()
        steps.foreign("com.microsoft:Gelu", [x], blocked_type(image, block), {})
    else:
        steps.add(member.op, [x], **member.attributes)
    by_runtime = member.op in _BY_RUNTIME
    return (BlockedForm(layouts, tuple(steps.done), by_runtime),)


def combined(members: Members, block: int) -> tuple[BlockedForm, ...]:
    """Return how a function of several numbers runs on blocked tensors.

    Its arguments are blocked tensors of the result's channels, and single numbers. Images
    of one size are taken as they are. Where sizes may differ, one image may be repeated
    over the other; that is right on tensors as they lie in memory, [n, c/b, h, w, b].
    """
    (member,) = members
    image = output_type(member)
    if not is_image(image):
        return ()
    kinds = [_kind(member, place, image) for place in range(len(member.inputs))]
    if "other" in kinds or "image" not in kinds:
        return ()
    if not _fills(image, block) and not _stays_finite(member, kinds):
        return ()
    images = [place for place, kind in enumerate(kinds) if kind == "image"]
    blocked = {member.children[place] for place in images}
    layouts, steps = laid(arguments_of(members), blocked, block)
    refs: list[StepRef] = [steps.value(child) for child in member.children]
    equal = all(input_type(member, place) == image for place in images)
    if not equal:
        for place in images:
            refs[place] = lying(steps, refs[place], block)
    result = steps.add(member.op, refs, **member.attributes)
    if not equal:
        standing(steps, result, blocked_type(image, block))
    alike = member.op in _SUMS or (member.op == "Mul" and equal)
    by_runtime = alike and len(images) == len(kinds)
    return (BlockedForm(layouts, tuple(steps.done), by_runtime),)


def on_blocks(fusion: Fusion) -> Fusion:
    """Return a fusion that runs on blocked tensors too, if one function of a number does.

    Those are the runtime's `Gelu` and `QuickGelu` of one image; others stay as they are.
    """

    def blocked(members: Members, block: int) -> tuple[BlockedForm, ...]:
        signatures = fusion.plain(members)
        if signatures is None or len(signatures) != 1 or signatures[0].op not in _GELUS:
            return ()
        image = output_type(members[0])
        arguments = arguments_of(members)
        moving = [at for at, (_, _, constant) in arguments.items() if not constant]
        if len(signatures[0].inputs) != 1 or len(moving) != 1 or not is_image(image):
            return ()
        layouts, steps = laid(arguments, moving, block)
        (signature,) = signatures
        steps.foreign(
            signature.op,
            [steps.value(moving[0])],
            blocked_type(image, block),
            dict(signature.attributes),
        )
        return (BlockedForm(layouts, tuple(steps.done), by_runtime=True),)

    return fusion if fusion.blocked is not None else replace(fusion, blocked=blocked)


def _fills(image: Tensor, block: int) -> bool:
    """Return whether the channels are whole blocks, so that there is nothing else."""
    assert image.shape is not None
    channels = image.shape[1]
    return isinstance(channels, int) and channels % block == 0


def _kind(member: Application, place: int, image: Tensor) -> str:
    argument = member.inputs[place]
    assert argument is not None
    tensor = input_type(member, place)
    assert image.shape is not None
    if is_image(tensor) and tensor.shape is not None and not argument.constant:
        same = tensor.shape[1] == image.shape[1]
        # Factors per channel are for `gate`: repeated 16 at a time they are slow.
        pixel = tensor.shape[2:] == (1, 1) and member.op not in _SUMS
        if same and (tensor == image or not pixel):
            return "image"
    sizes = tensor.shape  # a size that happens to be 1 is none
    if tensor.dtype == "float32" and sizes is not None and len(sizes) <= 4:
        return "number" if all(size == 1 for size in sizes) else "other"
    return "other"


def _stays_finite(member: Application, kinds: list[str]) -> bool:
    if member.op == "Div":
        return kinds[1] == "number"
    if member.op == "Pow":
        power = member.inputs[1]
        assert power is not None
        value = power.value
        return value is not None and value >= 1 and value.is_integer()
    return True

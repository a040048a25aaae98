"""Convolutions on blocked tensors, with everything that is computed with them.

Which packing of the weights a convolution needs depends on its groups; with fewer input
channels than a block it reads the plain image. What ONNX Runtime makes by itself out of
standard operators is told from what only a model written for one machine can hold.

Source: the conditions were read off the graphs that ONNX Runtime 1.32 makes of
convolutions of all kinds; a test compares them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from math import gcd

from rulesets.size import product
from tensat.costs.source import Signature
from tensat.kernels.blocked_steps import (
    Steps,
    arguments_of,
    blocked_type,
    fill_up,
    input_type,
    is_image,
    laid,
    merge_groups,
    output_type,
    pack_outputs,
    pack_pairs,
)
from tensat.kernels.conv_kernel import (
    ACTIVATIONS,
    Chain,
    ConvKernel,
    chains,
    folded_by_runtime,
    gated,
    made_plain,
    onnx_attributes,
    read,
    read_gated,
    tree_of,
)
from tensat.kernels.kernel import (
    Application,
    BlockedForm,
    Fusion,
    Layout,
    Members,
    StepRef,
    Tree,
)
from tensat.onnx_forms.call import Absent

ALIGNED = 4
"""The runtime reorders tensors only if their channels are a multiple of this."""

_AFTER_SUM = frozenset({"", "Relu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish"})
_MOST_MERGED = 4  # groups; each doubling doubles the zeros that are multiplied


@dataclass(frozen=True, slots=True)
class Packing:
    """How a convolution runs on blocks.

    Attributes:
        image: Layout in which it reads its image.
        pairs: Whether weights are packed by input and output channels, or by output
            channels only.
        group: Groups as its node has them.
        merged: How many of the groups become one first.
        by_runtime: Whether the runtime does the same by itself.
    """

    image: Layout
    pairs: bool
    group: int
    merged: int
    by_runtime: bool


def packings(inputs: int, outputs: int, group: int, block: int) -> Iterator[Packing]:
    """Yield the ways to compute a convolution on blocks.

    Args:
        inputs: Input channels of one group.
        outputs: Output channels of all groups.
        group: Number of groups.
        block: Channels in a block.
    """
    blocked, plain = Layout.BLOCKED, Layout.PLAIN
    if group == 1:
        if inputs < block:
            yield Packing(plain, pairs=False, group=1, merged=1, by_runtime=True)
        alike = inputs >= block and inputs % ALIGNED == 0
        yield Packing(blocked, pairs=True, group=1, merged=1, by_runtime=alike)
    elif inputs == 1 and outputs == group:
        filled = -(-outputs // block) * block
        alike = outputs % ALIGNED == 0
        yield Packing(blocked, pairs=False, group=filled, merged=1, by_runtime=alike)
    else:
        merged = block // gcd(inputs, block)
        whole = group % merged == 0 and outputs // group * merged % block == 0
        if whole and merged <= _MOST_MERGED:
            yield Packing(
                blocked,
                pairs=True,
                group=group // merged,
                merged=merged,
                by_runtime=merged == 1,
            )


def forms(kernel: ConvKernel, members: Members, block: int) -> Iterator[BlockedForm]:
    """Yield the ways in which a convolution runs on blocked tensors.

    Args:
        kernel: The convolution and what it takes in.
        members: The operators of the kernel.
        block: Channels in a block.
    """
    conv = kernel.conv
    if not (is_image(input_type(conv, 0)) and is_image(output_type(conv))):
        return
    weights = conv.inputs[1]
    assert weights is not None
    group = conv.attributes["group"]
    assert isinstance(group, int)
    if not kernel.foldable:
        return
    alike = _fused_by_runtime(kernel)
    for packing in packings(weights.dims[1], weights.dims[0], group, block):
        form = _form(kernel, members, block, packing, alike and packing.by_runtime)
        if form is not None:
            yield form


def _fused_by_runtime(kernel: ConvKernel) -> bool:
    folded = all(folded_by_runtime(*one, kernel.conv) for one in kernel.channelwise)
    return folded and (kernel.summand is None or kernel.activation in _AFTER_SUM)


def _form(
    kernel: ConvKernel, members: Members, block: int, packing: Packing, by_runtime: bool
) -> BlockedForm | None:
    conv = kernel.conv
    blocked = set()
    if packing.image is Layout.BLOCKED:
        blocked.add(conv.children[0])
    if kernel.summand is not None:
        if kernel.summand == conv.children[0] and not blocked:
            return None  # one argument cannot lie in two ways
        blocked.add(kernel.summand)
    layouts, steps = laid(arguments_of(members), blocked, block)
    weights: StepRef = steps.value(conv.children[1])
    bias: StepRef = Absent()
    if len(conv.inputs) > 2 and conv.inputs[2] is not None:
        bias = steps.value(conv.children[2])
    weights, bias = folded(steps, weights, bias, kernel.channelwise)
    if packing.merged > 1:
        group = conv.attributes["group"]
        assert isinstance(group, int)
        weights = merge_groups(steps, weights, group, packing.merged)
    pack = pack_pairs if packing.pairs else pack_outputs
    weights = pack(steps, weights, block)
    output = blocked_type(output_type(kernel.root), block)
    if not isinstance(bias, Absent):
        assert output.shape is not None
        filled = output.shape[1]
        assert isinstance(filled, int)
        bias = fill_up(steps, bias, (filled,))
    summand = Absent() if kernel.summand is None else steps.value(kernel.summand)
    attributes = onnx_attributes(kernel) | {"group": packing.group}
    inputs = (steps.value(conv.children[0]), weights, bias, summand)
    steps.foreign("Conv", inputs, output, attributes)
    return BlockedForm(layouts, tuple(steps.done), by_runtime)


def folded(
    steps: Steps,
    weights: StepRef,
    bias: StepRef,
    channelwise: Iterable[tuple[Application, int]],
) -> tuple[StepRef, StepRef]:
    """Append what makes weights and bias of a convolution and operators folded into it.

    The arithmetic is the runtime's own, in its order, so that results are equal to the bit.

    Args:
        steps: Where to append.
        weights: [o, i, kh, kw].
        bias: [o], or absent.
        channelwise: As in `ConvKernel`.

    Returns:
        The new weights and the new bias, absent if there is none.
    """
    for member, position in channelwise:
        if member.op == "BatchNormalization":
            weights, bias = _normalized(steps, member, weights, bias)
            continue
        each = _vector(steps, steps.value(member.children[1 - position]))
        if member.op == "Mul":
            weights = _scaled(steps, weights, each)
            if not isinstance(bias, Absent):
                bias = steps.add("Mul", [bias, each])
        elif not isinstance(bias, Absent):
            bias = steps.add("Add", [bias, each])
        elif steps.shape(each) == steps.shape(weights)[:1]:
            bias = each
        else:
            bias = steps.add("Expand", [each], shape=steps.shape(weights)[:1])
    return weights, bias


def _vector(steps: Steps, ref: StepRef) -> StepRef:
    return steps.add("Reshape", [ref], shape=(product(steps.shape(ref)),))


def _scaled(steps: Steps, weights: StepRef, each: StepRef) -> StepRef:
    column = steps.add("Reshape", [each], shape=(*steps.shape(each), 1, 1, 1))
    return steps.add("Mul", [weights, column])


def _normalized(
    steps: Steps, member: Application, weights: StepRef, bias: StepRef
) -> tuple[StepRef, StepRef]:
    """Fold a batch normalization into weights and bias."""
    scale, shift, mean, variance = (steps.value(one) for one in member.children[1:5])
    epsilon = steps.add("Fill", [], value=member.attributes["epsilon"], shape=(1,))
    root = steps.add("Sqrt", [steps.add("Add", [variance, epsilon])])
    factor = steps.add("Div", [scale, root])
    weights = _scaled(steps, weights, factor)
    if isinstance(bias, Absent):
        return weights, steps.add("Sub", [shift, steps.add("Mul", [mean, factor])])
    centred = steps.add("Mul", [steps.add("Sub", [bias, mean]), factor])
    return weights, steps.add("Add", [centred, shift])


def conv_alone(members: Members, block: int) -> tuple[BlockedForm, ...]:
    """Return the ways in which a convolution by itself runs on blocked tensors."""
    kernel = read((), members)
    assert kernel is not None
    return tuple(forms(kernel, members, block))


def _fusions() -> Iterator[Fusion]:
    for chain in chains():
        name = "+".join(["Conv", *[op for op, _ in chain]])
        yield _fusion(name, tree_of(chain), partial(read, chain))
        if len(chain) < 3 and chain[-1][0] not in ACTIVATIONS:
            yield from _gated_fusions(name, chain)
    yield from _gated_fusions("Conv", ())


def _gated_fusions(name: str, chain: Chain) -> Iterator[Fusion]:
    for tree, first in gated(chain):
        yield _fusion(f"{name}+HardSwish", tree, partial(read_gated, chain, first))


def _fusion(
    name: str, tree: Tree, read_members: Callable[[Members], ConvKernel | None]
) -> Fusion:
    def plain(members: Members) -> tuple[Signature, ...] | None:
        kernel = read_members(members)
        return None if kernel is None else made_plain(kernel)

    def blocked(members: Members, block: int) -> tuple[BlockedForm, ...]:
        kernel = read_members(members)
        return () if kernel is None else tuple(forms(kernel, members, block))

    return Fusion(name, tree, plain, blocked)


BLOCKED_CONV: tuple[Fusion, ...] = tuple(_fusions())
"""All that is computed with one convolution, at least two operators each."""

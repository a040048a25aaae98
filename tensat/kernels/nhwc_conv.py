"""Convolutions on a GPU: which operators ONNX Runtime's CUDA kernels compute with them.

On plain tensors the runtime folds factors and summands per channel into the weights, as on
every device, and makes `FusedConv` of a convolution in float32 followed by `Relu`, with or
without the sum of another tensor in between; of nothing else. Channels-last there is
`com.microsoft:NhwcConv`, which the runtime does not make by itself: it has a bias, no
activation, and weights that are stored as [m, kh, kw, c / group]. What the runtime would
fold into a `Conv` is folded into its weights when the model is written.

Source: `onnxruntime/core/optimizer/conv_activation_fusion.cc` (the branch for CUDA),
`onnxruntime/contrib_ops/cuda/fused_conv.cc`, and those that `tensat.cuda.nhwc` names, all
of https://github.com/microsoft/onnxruntime. Not run on a device so far.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensat.costs.source import PRICED_OPSET, Argument, Signature
from tensat.kernels.blocked_conv import folded
from tensat.kernels.blocked_steps import arguments_of, input_type, output_type
from tensat.kernels.conv_kernel import (
    ACTIVATIONS,
    Chain,
    ConvKernel,
    chains,
    folded_by_runtime,
    onnx_attributes,
    read,
    tree_of,
)
from tensat.kernels.kernel import BlockedForm, Fusion, Layout, Members, StepRef
from tensat.kernels.nhwc_steps import TO_LAST, is_image, laid_last, last_type
from tensat.onnx_forms.call import Absent

NHWC_CONV = "com.microsoft:NhwcConv"
"""The runtime's convolution on channels-last tensors."""

_ACTIVATION = "Relu"
"""The only one that is computed with a convolution on CUDA."""


def conv_last(members: Members, _block: int) -> tuple[BlockedForm, ...]:
    """Return how a convolution by itself runs on channels-last tensors."""
    kernel = read((), members)
    assert kernel is not None
    return _forms(kernel, members)


def _forms(kernel: ConvKernel, members: Members) -> tuple[BlockedForm, ...]:
    """Return how a convolution with what is folded into it runs channels-last."""
    conv = kernel.conv
    image, result = input_type(conv, 0), output_type(kernel.root)
    weights = conv.inputs[1]
    assert weights is not None
    if kernel.activation or kernel.summand is not None or not weights.constant:
        return ()
    if not (is_image(image) and is_image(result)) or _is_constant(conv.inputs[0]):
        return ()
    if kernel.channelwise and not (kernel.foldable and image.dtype == "float32"):
        return ()
    layouts, steps = laid_last(arguments_of(members), {conv.children[0]})
    filters: StepRef = steps.value(conv.children[1])
    bias: StepRef = Absent()
    if len(conv.inputs) > 2 and conv.inputs[2] is not None:
        bias = steps.value(conv.children[2])
    filters, bias = folded(steps, filters, bias, kernel.channelwise)
    packed = steps.add("Transpose", [filters], perm=TO_LAST)
    inputs = (steps.value(conv.children[0]), packed, bias)
    steps.foreign(NHWC_CONV, inputs, last_type(result), onnx_attributes(kernel))
    done = tuple(steps.done)
    return (BlockedForm(layouts, done, by_runtime=False, result=Layout.CHANNELS_LAST),)


def made_on_cuda(kernel: ConvKernel) -> tuple[Signature, ...] | None:
    """Return what the runtime runs on plain tensors; None if it does not fuse all of it."""
    conv = kernel.conv
    usual = all(folded_by_runtime(*one, conv) for one in kernel.channelwise)
    if not usual or kernel.activation not in {"", _ACTIVATION}:
        return None
    inputs = list(conv.inputs[:3])
    shifted = any(member.op != "Mul" for member, _ in kernel.channelwise)
    if shifted and (len(inputs) < 3 or inputs[2] is None):
        dtype = conv.outputs[0].dtype
        inputs[2:] = [Argument(dtype, (kernel.channels,), constant=True)]
    outputs = kernel.root.outputs
    if not kernel.activation:
        if kernel.summand is not None:
            return None
        given = tuple(sorted(conv.attributes.items()))
        return (Signature("Conv", given, tuple(inputs), outputs, PRICED_OPSET),)
    if any(one is not None and one.dtype != "float32" for one in inputs):
        return None
    if kernel.summand is not None:
        inputs += [None] * (3 - len(inputs))
        inputs.append(conv.outputs[0])
    given = tuple(sorted(onnx_attributes(kernel).items()))
    name = "com.microsoft:FusedConv"
    return (Signature(name, given, tuple(inputs), outputs, PRICED_OPSET),)


def _fusions() -> Iterator[Fusion]:
    for chain in chains():
        last = chain[-1][0]
        if last == _ACTIVATION or last not in ACTIVATIONS:
            yield _fusion(chain)


def _fusion(chain: Chain) -> Fusion:
    def plain(members: Members) -> tuple[Signature, ...] | None:
        kernel = read(chain, members)
        return None if kernel is None else made_on_cuda(kernel)

    def last(members: Members, _block: int) -> tuple[BlockedForm, ...]:
        kernel = read(chain, members)
        return () if kernel is None else _forms(kernel, members)

    name = "+".join(["Conv", *[op for op, _ in chain]])
    return Fusion(name, tree_of(chain), plain, last)


def _is_constant(argument: Argument | None) -> bool:
    return argument is not None and argument.constant


CONV_ON_CUDA: tuple[Fusion, ...] = tuple(_fusions())
"""All that is computed with one convolution on a GPU, at least two operators each."""

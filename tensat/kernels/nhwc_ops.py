"""What ONNX Runtime's CUDA provider computes as one kernel, and channels-last.

What is not here has plain kernels only: pools with a window, batch norms by themselves and
transposed convolutions have channels-last ones in the runtime's internal domain, which a
model file cannot ask for. The fusions outside of convolution are those of the processor:
the runtime's transformers name both devices as theirs. Not run on a device so far.

Source: `onnxruntime/core/optimizer/graph_transformer_utils.cc` (the providers of each
transformer) of https://github.com/microsoft/onnxruntime.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tensat.kernels.fusions import FUSIONS
from tensat.kernels.kernel import Blocked, Fusion
from tensat.kernels.nhwc_conv import CONV_ON_CUDA, conv_last
from tensat.kernels.nhwc_elementwise import (
    ONE_OPERAND,
    REDUCTIONS,
    SEVERAL_OPERANDS,
    SOFTMAXES,
    combined,
    flattened,
    pooled,
    reduced,
    softmax,
    unary,
)
from tensat.kernels.nhwc_moves import enlarged, joined, padded, sliced, transposed


def _entries() -> Iterator[tuple[str, Blocked]]:
    yield "Conv", conv_last
    for ops, way in (
        (ONE_OPERAND, unary),
        (SEVERAL_OPERANDS, combined),
        (SOFTMAXES, softmax),
        (REDUCTIONS, reduced),
        (("GlobalAveragePool", "GlobalMaxPool"), pooled),
        (("Flatten", "Reshape", "Squeeze"), flattened),
    ):
        for op in sorted(ops):
            yield op, way
    yield "Transpose", transposed
    yield "Concat", joined
    yield "Slice", sliced
    yield "Pad", padded
    yield "Upsample", enlarged


LAST_SINGLE: Mapping[str, Blocked] = dict(_entries())
"""By canonical operator: how it runs on channels-last tensors."""

CUDA_FUSIONS: tuple[Fusion, ...] = (*FUSIONS, *CONV_ON_CUDA)
"""Everything that the runtime computes as one kernel on a GPU."""

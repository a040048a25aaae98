"""What the time of a kernel follows when the machine is slower or faster than usual.

Weights that no cache keeps come at the speed of memory. What computes is slowed down by
neighbours on the processor as a product of matrices is; what mostly moves numbers, or reads
its weights again and again as a loop does, by about the square root of that. Measured with
fifteen kernels beside busy neighbours: one kernel's times spread by 2 to 9 % when they
are restated with these powers, by 11 to 25 % as they are.
"""

from __future__ import annotations

from tensat.costs.source import Signature
from tensat.runtime.pace import Demand

LARGE = 128 << 10
"""Bytes from which on constants count as weights that come from memory."""

_COMPUTING = frozenset(
    {
        "MatMul", "Gemm", "Conv", "ConvTranspose", "FusedConv", "FusedGemm", "FusedMatMul",
        "Softmax", "LogSoftmax", "LRN", "Erf", "Exp", "Gelu", "QuickGelu", "FastGelu",
        "BiasGelu", "Sigmoid", "Tanh", "Pow", "MaxPool", "AveragePool", "Attention",
    }
)  # fmt: skip
_MOVING = 0.5


def demand(signature: Signature, resident: bool = False) -> Demand:
    """Return what the time of a signature's kernel follows.

    Args:
        signature: What is timed.
        resident: Whether weights stay in a core's own cache between two runs.
    """
    weights = sum(each.bytes for each in signature.present if each.constant)
    name = signature.op.replace(":", ".").rpartition(".")[2]
    return Demand(
        streamed=0 if resident or weights < LARGE else weights,
        follows=1.0 if name in _COMPUTING else _MOVING,
    )

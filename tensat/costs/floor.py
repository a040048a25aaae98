"""Seconds that a kernel hardly can be faster than, before anything is measured.

Laziness rests on these bounds: a kernel that is not measured counts as little, and where
that is more than it costs, the best plan can be missed. So they are shares of the
roofline's estimate well below the fastest kernels seen: of some 2000 measured kernels of
31 models (AVX-512, one thread) none is below its floor; the nearest is 1.2 times above. The
closer a floor is to the truth, the fewer kernels are measured: kernels of arithmetic, whose
estimates are good and whose measuring takes longest, get half of the estimate.
"""

from __future__ import annotations

from dataclasses import replace

from tensat.costs.representative import representative
from tensat.costs.roofline import Roofline
from tensat.costs.source import Signature

_LAUNCH = 0.15e-6
"""Seconds of the fastest kernels there are; the roofline's are those of a usual one."""

_SHARE = 0.3
"""Of the estimate beyond launching; four times the memory's pace in copies."""

_DEPTHWISE = 0.08
"""Depthwise convolutions of whole blocks: the roofline knows the slow plain ones."""

_CLOSE = 0.4
"""Of kernels that are estimated from their arithmetic, or known to be slow."""

_ESTIMATED_WELL = frozenset(
    {
        "Conv", "ConvTranspose", "FusedConv", "MatMul", "FusedMatMul", "Gemm", "FusedGemm",
        "MaxPool", "AveragePool", "LRN", "Gelu", "SkipLayerNormalization", "Upsample",
    }
)  # fmt: skip

_READS_WHAT_IT_RETURNS = frozenset({"Slice", "Gather", "GatherElements", "GatherND"})


def least_seconds(signature: Signature, roofline: Roofline, threads: int = 1) -> float:
    """Return seconds that a kernel is not expected to be faster than.

    Args:
        signature: The kernel.
        roofline: What estimates it.
        threads: Threads that compute; they are taken to share all work evenly.
    """
    small = representative(signature)
    name = small.op.rpartition(":")[2]
    if name in _READS_WHAT_IT_RETURNS and small.outputs:
        # The estimate also counts what is only passed over.
        small = replace(small, inputs=tuple(small.outputs))
    work = max(0.0, roofline.estimate(small) - roofline.machine.launch)
    return _LAUNCH + _share(name, small) * work / threads


def _share(name: str, signature: Signature) -> float:
    if name not in _ESTIMATED_WELL:
        return _SHARE
    if name == "Conv" and ":" in signature.op and _is_depthwise(signature):
        return _DEPTHWISE
    return _CLOSE


def _is_depthwise(signature: Signature) -> bool:
    weights = signature.present[1]
    return dict(signature.attributes).get("group", 1) != 1 and weights.dims[1:2] == (1,)

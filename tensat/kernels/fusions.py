"""Which operators ONNX Runtime computes as one kernel: the table of its fusions.

Looked up in its graph transformers and held by tests that let it optimize small models
(1.32, CPU, float32, highest level). Convolutions and blocked layout have a table of their
own. Left out are fusions that depend on more than their members (attention, embedding),
that concern quantized models, or that give several results (slices that together are a
Split): those of them that occur save little.
"""

from __future__ import annotations

from tensat.kernels import fusions_activation, fusions_linear, fusions_norm
from tensat.kernels.kernel import Fusion

FUSIONS: tuple[Fusion, ...] = (
    *fusions_linear.FUSIONS,
    *fusions_norm.FUSIONS,
    *fusions_activation.FUSIONS,
)
"""Every fusion outside of convolution."""

"""Options of a CUDA session.

The options are those of the CUDA execution provider. `user_compute_stream` makes the
runtime queue its work into a stream of the caller; the number is the stream's address.
`use_tf32` is on unless it is turned off: products and convolutions of float32 then round
their inputs to 10 bits of mantissa, which is more than the tolerances of the guard allow,
so that it is off here unless asked for. `prefer_nhwc` (since 1.20) lets the runtime turn
convolutions, pools and batch norms into channels-last ones by itself.

Source: https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html and
`onnxruntime/core/providers/cuda/cuda_execution_provider_info.cc`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PROVIDER = "CUDAExecutionProvider"
"""The runtime's name of it."""

NO_FALLBACK = ("session.disable_cpu_ep_fallback", "1")
"""Session entry: refuse a model that is not wholly the provider's."""

NO_WAITING = ("disable_synchronize_execution_providers", "1")
"""Run entry: return when the work is queued, not when it is done."""

SEARCHES = ("EXHAUSTIVE", "HEURISTIC", "DEFAULT")
"""How cuDNN's algorithm for a convolution may be chosen."""


_TEXT = re.compile(r"tf32 (on|off), (NCHW|NHWC), ([a-z]+), (ORT_[A-Z_]+)")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a CUDA session runs; part of the key under which costs are stored.

    Attributes:
        device_id: Which GPU.
        tf32: Whether float32 products may round their inputs to TF32.
        prefer_nhwc: Whether the runtime turns convolutions channels-last by itself.
        conv_search: How cuDNN's algorithm is chosen; the runtime's own default is
            exhaustive, at the first run.
        level: The runtime's own graph optimization; none, since what is timed is written
            as the kernels that run.
    """

    device_id: int = 0
    tf32: bool = False
    prefer_nhwc: bool = False
    conv_search: str = "EXHAUSTIVE"
    level: str = "ORT_DISABLE_ALL"

    def text(self) -> str:
        """Return what distinguishes two settings on one device; part of a key."""
        tf32 = "on" if self.tf32 else "off"
        layout = "NHWC" if self.prefer_nhwc else "NCHW"
        return f"tf32 {tf32}, {layout}, {self.conv_search.lower()}, {self.level}"

    @staticmethod
    def of_text(text: str) -> Settings | None:
        """Return the settings of which `text` says this, on the first GPU; else None."""
        found = _TEXT.fullmatch(text)
        if found is None:
            return None
        tf32, layout, search, level = found.groups()
        return Settings(0, tf32 == "on", layout == "NHWC", search.upper(), level)


def provider_options(settings: Settings, stream_address: int) -> dict[str, str]:
    """Return the provider's options for a session in a stream.

    Args:
        settings: What was asked for.
        stream_address: The stream's handle; 0 lets the runtime make one.
    """
    options = {
        "device_id": str(settings.device_id),
        "use_tf32": str(int(settings.tf32)),
        "prefer_nhwc": str(int(settings.prefer_nhwc)),
        "cudnn_conv_algo_search": settings.conv_search,
    }
    if stream_address:
        options["user_compute_stream"] = str(stream_address)
    return options


def recommended(settings: Settings) -> dict[str, str]:
    """Return the options that a deployed session should have, for a model's metadata.

    The costs were measured under them, so that the choice holds only with them.
    """
    options = provider_options(settings, 0)
    del options["device_id"]
    return options

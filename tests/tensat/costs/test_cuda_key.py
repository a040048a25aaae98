"""What the key of costs tells about the GPU that they are of."""

from __future__ import annotations

import pytest

from tensat.costs.cuda import Gpu, gpu_of, setting_of
from tensat.costs.store import Setting
from tensat.cuda.provider import Settings
from tests.tensat.cuda.simulated import FACTS


@pytest.mark.parametrize(
    "settings",
    [Settings(), Settings(tf32=True, conv_search="HEURISTIC"), Settings(prefer_nhwc=True)],
    ids=["usual", "tf32", "nhwc"],
)
def test_a_key_tells_the_gpu(settings: Settings) -> None:
    """Device, version and settings come back, so that a table is enough."""
    gpu = gpu_of(setting_of(FACTS, settings))
    assert gpu == Gpu("Simulated compute 9.9", "1.99.0", settings)


@pytest.mark.parametrize(
    "setting",
    [None, Setting("a processor", "onnxruntime 1.32.0 CPU, single kernels 4", 1)],
    ids=["estimates", "processor"],
)
def test_other_keys_tell_no_gpu(setting: Setting | None) -> None:
    """Costs of a processor, and costs of nothing."""
    assert gpu_of(setting) is None

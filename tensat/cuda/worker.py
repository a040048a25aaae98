"""The child process in which a GPU is measured; see `tensat.runtime`.

A fault of driver or kernel ends this process, an error that CUDA never gets over spoils
it, and the next one begins anew. So requests name settings, and no state of the child.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tensat.costs.source import Signature
from tensat.cuda.bench import LocalBench
from tensat.cuda.clock import Measured, Patience
from tensat.cuda.crosscheck import Check
from tensat.cuda.cupy_device import open_device
from tensat.cuda.device import Device, Facts
from tensat.cuda.provider import Settings
from tensat.cuda.trouble import Refused
from tensat.runtime.messages import Kernel
from tensat.runtime.serve import serve

type Open = Callable[[Settings], Device]
"""Opens the GPU that settings name."""


class CudaWorker:
    """The functions that a request can name; a device is opened at the first of them."""

    def __init__(self, open_gpu: Open = open_device) -> None:
        self._open = open_gpu
        self._benches: dict[tuple[Settings, Patience], LocalBench] = {}

    def facts(self, settings: Settings, patience: Patience) -> Facts:
        """Return what the device says about itself."""
        return self._bench(settings, patience).facts

    def time(
        self, settings: Settings, patience: Patience, kernel: Kernel
    ) -> Measured | Refused:
        """Time a small model."""
        return self._bench(settings, patience).time(kernel)

    def check(
        self, settings: Settings, patience: Patience, signature: Signature, kernel: Kernel
    ) -> Check | Refused | None:
        """Compare a small model with CuPy's own kernel."""
        return self._bench(settings, patience).check(signature, kernel)

    def _bench(self, settings: Settings, patience: Patience) -> LocalBench:
        key = (settings, patience)
        if key not in self._benches:
            self._benches[key] = LocalBench(self._open(settings), settings, patience)
        return self._benches[key]


def main(open_gpu: Open = open_device) -> None:
    """Answer requests until the parent closes the pipe."""
    serve(partial(CudaWorker, open_gpu))

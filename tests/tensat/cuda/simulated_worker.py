"""A child process with a simulated device, in which some operators do harm.

`Erf` ends the process, `Tanh` never comes back, `Sign` makes the device unusable for
the whole process, as some errors of CUDA do.
"""

from __future__ import annotations

import os
import signal
import time

import onnx

from tensat.cuda import worker
from tensat.cuda.device import Device, Session, Stream
from tensat.cuda.provider import Settings
from tensat.cuda.trouble import DeviceError, Trouble
from tensat.runtime.messages import Kernel
from tests.tensat.cuda.simulated import SimulatedDevice


class HarmfulDevice(SimulatedDevice):
    """See the module."""

    spoiled = False

    def load(self, kernel: Kernel, stream: Stream, settings: Settings) -> Session:
        """Load a model, or do harm."""
        op_type = onnx.load_from_string(kernel.model).graph.node[0].op_type
        if op_type == "Erf":
            os.kill(os.getpid(), signal.SIGSEGV)
        if op_type == "Tanh":
            time.sleep(3600)
        if self.spoiled or op_type == "Sign":
            self.spoiled = True
            raise DeviceError(Trouble.BROKEN, "an illegal memory access was encountered")
        return super().load(kernel, stream, settings)


def open_gpu(_settings: Settings) -> Device:
    """Open the device."""
    return HarmfulDevice()


def main() -> None:
    """Answer requests."""
    worker.main(open_gpu)

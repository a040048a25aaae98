"""A child process on a machine without a GPU, whatever this machine has."""

from __future__ import annotations

from tensat.cuda import worker
from tensat.cuda.device import Device
from tensat.cuda.provider import Settings
from tensat.errors import UsageError


def open_gpu(_settings: Settings) -> Device:
    """Say that there is none."""
    raise UsageError("costs of CUDA need a GPU; there is none")


def main() -> None:
    """Answer requests."""
    worker.main(open_gpu)

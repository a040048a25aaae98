"""What options have in view: the kernels of a machine, or operators as they are."""

from __future__ import annotations

from collections.abc import Mapping

from tensat.costs.source import CostSource
from tensat.improve import Aim
from tensat.kernels.machine import (
    ALL_FUSIONS,
    block_size,
    cpu_machine,
    cuda_machine,
)
from tensat.kernels.nhwc_ops import CUDA_FUSIONS
from tensat.options import ORT_CPU, ORT_CUDA, ROOFLINE, Options
from tensat.runtime import Runtime
from tensat.target import gpu_for


def aim_of(
    options: Options, source: CostSource, runtime: Runtime, sizes: Mapping[str, int]
) -> Aim:
    """Return what is aimed at: the device that the costs are of, and its kernels.

    Args:
        options: How to optimize.
        source: Of the costs; a table tells the device that it was measured on.
        runtime: Asked for the channels in a block, where costs are of a processor.
        sizes: Value of each symbolic dimension.

    Raises:
        UsageError: The costs are of another kind of device than the target.
    """
    every = options.measure_all
    if gpu_for(options.target, getattr(source, "setting", None)) is not None:
        machine = cuda_machine(targeted=options.target == ORT_CUDA)
        return Aim(sizes, machine, CUDA_FUSIONS, cuda_machine(), every)
    targeted = options.target == ORT_CPU
    if options.cost == ROOFLINE and not targeted:
        return Aim(sizes)
    block = block_size(runtime)
    machine = cpu_machine(block, targeted=targeted)
    return Aim(sizes, machine, ALL_FUSIONS, cpu_machine(block), every)

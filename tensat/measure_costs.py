"""Measure what an optimization of a model would ask, and keep it: later ones are warm."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from tensat.errors import UsageError
from tensat.model.onnx_read import ModelLike
from tensat.optimize import optimize
from tensat.options import CPU, CUDA, Options
from tensat.stages import Progress

DEVICES = (CPU, CUDA)
"""Cost sources that measure."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What became of the costs that a model needs.

    Attributes:
        known: Signatures measured earlier.
        measured: Signatures measured now.
        unsteady: Signatures measured now, with too wide a spread to be stored.
        refused: Signatures for which the runtime has no kernel.
        scaled: Signatures that there was no time to measure.
        estimated: Signatures that are never measured.
        seconds: Wall time in all.
        reason: Why nothing could be asked; empty otherwise.
    """

    known: int
    measured: int
    unsteady: int
    refused: int
    scaled: int
    estimated: int
    seconds: float
    reason: str = ""


def measure_costs(
    model: ModelLike, options: Options, *, progress: Progress | None = None
) -> Measured:
    """Measure the operators of a model, and those that could replace them.

    The model is optimized as it would be otherwise, and the result forgotten: what is
    asked depends on what is found.

    Args:
        model: See `optimize`; it is not changed.
        options: How; the costs are ``cpu`` or ``cuda``.
        progress: Told what happens.

    Raises:
        ModelError: The model cannot be read or is invalid.
        UsageError: An option makes no sense for this model, the database is refused, or
            there is no such device; or the costs are not those of a device.
    """
    if options.cost not in DEVICES:
        possible = ", ".join(DEVICES)
        raise UsageError(f"cost {options.cost!r} is not measured; possible: {possible}")
    start = time.monotonic()
    result = optimize(model, replace(options, measure=False), progress=progress)
    costs = result.report.costs
    known, measured, unsteady, refused, scaled, estimated = (
        int(costs.get(name, 0))
        for name in ("known", "measured", "unsteady", "refused", "scaled", "estimated")
    )
    return Measured(
        known,
        measured,
        unsteady,
        refused,
        scaled,
        estimated,
        time.monotonic() - start,
        "" if result.found else result.report.reason,
    )

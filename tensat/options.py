"""Options of one optimization, checked when they are made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rulesets.ops import Operator
from tensat.errors import UsageError

COSTS = ("cpu", "cuda", "table", "roofline")
"""Cost sources that an option can name."""

CPU, CUDA, TABLE, ROOFLINE = COSTS

PORTABLE, ORT_CPU, ORT_CUDA = "portable", "ort-cpu", "ort-cuda"

MOST_THREADS = 1024
"""Threads that an option can ask for."""

TARGETS = (PORTABLE, ORT_CPU, ORT_CUDA)
"""What a result can be for."""

COSTS_OF = {
    PORTABLE: COSTS,
    ORT_CPU: (CPU, TABLE, ROOFLINE),
    ORT_CUDA: (CUDA, TABLE),
}
"""Cost sources that tell apart the layouts of a target; a table must be of its device."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to optimize.

    Attributes:
        input_shapes: Sizes to optimize and measure for, by input name. The result keeps
            the model's symbolic dimensions.
        seconds: Wall time for saturation, measuring of operators and extraction together;
            checking the result comes on top.
        max_nodes: E-nodes at which saturation stops.
        iterations: Steps of saturation at most.
        multi_iterations: Steps in which multi-pattern rules run.
        cost: ``cpu`` or ``cuda`` (kernels measured in ONNX Runtime), ``table`` (recorded,
            of any device) or ``roofline`` (estimated); if empty, that of the target.
            Results for ``cuda``, and for a table of such costs, are compared on the
            processor and judged by prediction.
        cost_db: File of measured costs; None is the user's cache folder.
        cost_table: File of recorded costs, as ``tensat costs export`` writes it, or a
            database; for ``table`` only.
        measure_all: Whether kernels are measured that no plan needs.
        measure: Whether to time the result against the original. Without it the result
            is judged by predicted cost, and still checked to compute the same.
        skip: Names of rules that must not be used.
        only_proved: Whether rules without a proof are left out, too, and the others kept
            to the ranks of their proofs.
        rules: Files of rules to use beside those that are shipped; each is proved first.
        operators: Specifications of operators that are not known otherwise.
        target: ``portable`` (standard operators only), ``ort-cpu`` (ONNX Runtime on the
            kind of processor that this is, with its own operators for blocked layout) or
            ``ort-cuda`` (on the kind of GPU that the costs were measured on, with its own
            channels-last convolution; needs ``cuda`` costs or a table of them).
        seed: For random inputs and the solver.
        threads: Threads for measuring and timing.
    """

    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    seconds: float = 60.0
    max_nodes: int = 50_000
    iterations: int = 15
    multi_iterations: int = 1
    cost: str = ""
    cost_db: Path | None = None
    cost_table: Path | None = None
    measure_all: bool = False
    measure: bool = True
    skip: tuple[str, ...] = ()
    only_proved: bool = False
    rules: tuple[Path, ...] = ()
    operators: tuple[Operator, ...] = ()
    target: str = PORTABLE
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        if not self.cost:
            usual = CUDA if self.target == ORT_CUDA else CPU
            object.__setattr__(self, "cost", usual)
        self._check_device()
        for name in ("seconds", "max_nodes", "iterations", "threads"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} must be positive, not {getattr(self, name)}")
        if self.threads > MOST_THREADS:
            raise UsageError(
                f"threads must be at most {MOST_THREADS}, not {self.threads}: the runtime "
                "would start them again and again"
            )
        if self.seconds == math.inf:
            raise UsageError("seconds must be finite, not inf")
        for name in ("multi_iterations", "seed"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} must be >= 0, not {getattr(self, name)}")

    def _check_device(self) -> None:
        """Refuse costs and targets that do not exist, or not together.

        Raises:
            UsageError: They do not.
        """
        if self.cost not in COSTS:
            raise UsageError(f"cost {self.cost!r} is unknown; possible: {', '.join(COSTS)}")
        if self.target not in TARGETS:
            possible = ", ".join(TARGETS)
            raise UsageError(f"target {self.target!r} is unknown; possible: {possible}")
        if self.cost not in COSTS_OF[self.target]:
            possible = ", ".join(COSTS_OF[self.target])
            raise UsageError(
                f"target {self.target!r} with cost {self.cost!r}: that knows no layouts of "
                f"its device; possible: {possible}"
            )
        if (self.cost == "table") != (self.cost_table is not None):
            raise UsageError(
                f"cost {self.cost!r} with cost_table {self.cost_table}: 'table' needs a "
                "file, and only 'table' has one"
            )

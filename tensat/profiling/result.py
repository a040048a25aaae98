"""A profile: what each kernel of a model was predicted to take, and what the model took."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

NOT_ASKED = "not asked"
"""Origin of the cost of a node that handles something else than tensors of numbers."""


@dataclass(frozen=True, slots=True)
class NodeCost:
    """One node of the graph that the runtime runs.

    Attributes:
        name: Its name there.
        operator: Its operator; of a domain other than ONNX's own as ``domain:Type``.
        shapes: Type and sizes of inputs and outputs, in short.
        signature: What the cost source was asked; equal ones are one measurement. Empty if
            it could not be asked.
        seconds: Predicted time.
        spread: Relative spread of that measurement.
        runs: Repetitions that it consists of.
        origin: Where the time comes from, see `tensat.costs.cpu.Origin`, or NOT_ASKED.
        measured: Its share of the time of the runtime's own profile, scaled so that all
            nodes together take as long as the model without profiling; None if the profile
            does not have it.
    """

    name: str
    operator: str
    shapes: str
    signature: str
    seconds: float
    spread: float
    runs: int
    origin: str
    measured: float | None


@dataclass(frozen=True, slots=True)
class Profile:
    """Predicted and measured times of one model, in seconds.

    Attributes:
        nodes: The nodes of the graph that the runtime runs, in the order of the file.
        overhead: What a run takes that computes nothing.
        dispatch: What all nodes take besides their kernels, because kernels alternate.
        measured: Median time of a run of the model.
        spread: Half the distance of the quartiles of these runs over the median.
        runs: How many runs of the model.
        threads: Threads that computed.
        shapes: Sizes of the inputs.
        measuring: Wall time that measuring kernels took; almost nothing if all are known.
        counts: How many distinct kernels had which origin.
    """

    nodes: tuple[NodeCost, ...]
    overhead: float
    dispatch: float
    measured: float
    spread: float
    runs: int
    threads: int
    shapes: Mapping[str, tuple[int, ...]]
    measuring: float
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def predicted(self) -> float:
        """The sum of all kernels, their dispatch and the overhead of a run."""
        return self.overhead + self.dispatch + self.kernels

    @property
    def kernels(self) -> float:
        """The sum of all kernels."""
        return math.fsum(node.seconds for node in self.nodes)

    @property
    def ratio(self) -> float:
        """Predicted over measured time."""
        return self.predicted / self.measured

    def to_json(self) -> str:
        """Return all of it as JSON, times in seconds."""
        content: dict[str, Any] = {
            "predicted": self.predicted,
            "measured": self.measured,
            "ratio": self.ratio,
            **asdict(self),
        }
        return json.dumps(content, indent=1, allow_nan=False)

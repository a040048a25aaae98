"""Costs measured on this machine: each operator timed in ONNX Runtime's CPU provider.

Known signatures come from the store. The others are timed one by one, the operators that
are estimated to be expensive first but each kind of operator in turn, so that an early
deadline leaves few surprises. What is not timed by then gets the estimate, scaled by how
far the estimates of the same operator were off.
"""

from __future__ import annotations

import math
import platform
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tensat.costs.kernel_model import kernel
from tensat.costs.representative import representative
from tensat.costs.roofline import Roofline
from tensat.costs.scaling import scales_of
from tensat.costs.source import FREE_OPERATORS, Progress, Signature
from tensat.costs.store import CostStore, Record, Setting
from tensat.errors import ExecutionError
from tensat.runtime import Failure, FailureKind, Runtime

_METHOD = "CPU, single kernels 1"  # another number whenever the same kernel would differ
_SAVE_EVERY = 16  # measurements lost at most when the process is killed
_PATIENCE = 30.0  # seconds for one kernel
_TOO_BIG = 2 << 30  # bytes: such an operator is estimated, never timed


class Origin(StrEnum):
    """Where a cost comes from."""

    KNOWN = "known"  # measured earlier
    MEASURED = "measured"  # measured now
    REFUSED = "refused"  # the runtime has no kernel for it: infinite
    SCALED = "scaled"  # estimated, then scaled by the measurements
    ESTIMATED = "estimated"  # by the roofline; never measured


@dataclass(frozen=True, slots=True)
class Cost:
    """What one signature costs, and how that is known.

    Attributes:
        seconds: Infinity where the runtime refuses the operator.
        origin: Measured, known or estimated.
        spread: Relative spread of the repetitions.
        note: Why the runtime refused it.
    """

    seconds: float
    origin: Origin
    spread: float = 0.0
    note: str = ""


class CpuCosts:
    """The measuring cost source.

    Attributes:
        setting: Device, runtime and threads; costs are stored under it.
        counts: How many distinct signatures had which origin, over all calls.
    """

    name = "cpu"

    def __init__(
        self,
        store: CostStore,
        runtime: Runtime,
        *,
        threads: int = 1,
        roofline: Roofline | None = None,
        budget: float = 0.01,
    ) -> None:
        """Prepare to measure.

        Args:
            store: Where costs are kept.
            runtime: The child process that measures.
            threads: Threads that compute.
            roofline: What estimates the rest.
            budget: Seconds of repetitions per signature.

        Raises:
            ExecutionError: The runtime does not start.
        """
        version = runtime.version()
        if isinstance(version, Failure):
            raise ExecutionError(f"ONNX Runtime does not start: {version}")
        self.setting = Setting(device_name(), f"onnxruntime {version} {_METHOD}", threads)
        self.counts: dict[Origin, int] = dict.fromkeys(Origin, 0)
        self._store = store
        self._runtime = runtime
        self._roofline = roofline or Roofline()
        self._budget = budget

    def seconds(
        self,
        signatures: Sequence[Signature],
        deadline: float | None = None,
        progress: Progress | None = None,
    ) -> list[float]:
        """Return the cost of each signature; see `CostSource.seconds`."""
        return [cost.seconds for cost in self.costs(signatures, deadline, progress)]

    def costs(
        self,
        signatures: Sequence[Signature],
        deadline: float | None = None,
        progress: Progress | None = None,
    ) -> list[Cost]:
        """Return the cost of each signature with its origin.

        Args:
            signatures: May contain duplicates.
            deadline: Value of `time.monotonic` after which nothing new is timed.
            progress: Told the number of distinct signatures that are settled.
        """
        asked = [representative(signature) for signature in signatures]
        distinct = list(dict.fromkeys(asked))
        found = self._lookup(distinct)
        missing = _by_turns(
            [s for s in distinct if s not in found], self._roofline.estimate
        )
        self._measure(missing, found, deadline, progress, len(distinct))
        self._estimate_rest(distinct, found)
        for cost in found.values():
            self.counts[cost.origin] += 1
        if progress is not None:
            progress(len(distinct), len(distinct))
        return [found[signature] for signature in asked]

    def _lookup(self, distinct: Sequence[Signature]) -> dict[Signature, Cost]:
        """Return what needs no measuring: free, never measurable, or stored."""
        found: dict[Signature, Cost] = {}
        for signature in distinct:
            if not _measurable(signature):
                estimate = self._roofline.estimate(signature)
                found[signature] = Cost(estimate, Origin.ESTIMATED)
        texts = {s: s.text() for s in distinct if s not in found}
        records = self._store.find(self.setting, list(texts.values()))
        for signature, text in texts.items():
            if text in records:
                record = records[text]
                found[signature] = Cost(
                    record.seconds, Origin.KNOWN, record.spread, record.note
                )
        return found

    def _measure(
        self,
        missing: Sequence[Signature],
        found: dict[Signature, Cost],
        deadline: float | None,
        progress: Progress | None,
        total: int,
    ) -> None:
        unsaved: dict[str, Record] = {}
        try:
            for signature in missing:
                if deadline is not None and time.monotonic() >= deadline:
                    break
                cost = self._time(signature, deadline)
                if cost is None:
                    continue
                found[signature] = cost
                unsaved[signature.text()] = Record(
                    cost.seconds, cost.spread, note=cost.note
                )
                if len(unsaved) >= _SAVE_EVERY:
                    self._store.save(self.setting, unsaved)
                    unsaved = {}
                if progress is not None:
                    progress(len(found), total)
        finally:
            if unsaved:
                self._store.save(self.setting, unsaved)

    def _time(self, signature: Signature, deadline: float | None) -> Cost | None:
        """Time one signature; None if that says nothing about it, such as a timeout."""
        estimate = self._roofline.estimate(signature)
        small = kernel(signature, estimate, self._budget, self.setting.threads)
        if small is None:
            note = f"{signature.op} cannot be written in opset {signature.opset}"
            return Cost(math.inf, Origin.REFUSED, note=note)
        left = math.inf if deadline is None else deadline - time.monotonic()
        timing = self._runtime.time(small, timeout=min(_PATIENCE, left + 1.0))
        if not isinstance(timing, Failure):
            return Cost(timing.seconds, Origin.MEASURED, timing.spread)
        if timing.kind is FailureKind.CRASHED or _no_kernel(timing.text):
            return Cost(math.inf, Origin.REFUSED, note=str(timing))
        return None

    def _estimate_rest(
        self, distinct: Sequence[Signature], found: dict[Signature, Cost]
    ) -> None:
        """Scale the estimates of what was not timed by what was."""
        measured = (Origin.KNOWN, Origin.MEASURED)
        scales = scales_of(
            (signature.op, cost.seconds, self._roofline.estimate(signature))
            for signature, cost in found.items()
            if cost.origin in measured
        )
        for signature in distinct:
            if signature not in found:
                estimate = scales.of(signature.op) * self._roofline.estimate(signature)
                found[signature] = Cost(estimate, Origin.SCALED)


def device_name() -> str:
    """Return the processor's name, as exact as the system tells it."""
    wanted = ("model name", "cpu family", "model", "stepping")
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").split("\n\n")[0]
    except OSError:
        return platform.processor() or platform.machine()
    pairs = (line.partition(":") for line in lines.splitlines())
    facts = {name.strip(): value.strip() for name, _, value in pairs}
    known = [facts[name] for name in wanted if name in facts]
    return " ".join([*known, platform.machine()])


def _measurable(signature: Signature) -> bool:
    if signature.op == "Opaque" or signature.op in FREE_OPERATORS or not signature.inputs:
        return False
    arguments = (*signature.present, *signature.outputs)
    if any(a.dtype in ("string", "unknown") or 0 in a.dims for a in arguments):
        return False
    return None not in signature.inputs and sum(a.bytes for a in arguments) < _TOO_BIG


def _no_kernel(text: str) -> bool:
    """Whether the runtime said that it cannot do this, whatever the numbers are."""
    return any(code in text for code in ("NOT_IMPLEMENTED", "INVALID_GRAPH", "Type Error"))


def _by_turns(
    signatures: Sequence[Signature], estimate: Callable[[Signature], float]
) -> list[Signature]:
    """Order by falling estimate within each operator, operators in turn."""
    groups: dict[str, list[Signature]] = defaultdict(list)
    for signature in signatures:
        groups[signature.op].append(signature)
    ranked = [
        (place, -estimate(signature), k, signature)
        for k, group in enumerate(groups.values())
        for place, signature in enumerate(sorted(group, key=estimate, reverse=True))
    ]
    return [entry[-1] for entry in sorted(ranked, key=lambda entry: entry[:3])]

"""Costs measured on this machine: each operator timed in ONNX Runtime's CPU provider.

Known signatures come from the store. The others are timed one by one, the operators that
are estimated to be expensive first but each kind of operator in turn, so that an early
deadline leaves few surprises. Each measurement is saved as soon as it is made. One that
spreads, or was made while the machine was slow, is made again after all others, and the
better one counts; what stays bad is used, but refused as an entry of the store. What is not
timed by the deadline gets the estimate, scaled by how far the estimates of the same
operator were off.

All costs of a setting hold for one pace of the machine, the usual one: what the yardsticks
took when the first cost was measured. A cost that was measured at another pace is restated,
so that costs of a busy and of a quiet minute can be compared.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tensat.costs.cost import Cost, Origin, by_turns, mean_of
from tensat.costs.demand import demand
from tensat.costs.floor import least_seconds
from tensat.costs.kernel_model import FOOTPRINT, kernel
from tensat.costs.representative import representative
from tensat.costs.roofline import Roofline
from tensat.costs.scaling import scales_of
from tensat.costs.source import FREE_OPERATORS, Progress, Signature
from tensat.costs.store import CostStore, Record, Setting
from tensat.errors import ExecutionError
from tensat.runtime import Failure, FailureKind, Kernel, Pace, Runtime
from tensat.runtime.pace import Demand, calm, moved

_METHOD = "CPU, single kernels 6"  # another number whenever the same kernel would differ
_CALM = 0.12  # a disturbance below which a measurement is not made again
_DISTURBED = 0.4  # one beyond which it is not kept
_CAREFUL = 1.08  # slowness of the machine up to which a careful attempt is not repeated
_PASSES = 4  # times that a kernel is measured at most
_DISPATCH = "Dispatch"  # under this name the store has what a node costs besides
_PACES = {"product": "Pace of a product", "memory": "Pace of memory"}
_USUAL = ("Usual product", "Usual stream")
_MEASURED = (Origin.KNOWN, Origin.MEASURED, Origin.UNSTEADY)
_LOOK = 1.0  # seconds to find out the usual pace
_PATIENCE = 30.0  # seconds for one kernel
_TOO_BIG = 2 << 30  # bytes: such an operator is estimated, never timed


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
        budget: float = 0.02,
        resident: bool = False,
        careful: bool = False,
    ) -> None:
        """Prepare to measure.

        Args:
            store: Where costs are kept.
            runtime: The child process that measures.
            threads: Threads that compute.
            roofline: What estimates the rest.
            budget: Seconds of repetitions in one attempt to time a signature.
            resident: Whether the weights of the model that is asked for stay in a core's
                own cache; such costs are kept apart.
            careful: Whether to measure again wherever the machine was slow, in search of
                sums that are right; without, of choices that are.

        Raises:
            ExecutionError: The runtime does not start.
        """
        version = runtime.version()
        if isinstance(version, Failure):
            raise ExecutionError(f"ONNX Runtime does not start: {version}")
        method = f"{_METHOD}, small weights" if resident else _METHOD
        self.setting = Setting(device_name(), f"onnxruntime {version} {method}", threads)
        self.counts: dict[Origin, int] = dict.fromkeys(Origin, 0)
        self._store = store
        self._runtime = runtime
        self._roofline = roofline or Roofline()
        self._budget = budget
        self._resident = resident
        self._careful = careful
        self._usual: Pace | None = None

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
        given: Mapping[Signature, Kernel] | None = None,
    ) -> list[Cost]:
        """Return the cost of each signature with its origin.

        Args:
            signatures: May contain duplicates.
            deadline: Value of `time.monotonic` after which nothing new is timed.
            progress: Told the number of distinct signatures that are settled.
            given: What to time for signatures that do not tell it themselves.
        """
        given = given or {}
        asked = [s if s in given else representative(s) for s in signatures]
        distinct = list(dict.fromkeys(asked))
        found = self._lookup(distinct, given)
        missing = by_turns([s for s in distinct if s not in found], self._roofline.estimate)
        if missing:
            self.learn_pace()
            self._measure(missing, found, deadline, progress, given)
            self.learn_pace()
        self._estimate_rest(distinct, found)
        for cost in found.values():
            self.counts[cost.origin] += 1
        if progress is not None:
            progress(len(distinct), len(distinct))
        return [found[signature] for signature in asked]

    def refine(
        self,
        signatures: Sequence[Signature],
        times: int,
        given: Mapping[Signature, Kernel] | None = None,
    ) -> list[Cost]:
        """Measure once more what a close decision depends on; return the better costs.

        All in turn, in new sessions each time; the mean of all measurements is kept, those
        of more runs counting more. What cannot be measured keeps its cost.

        Args:
            signatures: May contain duplicates.
            times: How often each is measured.
            given: What to time for signatures that do not tell it themselves.
        """
        given = given or {}
        asked = [s if s in given else representative(s) for s in signatures]
        found = self._lookup(list(dict.fromkeys(asked)), given)
        for _ in range(times):
            for signature, before in found.items():
                if before.origin not in _MEASURED or math.isinf(before.seconds):
                    continue
                cost = self._time(signature, None, given.get(signature))
                if cost is not None and cost.origin is Origin.MEASURED:
                    found[signature] = mean_of(before, cost)
                    self._keep(signature, found[signature])
        return self.costs(signatures, None, None, given)

    def known(self, signatures: Sequence[Signature]) -> list[float | None]:
        """Return the costs that need no measuring, None for the others."""
        asked = [representative(signature) for signature in signatures]
        found = self._lookup(list(dict.fromkeys(asked)), {})
        for cost in found.values():
            self.counts[cost.origin] += 1
        return [found[s].seconds if s in found else None for s in asked]

    def floor(self, signature: Signature) -> float:
        """Return seconds that the kernel cannot be faster than, by its size alone."""
        return least_seconds(signature, self._roofline, self.setting.threads)

    def learn_pace(self) -> None:
        """Let the runtime and the store know the best that either saw the machine at.

        Slowness is relative to that, in this process and in later ones.
        """
        stored = self._store.find(self.setting, list(_PACES.values()))
        seconds = {name: stored[t].seconds for name, t in _PACES.items() if t in stored}
        found = self._runtime.best(self.setting.threads, seconds)
        if not isinstance(found, Failure) and found != seconds:
            records = {_PACES[name]: Record(best) for name, best in found.items()}
            self._store.save(self.setting, records)

    def dispatch(self) -> float:
        """Return the seconds that a node takes besides its kernel, in a model.

        Raises:
            ExecutionError: The runtime does not start.
        """
        known = self._store.find(self.setting, [_DISPATCH])
        if _DISPATCH in known:
            return known[_DISPATCH].seconds
        found = self._runtime.dispatch(self.setting.threads, self._resident)
        if isinstance(found, Failure):
            raise ExecutionError(f"ONNX Runtime does not start: {found}")
        measured, pace = found
        seconds = moved(measured, Demand(), pace, self.usual()) if measured else 0.0
        self._store.save(self.setting, {_DISPATCH: Record(seconds)})
        return seconds

    def usual(self) -> Pace:
        """Return the pace of the machine that all costs of this setting hold for.

        Raises:
            ExecutionError: The runtime does not start.
        """
        if self._usual is None:
            known = self._store.find(self.setting, _USUAL)
            if len(known) < len(_USUAL):
                found = self._runtime.paces(self.setting.threads, _LOOK, FOOTPRINT)
                if isinstance(found, Failure):
                    raise ExecutionError(f"ONNX Runtime does not start: {found}")
                quiet = calm(found)
                seconds = zip(_USUAL, (quiet.product, quiet.stream), strict=True)
                self._store.save(self.setting, {n: Record(each) for n, each in seconds})
                known = self._store.find(self.setting, _USUAL)  # others may be faster
            self._usual = Pace(*(known[name].seconds for name in _USUAL))
        return self._usual

    def restated(self, signature: Signature, seconds: float, pace: Pace) -> float:
        """Return what a cost is at another pace than the usual one.

        Args:
            signature: Of the kernel.
            seconds: Its cost, as `costs` gives it.
            pace: The other pace.
        """
        if not 0 < seconds < math.inf:
            return seconds
        return moved(seconds, demand(signature, self._resident), self.usual(), pace)

    def _lookup(
        self, distinct: Sequence[Signature], given: Mapping[Signature, Kernel]
    ) -> dict[Signature, Cost]:
        """Return what needs no measuring: free, never measurable, or stored."""
        found: dict[Signature, Cost] = {}
        for signature in distinct:
            if signature not in given and not _measurable(signature):
                estimate = self._roofline.estimate(signature)
                found[signature] = Cost(estimate, Origin.ESTIMATED)
        texts = {s: s.text() for s in distinct if s not in found}
        records = self._store.find(self.setting, list(texts.values()))
        for signature, text in texts.items():
            if text in records:
                record = records[text]
                found[signature] = Cost(
                    record.seconds, Origin.KNOWN, record.spread, record.note, record.runs
                )
        return found

    def _measure(
        self,
        missing: Sequence[Signature],
        found: dict[Signature, Cost],
        deadline: float | None,
        progress: Progress | None,
        given: Mapping[Signature, Kernel],
    ) -> None:
        """Time what is missing, and what met a disturbed machine once more and once more.

        Disturbances last for seconds: another attempt is worth more after all others than
        at once.
        """
        total = len(found) + len(missing)
        for _ in range(_PASSES):
            disturbed: list[Signature] = []
            for signature in missing:
                if deadline is not None and time.monotonic() >= deadline:
                    return
                cost = self._time(signature, deadline, given.get(signature))
                if cost is None:
                    continue
                before = found.get(signature)
                if before is None or self._wrong(cost) < self._wrong(before):
                    found[signature] = cost
                    self._keep(signature, cost)
                if self._wrong(found[signature]) > _CALM:
                    disturbed.append(signature)
                if progress is not None:
                    progress(len(found), total)
            missing = disturbed

    def _wrong(self, cost: Cost) -> float:
        """By how much a measurement may be wrong, relative."""
        return cost.disturbance(self._careful)

    def _keep(self, signature: Signature, cost: Cost) -> None:
        """Save a cost, unless it is too bad a measurement."""
        if cost.origin is not Origin.UNSTEADY:
            record = Record(cost.seconds, cost.spread, cost.runs, cost.note)
            self._store.save(self.setting, {signature.text(): record})

    def _time(
        self, signature: Signature, deadline: float | None, small: Kernel | None
    ) -> Cost | None:
        """Time one signature; None if that says nothing about it, such as a timeout."""
        if small is None:
            estimate = self._roofline.estimate(signature)
            threads = self.setting.threads
            small = kernel(signature, estimate, self._budget, threads, self._resident)
        if small is None:
            note = f"{signature.op} cannot be written in opset {signature.opset}"
            return Cost(math.inf, Origin.REFUSED, note=note)
        if self._careful:
            small = replace(small, slowest=_CAREFUL)
        left = math.inf if deadline is None else deadline - time.monotonic()
        timing = self._runtime.time(small, timeout=min(_PATIENCE, left + 1.0))
        if not isinstance(timing, Failure):
            seconds = timing.seconds
            if timing.at is not None:
                seconds = moved(seconds, small.demand, timing.at, self.usual())
            cost = Cost(
                seconds, Origin.MEASURED, timing.spread, "", timing.runs, timing.pace
            )
            unsteady = self._wrong(cost) > _DISTURBED
            return replace(cost, origin=Origin.UNSTEADY) if unsteady else cost
        if timing.kind is FailureKind.CRASHED or _no_kernel(timing.text):
            return Cost(math.inf, Origin.REFUSED, note=str(timing))
        return None

    def _estimate_rest(
        self, distinct: Sequence[Signature], found: dict[Signature, Cost]
    ) -> None:
        """Scale the estimates of what was not timed by what was."""
        scales = scales_of(
            (signature.op, cost.seconds, self._roofline.estimate(signature))
            for signature, cost in found.items()
            if cost.origin in _MEASURED
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


def near_cache() -> int:
    """Return the bytes of a core's own cache; 1 MB if the system does not tell."""
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index2/size").read_text().strip()
        return int(text.removesuffix("K")) << 10
    except (OSError, ValueError):
        return 1 << 20


def _measurable(signature: Signature) -> bool:
    if signature.op == "Opaque" or signature.op in FREE_OPERATORS or not signature.inputs:
        return False
    arguments = (*signature.present, *signature.outputs)
    if any(a.dtype in ("string", "unknown") or 0 in a.dims for a in arguments):
        return False
    if None in signature.inputs and ":" not in signature.op:
        return False
    return sum(a.bytes for a in arguments) < _TOO_BIG


def _no_kernel(text: str) -> bool:
    """Whether the runtime said that it cannot do this, whatever the numbers are."""
    return any(code in text for code in ("NOT_IMPLEMENTED", "INVALID_GRAPH", "Type Error"))

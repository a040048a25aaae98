"""Costs measured on a GPU: each operator timed in ONNX Runtime's CUDA provider.

Known signatures come from the store. The others are timed, the operators that are estimated
to be expensive first but each kind of operator in turn, and each is saved as soon as it is
measured. What cannot be timed gets an estimate, scaled by how far the estimates of the same
operator were off. Where CuPy has a kernel of its own for an operator, both are compared,
and a disagreement is noted beside the cost.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tensat.costs.cost import Cost, Origin, by_turns
from tensat.costs.kernel_model import kernel
from tensat.costs.roofline import Machine, Roofline
from tensat.costs.scaling import scales_of
from tensat.costs.source import FREE_OPERATORS, Progress, Signature
from tensat.costs.store import CostStore, Record, Setting
from tensat.cuda.bench import Bench
from tensat.cuda.child import WORKER, ChildBench
from tensat.cuda.clock import Measured, Patience
from tensat.cuda.crosscheck import Check
from tensat.cuda.device import Facts
from tensat.cuda.provider import Settings
from tensat.cuda.trouble import Refused, Trouble
from tensat.runtime.messages import Kernel

_OPSETS = (21, 17, 13)  # of older models; a provider may know an operator only there
_BY_VALUE = frozenset({"Pow"})  # operators whose kernel depends on the value of a constant
_METHOD = "kernels 1"  # another number whenever the same kernel would be timed otherwise
_KEY = re.compile(
    r"onnxruntime (?P<version>\S+) CUDA \S+ driver \S+, (?P<settings>.+), kernels \d+"
)
_LEAST = 0.25  # of the roofline's estimate: hardly any kernel is faster than that
_LEAST_OF_TENSOR_CORES = 0.01  # the peak that devices tell is that of other units
_OUTSIDE = frozenset({"float32", "float64"})  # types that such cores do not compute in
_SHARE = 4  # an operator that needs a larger part of the memory is estimated
_BLOCKED = "com.microsoft.nchwc:"  # a layout of the CPU's kernels


@dataclass(frozen=True, slots=True)
class CudaOptions:
    """How to measure.

    Attributes:
        settings: Of the sessions that are timed; part of the key of the costs.
        patience: How often and how exactly to time.
        crosscheck: Whether to compare with CuPy's own kernels; about twice the time.
    """

    settings: Settings = field(default_factory=Settings)
    patience: Patience = field(default_factory=Patience)
    crosscheck: bool = True


class CudaCosts:
    """The cost source that measures on a GPU.

    Attributes:
        setting: Device, runtime and options of the sessions; costs are stored under it.
        counts: How many distinct signatures had which origin, over all calls.
        troubles: How many measurements failed for which reason.
        checks: The comparisons with CuPy made so far.
    """

    name = "cuda"

    def __init__(
        self,
        store: CostStore,
        bench: Bench,
        options: CudaOptions | None = None,
        roofline: Roofline | None = None,
    ) -> None:
        """Prepare to measure.

        Args:
            store: Where costs are kept.
            bench: Times kernels on the GPU.
            options: How to measure; the bench has its settings and patience.
            roofline: What estimates the rest; made from the device's peaks if None.
                Bounds are made from those always.
        """
        self._options = options or CudaOptions()
        self.setting = setting_of(bench.facts, self._options.settings)
        self.counts: Counter[Origin] = Counter()
        self.troubles: Counter[Trouble] = Counter()
        self.checks: list[Check] = []
        self._store = store
        self._memory = bench.facts.memory_bytes // _SHARE
        self._bench = bench
        machine = machine_of(bench.facts)
        self._estimate = (roofline or Roofline(machine)).estimate
        self._bound = Roofline(replace(machine, elements=0.0)).estimate

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
        asked = [_timed_for(signature) for signature in signatures]
        distinct = list(dict.fromkeys(asked))
        found = self._lookup(distinct)
        missing = by_turns([s for s in distinct if s not in found], self._estimate)
        for signature in missing:
            late = deadline is not None and time.monotonic() >= deadline
            if late or self._bench.lost:
                break
            cost = self._time(signature)
            if cost is not None:
                found[signature] = cost
                record = Record(cost.seconds, cost.spread, cost.runs, cost.note)
                self._store.save(self.setting, {signature.text(): record})
            if progress is not None:
                progress(len(found), len(distinct))
        self._estimate_rest(distinct, found)
        self.counts.update(cost.origin for cost in found.values())
        if progress is not None:
            progress(len(distinct), len(distinct))
        return [found[signature] for signature in asked]

    def known(self, signatures: Sequence[Signature]) -> list[float | None]:
        """Return the costs that need no measuring, None for the others."""
        asked = [_timed_for(signature) for signature in signatures]
        found = self._lookup(list(dict.fromkeys(asked)))
        self.counts.update(cost.origin for cost in found.values())
        return [found[s].seconds if s in found else None for s in asked]

    def floor(self, signature: Signature) -> float:
        """Return seconds that the kernel cannot be faster than, by its size alone."""
        exact = all(a.dtype in _OUTSIDE for a in signature.outputs)
        exact = exact and not self._options.settings.tf32
        return (_LEAST if exact else _LEAST_OF_TENSOR_CORES) * self._bound(signature)

    def dispatch(self) -> float:
        """Return the seconds of a node besides its kernel: its start is in all costs."""
        return 0.0

    def _lookup(self, distinct: Sequence[Signature]) -> dict[Signature, Cost]:
        """Return what needs no measuring: free, never measurable, or stored."""
        found: dict[Signature, Cost] = {}
        for signature in distinct:
            if not self._measurable(signature):
                found[signature] = Cost(self._estimate(signature), Origin.ESTIMATED)
        texts = {s: s.text() for s in distinct if s not in found}
        records = self._store.find(self.setting, list(texts.values()))
        for signature, text in texts.items():
            if text in records:
                seen = records[text]
                found[signature] = Cost(
                    seen.seconds, Origin.KNOWN, seen.spread, seen.note, seen.runs
                )
        return found

    def _measurable(self, signature: Signature) -> bool:
        free = signature.op == "Opaque" or signature.op in FREE_OPERATORS
        if free or not signature.present:
            return False
        arguments = (*signature.present, *signature.outputs)
        if any(a.dtype in ("string", "unknown") or 0 in a.dims for a in arguments):
            return False
        return sum(a.bytes for a in arguments) <= self._memory

    def _time(self, signature: Signature) -> Cost | None:
        """Time one signature; None if that says nothing about it."""
        if signature.op.startswith(_BLOCKED):
            note = f"{signature.op} is a layout of the CPU; possible: plain, channels-last"
            return Cost(math.inf, Origin.REFUSED, note=note)
        small = self._model(signature)
        if small is None:
            note = f"{signature.op} cannot be written in opset {signature.opset}"
            return Cost(math.inf, Origin.REFUSED, note=note)
        answer = self._bench.time(small)
        if isinstance(answer, Measured):
            return self._measured(signature, small, answer)
        self.troubles[answer.trouble] += 1
        if answer.trouble is Trouble.NO_KERNEL:
            return Cost(math.inf, Origin.REFUSED, note=str(answer))
        return None

    def _model(self, signature: Signature) -> Kernel | None:
        budget = self._options.patience.budget
        return kernel(signature, self._estimate(signature), budget, threads=1)

    def _measured(self, signature: Signature, small: Kernel, first: Measured) -> Cost:
        """Return the cost with its notes.

        What runs on the CPU is tried in older opsets, too: costs are asked for operators of
        a newer opset than most models have, and the provider may lack that version alone.
        """
        notes: list[str] = []
        for opset in _OPSETS:
            if opset >= signature.opset or not first.on_host:
                continue
            older = self._model(replace(signature, opset=opset))
            again = None if older is None else self._bench.time(older)
            if older is not None and isinstance(again, Measured) and not again.on_host:
                small, first = older, again
                notes.append(f"timed in opset {opset}")
        if first.on_host:
            notes.append("runs on the CPU, with copies")
        if note := self._check(signature, small):
            notes.append(note)
        note = "; ".join(notes)
        return Cost(first.seconds, Origin.MEASURED, first.spread, note, first.runs)

    def _check(self, signature: Signature, small: Kernel) -> str:
        """Compare with CuPy; return what to note."""
        if not self._options.crosscheck:
            return ""
        check = self._bench.check(signature, small)
        if isinstance(check, Check):
            self.checks.append(check)
            return check.note()
        if isinstance(check, Refused):
            self.troubles[check.trouble] += 1
        return ""

    def _estimate_rest(
        self, distinct: Sequence[Signature], found: dict[Signature, Cost]
    ) -> None:
        """Scale the estimates of what was not timed by what was."""
        scales = scales_of(
            (signature.op, cost.seconds, self._estimate(signature))
            for signature, cost in found.items()
            if cost.origin in (Origin.KNOWN, Origin.MEASURED)
        )
        for signature in distinct:
            if signature not in found:
                seconds = scales.of(signature.op) * self._estimate(signature)
                found[signature] = Cost(seconds, Origin.SCALED)


@contextmanager
def open_cuda(
    store: CostStore, options: CudaOptions | None = None, worker: str = WORKER
) -> Iterator[CudaCosts]:
    """Open the cost source of a GPU of this machine; measuring has a process of its own.

    Args:
        store: Where costs are kept.
        options: How to measure; which GPU.
        worker: The module that answers in that process.

    Raises:
        UsageError: CuPy, the runtime's CUDA provider or the GPU is missing.
    """
    options = options or CudaOptions()
    with ChildBench(options.settings, options.patience, worker=worker) as bench:
        yield CudaCosts(store, bench, options)


def this_gpu(settings: Settings | None = None) -> Gpu:
    """Return the GPU of this machine.

    Args:
        settings: Which one.

    Raises:
        UsageError: CuPy, the runtime's CUDA provider or the GPU is missing.
    """
    settings = settings or Settings()
    with ChildBench(settings) as bench:
        return Gpu(_name(bench.facts), bench.facts.onnxruntime, settings)


def setting_of(facts: Facts, settings: Settings) -> Setting:
    """Return the key under which costs of a device are stored."""
    runtime = (
        f"onnxruntime {facts.onnxruntime} CUDA {facts.cuda} driver {facts.driver}, "
        f"{settings.text()}, {_METHOD}"
    )
    return Setting(_name(facts), runtime, 1)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU and how it was measured, as the key of costs tells.

    Attributes:
        name: With its compute capability.
        onnxruntime: Version of the runtime.
        settings: Of the sessions.
    """

    name: str
    onnxruntime: str
    settings: Settings


def gpu_of(setting: Setting | None) -> Gpu | None:
    """Return the GPU that costs were measured on; None if it was none."""
    found = _KEY.fullmatch(setting.runtime) if setting is not None else None
    settings = Settings.of_text(found["settings"]) if found is not None else None
    if setting is None or found is None or settings is None:
        return None
    return Gpu(setting.device, found["version"], settings)


def machine_of(facts: Facts) -> Machine:
    """Return the device's peaks as the roofline wants them, where it tells them.

    They order what to measure first and how many copies to time; the price of a launch is
    the roofline's own, not the device's, until something has been measured.
    """
    machine = replace(Machine(), near_bytes=facts.l2_bytes)
    if facts.bytes_per_second:
        peak = facts.bytes_per_second
        elements = machine.near / peak
        machine = replace(machine, near=peak, far=peak, dram=peak, elements=elements)
    return replace(machine, flops=facts.flops) if facts.flops else machine


def _name(facts: Facts) -> str:
    return f"{facts.name} compute {facts.compute_capability}"


def _timed_for(signature: Signature) -> Signature:
    """Return the signature that is timed for this one: the same without scalars' values.

    More is not taken for equal here, as it is on the CPU: a bias is added by a kernel of
    its own on a GPU, and a matrix that lies transposed is read as it lies.
    """
    if signature.op in _BY_VALUE:
        return signature
    inputs = tuple(None if a is None else replace(a, value=None) for a in signature.inputs)
    return replace(signature, inputs=inputs)

"""Costs compared with CuPy's own kernels for the same operator at the same sizes.

Both are timed by the same clock, on the same stream, with a flushed L2, and without what
the host needs to start them: that differs between libraries and is no property of a kernel.
Two libraries may well have kernels of different quality; a measurement that is wrong by
much is seen here before it is believed. A disagreement is noted beside the cost, never
corrected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from tensat.costs.source import Argument, Signature
from tensat.cuda.clock import CudaClock
from tensat.cuda.device import NativeProgram
from tensat.cuda.native import native_call
from tensat.cuda.provider import Settings
from tensat.cuda.trouble import Refused
from tensat.runtime.messages import Filling, Kernel

FACTOR = 1.5
"""Times further apart than this are called a disagreement."""

_MOST_BYTES = 1 << 30  # of distinct constants in all calls together


@dataclass(frozen=True, slots=True)
class Check:
    """One operator timed in both libraries.

    Attributes:
        signature: Which.
        runtime: Device seconds of one copy in ONNX Runtime.
        native: Device seconds of one call of CuPy.
    """

    signature: Signature
    runtime: float
    native: float

    @property
    def ratio(self) -> float:
        """Time in ONNX Runtime over time in CuPy."""
        return self.runtime / self.native

    @property
    def agrees(self) -> bool:
        """Whether neither takes more than `FACTOR` times the other."""
        return 1 / FACTOR <= self.ratio <= FACTOR

    def note(self) -> str:
        """Return what to write beside the cost; empty where both agree."""
        if self.agrees:
            return ""
        return (
            f"disagrees with CuPy: {_us(self.runtime)} here, {_us(self.native)} there, "
            f"more than {FACTOR:g} times apart"
        )


def crosscheck(
    signature: Signature, kernel: Kernel, clock: CudaClock, settings: Settings
) -> Check | Refused | None:
    """Time an operator in both libraries.

    Args:
        signature: The operator.
        kernel: The model with which its cost is measured.
        clock: What times.
        settings: Of the sessions.

    Returns:
        Both times; why one of them did not come; or None where the libraries do not do
        the same: CuPy has no single kernel for it, or the sessions round to TF32, which
        CuPy does only where `CUPY_TF32` is set.
    """
    call = native_call(signature)
    if call is None or (settings.tf32 and signature.op == "MatMul"):
        return None
    runtime = clock.device_seconds(kernel)
    if isinstance(runtime, Refused):
        return runtime
    copies, warm = _copies(signature, kernel.copies)
    native = clock.native_seconds(NativeProgram(call, copies, warm, kernel.seed))
    if isinstance(native, Refused):
        return native
    return Check(signature, runtime, native)


def table(checks: Sequence[Check]) -> str:
    """Return one line per check, the largest ratio first, with a line of heads."""
    ranked = sorted(checks, key=lambda check: check.ratio, reverse=True)
    rows = [("operator", "runtime us", "CuPy us", "ratio", "")]
    rows += [
        (
            _name(check.signature),
            f"{1e6 * check.runtime:.2f}",
            f"{1e6 * check.native:.2f}",
            f"{check.ratio:.2f}",
            "" if check.agrees else f"more than {FACTOR:g} times apart",
        )
        for check in ranked
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    lines = (
        (
            f"{name:<{widths[0]}}  {runtime:>{widths[1]}}  {native:>{widths[2]}}  "
            f"{ratio:>{widths[3]}}  {flag}"
        )
        for name, runtime, native, ratio, flag in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def _copies(
    signature: Signature, copies: int
) -> tuple[tuple[tuple[Filling, ...], ...], frozenset[str]]:
    """Return the arguments of each call, and which of them are warm in a running model.

    Constants differ from call to call, as weights do; the others are shared, so that they
    stay where a running model has them.
    """
    constants = sum(a.bytes for a in signature.present if a.constant)
    if constants:
        copies = max(1, min(copies, _MOST_BYTES // constants))
    calls = tuple(
        tuple(_filling(a, k, copy) for k, a in enumerate(signature.present))
        for copy in range(copies)
    )
    warm = frozenset(
        f"a{k}" for k, argument in enumerate(signature.present) if not argument.constant
    )
    return calls, warm


def _filling(argument: Argument, place: int, copy: int) -> Filling:
    name = f"a{place}_{copy}" if argument.constant else f"a{place}"
    kind = ir.DataType.from_numpy(np.dtype(argument.dtype))
    return Filling(name, int(kind), argument.dims, value=argument.value)


def _name(signature: Signature) -> str:
    inputs = ", ".join("x".join(map(str, a.dims)) or "1" for a in signature.present)
    return f"{signature.op} {signature.present[0].dtype} {inputs}"


def _us(seconds: float) -> str:
    return f"{1e6 * seconds:.1f} us"

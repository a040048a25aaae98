"""Whether two lists of outputs are the same but for rounding.

A pair of numbers agrees when ``|a - b| <= atol + rtol * |a|`` with ``atol`` growing with
the largest output: a relative test alone rejects outputs that cancel to almost nothing,
an absolute one alone rejects large outputs. The runtime's own optimizer moves float32
outputs by up to a thousandth of such small values, so nothing tighter can hold. NaN and
infinities must be at the same places; everything that is no float must be equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a number may be off.

    Attributes:
        relative: Of the number itself.
        absolute: Always allowed.
        scale: Of the largest finite number of the same output.
    """

    relative: float
    absolute: float
    scale: float

    def allowed(self, reference: np.ndarray, largest: float) -> np.ndarray:
        """Return the largest deviation allowed at each element."""
        result: np.ndarray = self.relative * np.abs(reference)
        return result + (self.absolute + self.scale * largest)


# Each step in precision moves the bounds by about the ratio of the roundings, but no
# sum of thousands of float64 terms is demanded to be exact to its last bits.
TOLERANCES: Mapping[str, Tolerance] = {
    "float64": Tolerance(1e-6, 1e-12, 1e-9),
    "float32": Tolerance(1e-3, 1e-6, 1e-5),
    "float16": Tolerance(1e-2, 1e-4, 4e-3),
    "bfloat16": Tolerance(5e-2, 1e-3, 3e-2),
}
"""By dtype; complex numbers are compared as pairs of their parts' dtype."""

_TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What comparing two lists of outputs found.

    Attributes:
        equal: Whether they are the same within the tolerance.
        text: What differs first and most, in one line; empty if equal.
        deviation: Largest |a - b| of all float outputs, over the largest |a| of its output.
    """

    equal: bool
    text: str = ""
    deviation: float = 0.0


def compare(
    names: Sequence[str],
    reference: Sequence[object],
    candidate: Sequence[object],
    tolerances: Mapping[str, Tolerance] = TOLERANCES,
) -> Comparison:
    """Compare outputs in order.

    Args:
        names: Names of the outputs, for the text.
        reference: Arrays, or nested lists and mappings of them, or None.
        candidate: The same of the other model.
        tolerances: By dtype name.

    Returns:
        Equal, or the first output that differs; the deviation is that of all outputs.
    """
    if len(reference) != len(candidate):
        return Comparison(False, f"{len(candidate)} outputs in place of {len(reference)}")
    found = [
        _value(name, a, b, tolerances)
        for name, a, b in zip(names, reference, candidate, strict=True)
    ]
    deviation = max((item.deviation for item in found), default=0.0)
    for item in found:
        if not item.equal:
            return Comparison(False, item.text, deviation)
    return Comparison(True, "", deviation)


def _value(
    name: str, a: object, b: object, tolerances: Mapping[str, Tolerance]
) -> Comparison:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        names = [f"{name}[{k}]" for k in range(len(a))]
        return compare(names, a, b, tolerances)
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            return Comparison(False, f"{name}: other keys")
        names = [f"{name}[{key!r}]" for key in a]
        return compare(names, list(a.values()), [b[key] for key in a], tolerances)
    if isinstance(a, (np.ndarray, np.generic)) and isinstance(b, (np.ndarray, np.generic)):
        return _array(name, np.asarray(a), np.asarray(b), tolerances)
    same = type(a) is type(b) and a == b
    return Comparison(same, "" if same else f"{name}: {b!r:.60} in place of {a!r:.60}")


def _array(
    name: str, a: np.ndarray, b: np.ndarray, tolerances: Mapping[str, Tolerance]
) -> Comparison:
    if a.dtype != b.dtype:
        return Comparison(False, f"{name}: type {b.dtype} in place of {a.dtype}")
    if a.shape != b.shape:
        return Comparison(False, f"{name}: shape {b.shape} in place of {a.shape}")
    if np.iscomplexobj(a):
        part = a.real.dtype
        flat = [np.ascontiguousarray(x).reshape(-1).view(part) for x in (a, b)]
        return _array(name, flat[0], flat[1], tolerances)
    tolerance = tolerances.get(a.dtype.name)
    if tolerance is None:
        return _exact(name, a, b)
    return _close(name, a.astype(np.float64), b.astype(np.float64), tolerance)


def _exact(name: str, a: np.ndarray, b: np.ndarray) -> Comparison:
    different = np.flatnonzero(np.asarray(a != b).reshape(-1))
    if not len(different):
        return Comparison(True)
    first = int(different[0])
    values = f"{b.reshape(-1)[first]!r:.60} in place of {a.reshape(-1)[first]!r:.60}"
    return Comparison(
        False, f"{name}: {len(different)} of {a.size} differ, such as {values}"
    )


def _close(name: str, a: np.ndarray, b: np.ndarray, tolerance: Tolerance) -> Comparison:
    """Compare float64 arrays."""
    finite = np.isfinite(a)
    if not np.array_equal(np.where(finite, 0.0, a), np.where(np.isfinite(b), 0.0, b), True):
        return Comparison(False, f"{name}: NaN or infinity at other places")
    a, b = a[finite], b[finite]
    if not a.size:
        return Comparison(True)
    off = np.abs(a - b)
    largest = float(np.abs(a).max())
    deviation = float(off.max()) / max(largest, _TINY)
    excess = off - tolerance.allowed(a, largest)
    bad = int(np.count_nonzero(excess > 0))
    if not bad:
        return Comparison(True, "", deviation)
    worst = int(excess.argmax())
    text = (
        f"{name}: {bad} of {a.size} differ beyond the tolerance, most {b[worst]:.9g} in "
        f"place of {a[worst]:.9g} (largest {largest:.4g})"
    )
    return Comparison(False, text, deviation)

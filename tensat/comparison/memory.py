"""How much memory a search takes: by how much the process that runs it grows.

The operating system counts the most memory that a process ever had in use; on Linux that
count can be set back, so that what came before the search is left out.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Gauge:
    """Measures from the moment it is made."""

    def __init__(self) -> None:
        # Where that is impossible, the peak of the whole process counts.
        with suppress(OSError):
            _CLEAR.write_text("5")
        self._before = _kilobytes("VmRSS") or _peak()

    def grown(self) -> int | None:
        """Bytes by which the process grew at most since then; None if nobody knows."""
        peak = _kilobytes("VmHWM") or _peak()
        if peak is None or self._before is None:
            return None
        return 1024 * max(0, peak - self._before)


def _kilobytes(name: str) -> int | None:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(name + ":"):
            return int(line.split()[1])
    return None


def _peak() -> int | None:
    """The most memory the process ever had in use, in kilobytes."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // 1024 if sys.platform == "darwin" else most

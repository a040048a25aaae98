"""Which settings of a table are meant, said in a few words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tensat.costs.store import Setting
from tensat.errors import UsageError


@dataclass(frozen=True, slots=True)
class Selection:
    """What settings must have in common with what was asked; nothing asked fits all.

    Attributes:
        devices: One of these texts is part of the device's name, in capitals or not.
        runtime: Part of the runtime's name, in capitals or not; if it is the whole name
            of one, that one only.
        threads: The number of threads; None for any.
    """

    devices: tuple[str, ...] = ()
    runtime: str = ""
    threads: int | None = None

    def __bool__(self) -> bool:
        return bool(self.devices or self.runtime or self.threads is not None)

    def fits(self, setting: Setting) -> bool:
        """Whether a setting is meant."""
        device = setting.device.casefold()
        return (
            (not self.devices or any(name.casefold() in device for name in self.devices))
            and self.runtime.casefold() in setting.runtime.casefold()
            and self.threads in (None, setting.threads)
        )

    def among(self, settings: Iterable[Setting], path: str | Path) -> list[Setting]:
        """Return the settings that are meant, in order.

        Args:
            settings: Those that there are.
            path: Where they were found, for errors.

        Raises:
            UsageError: None is meant, though there are some; the text names them.
        """
        there = sorted(settings)
        found = [setting for setting in there if self.fits(setting)]
        exact = [setting for setting in found if setting.runtime == self.runtime]
        found = exact or found
        if there and not found:
            raise UsageError(f"'{path}' has no such costs; it holds {names(there)}")
        return found


def names(settings: Iterable[Setting]) -> str:
    """Return settings as part of a sentence."""
    return "; ".join(f"'{setting}'" for setting in settings)

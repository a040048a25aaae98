"""Costs out of a recorded table: those of any device, on a machine without it.

What the table does not hold is estimated by the roofline, multiplied by how far the
roofline is off for the table's own costs of the same operator; `counts` and `unknown` tell
how much of an answer that was. Kernels of the runtime's own domains are not estimated where
the table holds no cost of that domain: its device may have no such layout, or its costs
were measured without such fusions. For `NhwcConv`, a layout in a domain of many kernels,
the table must hold costs of that operator itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from tensat.costs.exchange import Costs, read_costs
from tensat.costs.representative import representative
from tensat.costs.roofline import Roofline
from tensat.costs.scaling import Scales, scales_of
from tensat.costs.signature_text import operator_of, parse
from tensat.costs.source import FREE_OPERATORS, Progress, Signature
from tensat.costs.store import Record, Setting
from tensat.errors import UsageError

_LAYOUTS = frozenset({"com.microsoft:NhwcConv"})
_KNOWN, _REFUSED, _SCALED, _ESTIMATED = "known", "refused", "scaled", "estimated"


class TableCosts:
    """The cost source that only reads.

    Attributes:
        setting: Where the costs were measured.
        unknown: How many distinct signatures the table should have held and did not, by
            operator.
    """

    name = "table"

    def __init__(
        self,
        setting: Setting,
        records: Mapping[str, Record],
        roofline: Roofline | None = None,
    ) -> None:
        """Answer from records.

        Args:
            setting: Where they were measured.
            records: Costs by signature text.
            roofline: What estimates the rest.
        """
        self.setting = setting
        self.unknown: Counter[str] = Counter()
        self._records = records
        self._roofline = roofline or Roofline()
        self._answers: dict[Signature, float] = {}
        self._counts: Counter[str] = Counter()

    @staticmethod
    def read(path: str | Path, threads: int) -> TableCosts:
        """Return the costs of an exported file or of a database.

        Args:
            path: The file.
            threads: Decides where the file holds costs for several numbers of threads.

        Raises:
            UsageError: The file cannot be read, is empty, or leaves a choice; the text
                then names the settings that are possible.
        """
        costs = read_costs(path)
        setting = choose(costs, threads, path)
        return TableCosts(setting, costs[setting])

    @property
    def counts(self) -> dict[str, int]:
        """How many distinct signatures were known, refused, scaled or only estimated.

        Refused ones have no kernel as far as the table tells; estimated ones are never in
        a table.
        """
        return {
            name: self._counts[name] for name in (_KNOWN, _REFUSED, _SCALED, _ESTIMATED)
        }

    def seconds(
        self,
        signatures: Sequence[Signature],
        deadline: float | None = None,
        progress: Progress | None = None,
    ) -> list[float]:
        """Return the cost of each signature; see `CostSource.seconds`.

        The same signature always gets the same answer; nothing takes time.
        """
        result = [self._answer(signature) for signature in signatures]
        if progress is not None:
            progress(len(result), len(result))
        return result

    def _answer(self, signature: Signature) -> float:
        if signature not in self._answers:
            seconds, origin = self._find(signature)
            self._answers[signature] = seconds
            self._counts[origin] += 1
            if origin == _SCALED:
                self.unknown[signature.op] += 1
        return self._answers[signature]

    def _find(self, signature: Signature) -> tuple[float, str]:
        """Return a cost and how it is known.

        A table may hold a signature itself, or one that is timed for it.
        """
        forms = (signature, representative(signature))
        for form in forms:
            record = self._records.get(form.text())
            if record is not None:
                return record.seconds, _KNOWN if record.seconds < math.inf else _REFUSED
        if _domain(signature.op) not in self._domains:
            return math.inf, _REFUSED
        never = signature.op in FREE_OPERATORS or signature.op == "Opaque"
        origin = _ESTIMATED if never or not signature.inputs else _SCALED
        known = (form for form in forms if form.op in self._scales.by_operator)
        form = next(known, signature)
        return self._scales.of(form.op) * self._roofline.estimate(form), origin

    @cached_property
    def _domains(self) -> set[str]:
        """Domains of which something ran; that of ONNX is always there."""
        ran = (text for text, record in self._records.items() if record.seconds < math.inf)
        return {"", *(_domain(operator_of(text)) for text in ran)}

    @cached_property
    def _scales(self) -> Scales:
        return scales_of(self._ratios())

    def _ratios(self) -> Iterator[tuple[str, float, float]]:
        """Yield operator, cost and estimate of what the table holds."""
        for text, record in self._records.items():
            signature = parse(text)
            if signature is None:
                continue
            try:
                estimate = self._roofline.estimate(signature)
            except (ArithmeticError, LookupError, TypeError, ValueError):
                continue  # a file may hold an operator with any inputs
            yield signature.op, record.seconds, estimate


def _domain(operator: str) -> str:
    """The domain in a name such as `com.microsoft:Gelu`; empty for ONNX's own.

    A layout is as good as a domain.
    """
    return operator if operator in _LAYOUTS else operator.rpartition(":")[0]


def choose(costs: Costs, threads: int, path: str | Path) -> Setting:
    """Return the setting to use of those in a table.

    Args:
        costs: The table.
        threads: Decides if there are several settings.
        path: The file, for errors.

    Raises:
        UsageError: There is none, or it cannot be decided.
    """
    fitting = [
        setting for setting in costs if len(costs) == 1 or setting.threads == threads
    ]
    if len(fitting) == 1:
        return fitting[0]
    if not costs:
        raise UsageError(f"cost table '{path}' holds no costs")
    possible = "; ".join(f"'{setting}'" for setting in sorted(costs))
    raise UsageError(
        f"cost table '{path}' has {len(fitting)} settings for {threads} threads; it holds "
        f"{possible}; give --threads, or export one with tensat costs export"
    )

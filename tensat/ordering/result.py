"""What a pair came to: predicted and measured times, and whether they agree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

TIE = 0.05
"""Relative difference of measured times up to which no winner is asked for."""


class Agreement(StrEnum):
    """What a prediction was worth."""

    AGREE = "agree"  # the predicted winner is the measured one
    TIE = "tie"  # the measured times differ by no more than TIE
    SAME = "same"  # the runtime runs the same kernels for both: there is no winner
    UNCLEAR = "unclear"  # they differ by more, but no more than races of the same models
    DISAGREE = "disagree"  # another one, or none, was predicted


@dataclass(frozen=True, slots=True)
class KernelCost:
    """One kernel of a model.

    Attributes:
        name: Its operator.
        signature: What the cost source was asked.
        seconds: Predicted.
        origin: Where the number comes from, see `tensat.costs.cpu.Origin`.
    """

    name: str
    signature: str
    seconds: float
    origin: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a model was predicted to take.

    Attributes:
        seconds: All of it.
        kernels: What the runtime runs, in order.
    """

    seconds: float
    kernels: tuple[KernelCost, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One pair.

    Attributes:
        name: Name of the pair.
        one: What the first model does.
        other: What the second does instead.
        predicted: Of both.
        measured: Median seconds of both.
        ratio: Median ratio of the first to the second, measured in turn.
        spread: Relative difference at which this ratio means nothing.
        races: How many races this is the middle one of.
    """

    name: str
    one: str
    other: str
    predicted: tuple[Prediction, Prediction]
    measured: tuple[float, float]
    ratio: float
    spread: float
    races: int = 1

    @property
    def predicted_ratio(self) -> float:
        """The first over the second, as predicted."""
        return self.predicted[0].seconds / self.predicted[1].seconds

    @property
    def difference(self) -> float:
        """By how much the slower model is slower, measured; relative."""
        return difference_of(self.ratio)

    @property
    def one_graph(self) -> bool:
        """Whether the runtime makes the same kernels of both models."""
        first, second = (
            [kernel.signature for kernel in each.kernels] for each in self.predicted
        )
        return first == second

    @property
    def agreement(self) -> Agreement:
        """Whether the prediction names the winner."""
        if self.one_graph:
            return Agreement.SAME
        if self.difference <= TIE:
            return Agreement.TIE
        if self.difference <= self.spread:
            return Agreement.UNCLEAR
        same = (self.predicted_ratio - 1) * (self.ratio - 1) > 0
        return Agreement.AGREE if same else Agreement.DISAGREE


def difference_of(ratio: float) -> float:
    """Return by how much the slower one of two is slower, relative."""
    return max(ratio, 1 / ratio) - 1


def count(rows: Sequence[Row], kind: Agreement) -> int:
    """Return how many rows came to this."""
    return sum(row.agreement is kind for row in rows)


def to_json(rows: Sequence[Row], threads: int) -> str:
    """Return all rows as JSON, times in seconds."""
    content = {
        "threads": threads,
        "counts": {str(kind): count(rows, kind) for kind in Agreement},
        "pairs": [
            {
                **asdict(row),
                "predicted_ratio": row.predicted_ratio,
                "agreement": str(row.agreement),
            }
            for row in rows
        ],
    }
    return json.dumps(content, indent=1, allow_nan=False)

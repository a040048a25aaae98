"""A pair of models that compute the same, and the sizes in which they are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from onnx import ModelProto

type Models = tuple[ModelProto, ModelProto]
"""Two models with the same inputs, outputs and results."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two ways to compute the same.

    Attributes:
        name: Short and unique.
        one: What the first model does.
        other: What the second model does instead.
        build: Makes both, of the sizes that it is given by name.
        full: Sizes in which they are raced.
        small: Sizes in which a test can compare them at once.
    """

    name: str
    one: str
    other: str
    build: Callable[..., Models]
    full: Mapping[str, int] = field(default_factory=dict)
    small: Mapping[str, int] = field(default_factory=dict)

    def models(self) -> Models:
        """Return both models in full size."""
        return self.build(**self.full)

    def small_models(self) -> Models:
        """Return both models in small size."""
        return self.build(**{**self.full, **self.small})

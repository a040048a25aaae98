"""What a rule is applied to: a match, and the facts known about matched values.

The engine numbers values (e-classes, graph nodes, test arrays) by *handles*, which are
opaque integers here. `Facts` tells what is known about a handle, `Builder` also makes
new ones. A `Match` names the handles a left side was found at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from rulesets.size import Size
from rulesets.tensor import Tensor

type Value = Size | float | str | tuple[Value, ...]
"""An attribute's value, or the value of an expression over such values."""


class Facts(Protocol):
    """What is known about values."""

    def tensor(self, handle: int, /) -> Tensor:
        """Return type and shape."""
        ...

    def constant(self, handle: int, /) -> bool:
        """Say whether the value depends on no input of the model."""
        ...

    def array(self, handle: int, /) -> np.ndarray | None:
        """Return the value itself if it is a small constant."""
        ...

    def scalar(self, handle: int, /) -> float | None:
        """Return the only element of a constant with one element, if known."""
        ...


class Builder(Facts, Protocol):
    """Facts, and a place where new values are made."""

    def node(self, op: str, attributes: Mapping[str, Value], args: Sequence[int], /) -> int:
        """Apply a canonical operator with complete attributes.

        Raises:
            ShapeError: The operator does not apply to these arguments.
        """
        ...

    def literal(self, value: float, dtype: str, /) -> int:
        """Make a constant of rank 0."""
        ...


@dataclass(frozen=True, slots=True)
class Match:
    """Where the left side of a rule was found.

    Attributes:
        variables: The handle of each tensor variable, label included, without ``?``.
        attributes: The value of each attribute variable, and under ``..k`` the
            attributes a bundle stands for, as (name, value) ascending by name.
        roots: The handle of each left side, in order.
    """

    variables: Mapping[str, int] = field(default_factory=dict)
    attributes: Mapping[str, Value] = field(default_factory=dict)
    roots: tuple[int, ...] = ()

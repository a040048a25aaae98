"""What the tables of forms hold, and what several of them need."""

from collections.abc import Callable
from dataclasses import dataclass

from rulesets.ops import OPERATORS
from tensat.onnx_forms.call import Lowering, NotExpressibleError, OnnxCall, OnnxNode, Raised

type Lower = Callable[[Lowering], tuple[OnnxNode, ...]]


@dataclass(frozen=True, slots=True)
class Raise:
    """How nodes of one ONNX operator are raised.

    Attributes:
        attributes: The ONNX attributes understood, over all opsets. A node that has
            another one stays as it is.
        form: Reads the node; raises `NotExpressibleError` if it has no canonical form.
    """

    attributes: frozenset[str]
    form: Callable[[OnnxCall], Raised]


def attributes_of(asked: Lowering) -> dict[str, object]:
    """Return the attributes that differ from their defaults, to write as they are."""
    defaults = OPERATORS[asked.name].defaults
    return {
        name: value
        for name, value in asked.attributes.items()
        if name not in defaults or defaults[name] != value
    }


def counted(axis: int, rank: int) -> int:
    """Return an axis counted from the front.

    Raises:
        NotExpressibleError: There is no such axis.
    """
    if not -rank <= axis < rank:
        raise NotExpressibleError
    return axis % rank


def counted_all(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Return axes counted from the front, ascending.

    Raises:
        NotExpressibleError: There is no such axis, or one is named twice.
    """
    result = tuple(sorted({counted(axis, rank) for axis in axes}))
    if len(result) != len(axes):
        raise NotExpressibleError
    return result

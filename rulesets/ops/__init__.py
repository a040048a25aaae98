"""What the operators mean: one specification each, collected in `OPERATORS`."""

from collections.abc import Mapping
from types import MappingProxyType

from rulesets.ops import conv, elementwise, generators, layout, linear, norm
from rulesets.ops.generators import GENERATORS, SPECIAL, array_of
from rulesets.ops.layout import END
from rulesets.ops.spec import (
    Attribute,
    Attributes,
    Frozen,
    Operator,
    Value,
    complete,
    freeze,
    single,
)

__all__ = [
    "END",
    "GENERATORS",
    "OPERATORS",
    "SPECIAL",
    "Attribute",
    "Attributes",
    "Frozen",
    "Operator",
    "Value",
    "array_of",
    "complete",
    "freeze",
    "single",
]

OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {
        operator.name: operator
        for module in (elementwise, linear, conv, norm, layout, generators)
        for operator in module.OPERATORS
    }
)

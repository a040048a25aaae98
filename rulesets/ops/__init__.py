"""What the operators mean: one specification each, collected in `OPERATORS`."""

from rulesets.ops.elementwise import unary
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
from rulesets.ops.table import OPERATORS, added, extended, operators_of

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
    "added",
    "array_of",
    "complete",
    "extended",
    "freeze",
    "operators_of",
    "single",
    "unary",
]

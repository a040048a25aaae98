"""Softsign, x / (1 + |x|), as ONNX has it."""

from fractions import Fraction

from rulesets.ops import unary


def softsign(m, attributes, x):
    """Return what stands at an index; `m` has the operations, on numbers or on symbols."""
    below = m.number(1) + m.larger(x, -x)
    return x * m.power(below, Fraction(-1))


OPERATORS = (unary("Softsign", softsign),)

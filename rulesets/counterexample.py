"""Where two sides differ: the shapes, the element and its two values, in one line.

A counterexample is made from an instance, a seed and a scale, so that the same line comes
out again. Infinities and NaN count here, though proofs over the reals say nothing of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rulesets.errors import OperatorError
from rulesets.find import matches
from rulesets.instance import Instance
from rulesets.rule import Rule, build, holds
from rulesets.trial import TOLERANCE, built


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Where an equation or a rule fails.

    Attributes:
        shapes: The shape of each variable.
        index: The element where both sides differ most, ``()`` if the shapes differ.
        left: Its value on the left.
        right: Its value on the right.
        fault: Why there is no right side; then index and values mean nothing.
        fixed: The value of each variable whose elements are all one given number.
    """

    shapes: Mapping[str, tuple[int, ...]]
    index: tuple[int, ...] = ()
    left: float = float("nan")
    right: float = float("nan")
    fault: str = ""
    fixed: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        shapes = ", ".join(
            f"{name} {list(shape)}"
            + (f" = {self.fixed[name]:g}" if name in self.fixed else "")
            for name, shape in self.shapes.items()
        )
        if self.fault:
            return f"no right side: {self.fault}; with {shapes}"
        values = f"{self.left:.4g} left, {self.right:.4g} right"
        return f"at {list(self.index)}: {values}, with {shapes}"


def differing(
    rule: Rule, instance: Instance, seed: int, scale: float = 1.0
) -> Counterexample | None:
    """Apply a rule to an instance; say where a side is missing or has another value.

    Args:
        rule: Any rule.
        instance: Shapes, constants and attributes.
        seed: Of the values of the tensors.
        scale: Their standard deviation.

    Returns:
        The first match at which values differ, else the first without a right side;
        None if the rule is right there.
    """
    expanded = rule.at_arity(instance.count)
    try:
        trial, roots = built(expanded, instance, seed, scale)
    except (OperatorError, ValueError, LookupError, ArithmeticError):
        return None
    samples = instance.tensors
    shapes = {name: sample.shape for name, sample in samples.items()}
    fixed = {n: one.value for n, one in samples.items() if one.value is not None}
    fault = None
    for match in matches(expanded, trial, roots):
        if not holds(expanded, match, trial):
            continue
        try:
            rights = build(expanded, match, trial)
        except OperatorError as error:
            fault = fault or Counterexample(shapes, fault=str(error), fixed=fixed)
            continue
        for left, right in zip(match.roots, rights, strict=True):
            found = compared(trial.values[left][0], trial.values[right][0], shapes)
            if found is not None:
                return replace(found, fixed=fixed)
    return fault


def compared(
    left: np.ndarray, right: np.ndarray, shapes: Mapping[str, tuple[int, ...]]
) -> Counterexample | None:
    """Compare two values, relative to the largest; equal infinities and NaN are equal."""
    if left.shape != right.shape:
        fault = f"it has the shape {list(right.shape)} instead of {list(left.shape)}"
        return Counterexample(shapes, fault=fault)
    one, other = left.astype(float), right.astype(float)
    finite = np.isfinite(one) & np.isfinite(other)
    largest = max(1e-30, float(np.abs(one[np.isfinite(one)]).max(initial=0.0)))
    with np.errstate(invalid="ignore"):
        gap = np.abs(one - other) / largest
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    gap = np.where(same, 0.0, np.where(finite, gap, np.inf))
    if gap.max(initial=0.0) < TOLERANCE:
        return None
    index = tuple(int(each) for each in np.unravel_index(int(gap.argmax()), gap.shape))
    return Counterexample(shapes, index, float(one[index]), float(other[index]))

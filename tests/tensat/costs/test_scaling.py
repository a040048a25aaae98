"""Estimates are corrected by what is known of their operator."""

from __future__ import annotations

import math

from tensat.costs.scaling import scales_of


def test_each_operator_has_its_middle_ratio() -> None:
    """Others take the middle of all ratios."""
    known = [("A", 1.0, 1.0), ("A", 3.0, 1.0), ("A", 20.0, 2.0), ("B", 5.0, 10.0)]
    scales = scales_of(known)
    assert (scales.of("A"), scales.of("B"), scales.of("C")) == (3.0, 0.5, 2.0)


def test_what_says_nothing_is_passed_over() -> None:
    """Costs that are infinite, or zero, or estimates that are zero."""
    known = [("A", math.inf, 1.0), ("A", 0.0, 1.0), ("A", 1.0, 0.0), ("A", 4.0, 2.0)]
    assert scales_of(known).of("A") == 2.0


def test_without_knowledge_estimates_stay() -> None:
    """The factor is 1."""
    assert scales_of([]).of("A") == 1.0

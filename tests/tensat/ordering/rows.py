"""Rows with made-up numbers."""

from __future__ import annotations

from tensat.ordering.result import KernelCost, Prediction, Row


def row(predicted: float, measured: float, spread: float = 0.01, name: str = "p") -> Row:
    """Return a row whose second model takes a millisecond, and whose ratios are given."""
    kernels = (KernelCost("Relu", "Relu@23", 2e-4, "known"),)
    both = (Prediction(predicted * 1e-3, kernels), Prediction(1e-3))
    return Row(
        name, "this way", "that way", both, (measured * 1e-3, 1e-3), measured, spread
    )

"""Slices as NumPy writes them, as attributes of the canonical Slice."""

from __future__ import annotations

from collections.abc import Sequence

from rulesets.ops import END, Value
from rulesets.size import Size
from tensat.errors import UsageError

FAR = 2**31 - 1
"""Ends at or beyond this mean the end of the axis, as in ONNX files."""


def slice_attributes(
    dims: Sequence[Size],
    start: Sequence[int],
    end: Sequence[int],
    axes: Sequence[int],
    steps: Sequence[int] | None,
) -> dict[str, Value]:
    """The attributes of a Slice; bounds beyond an axis end at it, as in NumPy.

    Raises:
        UsageError: The lists have different lengths, an axis comes twice, or a step is 0.
    """
    strides = [1] * len(start) if steps is None else list(steps)
    lengths = {len(start), len(end), len(axes), len(strides)}
    if len(lengths) != 1 or len(set(axes)) != len(axes) or 0 in strides:
        raise UsageError(
            f"slice needs one start, end and step (not 0) for each axis, not "
            f"{list(start)}, {list(end)}, {strides} for axes {list(axes)}"
        )
    cuts = sorted(zip(axes, start, end, strides, strict=True))
    bounds = [_bounds(dims[axis], first, last, step) for axis, first, last, step in cuts]
    return {
        "starts": tuple(first for first, _ in bounds),
        "ends": tuple(last for _, last in bounds),
        "axes": tuple(axis for axis, *_ in cuts),
        "steps": tuple(step for *_, step in cuts),
    }


def _bounds(size: Size, start: int, end: int, step: int) -> tuple[int, int]:
    if isinstance(size, int):
        first, last, _ = slice(start, end, step).indices(size)
        return first, last
    return start, END if end >= FAR else end

"""GELU in its forms and x times sigmoid, as the runtime fuses them."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from pathlib import Path

import pytest

from tests.tensat.kernels.sketch import Sketch, claims, ran, wanted

type Drawing = Callable[[Sketch], int]
SHAPE = (2, 3, 8)


def _pair(s: Sketch, op: str, a: int, b: int, swapped: bool) -> int:
    return s.apply(op, *((b, a) if swapped else (a, b)))


def gelu(
    half: str = "behind",
    swapped: bool = False,
    divisor: float = sqrt(2),
    rank: int = 0,
    multiplied: bool = False,
    bias: tuple[int, ...] | None = None,
) -> Drawing:
    """GELU written out, the factor 0.5 `behind`, at `x` or at the `sum`."""

    def draw(s: Sketch) -> int:
        x, one = s.input(*SHAPE), s.number(1.0, *[1] * rank)
        x = x if bias is None else _pair(s, "Add", x, s.constant(*bias), swapped)
        fraction = s.number(0.5, *[1] * rank)
        if multiplied:
            scaled = s.apply("Mul", x, s.number(1 / divisor))
        else:
            scaled = s.apply("Div", x, s.number(divisor, *[1] * rank))
        total = _pair(s, "Add", s.apply("Erf", scaled), one, swapped)
        if half == "behind":
            return _pair(s, "Mul", _pair(s, "Mul", x, total, swapped), fraction, swapped)
        if half == "x":
            return _pair(s, "Mul", _pair(s, "Mul", x, fraction, swapped), total, swapped)
        return _pair(s, "Mul", x, _pair(s, "Mul", total, fraction, swapped), swapped)

    return draw


def fast(swapped: bool = False, cube: float = 0.044715, power: float = 3.0) -> Drawing:
    """The approximation of GELU by tanh, written out."""

    def draw(s: Sketch) -> int:
        x = s.input(*SHAPE)
        third = s.apply("Pow", x, s.number(power))
        total = _pair(s, "Add", x, _pair(s, "Mul", third, s.number(cube), swapped), swapped)
        inner = _pair(s, "Mul", total, s.number(sqrt(2 / pi)), swapped)
        more = _pair(s, "Add", s.apply("Tanh", inner), s.number(1.0), swapped)
        return _pair(s, "Mul", _pair(s, "Mul", x, s.number(0.5), swapped), more, swapped)

    return draw


def biased(
    *dims: int, bias: tuple[int, ...], form: str = "none", swapped: bool = False
) -> Drawing:
    """GELU of a sum."""

    def draw(s: Sketch) -> int:
        total = _pair(s, "Add", s.input(*dims), s.constant(*bias), swapped)
        return s.apply("Gelu", total, approximate=form)

    return draw


def quick(
    alpha: float | None = None, swapped: bool = False, rank: int = 0, op: str = "Mul"
) -> Drawing:
    """X times sigmoid of x, or of a multiple."""

    def draw(s: Sketch) -> int:
        x = s.input(*SHAPE)
        inner = x
        if alpha is not None:
            inner = _pair(s, op, x, s.number(alpha, *[1] * rank), swapped)
        return _pair(s, "Mul", x, s.apply("Sigmoid", inner), swapped)

    return draw


def gated(s: Sketch) -> int:
    """Another tensor times sigmoid of x."""
    return s.apply("Mul", s.input(*SHAPE), s.apply("Sigmoid", s.input(*SHAPE)))


FUSED: dict[str, Drawing] = {
    "gelu": gelu(),
    "gelu, arguments swapped": gelu(swapped=True),
    "gelu with half of x": gelu("x"),
    "gelu with half of x, arguments swapped": gelu("x", swapped=True),
    "gelu, numbers of one axis": gelu(rank=1),
    "gelu of a sum": gelu(bias=(8,)),
    "gelu of a sum, arguments swapped": gelu(swapped=True, bias=(8,)),
    "gelu of a sum with half of it": gelu("x", bias=(8,)),
    "gelu of a sum with half of it, arguments swapped": gelu("x", swapped=True, bias=(8,)),
    "fast gelu": fast(),
    "fast gelu, arguments swapped": fast(swapped=True),
    "gelu with bias": biased(*SHAPE, bias=(8,)),
    "gelu with bias before": biased(*SHAPE, bias=(8,), swapped=True),
    "gelu by tanh with bias": biased(*SHAPE, bias=(8,), form="tanh"),
    "silu": quick(),
    "silu, arguments swapped": quick(swapped=True),
    "quick gelu": quick(1.7),
    "quick gelu, arguments swapped": quick(1.7, swapped=True),
    "quick gelu, number of one axis": quick(1.7, rank=1),
}


@pytest.mark.parametrize("draw", FUSED.values(), ids=FUSED)
def test_runtime_runs_what_the_fusion_says(draw: Drawing, tmp_path: Path) -> None:
    """Operators, attributes and shapes of the nodes that are left are the signatures'."""
    sketch = Sketch(21)
    root = draw(sketch)
    _, signatures = next(claims(sketch, root))
    assert ran(sketch, [root], tmp_path / "m.onnx") == [wanted(s) for s in signatures]


APART: dict[str, Drawing] = {
    "gelu by a product": gelu(multiplied=True),
    "gelu with half of the sum": gelu("sum"),
    "gelu with another divisor": gelu(divisor=1.5),
    "gelu, numbers of two axes": gelu(rank=2),
    "fast gelu with another factor": fast(cube=0.05),
    "fast gelu with another power": fast(power=2.0),
    "gelu with bias of three axes": biased(*SHAPE, bias=(1, 1, 8)),
    "gelu with one number": biased(*SHAPE, bias=(1,)),
    "gelu with another tensor": biased(*SHAPE, bias=SHAPE),
    "another tensor times sigmoid": gated,
    "quick gelu by division": quick(1.7, op="Div"),
    "quick gelu, number of three axes": quick(1.7, rank=3),
}


@pytest.mark.parametrize("draw", APART.values(), ids=APART)
def test_runtime_keeps_apart_what_no_fusion_claims(draw: Drawing, tmp_path: Path) -> None:
    """Where a condition fails, no fusion claims the root and every operator is left."""
    sketch = Sketch(21)
    root = draw(sketch)
    assert not list(claims(sketch, root))
    left = [one.op for one in ran(sketch, [root], tmp_path / "m.onnx")]
    assert sorted(left) == sorted(one.op for one in sketch.made.values())


def test_another_bias_stays_before_what_is_written_out(tmp_path: Path) -> None:
    """Only the GELU becomes one kernel."""
    sketch = Sketch(21)
    root = gelu(bias=(1, 1, 8))(sketch)
    assert [s.op for _, found in claims(sketch, root) for s in found] == ["Gelu"]
    left = [one.op for one in ran(sketch, [root], tmp_path / "m.onnx")]
    assert left == ["Add", "Gelu"]

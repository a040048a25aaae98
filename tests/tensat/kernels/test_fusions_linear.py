"""Products with bias, activation, transpositions and factors, as the runtime fuses them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tensat.kernels.fusions_linear import ACTIVATIONS, transposition
from tests.tensat.kernels.sketch import Sketch, claims, ran, wanted

type Drawing = Callable[[Sketch], int]


def biased(*dims: int, bias: tuple[int, ...], rows: tuple[int, ...] = (5, 6)) -> Drawing:
    """A product of x by a constant matrix, plus a constant."""

    def draw(s: Sketch) -> int:
        product = s.apply("MatMul", s.input(*dims), s.constant(*rows))
        return s.apply("Add", product, s.constant(*bias))

    return draw


def activated(act: str, *dims: int) -> Drawing:
    """An activation behind a product plus bias."""
    return lambda s: s.apply(act, biased(*dims, bias=(6,))(s))


def gemm(act: str, **given: float) -> Drawing:
    """An activation behind Gemm."""

    def draw(s: Sketch) -> int:
        a, b, c = s.input(4, 5), s.constant(6, 5), s.constant(6)
        return s.apply(act, s.apply("Gemm", a, b, c, transB=1, alpha=0.5), **given)

    return draw


def product(
    a: tuple[int, ...],
    b: tuple[int, ...],
    perm_a: tuple[int, ...] = (),
    perm_b: tuple[int, ...] = (),
) -> Drawing:
    """A product of factors that are transposed."""

    def draw(s: Sketch) -> int:
        x, y = s.input(*a), s.input(*b)
        x = s.apply("Transpose", x, perm=perm_a) if perm_a else x
        y = s.apply("Transpose", y, perm=perm_b) if perm_b else y
        return s.apply("MatMul", x, y)

    return draw


def scaled(op: str, inner: Drawing, first: bool = False, rank: int = 0) -> Drawing:
    """Something multiplied or divided by a number."""

    def draw(s: Sketch) -> int:
        pair = inner(s), s.number(0.3, *[1] * rank)
        return s.apply(op, *(pair[::-1] if first else pair))

    return draw


def scaled_factors(a: str | None, b: str | None, turned: bool) -> Drawing:
    """A product of factors multiplied or divided by numbers."""

    def draw(s: Sketch) -> int:
        x, y = s.input(2, 4, 5), s.input(2, 6, 5) if turned else s.input(2, 5, 6)
        x = s.apply(a, x, s.number(0.3)) if a else x
        y = s.apply("Transpose", y, perm=(0, 2, 1)) if turned else y
        y = s.apply(b, y, s.number(0.7)) if b else y
        return s.apply("MatMul", x, y)

    return draw


def flipped(s: Sketch) -> int:
    """A bias plus a product."""
    bias, product = s.input(6), s.apply("MatMul", s.input(4, 5), s.constant(5, 6))
    return s.apply("Add", bias, product)


FUSED: dict[str, Drawing] = {
    "bias": biased(4, 5, bias=(6,)),
    "bias of two axes": biased(4, 5, bias=(1, 6)),
    "bias for each row": biased(4, 5, bias=(4, 1)),
    "bias for each element": biased(4, 5, bias=(4, 6)),
    "bias before": flipped,
    "rank 3": biased(2, 4, 5, bias=(6,)),
    "rank 4": biased(2, 3, 4, 5, bias=(6,)),
    "rank 1": biased(5, bias=(6,)),
    **{f"{act} behind Gemm": gemm(act) for act in ACTIVATIONS},
    "LeakyRelu with its slope": gemm("LeakyRelu", alpha=0.3),
    "HardSigmoid with its line": gemm("HardSigmoid", alpha=0.3, beta=0.4),
    **{f"{act} behind a bias": activated(act, 4, 5) for act in ACTIVATIONS},
    "turned left": product((5, 4), (5, 6), perm_a=(1, 0)),
    "turned right": product((2, 4, 5), (2, 6, 5), perm_b=(0, 2, 1)),
    "turned by a matrix": product((2, 5, 4), (5, 6), perm_a=(0, 2, 1)),
    "heads left": product((4, 2, 5), (2, 5, 6), perm_a=(1, 0, 2)),
    "heads left turned": product((5, 2, 4), (2, 5, 6), perm_a=(1, 2, 0)),
    "heads right turned": product((2, 4, 5), (6, 2, 5), perm_b=(1, 2, 0)),
    "heads both": product((4, 2, 5), (6, 2, 5), (1, 0, 2), (1, 2, 0)),
    "heads broadcast": product((4, 2, 5), (1, 5, 6), perm_a=(1, 0, 2)),
    "heads of rank 4": product((4, 2, 3, 5), (2, 3, 5, 6), perm_a=(1, 2, 0, 3)),
    "times a number": scaled("Mul", product((2, 4, 5), (2, 5, 6))),
    "a number times": scaled("Mul", product((2, 4, 5), (2, 5, 6)), first=True),
    "divided": scaled("Div", product((2, 4, 5), (2, 5, 6)), rank=3),
    "turned and divided": scaled("Div", product((2, 4, 5), (2, 6, 5), perm_b=(0, 2, 1))),
    "factors scaled": scaled_factors("Mul", "Div", False),
    "factors scaled and turned": scaled_factors("Mul", "Mul", True),
    "left factor scaled": scaled_factors("Div", None, True),
}


@pytest.mark.parametrize("draw", FUSED.values(), ids=FUSED)
def test_runtime_runs_what_the_fusion_says(draw: Drawing, tmp_path: Path) -> None:
    """Operators, attributes and shapes of the nodes that are left are the signatures'."""
    sketch = Sketch()
    root = draw(sketch)
    _, signatures = next(claims(sketch, root))
    assert ran(sketch, [root], tmp_path / "m.onnx") == [wanted(s) for s in signatures]


def double(s: Sketch) -> int:
    """A product plus bias of doubles."""
    a, b = s.input(4, 5, dtype="float64"), s.constant(5, 6, dtype="float64")
    return s.apply("Add", s.apply("MatMul", a, b), s.constant(6, dtype="float64"))


def batched(s: Sketch) -> int:
    """A product by matrices of a batch, plus a bias."""
    return s.apply("Add", s.apply("MatMul", s.input(2, 4, 5), s.constant(2, 5, 6)),
                   s.constant(6))  # fmt: skip


def summed(s: Sketch) -> int:
    """A product plus bias, written as Sum."""
    return s.apply("Sum", s.apply("MatMul", s.input(4, 5), s.constant(5, 6)), s.constant(6))


def unbiased(s: Sketch) -> int:
    """An activation behind a product."""
    return s.apply("Relu", s.apply("MatMul", s.input(4, 5), s.constant(5, 6)))


APART: dict[str, Drawing] = {
    "bias of one number": biased(4, 5, bias=()),
    "bias of one element": biased(4, 5, bias=(1, 1)),
    "bias of two axes at rank 3": biased(2, 4, 5, bias=(4, 6)),
    "bias of three axes": biased(2, 4, 5, bias=(1, 1, 6)),
    "bias of three axes for a matrix": biased(4, 5, bias=(1, 1, 6)),
    "batched": batched,
    "vector": biased(4, 5, rows=(5,), bias=(4,)),
    "doubles": double,
    "Sum": summed,
    "no bias": unbiased,
    "Erf behind Gemm": gemm("Erf"),
    "Clip": lambda s: s.apply(
        "Clip", s.apply("Gemm", s.input(4, 5), s.constant(5, 6)), min=0.0, max=6.0
    ),
    "heads of rank 4 in the middle": product((1, 4, 2, 5), (1, 2, 5, 6), (0, 2, 1, 3)),
    "heads by a matrix": product((4, 2, 5), (5, 6), perm_a=(1, 0, 2)),
    "heads by more heads": product((4, 2, 5), (3, 2, 5, 6), perm_a=(1, 0, 2)),
    "times a vector": lambda s: s.apply("Mul", product((4, 5), (5, 6))(s), s.constant(6)),
    "a number divided": scaled("Div", product((2, 4, 5), (2, 5, 6)), first=True),
    "number of higher rank": scaled("Mul", product((4, 5), (5, 6)), rank=3),
}


@pytest.mark.parametrize("draw", APART.values(), ids=APART)
def test_runtime_keeps_apart_what_no_fusion_claims(draw: Drawing, tmp_path: Path) -> None:
    """Where a condition fails, no fusion claims the root and every operator is left."""
    sketch = Sketch()
    root = draw(sketch)
    assert not list(claims(sketch, root))
    left = [one.op for one in ran(sketch, [root], tmp_path / "m.onnx")]
    assert sorted(left) == sorted(one.op for one in sketch.made.values())


def test_activation_behind_a_reshape_is_not_fused(tmp_path: Path) -> None:
    """At rank 3 the bias is fused, and the activation stays behind the Reshape."""
    sketch = Sketch()
    root = activated("Relu", 2, 4, 5)(sketch)
    assert not list(claims(sketch, root))
    ops = [one.op for one in ran(sketch, [root], tmp_path / "m.onnx")]
    assert ops == ["Reshape", "Gemm", "Reshape", "Relu"]


@pytest.mark.parametrize(
    ("perm", "expected"),
    [
        ((0,), None),
        ((1, 0), (True, False)),
        ((0, 1), None),
        ((0, 2, 1), (True, False)),
        ((1, 0, 2), (False, True)),
        ((1, 2, 0), (True, True)),
        ((2, 0, 1), None),
        ((0, 2, 1, 3), None),
        ((1, 2, 0, 3), (False, True)),
        ((0, 1, 3, 2), (True, False)),
    ],
    ids=str,
)
def test_transpositions(perm: tuple[int, ...], expected: tuple[bool, bool] | None) -> None:
    """Swapped last axes, and rows that came before the batch."""
    assert transposition(perm) == expected


@pytest.mark.parametrize(
    ("dims", "names", "bias", "fused"),
    [
        ((4, 5), "m.", "", True),
        ((2, 4, 5), "b..", "", False),
        ((2, 4, 5), "bs.", "", False),
        ((4, 5), "m.", "m.", True),
        ((4, 5), "m.", "n.", False),
    ],
    ids=["matrix", "batch", "batch and length", "same rows", "other rows"],
)
def test_symbolic_sizes(
    dims: tuple[int, ...], names: str, bias: str, fused: bool, tmp_path: Path
) -> None:
    """Reshapes are written for numbers only, and rows under two names are not equal."""
    sketch = Sketch()
    product = sketch.apply("MatMul", sketch.input(*dims, names=names),
                           sketch.constant(5, 6))  # fmt: skip
    addend = sketch.input(4, 6, names=bias) if bias else sketch.constant(6)
    root = sketch.apply("Add", product, addend)
    left = [one.op for one in ran(sketch, [root], tmp_path / "m.onnx")]
    assert left == (["Gemm"] if fused else ["MatMul", "Add"])
    assert [s.op for _, found in claims(sketch, root) for s in found] == ["Gemm"] * fused

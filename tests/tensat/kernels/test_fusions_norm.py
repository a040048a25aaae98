"""Normalizations of sums and normalizations written out, as the runtime fuses them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tensat.kernels.sketch import Sketch, claims, ran, wanted

type Drawing = Callable[[Sketch], int]
SHAPE = (2, 3, 8)


def normalized_sum(
    *dims: int, other: tuple[int, ...] | None = None, op: str = "Add", axis: int = -1
) -> Drawing:
    """LayerNormalization of a sum."""

    def draw(s: Sketch) -> int:
        total = s.apply(op, s.input(*dims), s.input(*(other or dims)))
        place = axis % len(dims)
        weights = [s.constant(*dims[place:]) for _ in range(2)]
        return s.apply("LayerNormalization", total, *weights, axis=place, epsilon=1e-3)

    return draw


def without_bias(s: Sketch) -> int:
    """LayerNormalization without bias of a sum."""
    total = s.apply("Add", s.input(*SHAPE), s.constant(*SHAPE))
    return s.apply("LayerNormalization", total, s.constant(8), axis=2)


def root_mean_square(
    s: Sketch, x: int, square: str, axes: tuple[int, ...], swapped: bool
) -> int:
    """The root of the mean of squares plus a number."""
    squares = s.apply("Pow", x, s.number(2.0)) if square == "Pow" else s.apply("Mul", x, x)
    mean = s.apply("ReduceMean", squares, axes=axes, keepdims=1)
    pair = mean, s.number(1e-4)
    return s.apply("Sqrt", s.apply("Add", *(pair[::-1] if swapped else pair)))


def quotient(s: Sketch, x: int, y: int, inverse: float | None) -> int:
    """X / y, or x times a number / y."""
    if inverse is None:
        return s.apply("Div", x, y)
    return s.apply("Mul", x, s.apply("Div", s.number(inverse), y))


def inverse(dividend: float, swapped: bool = False, op: str = "Div") -> Drawing:
    """A tensor times a number divided by another, or times its reciprocal."""

    def draw(s: Sketch) -> int:
        y = s.input(*SHAPE)
        below = s.apply(op, y) if op != "Div" else s.apply(op, s.number(dividend), y)
        pair = s.input(3, 8), below
        return s.apply("Mul", *(pair[::-1] if swapped else pair))

    return draw


def rms(
    *dims: int,
    square: str = "Pow",
    axes: tuple[int, ...] | None = None,
    gain: tuple[int, ...] | None = None,
    swapped: bool = False,
    inverse: float | None = None,
) -> Drawing:
    """Root-mean-square normalization written out."""

    def draw(s: Sketch) -> int:
        x = s.input(*dims)
        below = root_mean_square(s, x, square, axes or (len(dims) - 1,), swapped)
        pair = quotient(s, x, below, inverse), s.constant(*(gain or dims[-1:]))
        return s.apply("Mul", *(pair[::-1] if swapped else pair))

    return draw


def layer(
    *dims: int,
    square: str = "Pow",
    axes: tuple[int, ...] | None = None,
    gain: tuple[int, ...] | None = None,
    swapped: bool = False,
    inverse: float | None = None,
    summed: bool = False,
) -> Drawing:
    """Layer normalization written out."""

    def draw(s: Sketch) -> int:
        x, over = s.input(*dims), axes or (len(dims) - 1,)
        x = s.apply("Add", x, s.input(*dims)) if summed else x
        centred = s.apply("Sub", x, s.apply("ReduceMean", x, axes=over, keepdims=1))
        below = root_mean_square(s, centred, square, over, swapped)
        weights = gain or dims[-1:]
        pair = quotient(s, centred, below, inverse), s.constant(*weights)
        pair = s.apply("Mul", *(pair[::-1] if swapped else pair)), s.constant(*weights)
        return s.apply("Add", *(pair[::-1] if swapped else pair))

    return draw


FUSED: dict[str, Drawing] = {
    "sum": normalized_sum(*SHAPE),
    "sum without bias": without_bias,
    "rms": rms(*SHAPE),
    "rms, arguments swapped": rms(*SHAPE, swapped=True),
    "rms of a matrix": rms(3, 8),
    "rms by an inverse": rms(*SHAPE, inverse=1.0),
    "layer": layer(*SHAPE),
    "layer by an inverse": layer(*SHAPE, inverse=1.0),
    "sum written out": layer(*SHAPE, summed=True),
    "sum written out, arguments swapped": layer(*SHAPE, summed=True, swapped=True),
    "sum by an inverse": layer(*SHAPE, summed=True, inverse=1.0),
    "inverse": inverse(1.0),
    "inverse before": inverse(1.0, swapped=True),
    "layer, arguments swapped": layer(*SHAPE, swapped=True),
    "layer of rank 4": layer(2, 3, 2, 8),
}


CASES = [
    pytest.param(draw, opset, id=f"{name}-{opset}")
    for name, draw in FUSED.items()
    for opset in (11, 17, 21)
    if (name, opset) != ("sum without bias", 11)  # written out with zeros as bias
]


@pytest.mark.parametrize(("draw", "opset"), CASES)
def test_runtime_runs_what_the_fusion_says(
    draw: Drawing, opset: int, tmp_path: Path
) -> None:
    """Operators, attributes and shapes of the nodes that are left are the signatures'."""
    sketch = Sketch(opset)
    root = draw(sketch)
    _, signatures = next(claims(sketch, root))
    assert ran(sketch, [root], tmp_path / "m.onnx") == [wanted(s) for s in signatures]


APART: dict[str, Drawing] = {
    "sum of rank 2": normalized_sum(3, 8),
    "sum of rank 4": normalized_sum(1, *SHAPE),
    "sum that broadcasts": normalized_sum(*SHAPE, other=(1, 3, 8)),
    "sum of another rank": normalized_sum(*SHAPE, other=(3, 8)),
    "sum over two axes": normalized_sum(*SHAPE, axis=1),
    "Sum": normalized_sum(*SHAPE, op="Sum"),
    "rms of a vector": rms(8),
    "layer of a vector": layer(8),
    "rms by twice an inverse": rms(*SHAPE, inverse=2.0),
    "layer by twice an inverse": layer(*SHAPE, inverse=2.0),
    "twice an inverse": inverse(2.0),
    "reciprocal": inverse(1.0, op="Reciprocal"),
    "rms with Mul": rms(*SHAPE, square="Mul"),
    "rms over two axes": rms(*SHAPE, axes=(1, 2), gain=(3, 8)),
    "rms over another axis": rms(*SHAPE, axes=(1,)),
    "rms with a gain of three axes": rms(*SHAPE, gain=(1, 1, 8)),
    "layer with Mul": layer(*SHAPE, square="Mul"),
    "layer over two axes": layer(*SHAPE, axes=(1, 2), gain=(3, 8)),
    "layer over another axis": layer(*SHAPE, axes=(1,)),
    "layer with a gain of three axes": layer(*SHAPE, gain=(1, 1, 8)),
}


@pytest.mark.parametrize("draw", APART.values(), ids=APART)
def test_runtime_keeps_apart_what_no_fusion_claims(draw: Drawing, tmp_path: Path) -> None:
    """Where a condition fails, no fusion claims the root and every operator is left."""
    sketch = Sketch()
    root = draw(sketch)
    assert not list(claims(sketch, root))
    left = [one.op for one in ran(sketch, [root], tmp_path / "m.onnx")]
    assert sorted(left) == sorted(one.op for one in sketch.made.values())


@pytest.mark.parametrize("draw", [normalized_sum(*SHAPE)], ids=["sum"])
def test_sum_that_is_used_again_is_not_fused(draw: Drawing, tmp_path: Path) -> None:
    """The kernel would have to give two results: whoever chooses it knows its users."""
    sketch = Sketch()
    root = draw(sketch)
    total = sketch.made[root].children[0]
    left = [one.op for one in ran(sketch, [root, total], tmp_path / "m.onnx")]
    assert left == ["Add", "LayerNormalization"]


@pytest.mark.parametrize(
    ("names", "fused"),
    [(("ns", "ns"), True), (("n.", "m."), False), (("ns", "nt"), False)],
    ids=["same", "other batch", "other length"],
)
def test_sizes_under_two_names_are_not_equal(
    names: tuple[str, str], fused: bool, tmp_path: Path
) -> None:
    """Symbolic sizes do not hinder the runtime, if the two summands have the same."""
    sketch = Sketch()
    terms = [sketch.input(*SHAPE, names=one) for one in names]
    total = sketch.apply("Add", *terms)
    weights = [sketch.constant(8) for _ in range(2)]
    root = sketch.apply("LayerNormalization", total, *weights, axis=2)
    left = [one.op for one in ran(sketch, [root], tmp_path / "m.onnx")]
    skip = ["com.microsoft:SkipLayerNormalization"]
    assert left == (skip if fused else ["Add", "LayerNormalization"])
    assert [s.op for _, found in claims(sketch, root) for s in found] == skip * fused


@pytest.mark.parametrize("dims", [(3, 8), (1, *SHAPE)], ids=["rank 2", "rank 4"])
def test_sum_of_another_rank_stays_before_what_is_written_out(
    dims: tuple[int, ...], tmp_path: Path
) -> None:
    """Only the normalization becomes one kernel."""
    sketch = Sketch()
    root = layer(*dims, summed=True)(sketch)
    assert [s.op for _, found in claims(sketch, root) for s in found] == [
        "LayerNormalization"
    ]
    left = [one.op for one in ran(sketch, [root], tmp_path / "m.onnx")]
    assert left == ["Add", "LayerNormalization"]

"""Tensor types."""

import pytest

from rulesets.errors import ShapeError, SizeError
from rulesets.size import symbol
from rulesets.tensor import Shape, Tensor, broadcast, bytes_of

N, M = symbol("n"), symbol("m")


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (((2, 3), (2, 3)), (2, 3)),
        (((2, 3), (3,)), (2, 3)),
        (((2, 1), (4,), ()), (2, 4)),
        (((N, 3), (1, 1)), (N, 3)),
        (((N,), (4,)), (4,)),
        (((1,), (N, 1)), (N, 1)),
    ],
    ids=str,
)
def test_broadcast(shapes: tuple[Shape, ...], expected: Shape) -> None:
    """Shapes align at the end; sizes of 1 stretch."""
    assert broadcast(*shapes) == expected
    assert broadcast(*shapes[::-1]) == expected


def test_shapes_that_do_not_fit() -> None:
    """The error names the shapes and the axis."""
    with pytest.raises(
        ShapeError, match=r"\[2,3\] and \[n,4\] do not broadcast at axis -1"
    ):
        broadcast((2, 3), (N, 4))


def test_rank_and_text() -> None:
    """A type knows its rank and reads like a declaration."""
    assert (Tensor("float32", (N, 3)).rank, str(Tensor("float32", (N, 3)))) == (
        2,
        "float32[n,3]",
    )
    assert (Tensor("int64", None).rank, str(Tensor("int64", None))) == (None, "int64[?]")


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (Tensor("float32", (N, 3)), 24),
        (Tensor("bfloat16", (5,)), 10),
        (Tensor("int4", (5,)), 3),
        (Tensor("bool", ()), 1),
    ],
    ids=str,
)
def test_bytes(tensor: Tensor, expected: int) -> None:
    """Bytes are elements times width, rounded up."""
    assert bytes_of(tensor, {"n": 2}) == expected


@pytest.mark.parametrize(
    "tensor", [Tensor("string", (2,)), Tensor("float32", None)], ids=str
)
def test_unknown_bytes(tensor: Tensor) -> None:
    """Without a width or a rank there is no number of bytes."""
    with pytest.raises(SizeError, match="type and rank must be known"):
        bytes_of(tensor, {})

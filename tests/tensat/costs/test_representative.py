"""Signatures that take the same time share one timing."""

from dataclasses import replace

import pytest

from tensat.costs.representative import representative
from tensat.costs.source import Argument, Signature


def tensor(*dims: int, constant: bool = False) -> Argument:
    """Make a float32 argument."""
    return Argument("float32", dims, constant)


CONV = Signature(
    "Conv",
    (("group", 1), ("strides", (1, 1))),
    (tensor(1, 3, 8, 8), tensor(4, 3, 3, 3, constant=True), tensor(4, constant=True)),
    (tensor(1, 4, 6, 6),),
    17,
)
MATMUL = Signature(
    "MatMul", (), (tensor(10, 8), tensor(8, 4, constant=True)), (tensor(10, 4),), 17
)


def gemm(trans_b: int, bias: bool, constant: bool = True) -> Signature:
    """Make a Gemm of [10, 8] by [8, 4]."""
    b = tensor(4, 8, constant=constant) if trans_b else tensor(8, 4, constant=constant)
    inputs = (tensor(10, 8), b, *([tensor(4, constant=True)] if bias else []))
    attributes = (("alpha", 1.0), ("beta", 1.0), ("transA", 0), ("transB", trans_b))
    return Signature("Gemm", attributes, inputs, (tensor(10, 4),), 17)


def test_a_convolution_with_constant_bias_is_timed_without() -> None:
    """The kernel adds a bias where it writes anyway."""
    assert representative(CONV) == representative(replace(CONV, inputs=CONV.inputs[:2]))


def test_a_computed_bias_is_timed() -> None:
    """A bias that is no constant stays."""
    computed = replace(CONV, inputs=(*CONV.inputs[:2], tensor(4)))
    assert representative(computed) == computed


@pytest.mark.parametrize("trans_b", [0, 1], ids=["straight", "transposed"])
def test_a_gemm_by_a_constant_is_one_kernel(trans_b: int) -> None:
    """A constant operand is packed at load, transposed or not; a bias is one pass more."""
    assert representative(gemm(trans_b, bias=False)) == MATMUL
    assert representative(gemm(trans_b, bias=True)) == gemm(0, bias=True)


def test_a_gemm_by_a_computed_matrix_is_timed_as_it_is() -> None:
    """Reading a computed operand transposed costs time of its own."""
    computed = gemm(1, bias=False, constant=False)
    assert representative(computed) == computed


def test_a_batch_times_a_constant_matrix_is_one_product() -> None:
    """Leading axes are rows."""
    batched = replace(MATMUL, inputs=(tensor(2, 5, 8), MATMUL.inputs[1]),
                      outputs=(tensor(2, 5, 4),))  # fmt: skip
    assert representative(batched) == MATMUL


def test_a_blocked_convolution_is_timed_without_what_is_free() -> None:
    """Defaults written out, bounds of an activation and a constant bias change nothing."""
    x, w, b = (
        tensor(1, 16, 8, 8),
        tensor(16, 16, 3, 3, constant=True),
        tensor(16, constant=True),
    )
    out = (tensor(1, 16, 8, 8),)
    op = "com.microsoft.nchwc:Conv"
    plain = (("activation", "Clip"), ("activation_params", (0.0, 6.0)), ("pads", (1,) * 4))
    written = (
        ("activation", "Clip"), ("activation_params", (-1.0, 1.0)), ("dilations", (1, 1)),
        ("group", 1), ("pads", (1,) * 4), ("strides", (1, 1)),
    )  # fmt: skip
    first = representative(Signature(op, plain, (x, w), out, 21))
    assert representative(Signature(op, written, (x, w, b), out, 21)) == first
    strided = tuple(("strides", (2, 2)) if name == "strides" else (name, v)
                    for name, v in written)  # fmt: skip
    assert representative(Signature(op, strided, (x, w), out, 21)) != first
    summed = Signature(op, plain, (x, w, b, x), out, 21)
    assert representative(summed).inputs == (x, w, None, x)

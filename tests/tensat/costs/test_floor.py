"""Floors are below what kernels cost, and as close as can be trusted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensat.costs.floor import least_seconds
from tensat.costs.roofline import Roofline
from tensat.costs.signature_text import parse
from tensat.costs.source import Argument, Signature

NCHWC = "com.microsoft.nchwc"

FASTEST = [
    ("Softmax@23[axis=3](float32[1x12x128x128])->(float32[1x12x128x128])", 70.2),
    (
        f"{NCHWC}:Conv@23[activation='Relu',kernel_shape=(3, 3),pads=(1, 1, 1, 1)]"
        "(float32[1x32x27x27],float32[128x32x3x3]c)->(float32[1x128x27x27])",
        298.7,
    ),
    (
        f"{NCHWC}:Conv@23[group=208,kernel_shape=(5, 5),pads=(2, 2, 2, 2)]"
        "(float32[1x208x7x112],float32[208x1x5x5]c)->(float32[1x208x7x112])",
        54.5,
    ),
    (
        "Slice@23[axes=(2,),ends=(1,),starts=(0,),steps=(1,)](float32[1x6x56x56x16])"
        "->(float32[1x6x1x56x16])",
        1.2,
    ),
    ("Gather@23[axis=1](float32[1x197x192],int64[]c)->(float32[1x192])", 0.3),
    ("Relu@23[](float32[1x48x1x1])->(float32[1x48x1x1])", 0.29),
    ("Reshape@23[shape=(4,)](int32[2x2])->(int32[4])", 0.26),
    ("Cast@23[to='int32'](int64[4])->(int32[4])", 0.23),
]
"""The fastest kernels of each kind against their estimates, in measured microseconds."""


@pytest.mark.parametrize(("text", "micros"), FASTEST, ids=lambda each: str(each)[:24])
def test_no_floor_is_above_the_fastest_kernels_measured(text: str, micros: float) -> None:
    """The floor is below the cost, though within an eighth of it."""
    signature = parse(text)
    assert signature is not None
    floor = least_seconds(signature, Roofline())
    assert micros / 8 < 1e6 * floor < micros


def _product(rows: int) -> Signature:
    a, b = Argument("float32", (rows, 512)), Argument("float32", (512, 512), True)
    return Signature("MatMul", (), (a, b), (Argument("float32", (rows, 512)),), 23)


def test_threads_share_the_work_but_not_the_launch() -> None:
    """Four threads are not expected to be more than four times as fast."""
    one, four = (least_seconds(_product(256), Roofline(), threads) for threads in (1, 4))
    assert one / 4 < four < one / 3.9


def test_arithmetic_is_bounded_closer_than_what_moves() -> None:
    """Of an estimate of arithmetic 0.4 is certain, of others 0.3."""
    roofline = Roofline()
    product = _product(256)
    relu = replace(product, op="Relu", inputs=(replace(product.outputs[0]),))
    shares = [
        least_seconds(each, roofline) / roofline.estimate(each) for each in (product, relu)
    ]
    assert shares == pytest.approx([0.4, 0.3], rel=0.05)

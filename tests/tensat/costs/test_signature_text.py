"""Texts of signatures are read back, or let go."""

from __future__ import annotations

import pytest

from tensat.costs.signature_text import operator_of, parse, shorten
from tensat.costs.source import Argument, Signature

F = "float32"
X, W = Argument(F, (1, 3, 8, 8)), Argument(F, (16, 3, 3, 3), True)
CONV = Signature(
    "Conv",
    (("group", 1), ("pads", (1, 1, 1, 1)), ("strides", ())),
    (X, W, None),
    (Argument(F, (1, 16, 8, 8)),),
    17,
)


@pytest.mark.parametrize(
    "signature",
    [
        pytest.param(CONV, id="absent input"),
        pytest.param(
            Signature("Mul", (), (X, Argument(F, (), True, 0.1)), (X,), 17), id="a number"
        ),
        pytest.param(
            Signature("Split", (("parts", (2, 6)),), (X,), (X, X), 13), id="two outputs"
        ),
        pytest.param(
            Signature("Pad", (("mode", "a,b)->("), ("value", -1.5e-9)), (X,), (X,), 13),
            id="text as attribute",
        ),
        pytest.param(
            Signature("Pad", (("mode", "it's @1[x](y)"),), (X,), (X,), 13), id="brackets"
        ),
        pytest.param(
            Signature("com.microsoft.nchwc:Conv", (), (X, W), (X,), 17), id="domain"
        ),
        pytest.param(Signature("Clip", (), (X, None, None), (X,), 17), id="two absent"),
        pytest.param(
            Signature("Clip", (), (None, X, None, W), (X,), 17), id="first absent"
        ),
        pytest.param(Signature("Constant", (), (), (X,), 17), id="no inputs"),
        pytest.param(
            Signature("Pow", (), (X, Argument("int64", (), True, 2.0)), (X,), 17),
            id="power",
        ),
    ],
)
def test_a_text_gives_its_signature(signature: Signature) -> None:
    """Operator, attributes, arguments and opset come back as they were."""
    assert parse(signature.text()) == signature
    assert operator_of(signature.text()) == signature.op


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Relu",
        "Relu@17[](float32[4])",
        "Relu@x[](float32[4])->(float32[4])",
        "Relu@17[a](float32[4])->(float32[4])",
        "Relu@17[a=open('x')](float32[4])->(float32[4])",
        "Relu@17[a=1)](float32[4])->(float32[4])",
        "Relu@17[a=inf](float32[4])->(float32[4])",
        "Relu@17[**{}](float32[4])->(float32[4])",
        "Relu@17[](float32[4x])->(float32[4])",
        "Relu@17[](float32[04])->(float32[4])",
        "Relu@17[](float32[4]=high)->(float32[4])",
        "Relu@17[](float32[4])->(-)",
        "Relu@17[]( float32[4])->(float32[4])",
    ],
)
def test_other_texts_give_nothing(text: str) -> None:
    """Neither half a signature nor an error; nothing in a text is ever run."""
    assert parse(text) is None
    assert shorten(text) == text


def test_a_short_form_is_for_reading() -> None:
    """Operator, opset, inputs and attributes; empty attributes are left out."""
    assert shorten(CONV.text()) == (
        "Conv@17 f32[1x3x8x8] f32[16x3x3x3]c - group=1 pads=1,1,1,1"
    )
    power = Signature("Pow", (), (X, Argument("int64", (), True, 2.0)), (X,), 17)
    assert shorten(power.text()) == "Pow@17 f32[1x3x8x8] i64[]c=2"

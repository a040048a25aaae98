"""Published equations on numbers: the unsound ones are refuted with values."""

import pytest

from rulesets.corpus_check import counterexample
from rulesets.corpus_text import read
from rulesets.errors import CorpusError

SOUND = (
    "matmul(input_1,ewadd(input_4,input_5)) == "
    "ewadd(matmul(input_1,input_4),matmul(input_1,input_5))",
    "conv2d(1,1,0,0,input_7,Iconv(3,3)) == input_7",
    "conv2d(1,1,0,2,input_7,ewadd(input_10,input_11)) == "
    "relu(ewadd(conv2d(1,1,0,0,input_7,input_10),conv2d(1,1,0,0,input_7,input_11)))",
)


@pytest.mark.parametrize("text", SOUND, ids=["distribution", "identity", "linear"])
def test_sound_equations_have_no_counterexample(text: str) -> None:
    """They hold at every size that is tried."""
    assert counterexample(read(text, "test")[0]) is None


def test_an_enlarged_kernel_must_be_centred() -> None:
    """From 2 to 3 there is no centre: the values are printed with the shapes."""
    text = (
        "conv2d(1,1,0,0,input_7,enlarge(3,3,input_13)) == conv2d(1,1,0,0,input_7,input_13)"
    )
    found = counterexample(read(text, "test")[0])
    assert found is not None
    assert found.shapes["input_13"][2:] == (2, 2)
    assert found.left != found.right
    assert "left" in str(found)
    assert "input_13" in str(found)


def test_a_false_equation_is_refuted() -> None:
    """A product does not commute."""
    (wrong,) = read("matmul(input_4,input_5) == matmul(input_5,input_4)", "test")
    assert counterexample(wrong) is not None


def test_what_fits_nowhere_is_no_counterexample() -> None:
    """The merge of two dense convolutions over different channels is ill-shaped."""
    text = (
        "concat(1,conv2d(1,1,0,0,input_7,input_10),conv2d(1,1,0,0,input_8,input_11)) == "
        "conv2d(1,1,0,0,concat(1,input_7,input_8),concat(0,input_10,input_11))"
    )
    with pytest.raises(CorpusError, match="would have to be equal"):
        counterexample(read(text, "test")[0])

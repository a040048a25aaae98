"""The shipped laws: proved, named once, and enough for what was published."""

import pytest

from rulesets.cli_generate import laws
from rulesets.corpus import Read, read
from rulesets.rule import Rule
from rulesets.store import load
from rulesets.verify import verify
from tensat.derive import derive

LAWS = laws()
PUBLISHED = """
matmul(matmul(input_1,input_4),input_5) == matmul(input_1,matmul(input_4,input_5))
smul(matmul(matmul(input_1,input_4),input_5),input_20) == \
matmul(matmul(input_1,smul(input_4,input_20)),input_5)
concat(0,concat(1,input_1,input_2),concat(1,input_4,input_5)) == \
concat(1,concat(0,input_1,input_4),concat(0,input_2,input_5))
ewadd(input_1,matmul(input_1,input_4)) == matmul(input_1,ewadd(input_4,Imatmul))
transpose(matmul(input_4,relu(input_4))) == \
matmul(relu(transpose(input_4)),transpose(input_4))
conv2d(1,1,0,0,input_7,Cpool(3,3)) == poolavg(3,3,1,1,0,input_7)
relu(smul(conv2d(1,1,0,0,input_7,input_16),input_20)) == \
conv2d(1,1,0,2,input_7,smul(enlarge(3,3,input_16),input_20))
concat(1,conv2d(1,1,0,0,input_7,input_10),conv2d(1,1,0,0,input_7,input_13)) == \
conv2d(1,1,0,0,input_7,concat(0,input_10,enlarge(3,3,input_13)))
conv2d(1,1,0,2,conv2d(1,1,0,0,input_7,input_13),Iconv(3,3)) == \
relu(conv2d(1,1,0,0,input_7,input_13))
relu(input_2) == split_1(split(1,relu(concat(1,2,input_1,input_2))))
"""
EQUATIONS = [each for each in read(PUBLISHED, "published") if isinstance(each, Read)]


def test_every_law_carries_its_proof() -> None:
    """None is only tested."""
    assert len(LAWS) > 500
    assert {law.verdict for law in LAWS} <= {"all-sizes", "at-sizes"}


def test_laws_are_no_rules_for_optimization() -> None:
    """They hold in every direction; a model is optimized without them."""
    names = {rule.name for rule in load()}
    assert not names & {law.name for law in LAWS}


@pytest.mark.parametrize("law", LAWS[::23], ids=lambda law: law.name)
def test_a_law_is_proved_again(law: Rule) -> None:
    """A sample of the laws, from nothing."""
    assert verify(law).proved


@pytest.mark.parametrize("one", EQUATIONS, ids=lambda one: one.source.text[:40])
def test_published_equations_follow(one: Read) -> None:
    """A sample of what was published, within four rounds."""
    families = ("linear", "conv", "constants")
    known = [law for law in LAWS if law.family in families]
    assert derive(one.equation, known, {}).derived


def test_all_published_equations_of_the_sample_are_read() -> None:
    """None of them lacks sizes."""
    assert len(EQUATIONS) == 10

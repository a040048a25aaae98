"""Published equations: read with explicit attributes, true at the sizes they are given."""

from collections.abc import Mapping

import numpy as np
import pytest

from rulesets.corpus import Read, read, typed
from rulesets.corpus_text import read as read_text
from rulesets.errors import CorpusError, RuleFileError
from rulesets.fingerprint import inputs, same, value_of
from rulesets.ground import Leaf, Node, leaves, subterms

TEXT = {
    "matmul": "matmul(input_1,matmul(input_4,input_5)) == "
    "matmul(matmul(input_1,input_4),input_5)",
    "block": "matmul(concat(1,input_1,input_2),concat(0,input_4,input_5)) == "
    "ewadd(matmul(input_1,input_4),matmul(input_2,input_5))",
    "enlarge": "conv2d(1,1,0,2,input_7,enlarge(3,3,input_13)) == "
    "relu(conv2d(1,1,0,0,input_7,input_13))",
    "pool": "conv2d(1,1,0,0,input_7,Cpool(3,3)) == poolavg(3,3,1,1,0,input_7)",
    "identity": "conv2d(1,1,0,0,input_7,Iconv(3,3)) == input_7",
    "ones": "ewmul(input_1,Iewmul) == input_1",
    "unit": "matmul(input_1,Imatmul) == input_1",
    "multi": "matmul(0,input_1,input_5) == "
    "split_1(split(1,matmul(0,input_1,concat(1,2,input_4,input_5))))",
    "batch": "conv2d(1,1,0,2,input_8,input_10) == "
    "split_1(split(0,conv2d(1,1,0,2,concat(0,4,input_7,input_8),input_10)))",
    "interchange": "concat(0,concat(1,input_1,input_2),concat(1,input_4,input_5)) == "
    "concat(1,concat(0,input_1,input_4),concat(0,input_2,input_5))",
    "grouped": "concat(1,conv2d(1,1,0,0,input_7,input_10),"
    "conv2d(1,1,0,0,input_8,input_11)) == "
    "conv2d(1,1,0,0,concat(1,input_7,input_8),concat(0,input_10,input_11))",
}


def one(text: str) -> Read:
    """Read one equation."""
    (found,) = read(text, "test")
    assert isinstance(found, Read)
    return found


@pytest.mark.parametrize("text", TEXT.values(), ids=TEXT)
@pytest.mark.parametrize("larger", [0, 1])
def test_a_published_equation_holds_at_its_sizes(text: str, larger: int) -> None:
    """Both sides have one shape and one value, at two choices of sizes."""
    if text == TEXT["grouped"]:
        return
    equation = typed(one(text).source, larger).equation
    found = tuple(dict.fromkeys(leaves(equation.lhs) + leaves(equation.rhs)))
    values = inputs(found, {}, exact=False, seed=3)
    left, right = (value_of(side, {}, values) for side in (equation.lhs, equation.rhs))
    assert same(left, np.broadcast_to(right, left.shape)) or np.allclose(left, right)


def nodes(text: str, op: str) -> list[Mapping[str, object]]:
    """Return the attributes of all applications of an operator."""
    equation = one(text).equation
    terms = (*subterms(equation.lhs), *subterms(equation.rhs))
    return [dict(t.attributes) for t in terms if isinstance(t, Node) and t.op == op]


def test_padding_is_explicit() -> None:
    """SAME at a 3 by 3 kernel is a pad of one, at a 1 by 1 kernel none."""
    pads = {attributes["pads"] for attributes in nodes(TEXT["enlarge"], "Conv")}
    assert pads == {(1, 1, 1, 1), (0, 0, 0, 0)}


def test_enlarging_is_a_centred_pad() -> None:
    """A 1 by 1 kernel gets a zero on each side."""
    (attributes,) = nodes(TEXT["enlarge"], "Pad")
    assert attributes["pads"] == (0, 0, 1, 1, 0, 0, 1, 1)


def test_split_positions_are_explicit() -> None:
    """The cut is that of the concatenation, and the parts differ."""
    (attributes,) = nodes(TEXT["multi"], "Split")
    parts = attributes["parts"]
    assert isinstance(parts, tuple)
    assert len(set(parts)) == 2


def test_free_axes_differ() -> None:
    """Axes that nothing ties have sizes of their own, so that nothing fits by accident."""
    equation = one(TEXT["matmul"]).equation
    sizes = {size for leaf in leaves(equation.lhs) for size in leaf.shape}
    assert len(sizes) == 4


def test_implied_groups_are_written_out() -> None:
    """The famous unsound merge is well-shaped only as a convolution of two groups.

    Then it is false as it stands: the narrow convolutions would be grouped as well.
    """
    with pytest.raises(CorpusError, match="would have to be equal"):
        typed(read_text(TEXT["grouped"], "test")[0])


def test_average_pools_count_the_padding() -> None:
    """As published; the flag is part of the operator."""
    assert nodes(TEXT["pool"], "AveragePool")[0]["count_include_pad"] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("relu(input_1)", "test, line 1: 'left == right' expected"),
        ("relu(input_1 == input_1", "test, line 1: "),
        ("relu(input_1)) == input_1", "test, line 1: '.' is left over"),
        ("relu(input_1;) == input_1", "characters that mean nothing here"),
    ],
    ids=["no equation", "open", "closed twice", "characters"],
)
def test_a_line_that_is_no_equation_is_named(text: str, message: str) -> None:
    """File and line stand in the error."""
    with pytest.raises(RuleFileError, match=message):
        read_text(text, "test")


def test_comments_are_skipped() -> None:
    """Lines that start with a number sign say nothing."""
    assert not read_text("# nothing\n\n", "test")


def test_equal_names_are_equal_leaves() -> None:
    """A variable is one leaf on both sides."""
    equation = one(TEXT["unit"]).equation
    assert isinstance(equation.rhs, Leaf)
    assert leaves(equation.lhs) == (equation.rhs,)

"""Numbers of a rule, opened all at once."""

import pytest

from rulesets.opened import Opened, opened
from rulesets.rule_text import term_text
from rulesets.store import parse_file

RULE = """\
[[rule]]
name = "a-rule"
lhs = '{lhs}'
rhs = '{rhs}'
where = []
float = {{ tag = "exact" }}
instances = [{{ {instance} }}]
"""


def opened_of(lhs: str, rhs: str, instance: str) -> list[Opened]:
    """Return all that is proposed for a rule."""
    text = RULE.format(lhs=lhs, rhs=rhs, instance=instance)
    (rule,) = parse_file(text, "some.toml")
    return list(opened(rule))


@pytest.mark.parametrize(
    ("lhs", "rhs", "instance", "wanted"),
    [
        pytest.param(
            "(Slice[axes=[0], ends=[3], starts=[1], steps=[1]]"
            " (Transpose[perm=[1, 2, 0]] ?a))",
            "(Transpose[perm=[1, 2, 0]]"
            " (Slice[axes=[1], ends=[3], starts=[1], steps=[1]] ?a))",
            'a = "2,9,4"',
            "(Transpose[perm=?q4] (Slice[axes=[(at ?q4 ?q0)], ends=[?q1],"
            " starts=[?q2], steps=[?q3]] ?a))",
            id="axis-of-permutation",
        ),
        pytest.param(
            "(Slice[axes=[1], ends=[9], starts=[6], steps=[1]] (Concat[axis=1] ?a ?b))",
            "(Slice[axes=[1], ends=[4], starts=[1], steps=[1]] ?b)",
            'a = "2,5", b = "2,12"',
            "(Slice[axes=[?q0], ends=[(- ?q1 (dim ?a ?q0))],"
            " starts=[(- ?q2 (dim ?a ?q0))], steps=[?q3]] ?b)",
            id="offset-less-a-size",
        ),
        pytest.param(
            "(Pad[pads=[1, 0, 0, 2], value=0.0] (Pad[pads=[0, 3, 1, 1], value=0.0] ?a))",
            "(Pad[pads=[1, 3, 1, 3], value=0.0] ?a)",
            'a = "2,3"',
            "(Pad[pads=(plus ?q0 ?q1), value=0.0] ?a)",
            id="sum-of-paddings",
        ),
        pytest.param(
            "(Slice[axes=[1], ends=[3], starts=[1], steps=[1]]"
            " (Reshape[shape=[2, 9, 3, 4]] ?a))",
            "(Reshape[shape=[2, 2, 3, 4]]"
            " (Slice[axes=[1], ends=[3], starts=[1], steps=[1]] ?a))",
            'a = "2,9,12"',
            "(Reshape[shape=(shape ?y)]"
            " (Slice[axes=[?q0], ends=[?q1], starts=[?q2], steps=[?q3]] ?a))",
            id="shape-of-the-left-side",
        ),
    ],
)
def test_numbers_become_what_the_left_side_computes(
    lhs: str, rhs: str, instance: str, wanted: str
) -> None:
    """The first right side is the law for all numbers."""
    first = opened_of(lhs, rhs, instance)[0]
    assert term_text(first.rhs) == wanted


def test_conditions_are_true_at_the_instance() -> None:
    """Offsets are compared with the sizes of the axis they are on."""
    first = opened_of(
        "(Slice[axes=[1], ends=[4], starts=[2], steps=[1]] (Concat[axis=1] ?a ?b))",
        "(Slice[axes=[1], ends=[4], starts=[2], steps=[1]] ?a)",
        'a = "2,5", b = "2,3"',
    )[0]
    assert "?q1 <= (dim ?a ?q0)" in first.conditions
    assert "?q1 >= (dim ?b ?q0)" in first.conditions
    assert first.values == {"q0": 1, "q1": 4, "q2": 2, "q3": 1}


def test_without_numbers_nothing_is_proposed() -> None:
    """A rule that has no axis, offset or list stays as it is."""
    assert opened_of("(Neg (Neg ?a))", "?a", 'a = "2,3"') == []

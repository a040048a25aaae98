"""Files of laws of several families."""

import pytest

from rulesets.errors import RuleFileError
from rulesets.law_file import HEADER, sections_of, with_laws, worth_shipping
from rulesets.store import parse_file

LAW = """\
[[rule]]
name = "neg-neg-is-same"
lhs = '(Neg (Neg ?a))'
rhs = '?a'
where = []
float = { tag = "exact" }
instances = [{ a = "2,3" }]
proof = { verdict = "all-sizes", ranks = "any" }
"""


def test_laws_are_named_after_their_family() -> None:
    """The section of a family holds its laws under names that begin with the family's."""
    text = with_laws("", "signs", 2, [LAW])
    (rule,) = parse_file(text, "signs.toml")
    assert text.startswith(HEADER)
    assert rule.name == "signs/neg-neg-is-same"


def test_a_section_is_replaced_and_the_others_stay() -> None:
    """Generating one family again leaves what other families gave as it was."""
    before = with_laws(with_laws("", "signs", 2, [LAW]), "others", 1, [LAW])
    after = with_laws(before, "signs", 2, [LAW.replace("neg-neg", "neg-twice")])
    assert list(sections_of(after)) == ["signs", "others"]
    assert sections_of(after)["others"] == sections_of(before)["others"]
    names = [rule.name for rule in parse_file(after, "signs.toml")]
    assert names == ["signs/neg-twice-is-same", "others/neg-neg-is-same"]


def test_writing_twice_changes_nothing() -> None:
    """The same laws give the same text."""
    once = with_laws(with_laws("", "signs", 2, [LAW]), "others", 1, [LAW])
    assert with_laws(once, "others", 1, [LAW]) == once


def test_other_files_are_refused() -> None:
    """A file that does not begin with the header is not touched."""
    with pytest.raises(RuleFileError, match="begins with its header"):
        with_laws("# rules\n", "signs", 2, [LAW])


def test_a_narrow_way_back_is_not_shipped() -> None:
    """A way back at fixed ranks stays out; one that holds wherever the law does stays."""
    back = LAW.replace("is-same", "is-same.reverse")
    narrow = back.replace("where = []", 'where = ["rank ?a = 2"]')
    assert worth_shipping([LAW, back, narrow], ()) == [LAW, back]


def test_laws_of_other_operators_are_not_shipped() -> None:
    """A family about slices gives no law about signs alone."""
    assert worth_shipping([LAW], ["Slice"]) == []
    assert worth_shipping([LAW], ["Slice", "Neg"]) == [LAW]

"""Laws made wide: conditions dropped and attributes opened where the verifier agrees."""

import pytest

from rulesets.rule import Rule
from rulesets.rule_text import expression_text, tables, term_text
from rulesets.shift import choices, spots
from rulesets.store import parse_file
from rulesets.term import parse_term
from rulesets.verify import Verdict, verify
from rulesets.widen import Wide, widen

NARROW = """[[rule]]
name = "narrow"
lhs = '{lhs}'
rhs = '{rhs}'
where = [{where}]
float = {{ tag = "exact" }}
instances = [{{ {instance} }}]
"""


def widened(lhs: str, rhs: str, where: str, instance: str) -> tuple[str, str, list[str]]:
    """Widen a rule; its sides and conditions."""
    text = NARROW.format(lhs=lhs, rhs=rhs, where=where, instance=instance)
    (rule,) = parse_file(text, "narrow.toml")
    wide = widen(Wide(text, rule, verify(rule)), verify).rule
    sides = [term_text(side) for side in (*wide.lhs, *wide.rhs)]
    return sides[0], sides[1], [each.text for each in wide.where]


def test_a_condition_that_is_not_needed_goes() -> None:
    """Regrouping a sum has nothing to do with matrices."""
    found = widened(
        "(Add (Add ?a ?b) ?c)",
        "(Add ?a (Add ?b ?c))",
        '"rank ?a = 2", "shape ?b = (shape ?a)", "shape ?c = (shape ?a)"',
        'a = "2,3", b = "2,3", c = "2,3"',
    )
    assert found == ("(Add (Add ?a ?b) ?c)", "(Add ?a (Add ?b ?c))", [])


def test_an_attribute_that_is_passed_on_is_opened() -> None:
    """A relu passes any transpose."""
    lhs, rhs, where = widened(
        "(Relu (Transpose[perm=[1, 0]] ?a))",
        "(Transpose[perm=[1, 0]] (Relu ?a))",
        '"rank ?a = 2"',
        'a = "2,3"',
    )
    assert (lhs, rhs, where) == (
        "(Relu (Transpose[perm=?q0] ?a))",
        "(Transpose[perm=?q0] (Relu ?a))",
        [],
    )


def test_a_condition_that_is_needed_stays() -> None:
    """A positive factor leaves a relu, any factor does not."""
    *_, where = widened(
        "(Relu (Mul ?a ?c))",
        "(Mul (Relu ?a) ?c)",
        '"const ?c", "positive ?c", "rank ?a = 2"',
        'a = "2,3", c = "const positive 3"',
    )
    assert set(where) == {"const ?c", "positive ?c"}


def test_offsets_that_add_up_are_opened() -> None:
    """A slice of a slice at numbers becomes the law for all numbers."""
    lhs, rhs, where = widened(
        "(Slice[axes=[1], ends=[3], starts=[1], steps=[1]]"
        " (Slice[axes=[1], ends=[7], starts=[2], steps=[1]] ?a))",
        "(Slice[axes=[1], ends=[5], starts=[3], steps=[1]] ?a)",
        '"rank ?a = 2"',
        'a = "4,9"',
    )
    assert "ends=[(+ ?q1 ?q4)], starts=[(+ ?q2 ?q4)]" in rhs
    assert "starts=[?q4]" in lhs
    assert all("?q" in each for each in where)


def test_lists_of_paddings_are_added() -> None:
    """A padding of a padding pads by the sum, unless the inner one cuts something off."""
    _, rhs, where = widened(
        "(Pad[pads=[1, 2], value=0.0] (Pad[pads=[3, 5], value=0.0] ?a))",
        "(Pad[pads=[4, 7], value=0.0] ?a)",
        '"rank ?a = 1"',
        'a = "4"',
    )
    assert rhs == "(Pad[pads=(plus ?q0 ?q1), value=?q3] ?a)"
    assert set(where) == {"?q1 >= 0"}


def test_a_proof_at_its_sizes_makes_nothing_wider() -> None:
    """What holds at the sizes of an instance says nothing of other attributes."""
    text = NARROW.format(
        lhs="(Relu (Transpose[perm=[1, 0]] ?a))",
        rhs="(Transpose[perm=[1, 0]] (Relu ?a))",
        where='"rank ?a = 2"',
        instance='a = "2,3"',
    )
    (rule,) = parse_file(text, "narrow.toml")
    found = Wide(text, rule, Verdict("at-sizes"))
    assert widen(found, lambda _: Verdict("at-sizes")).text == text


def test_nothing_changes_without_a_proof() -> None:
    """A verifier that proves nothing more leaves the rule as it was."""
    text = NARROW.format(
        lhs="(Relu (Relu ?a))", rhs="(Relu ?a)", where='"rank ?a = 2"', instance='a = "2,3"'
    )
    (rule,) = parse_file(text, "narrow.toml")
    given = Wide(text, rule, Verdict("all-sizes", "2"))

    def prove(_: Rule) -> Verdict:
        return Verdict("unknown")

    assert widen(given, prove) == given


@pytest.mark.parametrize(
    "text",
    [
        "(Add ?x 0.5)",
        "?y:(MatMul ?a (Transpose[perm=[1, 0]] ?b))",
        "(Slice[starts=[(+ ?q 2)], ends=[(dim ?a 0)], axes=[0], steps=[1]] ?a)",
        '(Cast[to="float32"] (Clip[min=-inf, max=1.0, ..k] ?x))',
    ],
)
def test_a_term_is_written_as_it_is_read(text: str) -> None:
    """Reading what was written gives the same term."""
    term = parse_term(text)
    assert parse_term(term_text(term)) == term


def test_what_the_right_side_may_be() -> None:
    """The number at the same place first, then numbers that are a sum."""
    left = spots(
        parse_term("(Slice[starts=[1], ends=[3]] (Slice[starts=[2], ends=[7]] ?a))")
    )
    right = spots(parse_term("(Slice[starts=[3], ends=[5]] ?a)"))
    found = choices(left, 0, right, "p")
    assert [{k: expression_text(v) for k, v in one.items()} for one in found][:1] == [
        {0: "(+ ?p 2)"}
    ]


def test_tables_are_told_apart() -> None:
    """Each table of a file with its name."""
    text = NARROW.format(lhs="(Relu ?a)", rhs="(Relu ?a)", where="", instance='a = "2"')
    assert [name for name, _ in tables(f"# a file\n\n{text}\n{text}")] == [
        "narrow",
        "narrow",
    ]

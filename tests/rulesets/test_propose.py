"""Which laws are proposed as rules: those that shrink and are new."""

from collections.abc import Sequence

import pytest

from rulesets.instantiate import Instantiated
from rulesets.propose import propose, shrinks
from rulesets.rule import Rule
from rulesets.store import parse_file


def rule(lhs: str, rhs: str) -> Rule:
    """Return a rule about matrices."""
    names = sorted({word.strip("()") for word in lhs.split() if word.startswith("?")})
    given = ", ".join(f'{name[1:]} = "3,3"' for name in names)
    text = (
        f"[[rule]]\nname = 'law.reverse'\nlhs = '{lhs}'\nrhs = '{rhs}'\n"
        f"float = {{ tag = 'exact' }}\ninstances = [{{ {given} }}]\n"
    )
    (made,) = parse_file(text, "test.toml")
    return made


FACTOR = rule("(Add (MatMul ?a ?b) (MatMul ?a ?c))", "(MatMul ?a (Add ?b ?c))")
SPREAD = rule("(MatMul ?a (Add ?b ?c))", "(Add (MatMul ?a ?b) (MatMul ?a ?c))")
TURN = rule("(MatMul (MatMul ?a ?b) ?c)", "(MatMul ?a (MatMul ?b ?c))")


@pytest.mark.parametrize(
    ("one", "expected"),
    [(FACTOR, True), (SPREAD, False), (TURN, False)],
    ids=["factor", "spread", "turn"],
)
def test_only_what_gets_smaller_is_proposed(one: Rule, expected: bool) -> None:
    """Directions that keep or raise the number of operators are not."""
    assert shrinks(one) == expected


def test_what_follows_already_is_not_proposed() -> None:
    """The test is asked with the rules there are and those chosen before."""
    asked: list[int] = []

    def derives(made: Instantiated, rules: Sequence[Rule]) -> bool:
        asked.append(len(rules))
        return len(rules) > 1

    found = propose([FACTOR, SPREAD, FACTOR], [TURN], derives)
    assert [each.name for each in found] == ["law"]
    assert asked == [1, 2]

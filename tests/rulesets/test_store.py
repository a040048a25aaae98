"""Rule files: what they may hold, what their errors say, which rules a graph needs."""

from pathlib import Path

import pytest

from rulesets.errors import RuleError, RuleFileError
from rulesets.instance import Sample, parse_sample
from rulesets.store import load, parse_file, relevant

GOOD = """
[[rule]]
name = "relu-twice"
lhs = "(Relu (Relu ?x))"
rhs = "(Relu ?x)"
float = { tag = "exact" }
instances = [{ x = "2,3" }]
"""


def changed(old: str, new: str) -> str:
    """Return the good file with one text replaced."""
    assert old in GOOD
    return GOOD.replace(old, new)


def test_a_file_becomes_rules() -> None:
    """A row becomes a rule of the family its file is named after."""
    (rule,) = parse_file(GOOD, "small.toml")
    assert (rule.name, rule.family, rule.dtypes, rule.float_tag) == (
        *("relu-twice", "small", "float", "exact"),
    )


def test_both_directions_make_two_rules() -> None:
    """``direction = "both"`` adds the rule with its sides swapped."""
    one, other = parse_file(changed("float =", 'direction = "both"\nfloat ='), "s.toml")
    assert other.name == "relu-twice.reverse"
    assert (one.lhs, one.rhs) == (other.rhs, other.lhs)


def test_a_row_can_be_for_measured_costs_only() -> None:
    """``costs = "measured"`` marks a rule that estimated costs cannot judge."""
    (usual,) = parse_file(GOOD, "s.toml")
    (marked,) = parse_file(changed("float =", 'costs = "measured"\nfloat ='), "s.toml")
    assert (usual.measured_only, marked.measured_only) == (False, True)
    with pytest.raises(RuleFileError, match="possible: any, measured"):
        parse_file(changed("float =", 'costs = "gpu"\nfloat ='), "s.toml")


def test_over_makes_one_rule_for_each_operator() -> None:
    """``over`` replaces a letter by each operator of its list."""
    text = changed("(Relu (Relu ?x))", "(F (Relu ?x))")
    text = text.replace("float =", 'over = { F = ["Abs", "Relu"] }\nfloat =')
    rules = parse_file(text, "s.toml")
    assert [rule.name for rule in rules] == ["relu-twice[Abs]", "relu-twice[Relu]"]
    assert [rule.lhs[0].op for rule in rules] == ["Abs", "Relu"]  # type: ignore[union-attr]


BAD = {
    "is not TOML": changed("[[rule]]", "[[rule"),
    r"f.toml has the table 'rules'; possible: \[\[rule\]\]": changed(
        "[[rule]]", "[[rules]]"
    ),
    "rule 'relu-twice' .f.toml, line 3.: unknown operator 'Relux'; known: .*Relu": changed(
        "(Relu (Relu ?x))", "(Relux (Relu ?x))"
    ),
    "rule 'relu-twice' .f.toml, line 3.: a term .* expected, found 'the end', at line 1, "
    "column 16": changed("(Relu (Relu ?x))", "(Relu (Relu ?x)"),
    "unknown key 'lsh'; possible: name, lhs": changed("lhs", "lsh"),
    "it has no 'instances'; needed": changed('instances = [{ x = "2,3" }]', ""),
    "'tag' is 'sharp'; possible: exact, reassociates, risky": changed("exact", "sharp"),
    "'direction' is 'back'; possible: forward, both": changed(
        "float =", 'direction = "back"\nfloat ='
    ),
    "'over' is .*; possible: lists of equal length": changed(
        "float =", 'over = { F = ["Abs"], G = [] }\nfloat ='
    ),
    "an instance gives 'y'; variables: x": changed('x = "2,3"', 'y = "2,3"'),
    "an instance gives no 'x'": changed('{ x = "2,3" }', "{}"),
    "'two' is no tensor; possible: bool const": changed("2,3", "two"),
    r"'lhs' is 3; possible: a text or a list": changed('"(Relu (Relu ?x))"', "3"),
}


@pytest.mark.parametrize(("reason", "text"), BAD.items(), ids=BAD)
def test_a_faulty_file_is_explained(reason: str, text: str) -> None:
    """An error names the file, the line, the rule and what is possible."""
    with pytest.raises(RuleFileError, match=reason):
        parse_file(text, "f.toml")


def test_names_are_unique_over_files(tmp_path: Path) -> None:
    """The same name in two files is an error that names both."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(GOOD, encoding="utf-8")
    with pytest.raises(RuleFileError, match=r"'relu-twice' is in a.toml and in b.toml"):
        load(tmp_path)


def test_only_rules_that_can_match_are_relevant() -> None:
    """A rule stays if its operators are in the graph or made by a rule that stays."""
    shipped = load()
    names = {rule.name for rule in relevant(shipped, ["Div", "Clip", "Add"])}
    assert "hard-sigmoid-from-clip" in names
    assert "product-is-hard-swish" in names
    assert "gemm-trans-b" not in names
    assert [rule.name for rule in relevant(shipped, ["Identity"])] == ["identity"]


def test_the_shipped_rules_load_in_the_same_order() -> None:
    """Loading twice gives the same rules in the same order."""
    assert load() == load()


SAMPLES = {
    "2,3": Sample((2, 3)),
    "const": Sample((), const=True),
    "const positive 3": Sample((3,), const=True, sign="positive"),
    "const int64 1 = -2": Sample((1,), const=True, dtype="int64", value=-2.0),
    "const = 1e-5": Sample((), const=True, value=1e-5),
}


@pytest.mark.parametrize(("text", "sample"), SAMPLES.items(), ids=SAMPLES)
def test_samples_are_read(text: str, sample: Sample) -> None:
    """A text of an instance says kind, sizes and value of a tensor."""
    assert parse_sample(text) == sample


def test_rest_variables_of_an_instance_have_one_length() -> None:
    """Two rest variables of different length are an error."""
    text = changed("(Relu (Relu ?x))", "(Concat[axis=0] (Add ?xs... ?ys...)...)")
    text = text.replace("(Relu ?x)", "(Relu ?xs[0])")
    text = text.replace('{ x = "2,3" }', '{ xs = ["2"], ys = ["2", "2"] }')
    with pytest.raises(RuleError, match=r"have lengths \[1, 2\]"):
        parse_file(text, "f.toml")

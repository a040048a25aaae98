"""Terms and expressions: what the parser reads, and where it says a fault is."""

import pytest

from rulesets.errors import RuleError, ShapeError, TermError
from rulesets.expression import Each, Number, Parameter, Position, Sequenced, evaluate
from rulesets.match import Match
from rulesets.size import symbol
from rulesets.term import (
    Apply,
    Literal,
    Reader,
    Rest,
    Select,
    Spread,
    Variable,
    applications,
    parse_term,
)
from tests.rulesets.term_graph import TermGraph

GOOD = {
    "?x": Variable("x"),
    "?xs...": Rest("xs"),
    "?xs[0]": Select("xs", Number(0)),
    "3": Literal(3.0),
    "-1.5e-2": Literal(-0.015),
    "(Relu ?x)": Apply("Relu", arguments=(Variable("x"),)),
    "?y:(Relu ?x)": Apply("Relu", arguments=(Variable("x"),), label="y"),
    "(Clip[min=0, max=inf] ?x)": Apply(
        "Clip", (("min", Number(0)), ("max", Number(float("inf")))), None, (Variable("x"),)
    ),
    "(Conv[group=1, ..k] ?x ?w)": Apply(
        "Conv", (("group", Number(1)),), "k", (Variable("x"), Variable("w"))
    ),
    "(Concat[axis=?a] (Relu ?xs...)... ?y)": Apply(
        "Concat",
        (("axis", Parameter("a")),),
        None,
        (Spread(Apply("Relu", arguments=(Rest("xs"),))), Variable("y")),
    ),
}


@pytest.mark.parametrize(("text", "term"), GOOD.items(), ids=GOOD)
def test_terms_are_read(text: str, term: object) -> None:
    """Every form of a term is read into its node."""
    assert parse_term(text) == term


BAD = {
    "(Relu ?x": (1, 9, "a term .* expected, found 'the end'"),
    "(Relu\n  ?x))": (2, 6, r"the end expected, found '\)'"),
    "Relu ?x": (1, 1, "a term .* expected, found 'Relu'"),
    "(Relu ?x $)": (1, 10, "'\\$' begins nothing"),
    "(?x)": (1, 2, "an operator expected, found '\\?x'"),
    "(Clip[min] ?x)": (1, 10, "'=' expected, found '\\]'"),
    "(Clip[min=] ?x)": (1, 11, "an expression expected, found '\\]'"),
    "(Clip[min=0, min=1] ?x)": (1, 17, "attribute 'min' is given twice"),
    "(Clip[min=(root 2)] ?x)": (1, 12, "unknown function 'root'; known: rank"),
    "(Clip[min=(rank 2)] ?x)": (1, 17, "a variable expected|'rank' takes"),
    "(Clip[min=(// 2)] ?x)": (1, 16, "'//' takes 2 arguments, found 1"),
}


@pytest.mark.parametrize(("text", "fault"), BAD.items(), ids=BAD)
def test_a_fault_is_located(text: str, fault: tuple[int, int, str]) -> None:
    """An error says the line, the column and what was expected."""
    line, column, reason = fault
    with pytest.raises(TermError, match=reason) as caught:
        parse_term(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_applications_come_outside_first() -> None:
    """The operators of a term are listed from the root to the leaves."""
    term = parse_term("(Add (Relu ?x) (Concat[axis=0] (Tanh ?xs...)...))")
    assert [each.op for each in applications(term)] == ["Add", "Relu", "Concat", "Tanh"]


MATCH = Match(attributes={"p": (2, 0, 1), "n": 7, "s": (symbol("N"), 4), "f": 0.5})
VALUES = {
    "(+ 1 2 3)": 6,
    "(- 5)": -5,
    "(- 5 1 1)": 3,
    "(* ?n 2)": 14,
    "(/ 1 4)": 0.25,
    "(// ?n 2)": 3,
    "(% -1 5)": 4,
    "(int 2.0)": 2,
    "(min 3 ?n)": 3,
    "(max 3 ?n)": 7,
    "(iota 3)": (0, 1, 2),
    "(repeat 1 2)": (1, 1),
    "(length ?p)": 3,
    "(at ?p 0)": 2,
    "(concat ?p [9])": (2, 0, 1, 9),
    "(pick [10, 11, 12] ?p)": (12, 10, 11),
    "(inverse ?p)": (1, 2, 0),
    "(sorted ?p)": (0, 1, 2),
    "(set ?p 1 5)": (2, 5, 1),
    "(drop [7, 8, 9] [0, 2])": (8,),
    "(insert [7, 8] [0, 2] 1)": (1, 7, 1, 8),
    "(slice ?p 1 3)": (0, 1),
    "(plus ?p [1, 1, 1])": (3, 1, 2),
    "(minus ?p [1, 1, 1])": (1, -1, 0),
    "(times ?p [2, 2, 2])": (4, 0, 2),
    "(product [2, 3])": 6,
    "(product ?s)": symbol("N") * 4,
    "(sum ?p)": 3,
    "(spatial 4)": (2, 3),
    "(ones-lost [1, 2, 1, 3] [2, 3])": (0, 2),
    "(ones-lost [1, 1, 2] [1, 2])": (0,),
    "(aligned ?s 3)": (1, symbol("N"), 4),
    '"text"': "text",
}


@pytest.mark.parametrize(("text", "value"), VALUES.items(), ids=VALUES)
def test_functions_compute(text: str, value: object) -> None:
    """Every function of the vocabulary has the value its entry says."""
    reader = Reader(text)
    expression = reader.expression()
    reader.end()
    assert evaluate(expression, MATCH, TermGraph()) == value


NO_VALUE = {
    "(at ?p 3)": "no value here",
    "(pick ?p [-1])": "negative position",
    "(// 1 0)": "no value here",
    "(ones-lost [2] [3])": "more than axes of size 1",
    "(aligned ?p 2)": "the rank is larger",
    "(plus ?p [1])": "no value here",
    "(min ?s 1)": "no value here",
}


@pytest.mark.parametrize(("text", "reason"), NO_VALUE.items(), ids=NO_VALUE)
def test_what_has_no_value_does_not_apply(text: str, reason: str) -> None:
    """A computation without a value raises ShapeError, which means: does not apply."""
    with pytest.raises(ShapeError, match=reason):
        evaluate(Reader(text).expression(), MATCH, TermGraph())


def test_an_unbound_variable_is_the_fault_of_the_rule() -> None:
    """A variable that is not bound raises RuleError and lists those that are."""
    with pytest.raises(RuleError, match=r"\?q is not bound; bound here: f, n, p, s"):
        evaluate(Parameter("q"), MATCH, TermGraph())


def test_position_and_each_stand_in_spreads_only() -> None:
    """``#`` and ``[?x...]`` have a value only once they are written out."""
    with pytest.raises(RuleError, match="outside a spread"):
        evaluate(Position(), MATCH, TermGraph())
    with pytest.raises(RuleError, match="has not been expanded"):
        evaluate(Sequenced((Each(Number(1)),)), MATCH, TermGraph())

"""Conditions: for each word a case where it holds and one where it does not."""

import numpy as np
import pytest

from rulesets.condition import WORDS, describe, holds, parse_condition
from rulesets.errors import TermError
from rulesets.match import Match
from rulesets.size import symbol
from tests.rulesets.term_graph import TermGraph

GRAPH = TermGraph()
MATCH = Match(
    {
        "x": GRAPH.leaf(np.ones((2, 3, 4)), constant=False),
        "c": GRAPH.leaf(np.array([1.0, 2.0, 4.0]).reshape(3, 1), constant=True),
        "one": GRAPH.leaf(np.array([[-2.0]]), constant=True),
        "zero": GRAPH.leaf(np.zeros(4), constant=True),
        "width": GRAPH.leaf(np.ones(4), constant=True),
        "thin": GRAPH.leaf(np.ones((2, 1, 1, 4)), constant=False),
    },
    {"p": (0, 2, 1), "q": (0, 0), "f": 0.1, "n": symbol("N"), "t": (0, 2, 1, 3)},
)

HOLDS = {
    "=": ("rank ?x = 3", "rank ?x = 2"),
    "!=": ("?p != ?q", "?p != [0, 2, 1]"),
    "<": ("dim ?x 0 < 3", "dim ?x 0 < 2"),
    "<=": ("(+ ?n 1) <= (+ ?n 2)", "?n <= 5"),
    ">": ("?f > 0", "?f > 0.1"),
    ">=": ("?q >= 0", "?p >= 1"),
    "const": ("const ?c", "const ?x"),
    "varying": ("varying ?x", "varying ?c"),
    "scalar": ("scalar ?one", "scalar ?c"),
    "positive": ("positive ?c", "positive ?one"),
    "nonzero": ("nonzero ?one", "nonzero ?zero"),
    "every": ("every ?width 1", "every ?c 1"),
    "nested": ("nested ?c ?x", "nested ?c ?width"),
    "fits": ("fits ?c ?x", "fits ?x ?c"),
    "along": ("along ?c ?x 1", "along ?width ?x 1"),
    "moves-ones": ("moves-ones ?thin ?t", "moves-ones ?x ?p"),
    "zeros": ("zeros ?q", "zeros ?p"),
    "finite": ("finite ?f", "finite inf"),
}


def test_every_word_has_a_case() -> None:
    """The table above names every word of the vocabulary."""
    assert set(HOLDS) == set(WORDS)


@pytest.mark.parametrize(("word", "cases"), HOLDS.items(), ids=HOLDS)
def test_words_hold_and_fail(word: str, cases: tuple[str, str]) -> None:
    """Each word holds in its first case and not in its second."""
    condition = parse_condition(cases[0])
    assert condition.word == word
    assert holds(condition, MATCH, GRAPH)
    assert not holds(parse_condition(cases[1]), MATCH, GRAPH)


UNKNOWN = (
    "?n = 4",
    "?n != 4",
    "?n < 4",
    "?n >= 4",
    "positive ?x",
    "scalar ?x",
    "value ?c > 0",
)


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_is_not_known_does_not_hold(text: str) -> None:
    """Symbolic sizes and values of inputs decide nothing."""
    assert not holds(parse_condition(text), MATCH, GRAPH)


def test_vectors_along_the_width_are_not_per_channel() -> None:
    """A vector [w] aligns with the last axis, also where w equals the channels."""
    graph = TermGraph()
    match = Match(
        {
            "x": graph.leaf(np.ones((1, 4, 4, 4)), constant=False),
            "v": graph.leaf(np.ones(4), constant=True),
            "c": graph.leaf(np.ones((4, 1, 1)), constant=True),
            "big": graph.leaf(np.ones((1, 1, 4, 1, 1)), constant=True),
        }
    )
    assert holds(parse_condition("along ?c ?x 1"), match, graph)
    assert holds(parse_condition("along ?v ?x -1"), match, graph)
    assert not holds(parse_condition("along ?v ?x 1"), match, graph)
    assert not holds(parse_condition("along ?big ?x 1"), match, graph)


ENGLISH = {
    "rank ?x = 2": "rank ?x equals 2",
    "?p >= 0": "?p is at least 0",
    "const ?w": "?w depends on no input",
    "along ?c ?x 1": "?c broadcasts into the shape of ?x and varies along axis 1 only",
    "zeros ?p": "every number of ?p is 0",
    "every ?c 1": "every element of the constant ?c equals 1",
}


@pytest.mark.parametrize(("text", "english"), ENGLISH.items(), ids=ENGLISH)
def test_conditions_read_in_english(text: str, english: str) -> None:
    """A condition can be said in English."""
    assert describe(parse_condition(text)) == english


BAD = {
    "konst ?x": "unknown condition 'konst'; possible: = != .* const",
    "rank ?x": "a comparison or a word expected, found 'the end'",
    "const ?x ?y": r"the end expected, found '\?y'",
    "const 3": "a variable expected, found '3'",
    "rank ?x == 2": "an expression expected, found '='",
}


@pytest.mark.parametrize(("text", "reason"), BAD.items(), ids=BAD)
def test_unknown_words_are_errors(text: str, reason: str) -> None:
    """Text that is no condition is refused with what is possible."""
    with pytest.raises(TermError, match=reason):
        parse_condition(text)

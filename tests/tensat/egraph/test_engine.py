"""Statements go to egglog, tables of canonical handles come back."""

from __future__ import annotations

import pytest
from egglog.bindings import EggSmolError

from tensat.egraph.engine import Engine, ENodeRow


def _engine(*rows: tuple[str, tuple[int, ...]]) -> Engine:
    """An engine with the e-nodes 0, 1, ... of some operators and arguments."""
    engine = Engine()
    for handle, (operator, arguments) in enumerate(rows):
        symbol = engine.symbol(operator, len(arguments))
        engine.put(handle, symbol, 0, arguments)
    return engine


def test_e_nodes_come_back() -> None:
    """Tables in order of their names, rows with symbol, attributes, children and class."""
    engine = _engine(("X", ()), ("Relu", (0,)), ("Add", (0, 1)))
    assert list(engine.tables().enodes()) == [
        ENodeRow("Add_2", 0, (0, 1), 2),
        ENodeRow("Relu_1", 0, (0,), 1),
        ENodeRow("X_0", 0, (), 0),
    ]


def test_operators_of_several_arities_are_several_constructors() -> None:
    """A convolution with and without bias do not meet."""
    engine = _engine(("X", ()), ("Sum", (0,)), ("Sum", (0, 0)))
    symbols = {row.symbol for row in engine.tables().enodes()}
    assert symbols == {"X_0", "Sum_1", "Sum_2"}


def test_equal_e_nodes_are_one_class() -> None:
    """The smallest handle stands for all."""
    engine = _engine(("X", ()), ("Relu", (0,)), ("Relu", (0,)))
    assert engine.tables().canonical == {0: 0, 1: 1, 2: 1}


@pytest.mark.parametrize("turned", [False, True])
def test_unions_restore_congruence(turned: bool) -> None:
    """The users of united classes are united in the same call, chains of any length too."""
    rows: list[tuple[str, tuple[int, ...]]] = [("X", ()), ("Y", ())]
    rows += [("Relu", (k,)) for k in range(200)]
    engine = _engine(*rows)
    engine.union(*((1, 0) if turned else (0, 1)))
    canonical = engine.tables().canonical
    assert {handle: canonical[handle] for handle in (1, 3, 201)} == {1: 0, 3: 2, 201: 200}


def test_chained_unions_make_one_class() -> None:
    """Unions queued together may overlap in any order."""
    engine = _engine(*((name, ()) for name in "ABCDE"))
    for pair in ((3, 4), (1, 0), (4, 1), (2, 2)):
        engine.union(*pair)
    assert engine.tables().canonical == {0: 0, 1: 0, 2: 2, 3: 0, 4: 0}


def test_matches_are_canonical() -> None:
    """Rows of relations name classes by handles, integers as they are."""
    engine = _engine(("X", ()), ("Y", ()), ("Relu", (1,)))
    engine.state("(relation found (T i64))")
    engine.state("(ruleset rules)")
    engine.state('(rule ((= r (Relu_1 a x))) ((found x 7)) :ruleset rules :name "find")')
    assert engine.run("rules") == {"find": 1}
    assert engine.tables().matches("found") == [(1, 7)]
    engine.union(0, 1)
    assert engine.tables().matches("found") == [(0, 7)]
    assert engine.tables().matches("nothing") == []


def test_malformed_statements_are_errors() -> None:
    """What egglog does not understand is not passed over."""
    engine = Engine()
    engine.state("(rule")
    with pytest.raises(EggSmolError, match="parse error"):
        engine.flush()


def test_deep_graphs_are_flat_text() -> None:
    """Ten thousand nodes one on the other are no danger to the parser."""
    rows: list[tuple[str, tuple[int, ...]]] = [("X", ())]
    rows += [("Relu", (k,)) for k in range(10_000)]
    assert len(_engine(*rows).tables().canonical) == 10_001


@pytest.mark.parametrize(("most", "ran"), [(899, False), (900, True)])
def test_a_ruleset_with_too_many_matches_is_not_applied(most: int, ran: bool) -> None:
    """Matches are counted first; beyond the limit nothing is done."""
    engine = _engine(*((f"X{k}", ()) for k in range(30)))
    for k in range(30):
        engine.put(30 + k, engine.symbol("Relu", 1), 0, (k,))
        engine.union(30, 30 + k)
    engine.state("(relation found (T T T)) (ruleset rules)")
    engine.state(
        "(rule ((= r (Relu_1 a x)) (= r (Relu_1 b y))) ((found r x y))"
        ' :ruleset rules :name "pairs")'
    )
    assert engine.run_limited("rules", most) is ran
    assert len(engine.tables().matches("found")) == 900 * ran
    assert engine.run_limited("rules", 900)
    assert len(engine.tables().matches("found")) == 900

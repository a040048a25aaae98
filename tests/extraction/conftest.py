"""Small e-graphs written as text: `make("r: f a b = 2; a: x = 1")`."""

from collections.abc import Callable

import pytest

from extraction import EGraph, ENode
from extraction.problem import Problem, from_egraph

type Make = Callable[..., EGraph]


def build(text: str, roots: str = "r") -> EGraph:
    """Return the e-graph of `class: op child … = cost` entries separated by semicolons."""
    nodes = []
    for entry in filter(None, map(str.strip, text.split(";"))):
        eclass, rest = entry.split(":")
        term, cost = rest.split("=")
        op, *children = term.split()
        nodes.append(ENode(op, eclass.strip(), tuple(children), float(cost)))
    return EGraph(nodes, roots.split())


@pytest.fixture
def make() -> Make:
    """The text notation."""
    return build


@pytest.fixture
def pose() -> Callable[..., Problem]:
    """The text notation, as a problem."""
    return lambda text, roots="r": from_egraph(build(text, roots))

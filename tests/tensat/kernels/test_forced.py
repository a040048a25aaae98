"""What the runtime fuses, like it or not, is priced so, however it is written."""

from __future__ import annotations

import math

import pytest

from rulesets.store import load
from tensat.costs.source import Signature
from tensat.egraph.constant_forms import constant_forms
from tensat.kernels.collect import PLAIN_MACHINE, collect
from tensat.kernels.machine import ALL_FUSIONS
from tensat.kernels.matching import Matcher
from tensat.kernels.settle import Candidates, Settled, settle
from tests.tensat.egraph.lab import Lab

SKIP = "com.microsoft:SkipLayerNormalization"
RULES = [
    rule
    for rule in load()
    if rule.name in {"add-is-sum", "layer-norm-from-parts", "pow-two"}
]


class Prices:
    """One second for each operator, fifty for the slow kernel."""

    name = "prices"

    def __init__(self, slow: float = 50.0) -> None:
        self.slow = slow

    def seconds(self, signatures: list[Signature], *_: object) -> list[float]:
        """The list's."""
        return [self.slow if each.op == SKIP else 1.0 for each in signatures]


def written_out(lab: Lab, square: str = "Pow", again: bool = False) -> int:
    """A normalized sum in nine operators and an activation; perhaps the sum, too."""
    total = lab.node("Add", lab.input("x", 2, 3, 8), lab.input("y", 2, 3, 8))
    mean = lab.node("ReduceMean", total, axes=(2,), keepdims=1)
    centred = lab.node("Sub", total, mean)
    two = lab.constant(2.0)
    squares = (
        lab.node("Pow", centred, two)
        if square == "Pow"
        else lab.node("Mul", centred, centred)
    )
    variance = lab.node("ReduceMean", squares, axes=(2,), keepdims=1)
    below = lab.node("Sqrt", lab.node("Add", variance, lab.constant(1e-5)))
    gain, bias = lab.constant([0.5] * 8), lab.constant([0.25] * 8)
    scaled = lab.node("Mul", lab.node("Div", centred, below), gain)
    result = lab.node("Add", scaled, bias)
    return lab.node("Mul", result, total) if again else lab.node("Exp", result)


def chosen(lab: Lab, root: int, slow: float = 50.0) -> tuple[list[str], Settled]:
    """The operators of the cheapest plan."""
    tables = lab.egraph.refresh()
    forms = constant_forms(lab.egraph, tables, 13)
    rows = [row for row in tables.enodes() if row.eclass not in forms]
    roots = [lab.egraph.find(root)]
    matcher = Matcher(lab.egraph, rows, forms, {}, ALL_FUSIONS, 13, roots)
    found = Candidates(collect(matcher, PLAIN_MACHINE), forms, roots)
    settled = settle(found, found, Prices(slow), deadline=1e12, seconds=10.0)
    kernels = [settled.problem.behind[n] for n in settled.choice.node_of.values()]
    return [s.op for k in kernels if k is not None for s in k.signatures], settled


def test_the_model_itself_pays_for_the_slow_kernel() -> None:
    """A sum before a layer norm written out is one kernel with it."""
    lab = Lab()
    ops, settled = chosen(lab, written_out(lab))
    assert sorted(ops) == ["Exp", SKIP]
    assert settled.choice.cost == pytest.approx(51.0)


def test_what_has_no_kernel_is_not_fused() -> None:
    """A runtime that refuses the fused kernel computes its operators."""
    lab = Lab()
    ops, settled = chosen(lab, written_out(lab), math.inf)
    assert sorted(ops) == ["Add", "Exp", "LayerNormalization"]
    assert settled.choice.cost == pytest.approx(3.0, rel=0.05)


def test_another_sum_escapes_it() -> None:
    """Once rules know the layer norm and Sum, the two are chosen instead."""
    lab = Lab(*RULES)
    root = written_out(lab)
    lab.run()
    ops, settled = chosen(lab, root)
    assert sorted(ops) == ["Exp", "LayerNormalization", "Sum"]
    assert settled.choice.cost == pytest.approx(3.0, rel=0.05)


def test_a_sum_that_others_read_stays_by_itself() -> None:
    """The runtime does not fuse it, and neither does the price."""
    lab = Lab()
    ops, _ = chosen(lab, written_out(lab, again=True))
    assert sorted(ops) == ["Add", "LayerNormalization", "Mul"]


def test_what_the_runtime_does_not_fuse_costs_its_operators() -> None:
    """With a product for the square every operator is paid for by itself."""
    lab = Lab()
    ops, _ = chosen(lab, written_out(lab, square="Mul"))
    assert SKIP not in ops
    assert "LayerNormalization" not in ops
    assert len(ops) == 11

"""From e-nodes to kernels to a choice: fusion, layout, and measuring what matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from rulesets.rule import Rule
from tensat.costs.source import Progress, Signature
from tensat.egraph.constant_forms import constant_forms
from tensat.kernels.collect import PLAIN_MACHINE, Kernel, Machine, collect
from tensat.kernels.kernel import Fusion, Layout, Members, Tree
from tensat.kernels.machine import ALL_FUSIONS, cpu_machine
from tensat.kernels.matching import Matcher
from tensat.kernels.places import eclass_of
from tensat.kernels.problem import kernel_problem
from tensat.kernels.settle import Candidates, LazySource, Settled, settle
from tests.tensat.egraph.lab import Lab, rule

LATER = 1e12
"""A deadline that does not come."""


@dataclass
class Prices:
    """Seconds by operator; what is not listed costs one. Remembers what was asked."""

    by_op: dict[str, float]
    least: float = 0.0
    name: str = "prices"
    asked: list[Signature] = field(default_factory=list)

    def seconds(
        self,
        signatures: Sequence[Signature],
        deadline: float | None = None,
        progress: Progress | None = None,
    ) -> list[float]:
        """The list's."""
        self.asked += signatures
        return [self.by_op.get(each.op, 1.0) for each in signatures]

    def known(self, signatures: Sequence[Signature]) -> list[float | None]:
        """Nothing is known before it is asked for."""
        return [None] * len(signatures)

    def floor(self, signature: Signature) -> float:
        """A share of the truth."""
        return self.least * self.by_op.get(signature.op, 1.0)

    def dispatch(self) -> float:
        """Nothing."""
        return 0.0


@dataclass
class Eager:
    """Prices that know no bounds."""

    prices: Prices
    name: str = "eager"

    def seconds(
        self,
        signatures: Sequence[Signature],
        deadline: float | None = None,
        progress: Progress | None = None,
    ) -> list[float]:
        """As the prices."""
        return self.prices.seconds(signatures)


def _candidates(
    lab: Lab,
    root: int,
    fusions: Sequence[Fusion] = ALL_FUSIONS,
    machine: Machine = PLAIN_MACHINE,
) -> Candidates:
    tables = lab.egraph.refresh()
    forms = constant_forms(lab.egraph, tables, 17)
    rows = [row for row in tables.enodes() if row.eclass not in forms]
    roots = [lab.egraph.find(root)]
    matcher = Matcher(lab.egraph, rows, forms, {}, fusions, 17, roots)
    return Candidates(collect(matcher, machine), forms, roots)


def _settled(found: Candidates, prices: Prices | Eager) -> Settled:
    return settle(found, found, prices, deadline=LATER, seconds=20.0)


def _chosen(settled: Settled) -> list[tuple[str, str]]:
    """Operator of the root and layout of each chosen kernel, inputs left out."""
    kernels = (settled.problem.behind[n] for n in settled.choice.node_of.values())
    return sorted(
        (k.signatures[0].op if k.signatures else "", str(k.layout))
        for k in kernels
        if k is not None and not (k.rows and k.rows[0].symbol.startswith("Input"))
    )


def _convolutions(lab: Lab, between: str = "Relu") -> int:
    """Two convolutions of 16 channels with something between them."""
    x = lab.input("x", 1, 16, 8, 8)
    w = lab.constant(np.random.default_rng(0).random((16, 16, 1, 1)))
    first = lab.node("Conv", x, w, strides=(1, 1), pads=(0,) * 4, dilations=(1, 1))
    middle = lab.node(between, first)
    return lab.node("Conv", middle, w, strides=(1, 1), pads=(0,) * 4, dilations=(1, 1))


def _normalized_sum(lab: Lab, *, also: bool = False) -> int:
    x, y = lab.input("x", 1, 4, 8), lab.input("y", 1, 4, 8)
    scale, shift = lab.constant(np.ones(8)), lab.constant(np.zeros(8))
    total = lab.node("Add", x, y)
    norm = lab.node("LayerNormalization", total, scale, shift, axis=2)
    return lab.node("Add", norm, total) if also else norm


def test_fused_operators_are_one_kernel() -> None:
    """A convolution and its activation are priced together, on blocked tensors."""
    lab = Lab()
    found = _candidates(lab, _convolutions(lab), machine=cpu_machine(16))
    settled = _settled(found, Prices({}))
    domain = "com.microsoft.nchwc"
    assert _chosen(settled) == [
        (f"{domain}:Conv", "blocked"), (f"{domain}:Conv", "blocked"),
        (f"{domain}:ReorderInput", "blocked"), (f"{domain}:ReorderOutput", "plain"),
    ]  # fmt: skip
    assert settled.choice.cost == pytest.approx(4.0)


def test_without_blocks_everything_is_plain() -> None:
    """Where the runtime does not block, kernels are the plain ones."""
    lab = Lab()
    found = _candidates(lab, _convolutions(lab), machine=cpu_machine(0))
    layouts = {layout for _, layout in _chosen(_settled(found, Prices({})))}
    assert layouts == {"plain"}


def test_a_plain_island_costs_reorders() -> None:
    """An operator without a blocked form is left and entered again, and both are paid."""
    lab = Lab()
    found = _candidates(lab, _convolutions(lab, "Log"), machine=cpu_machine(16))
    ops = [op for op, _ in _chosen(_settled(found, Prices({})))]
    assert ops.count("com.microsoft.nchwc:ReorderInput") == 2
    assert ops.count("com.microsoft.nchwc:ReorderOutput") == 2
    assert ops.count("Log") == 1


@pytest.mark.parametrize("dear", [False, True])
def test_layouts_are_chosen_by_cost(dear: bool) -> None:
    """Of a pool both forms are offered; the cheaper one is taken."""
    lab = Lab()
    x = lab.input("x", 1, 16, 8, 8)
    window = {"kernel": (2, 2), "strides": (2, 2), "dilations": (1, 1), "pads": (0,) * 4}
    pool = lab.node("MaxPool", x, **window)
    found = _candidates(lab, pool, machine=cpu_machine(16, targeted=True))
    prices = Prices({"MaxPool": 5.0 if dear else 1.0})
    ops = [op for op, _ in _chosen(_settled(found, prices))]
    assert ("com.microsoft.nchwc:MaxPool" in ops) == dear


def test_a_forced_fusion_cannot_be_escaped() -> None:
    """A sum that only its normalization reads is fused, though that is slower."""
    slow = Prices({"com.microsoft:SkipLayerNormalization": 50.0})
    lab = Lab()
    settled = _settled(_candidates(lab, _normalized_sum(lab)), slow)
    assert settled.choice.cost == pytest.approx(50.0)
    lab = Lab(rule("(Add ?x ?y)", "(Sum ?x ?y)"))
    root = _normalized_sum(lab)
    lab.run()
    settled = _settled(_candidates(lab, root), slow)
    assert ("Sum", "plain") in _chosen(settled)


def test_a_sum_that_others_read_is_not_fused() -> None:
    """The residual of a block stays a sum, and its normalization one by itself."""
    lab = Lab()
    slow = Prices({"com.microsoft:SkipLayerNormalization": 50.0})
    settled = _settled(_candidates(lab, _normalized_sum(lab, also=True)), slow)
    ops = [op for op, _ in _chosen(settled)]
    assert ops.count("Add") == 2
    assert settled.choice.cost == pytest.approx(3.0)


def test_equal_kernels_go_to_fewer_operators() -> None:
    """What the runtime fuses anyway is written the shorter way, at no surcharge."""

    def both(members: Members) -> tuple[Signature, ...]:
        first = members[-1]
        return (Signature("Relu", (), first.inputs, first.outputs, 17),)

    fusions = [
        Fusion("two", Tree("Relu", ((0, Tree("Relu")),)), both),
        Fusion("one", Tree("Relu"), both),
    ]
    lab = Lab(rule("(Relu (Relu ?x))", "(Relu ?x)"))
    root = lab.node("Relu", lab.node("Relu", lab.input("x", 2)))
    lab.run()
    settled = _settled(_candidates(lab, root, fusions), Prices({}))
    chosen = [settled.problem.behind[n] for n in settled.choice.node_of.values()]
    assert [len(k.rows) for k in chosen if k is not None and k.signatures] == [1]
    assert settled.choice.cost == pytest.approx(1.0, rel=1e-6)


def _rewritten() -> tuple[Lab, int]:
    """A graph with several equal forms."""
    rules: list[Rule] = [
        rule("(Relu ?x)", "(Max ?x (Sub ?x ?x))", name="a"),
        rule("(Sigmoid ?x)", "(Reciprocal (Exp (Neg ?x)))", name="b"),
        rule("(Exp (Neg ?x))", "(Reciprocal (Exp ?x))", name="c"),
    ]
    lab = Lab(*rules)
    x = lab.input("x", 4)
    for op in ("Relu", "Sigmoid", "Tanh", "Relu", "Sigmoid"):
        x = lab.node(op, x)
    lab.run()
    return lab, x


@pytest.mark.parametrize("least", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("salt", range(6))
def test_measuring_what_matters_finds_the_same_plan(least: float, salt: int) -> None:
    """With any lower bounds the cost is that of measuring everything, for less."""
    ops = ("Relu", "Max", "Sub", "Sigmoid", "Reciprocal", "Exp", "Neg", "Tanh")
    random = np.random.default_rng(salt)
    prices = Prices({op: float(random.random()) for op in ops}, least)
    assert isinstance(prices, LazySource)
    lab, root = _rewritten()
    found = _candidates(lab, root, ())
    lazy = _settled(found, prices)
    everything = _settled(found, Eager(Prices(prices.by_op)))
    assert lazy.choice.cost == pytest.approx(everything.choice.cost)
    assert len(set(prices.asked)) == len(prices.asked) == lazy.measured
    assert lazy.measured <= lazy.asked == everything.measured


def test_late_costs_are_left_to_the_source() -> None:
    """After the deadline all that is missing is asked for at once, to be estimated."""
    lab, root = _rewritten()
    found = _candidates(lab, root, ())
    prices = Prices({}, 0.1)
    settled = settle(found, found, prices, deadline=0.0, seconds=5.0)
    assert set(prices.asked) == {s for k in found.kernels for s in k.signatures}
    assert settled.choice.cost == pytest.approx(7.5, rel=0.02)


def test_only_the_cheapest_of_kernels_with_equal_needs_is_offered() -> None:
    """The others could never be chosen."""
    signature = Signature("Relu", (), (), (), 17)
    kernels = [
        Kernel(1, Layout.PLAIN, (), ("x",), (signature,)),  # type: ignore[arg-type]
        Kernel(2, Layout.PLAIN, ((1, Layout.PLAIN),), ("a",), (signature,)),  # type: ignore[arg-type]
        Kernel(2, Layout.PLAIN, ((1, Layout.PLAIN),), ("b",), (signature,), name="b"),  # type: ignore[arg-type]
    ]
    named = [k if k.name else Kernel(**{**_fields(k), "name": "k"}) for k in kernels]
    problem = kernel_problem(named, [0.0, 2.0, 1.0], {}, [2])
    assert [node.op for node in problem.egraph.nodes] == ["k", "b"]
    assert eclass_of("12.blocked.made") == eclass_of(12) == 12


def _fields(kernel: Kernel) -> dict[str, object]:
    return {name: getattr(kernel, name) for name in Kernel.__slots__}

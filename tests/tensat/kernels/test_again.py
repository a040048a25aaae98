"""A plan can be had again under other costs."""

from __future__ import annotations

import pytest

from extraction import Choice, extract
from tensat.costs.source import Signature
from tensat.kernels.again import again
from tensat.kernels.collect import Kernel
from tensat.kernels.kernel import Layout
from tensat.kernels.problem import Problem, kernel_problem

SIGNATURE = Signature("Relu", (), (), (), 17)


def _kernel(eclass: int, *needs: int, name: str) -> Kernel:
    arguments = tuple((each, Layout.PLAIN) for each in needs)
    rows = (name,)
    return Kernel(eclass, Layout.PLAIN, arguments, rows, (SIGNATURE,), name=name)  # type: ignore[arg-type]


KERNELS = [
    _kernel(1, name="input"),
    _kernel(2, 1, name="a"),
    _kernel(2, 1, name="b"),
    _kernel(3, 2, name="long"),
    _kernel(3, 1, name="short"),
]


def _planned(costs: list[float]) -> tuple[Problem, Choice]:
    problem = kernel_problem(KERNELS, costs, {}, [3], per_operator=0.0)
    return problem, extract(problem.egraph, seconds=10.0)


def _names(problem: Problem, choice: Choice) -> set[str]:
    return {problem.egraph.nodes[node].op for node in choice.node_of.values()}


def test_a_plan_keeps_its_way_and_takes_the_cheapest_kernels() -> None:
    """It stays long where short is cheaper now, but with `b` for `a`."""
    old, choice = _planned([0.0, 1.0, 2.0, 1.0, 9.0])
    new, _ = _planned([0.0, 5.0, 4.0, 1.0, 2.0])
    assert _names(old, choice) == {"input", "a", "long"}
    same = again(old, choice, new)
    assert _names(new, same) == {"input", "b", "long"}
    assert same.cost == pytest.approx(5.0)
    assert same.cost == same.dag_cost(new.egraph)

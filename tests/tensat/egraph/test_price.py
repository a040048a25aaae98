"""Costs of e-nodes: infinite where ONNX cannot say it, zero for constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from rulesets.size import symbol
from rulesets.tensor import Tensor
from tensat.costs.source import Argument, Progress, Signature
from tensat.egraph.constant_forms import constant_forms
from tensat.egraph.price import UNKNOWN_SECONDS, operator_of, question
from tests.tensat.egraph.lab import Lab, rule

N, M = symbol("N"), symbol("M")


@dataclass
class Asked:
    """Costs everything one second and remembers what it was asked."""

    name: str = "asked"
    signatures: list[Signature] = field(default_factory=list)

    def seconds(
        self,
        signatures: Sequence[Signature],
        deadline: float | None = None,
        progress: Progress | None = None,
    ) -> list[float]:
        """One second each."""
        self.signatures += signatures
        return [1.0] * len(signatures)


def _priced(lab: Lab, opset: int = 17, **sizes: int) -> tuple[dict[str, float], Asked]:
    """Seconds by operator, and what was asked."""
    asked = Asked()
    tables = lab.egraph.refresh()
    forms = constant_forms(lab.egraph, tables, opset)
    costs: dict[str, float] = {}
    for row in tables.enodes():
        if row.eclass not in forms:
            answer = question(lab.egraph, row, sizes, opset)
            if isinstance(answer, Signature):
                (answer,) = asked.seconds([answer])
            costs[operator_of(row.symbol)] = answer
    return costs, asked


def test_inputs_outputs_and_absent_ones_are_free() -> None:
    """Only what computes is asked for."""
    lab = Lab()
    part = lab.node("Split", lab.input("x", 2, 4), axis=1, parts=(2, 2))
    absent = lab.egraph.put("Absent", {}, [], (Tensor("unknown", None),))
    lab.egraph.put("Opaque", {"key": "k"}, [part, absent], (Tensor("float32", (2, 2)),))
    costs, asked = _priced(lab)
    assert costs == {"Input": 0, "Split": 1, "Output": 0, "Absent": 0, "Opaque": 1}
    assert {each.op for each in asked.signatures} == {"Split", "Opaque"}


def test_classes_of_constants_have_no_cost_and_no_e_nodes() -> None:
    """They are computed before the model runs."""
    lab = Lab()
    c = lab.constant(np.ones(3))
    lab.node("Add", lab.input("x", 2, 3), lab.node("Neg", c))
    costs, _ = _priced(lab)
    assert costs == {"Input": 0, "Add": 1}


def test_signatures_are_concrete() -> None:
    """Symbolic sizes have values; constants are marked, scalars with their number."""
    lab = Lab()
    x = lab.input("x", N, 4)
    lab.node("Reshape", lab.node("Mul", x, lab.constant(2.5)), shape=(N, 2, 2))
    _, asked = _priced(lab, N=3)
    by_op = {each.op: each for each in asked.signatures}
    assert by_op["Mul"].inputs == (
        Argument("float32", (3, 4)), Argument("float32", (), True, 2.5),
    )  # fmt: skip
    assert by_op["Reshape"].attributes == (("shape", (3, 2, 2)),)
    assert by_op["Reshape"].outputs == (Argument("float32", (3, 2, 2)),)


@pytest.mark.parametrize(
    ("op", "shape", "attributes", "opset", "possible"),
    [
        pytest.param("Erf", (2,), {}, 8, False, id="Erf before 9"),
        pytest.param("Erf", (2,), {}, 9, True, id="Erf at 9"),
        pytest.param("Gelu", (2,), {"approximate": "none"}, 8, False, id="Gelu at 8"),
        pytest.param("Gelu", (2,), {"approximate": "none"}, 9, True, id="Gelu by Erf"),
        pytest.param("Reshape", (N, M), {"shape": (M, N)}, 17, False, id="two open sizes"),
        pytest.param("Reshape", (N, 4), {"shape": (N, 2, 2)}, 17, True, id="one open size"),
    ],
)
def test_what_the_opset_cannot_say_is_never_chosen(
    op: str,
    shape: tuple[object, ...],
    attributes: dict[str, object],
    opset: int,
    possible: bool,
) -> None:
    """Its cost is infinite, however fast it would be."""
    lab = Lab()
    lab.node(op, lab.input("x", *shape), **attributes)  # type: ignore[arg-type]
    costs, asked = _priced(lab, opset, N=2, M=3)
    assert costs[op] == (1.0 if possible else math.inf)
    assert bool(asked.signatures) is possible


def test_original_nodes_of_unknown_size_can_be_kept() -> None:
    """They cost little; what a rule makes of them cannot be priced and is not used."""
    lab = Lab(rule("(Relu ?x)", "(Clip[min=0, max=inf] ?x)"))
    x = lab.input("x", N, 4)
    lab.node("Relu", x)
    lab.run()
    costs, _ = _priced(lab)
    assert costs["Relu"] == UNKNOWN_SECONDS
    assert costs["Clip"] == math.inf


def test_operators_of_symbols() -> None:
    """Names of constructors end in the number of arguments."""
    assert operator_of("Relu_1") == "Relu"
    assert operator_of("My_Op_12") == "My_Op"

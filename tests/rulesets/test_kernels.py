"""The fast kernels of the generator: equal to the operators' own element rules."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from rulesets.errors import UnknownOperatorError
from rulesets.kernels import KERNELS, apply, part
from rulesets.ops import OPERATORS, complete
from rulesets.reference import evaluate

CONV = {"strides": (2, 1), "pads": (1, 0, 1, 2), "dilations": (1, 2)}
POOL = {**CONV, "kernel": (3, 2), "dilations": (1, 1), "pads": (1, 0, 1, 1)}

CASES: tuple[tuple[str, dict[str, Any], tuple[tuple[int, ...], ...]], ...] = (
    *((name, {}, ((2, 3),)) for name in ("Identity", "Relu", "Neg", "Abs", "Exp")),
    *((name, {}, ((2, 3),)) for name in ("Tanh", "Sigmoid", "Reciprocal")),
    ("Log", {}, ((2, 3),)),
    ("Sqrt", {}, ((2, 3),)),
    *((name, {}, ((2, 3),)) for name in ("Erf", "Gelu", "HardSwish", "Elu", "HardSigmoid")),
    ("Cast", {"to": "float64"}, ((2, 3),)),
    ("LeakyRelu", {"alpha": 0.25}, ((2, 3),)),
    *(("Sum", {}, shapes) for shapes in (((2, 3),), ((2, 3), (3,), (2, 1)))),
    ("Pow", {}, ((2, 3), (3,))),
    ("Squeeze", {"axes": (0, 2)}, ((1, 3, 1),)),
    *(("Flatten", {"axis": axis}, ((2, 3, 4),)) for axis in (0, 1, 3)),
    ("Clip", {"min": -0.5, "max": 0.5}, ((2, 3),)),
    *((name, {}, ((2, 3), (2, 3))) for name in ("Add", "Sub", "Mul", "Div")),
    *((name, {}, ((2, 3), (3,))) for name in ("Add", "Sub", "Mul", "Div")),
    *((name, {}, ((2, 3), ())) for name in ("Mul", "Max", "Min")),
    ("MatMul", {}, ((2, 3), (3, 4))),
    ("MatMul", {}, ((2, 5, 3), (3, 4))),
    ("MatMul", {}, ((5, 3), (2, 3, 4))),
    ("Transpose", {"perm": (2, 0, 1)}, ((2, 3, 4),)),
    ("Reshape", {"shape": (6, 4)}, ((2, 3, 4),)),
    ("Unsqueeze", {"axes": (0, 2)}, ((2, 3),)),
    ("Concat", {"axis": 1}, ((2, 3), (2, 4))),
    ("Slice", {"starts": (1,), "ends": (4,), "axes": (1,), "steps": (2,)}, ((2, 5),)),
    ("Pad", {"pads": (0, 1, 2, 0), "value": 0.5}, ((2, 3),)),
    ("Expand", {"shape": (4, 2, 3)}, ((2, 1),)),
    ("Expand", {"shape": (2, 3)}, ((2, 1),)),
    *((f"Reduce{n}", {"axes": (1,), "keepdims": 0}, ((2, 3),)) for n in ("Sum", "Max")),
    *((f"Reduce{n}", {"axes": (0, 2)}, ((2, 3, 4),)) for n in ("Mean", "Min", "Prod")),
    ("Softmax", {"axis": 1}, ((2, 3, 4),)),
    ("LayerNormalization", {"axis": 1, "epsilon": 1e-3}, ((2, 4), (4,), (4,))),
    ("RMSNormalization", {"axis": 1, "epsilon": 1e-3}, ((2, 4), (4,))),
    ("Conv", CONV, ((2, 3, 5, 6), (4, 3, 3, 2))),
    ("Conv", CONV, ((2, 3, 5, 6), (4, 3, 3, 2), (4,))),
    ("Conv", {**CONV, "group": 2}, ((2, 4, 5, 6), (6, 2, 3, 2))),
    ("Conv", {"strides": (2,), "pads": (1, 0), "dilations": (1,)}, ((1, 2, 7), (3, 2, 3))),
    ("ConvTranspose", {**CONV, "output_padding": (0, 0)}, ((2, 3, 5, 6), (3, 4, 3, 2))),
    (
        "ConvTranspose",
        {**CONV, "output_padding": (1, 0), "group": 2},
        ((2, 4, 5, 6), (4, 3, 3, 2)),
    ),
    ("MaxPool", POOL, ((2, 3, 5, 6),)),
    ("AveragePool", {**POOL, "count_include_pad": 1}, ((2, 3, 5, 6),)),
    ("AveragePool", POOL, ((2, 3, 5, 6),)),
    ("GlobalAveragePool", {}, ((2, 3, 5, 6),)),
    ("GlobalMaxPool", {}, ((2, 3, 5, 6),)),
)


def name_of(case: tuple[str, Mapping[str, Any], tuple[tuple[int, ...], ...]]) -> str:
    """Name a case by operator and shapes."""
    return f"{case[0]}-{'-'.join('x'.join(map(str, shape)) for shape in case[2])}"


def test_every_kernel_has_a_case() -> None:
    """No kernel goes untested."""
    assert {case[0] for case in CASES} == set(KERNELS)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_kernel_agrees_with_the_element_rule(
    case: tuple[str, dict[str, Any], tuple[tuple[int, ...], ...]],
) -> None:
    """A batch of two terms at three points holds what the element rule gives for each."""
    op, given, shapes = case
    attributes = complete(OPERATORS[op], given)
    generator = np.random.default_rng(5)
    batches = [generator.standard_normal((2, 3, *shape)) for shape in shapes]
    if op in ("Log", "Sqrt", "Pow"):
        batches = [np.abs(batch) + 0.1 for batch in batches]
    found = apply(op, attributes, *batches)
    for term in range(2):
        for point in range(3):
            (wanted,) = evaluate(op, attributes, [batch[term, point] for batch in batches])
            np.testing.assert_allclose(found[term, point], wanted, rtol=1e-9, atol=1e-12)


def test_a_part_is_an_output_of_the_split() -> None:
    """The second part of a Split starts where the first ends."""
    x = np.random.default_rng(1).standard_normal((1, 2, 2, 5))
    attributes = complete(OPERATORS["Split"], {"axis": 1, "parts": (2, 3)})
    wanted = evaluate("Split", attributes, [x[0, 1]])
    np.testing.assert_array_equal(part(attributes, 1, x)[0, 1], wanted[1])


def test_batches_of_one_broadcast() -> None:
    """A constant is one term at one point and meets any batch."""
    x = np.ones((4, 3, 2, 2))
    eye = apply("Eye", {"size": 2, "dtype": "float32"})
    assert apply("MatMul", {}, x, eye).shape == (4, 3, 2, 2)


def test_an_operator_without_kernel_is_named() -> None:
    """The error says which kernels there are."""
    with pytest.raises(
        UnknownOperatorError, match="'Softplus' has no kernel; there is one for"
    ):
        apply("Softplus", {}, np.ones((1, 1, 2)))

"""Handles, types, constants and unions of the e-graph of tensors."""

from __future__ import annotations

import numpy as np
import pytest

from rulesets.errors import ShapeError
from rulesets.size import symbol
from rulesets.tensor import Tensor
from tensat.egraph.tensor_types import byte_size
from tensat.errors import UnsoundRuleError
from tests.tensat.egraph.lab import Lab

F32 = "float32"


def test_equal_applications_have_one_handle() -> None:
    """An operator applied again to the same arguments is the node that exists."""
    lab = Lab()
    x = lab.input("x", 2, 3)
    first = lab.node("Relu", x)
    assert lab.node("Relu", x) == first
    assert lab.node("LeakyRelu", x, alpha=0.1) != lab.node("LeakyRelu", x, alpha=0.2)


def test_a_union_counts_from_the_next_refresh_on() -> None:
    """Until then both classes answer for themselves; then the smaller handle for both."""
    lab = Lab()
    x = lab.input("x", 2, 3)
    a, b = lab.node("Relu", x), lab.node("Abs", x)
    lab.egraph.union(b, a)
    assert not lab.same(a, b)
    lab.egraph.refresh()
    assert lab.egraph.find(b) == lab.egraph.find(a) == a


def test_congruence_reaches_the_users_of_united_classes() -> None:
    """Equal functions of classes that became one are one, however deep."""
    lab = Lab()
    x, y = lab.input("x", 2, 3), lab.input("y", 2, 3)
    deep = []
    for value in (x, y):
        for _ in range(50):
            value = lab.node("Tanh", lab.node("Sigmoid", value))
        deep.append(value)
    lab.egraph.union(x, y)
    lab.egraph.refresh()
    assert lab.same(*deep)
    assert lab.egraph.size() == 1 + 100 + 1
    assert lab.node("Sigmoid", y) == lab.egraph.find(lab.node("Sigmoid", x))


def test_the_node_table_is_restated_after_unions() -> None:
    """An application to any member of a class is found, and adds nothing."""
    lab = Lab()
    x, y = lab.input("x", 2, 3), lab.input("y", 2, 3)
    z = lab.node("Add", y, y)
    lab.egraph.union(x, y)
    lab.egraph.refresh()
    size = lab.egraph.size()
    for pair in ((x, x), (x, y), (y, x), (y, y)):
        assert lab.egraph.node("Add", {}, pair) == lab.egraph.find(z)
    assert lab.egraph.size() == size


def test_rollback_forgets_nodes_values_and_unions() -> None:
    """What was made since the mark is gone, and can be made again."""
    lab = Lab()
    x = lab.input("x", 2, 3)
    two = lab.constant(2.0)
    lab.egraph.refresh()
    mark, size = lab.egraph.mark(), lab.egraph.size()
    made = lab.egraph.node("Relu", {}, [x])
    four = lab.egraph.node("Mul", {}, [two, two])
    lab.egraph.union(made, x)
    lab.egraph.rollback(mark)
    assert lab.egraph.size() == size
    assert lab.egraph.mark() == mark
    lab.egraph.refresh()
    assert lab.egraph.node("Relu", {}, [x]) == made == mark
    assert lab.egraph.node("Mul", {}, [two, two]) == four
    lab.egraph.refresh()
    assert not lab.same(x, made)


def test_rollback_keeps_the_value_table_of_what_stays() -> None:
    """A twin that is forgotten takes no entry of an older constant with it."""
    lab = Lab()
    two, four = lab.constant(2.0), lab.constant(4.0)
    mark = lab.egraph.mark()
    lab.egraph.node("Mul", {}, [two, two])
    lab.egraph.rollback(mark)
    again = lab.egraph.node("Mul", {}, [two, two])
    lab.egraph.refresh()
    assert lab.same(again, four)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        pytest.param(("float32", 2.0), ("float32", 2.0), True, id="equal"),
        pytest.param(("float32", [1.0, 2.0]), ("float32", [1.0, 2.0]), True, id="arrays"),
        pytest.param(("float32", 2.0), ("float32", [2.0]), False, id="shape"),
        pytest.param(("float32", 2.0), ("float64", 2.0), False, id="float type"),
        pytest.param(("float32", 2.0), ("int64", 2), False, id="int and float"),
        pytest.param(("int64", 2), ("int32", 2), False, id="int types"),
        pytest.param(("int64", 1), ("bool", True), False, id="bool"),
        pytest.param(("float32", 0.0), ("float32", -0.0), False, id="zeros"),
        pytest.param(
            ("float32", 1.0), ("float32", np.nextafter(np.float32(1), np.float32(2))),
            False, id="one ulp of float32",
        ),
        pytest.param(
            ("float64", 1.0), ("float64", np.nextafter(1.0, 2.0)), False,
            id="one ulp of float64",
        ),
        pytest.param(
            ("float16", 1.0), ("float16", np.nextafter(np.float16(1), np.float16(2))),
            False, id="one ulp of float16",
        ),
        pytest.param(
            ("int64", 2**62), ("int64", 2**62 + 1), False, id="large integers"
        ),
        pytest.param(("float32", np.nan), ("float32", 0.0), False, id="NaN and zero"),
        pytest.param(("float32", np.inf), ("float32", -np.inf), False, id="infinities"),
        pytest.param(("float32", 1e-45), ("float32", 0.0), False, id="denormal and zero"),
    ],
)  # fmt: skip
def test_small_constants_are_one_when_type_and_value_are(
    first: tuple[str, object], second: tuple[str, object], same: bool
) -> None:
    """Equal by type, shape and every bit, and only then."""
    lab = Lab()
    handles = [lab.constant(value, dtype) for dtype, value in (first, second)]
    lab.egraph.refresh()
    assert lab.same(*handles) is same


def test_large_constants_that_differ_in_one_element_stay_two() -> None:
    """Nothing is known of the value of a large constant, so none equals another."""
    for dtype in ("float32", "bool", "int64"):
        lab = Lab()
        mask = np.zeros(5000, dtype)
        other = mask.copy()
        other[4321] = 1
        handles = [lab.constant(array, dtype) for array in (mask, other)]
        lab.egraph.refresh()
        assert not lab.same(*handles)
        assert lab.egraph.constant(handles[0])
        assert lab.egraph.array(handles[0]) is None


@pytest.mark.parametrize(
    ("steps", "same"),
    [
        pytest.param((("Mul", 2.0), ("Div", 2.0)), True, id="times and over two"),
        pytest.param((("Add", 3.0), ("Sub", 3.0)), True, id="plus and minus three"),
        pytest.param((("Mul", 3.0), ("Mul", 1 / 3)), False, id="a third in float32"),
        pytest.param((("Mul", 2.0), ("Add", 0.0)), False, id="times two"),
        pytest.param((("Add", 1e-6),), False, id="a small shift"),
    ],
)
def test_large_constants_have_affine_values(
    steps: tuple[tuple[str, float], ...], same: bool
) -> None:
    """Scale and shift of a weight are followed exactly."""
    lab = Lab()
    weight = handle = lab.constant(np.ones((80, 64)))
    for op, number in steps:
        handle = lab.egraph.node(op, {}, [handle, lab.constant(number)])
    lab.egraph.refresh()
    assert lab.same(weight, handle) is same


def test_ways_to_one_affine_value_meet() -> None:
    """(w a) b, (w b) a and w (a b) are one class; with another a they are not."""
    lab = Lab()
    w = lab.constant(np.ones((80, 64)))
    a, b = lab.constant(np.arange(1, 65) / 7), lab.constant(np.full((1, 1), 0.3))
    one = lab.egraph.node("Mul", {}, [lab.egraph.node("Mul", {}, [w, a]), b])
    two = lab.egraph.node("Mul", {}, [b, lab.egraph.node("Mul", {}, [w, b])])
    three = lab.egraph.node("Mul", {}, [a, lab.egraph.node("Mul", {}, [b, w])])
    lab.egraph.refresh()
    assert lab.same(one, three)
    assert not lab.same(one, two)


def test_results_over_different_weights_stay_apart() -> None:
    """The leaf is part of the value: equal factors of two weights are two constants."""
    lab = Lab()
    pair = [lab.constant(np.zeros((80, 64)), key=key) for key in ("one", "two")]
    two = lab.constant(2.0)
    doubled = [lab.egraph.node("Mul", {}, [weight, two]) for weight in pair]
    moved = [lab.egraph.node("Transpose", {"perm": (1, 0)}, [weight]) for weight in pair]
    lab.egraph.refresh()
    assert not lab.same(*doubled)
    assert not lab.same(*moved)
    assert not lab.same(doubled[0], pair[0])


def test_a_product_that_outgrows_its_factors_is_no_constant() -> None:
    """A column times a row has rank 1 and would fill the file: it is not folded."""
    lab = Lab()
    column, row = lab.constant(np.ones((3000, 1))), lab.constant(np.ones((1, 3000)))
    assert not lab.egraph.constant(lab.egraph.node("Mul", {}, [column, row]))
    assert not lab.egraph.constant(lab.egraph.node("MatMul", {}, [column, row]))
    assert lab.egraph.constant(lab.egraph.node("MatMul", {}, [row, column]))


def test_an_expand_that_outgrows_its_source_is_no_constant() -> None:
    """What repeats a small constant stays a node; a kilobyte of growth is allowed."""
    lab = Lab()
    one = lab.constant(np.ones((1, 4)))
    large = lab.egraph.node("Expand", {"shape": (1000, 4)}, [one])
    small = lab.egraph.node("Expand", {"shape": (5, 4)}, [one])
    assert not lab.egraph.constant(large)
    assert lab.egraph.constant(small)


def test_the_budget_grows_with_the_model() -> None:
    """A hundredth of all weights may be added by one constant."""
    for total, folded in ((0, False), (10_000_000, True)):
        lab = Lab(constant_bytes=total)
        one = lab.constant(np.ones((1, 4)))
        large = lab.egraph.node("Expand", {"shape": (1000, 4)}, [one])
        assert lab.egraph.constant(large) is folded


def test_each_weight_counts_once_in_the_budget() -> None:
    """A constant made of one weight in many ways is allowed that weight's bytes once."""
    lab = Lab()
    w = lab.constant(np.ones((40, 40)))
    doubled = lab.egraph.node("Concat", {"axis": 0}, [w, w])
    assert not lab.egraph.constant(doubled)
    other = lab.constant(np.ones((40, 40)))
    assert lab.egraph.constant(lab.egraph.node("Concat", {"axis": 0}, [w, other]))


@pytest.mark.parametrize(
    ("op", "dtype", "numbers"),
    [
        pytest.param("Mul", "float32", (1e30, 1e30), id="overflow"),
        pytest.param("Mul", "float32", (1e-30, 1e-30), id="underflow"),
        pytest.param("Mul", "float16", (300.0, 300.0), id="overflow of float16"),
        pytest.param("Mul", "float16", (1e-3, 1e-3), id="underflow of float16"),
        pytest.param("Add", "float16", (60000.0, 60000.0), id="sum of float16"),
        pytest.param("Div", "float32", (1.0, 0.0), id="division by zero"),
        pytest.param("Div", "float32", (0.0, 0.0), id="zero by zero"),
        pytest.param("Mul", "float32", (1e-20, 1e-20), id="denormal"),
    ],
)
def test_folding_that_loses_a_value_is_refused(
    op: str, dtype: str, numbers: tuple[float, float]
) -> None:
    """A constant beyond the range of its type is no constant, and no node either."""
    lab = Lab()
    pair = [lab.constant(number, dtype) for number in numbers]
    size = lab.egraph.size()
    with pytest.raises(ShapeError, match=f"{op} of constants leaves the range of {dtype}"):
        lab.egraph.node(op, {}, pair)
    assert lab.egraph.size() == size


@pytest.mark.parametrize("factor", [1e30, 1e-30], ids=["overflow", "underflow"])
def test_folding_that_loses_a_large_value_is_refused(factor: float) -> None:
    """The scale of a large weight must stay within the range of its type, too."""
    lab = Lab()
    weight, number = lab.constant(np.ones((80, 64))), lab.constant(factor)
    scaled = lab.egraph.node("Mul", {}, [weight, number])
    with pytest.raises(ShapeError, match="Mul of constants leaves the range of float32"):
        lab.egraph.node("Mul", {}, [scaled, number])


def test_an_original_node_of_degenerate_value_stays_a_node() -> None:
    """What the model itself computes is kept, whatever comes out."""
    lab = Lab()
    zero, one = lab.constant(0.0), lab.constant(1.0)
    infinite = lab.egraph.put("Div", {}, [one, zero], (Tensor(F32, ()),))
    assert not lab.egraph.constant(infinite)


def test_types_of_united_classes_complete_each_other() -> None:
    """A class has the static sizes and the rank that any of its members knows."""
    n = symbol("N")
    lab = Lab()
    egraph = lab.egraph
    x = lab.input("x", 2, 3)
    unknown = egraph.put("Opaque", {"key": "a"}, [x], (Tensor(F32, None),))
    open_one = egraph.put("Opaque", {"key": "b"}, [x], (Tensor(F32, (n, 3)),))
    static = egraph.put("Opaque", {"key": "c"}, [x], (Tensor(F32, (2, 3)),))
    egraph.union(unknown, open_one)
    egraph.refresh()
    assert egraph.tensor(unknown) == Tensor(F32, (n, 3))
    egraph.union(open_one, static)
    egraph.refresh()
    assert egraph.tensor(unknown) == egraph.tensor(static) == Tensor(F32, (2, 3))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Tensor(F32, (3, 2)), id="sizes"),
        pytest.param(Tensor(F32, (2, 3, 1)), id="rank"),
        pytest.param(Tensor("float16", (2, 3)), id="element type"),
        pytest.param(Tensor("float16", None), id="element type, rank unknown"),
    ],
)
def test_classes_of_different_type_never_become_one(other: Tensor) -> None:
    """Their union shows that a rule is wrong, and names the rules behind them."""
    lab = Lab()
    x = lab.input("x", 2, 3)
    lab.egraph.rule = "wrong-rule"
    y = lab.egraph.put("Opaque", {"key": "y"}, [x], (other,))
    lab.egraph.union(x, y)
    with pytest.raises(UnsoundRuleError, match=r"became one.*types differ.*wrong-rule"):
        lab.egraph.refresh()


def test_a_constant_class_keeps_the_value_that_either_side_knows() -> None:
    """The canonical handle answers for what the other one knew."""
    lab = Lab()
    x = lab.input("x", 2, 3)
    zero = lab.constant(np.zeros((2, 3)))
    difference = lab.node("Sub", x, x)
    lab.egraph.union(difference, zero)
    lab.egraph.refresh()
    array = lab.egraph.array(difference)
    assert lab.egraph.constant(difference)
    assert array is not None
    np.testing.assert_array_equal(array, np.zeros((2, 3)))


def test_dependence_follows_original_nodes() -> None:
    """A value depends on all it is computed from, through nodes that rules made."""
    lab = Lab()
    x = lab.input("x", 2, 3)
    a = lab.node("Relu", x)
    b, c = lab.node("Tanh", a), lab.node("Tanh", x)
    made = lab.egraph.node("Neg", {}, [a])
    assert lab.egraph.depends(b, a)
    assert lab.egraph.depends(made, a)
    assert not lab.egraph.depends(a, b)
    assert not lab.egraph.depends(c, b)
    assert not lab.egraph.depends(b, c)


@pytest.mark.parametrize(
    ("value", "dtype", "scalar"),
    [
        pytest.param(2.5, "float32", 2.5, id="scalar"),
        pytest.param([[2.5]], "float32", 2.5, id="one element"),
        pytest.param([1.0, 1.0], "float32", None, id="two elements"),
        pytest.param(3, "int64", 3.0, id="integer"),
        pytest.param(True, "bool", None, id="bool"),
        pytest.param([], "float32", None, id="empty"),
    ],
)
def test_scalars(value: object, dtype: str, scalar: float | None) -> None:
    """A constant with one element, of any rank, is a number to rules."""
    lab = Lab()
    assert lab.egraph.scalar(lab.constant(value, dtype)) == scalar


@pytest.mark.parametrize(
    ("tensor", "size"),
    [
        pytest.param(Tensor(F32, (2, 3)), 24, id="float32"),
        pytest.param(Tensor("int4", (3,)), 2, id="int4"),
        pytest.param(Tensor(F32, ()), 4, id="scalar"),
        pytest.param(Tensor(F32, (symbol("N"), 3)), None, id="symbolic"),
        pytest.param(Tensor(F32, None), None, id="rank unknown"),
        pytest.param(Tensor("string", (3,)), None, id="strings"),
    ],
)
def test_bytes(tensor: Tensor, size: int | None) -> None:
    """Static tensors of fixed width have a number of bytes, others none."""
    assert byte_size(tensor) == size


def test_operators_that_are_never_folded() -> None:
    """Opaque nodes over constants may be random; several results have no one value."""
    lab = Lab()
    c = lab.constant(np.ones((2, 4)))
    opaque = lab.egraph.put("Opaque", {"key": "rand"}, [c], (Tensor(F32, (2, 4)),))
    part = lab.node("Split", c, axis=1, parts=(2, 2))
    assert not lab.egraph.constant(opaque)
    assert not lab.egraph.constant(part)
    absent = lab.egraph.put("Absent", {}, [], (Tensor("unknown", None),))
    assert not lab.egraph.constant(absent)

"""Specifications of operators: attributes, and what every shape rule owes."""

import numpy as np
import pytest

from rulesets.errors import AttributeValueError, ShapeError
from rulesets.ops import OPERATORS, SPECIAL, Attributes, array_of, complete, freeze, single
from rulesets.ops.layout import END
from rulesets.size import Size, evaluate, symbol
from rulesets.tensor import Shape, Tensor
from tests.rulesets.ops.cases import Case, cases

N, M = symbol("n"), symbol("m")
CASES = tuple(cases(7, 6))
APPLIED = [case for case in CASES if case.inputs]


def infer(name: str, attributes: Attributes, *shapes: Shape | None) -> Shape | None:
    """Return the shape of an operator's result on float32 arguments."""
    operator = OPERATORS[name]
    inputs = tuple([Tensor("float32", shape) for shape in shapes])
    return operator.infer(complete(operator, attributes), inputs)[0].shape


@pytest.mark.parametrize("case", APPLIED, ids=str)
def test_symbolic_shapes_agree_with_static_ones(case: Case) -> None:
    """Sizes replaced by symbols of that value give a shape of the same value, if any."""
    names: dict[int, str] = {}
    for size in (size for one in case.inputs for size in one.shape or () if size != 1):
        assert isinstance(size, int)
        names.setdefault(size, f"s{size}")
    values = {name: size for size, name in names.items()}

    def lifted(size: Size) -> Size:
        return symbol(names[size]) if isinstance(size, int) and size in names else size

    lifts = [
        Tensor(one.dtype, tuple([lifted(size) for size in one.shape or ()]))
        for one in case.inputs
    ]
    try:
        found = case.operator.infer(case.attributes, tuple(lifts))
    except ShapeError:
        return  # sizes in attributes are not known to equal the symbols
    expected = case.operator.infer(case.attributes, case.inputs)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert tuple([evaluate(size, values) for size in one.shape or ()]) == other.shape


@pytest.mark.parametrize(
    "case", [one for one in APPLIED if one.operator.elementwise], ids=str
)
def test_elementwise_operators_keep_a_symbolic_shape(case: Case) -> None:
    """Arguments of one symbolic shape give a result of that shape."""
    inputs = tuple([Tensor(one.dtype, (N, 3, M)) for one in case.inputs])
    (result,) = case.operator.infer(case.attributes, inputs)
    assert result.shape == (N, 3, M)


@pytest.mark.parametrize("case", APPLIED, ids=str)
def test_unknown_rank_gives_unknown_rank(case: Case) -> None:
    """Where a rank is unknown the result's rank is unknown and its type is known."""
    blank = tuple([Tensor(one.dtype, None) for one in case.inputs])
    known = case.operator.infer(case.attributes, case.inputs)
    found = case.operator.infer(case.attributes, blank)
    assert found == tuple([Tensor(one.dtype, None) for one in known])


@pytest.mark.parametrize("case", APPLIED, ids=str)
def test_too_many_arguments_are_refused(case: Case) -> None:
    """An operator of fixed arity refuses one argument more."""
    most = case.operator.arity[1]
    if most is not None:
        many = (*case.inputs, *case.inputs[:1] * (most + 1 - len(case.inputs)))
        with pytest.raises(ShapeError, match=f"{most} arguments; found {most + 1}"):
            case.operator.infer(case.attributes, many)


@pytest.mark.parametrize("case", APPLIED, ids=str)
def test_strings_are_refused(case: Case) -> None:
    """No operator accepts strings."""
    inputs = tuple([Tensor("string", one.shape) for one in case.inputs])
    with pytest.raises(ShapeError, match="element types must be one of"):
        case.operator.infer(case.attributes, inputs)


WINDOW = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)}
OFFSETS = {"axes": (0,), "steps": (1,)}
REFUSED: dict[str, tuple[str, Attributes, tuple[Shape, ...], str]] = {
    "add": ("Add", {}, ((2, 3), (2,)), "do not broadcast"),
    "matmul": ("MatMul", {}, ((2, 3), (2, 3)), "inner sizes must be equal"),
    "matmul-symbolic": ("MatMul", {}, ((2, N), (M, 3)), "inner sizes must be equal"),
    "matmul-scalar": ("MatMul", {}, ((), (2, 3)), "at least one axis"),
    "gemm-rank": ("Gemm", {}, ((2, 3, 4), (4, 5)), "two matrices"),
    "gemm-third": ("Gemm", {}, ((2, 3), (3, 4), (3,)), "do not broadcast"),
    "gemm-grows": ("Gemm", {}, ((1, 3), (3, 4), (5, 4)), "must broadcast to 1, 4"),
    "conv-channels": ("Conv", WINDOW, ((1, 3, 5, 5), (2, 2, 3, 3)), "channels must be"),
    "conv-group": (
        "Conv",
        {**WINDOW, "group": 2},
        ((1, 4, 5, 5), (3, 2, 3, 3)),
        "multiple of group 2",
    ),
    "conv-bias": (
        "Conv",
        WINDOW,
        ((1, 2, 5, 5), (3, 2, 3, 3), (2,)),
        "bias must have shape",
    ),
    "conv-too-small": ("Conv", WINDOW, ((1, 2, 2, 5), (3, 2, 3, 3)), "window must fit"),
    "conv-strides": (
        "Conv",
        {**WINDOW, "strides": (1,)},
        ((1, 2, 5, 5), (3, 2, 3, 3)),
        "strides must be 2",
    ),
    "pool-rank": ("MaxPool", {**WINDOW, "kernel": (2, 2)}, ((2, 3),), "at least 3 axes"),
    "batch-norm": ("BatchNormalization", {}, ((2, 3), *[(2,)] * 4), r"shape \[3\]"),
    "softmax": ("Softmax", {"axis": 2}, ((2, 3),), "less than rank 2"),
    "softmax-negative": ("Softmax", {"axis": -1}, ((2, 3),), "at least 0"),
    "reduce-unsorted": ("ReduceSum", {"axes": (1, 0)}, ((2, 3),), "ascending"),
    "reduce-nothing": ("ReduceSum", {"axes": ()}, ((2, 3),), "at least one axis"),
    "transpose": ("Transpose", {"perm": (0, 0)}, ((2, 3),), "permutation of 2 axes"),
    "reshape": ("Reshape", {"shape": (4,)}, ((2, 3),), "stay equal in number"),
    "reshape-symbolic": ("Reshape", {"shape": (M, 3)}, ((N, 3),), "stay equal in number"),
    "squeeze": ("Squeeze", {"axes": (0,)}, ((N, 1),), "must have size 1"),
    "concat": ("Concat", {"axis": 0}, ((2, 3), (2, 4)), "those of axis 0 must be equal"),
    "concat-symbolic": ("Concat", {"axis": 0}, ((2, N), (2, M)), "must be equal"),
    "concat-rank": ("Concat", {"axis": 0}, ((2, 3), (2,)), "must be equal"),
    "split": ("Split", {"axis": 0, "parts": (1, 2)}, ((2, 3),), "parts must sum to 2"),
    "slice-outside": (
        "Slice",
        {**OFFSETS, "starts": (0,), "ends": (3,)},
        ((2,),),
        "inside an axis of size 2",
    ),
    "slice-perhaps-outside": (
        "Slice",
        {**OFFSETS, "starts": (1,), "ends": (END,)},
        ((N,),),
        "axis of size n",
    ),
    "pad": ("Pad", {"pads": (-2, -1)}, ((2,),), "must not remove more"),
    "expand": ("Expand", {"shape": (2,)}, ((2, 2),), "must broadcast to shape"),
    "upsample": (
        "Upsample",
        {"factors": (2,)},
        ((2, 2),),
        "factors must be 2 numbers >= 1",
    ),
    "lrn": ("LRN", {"size": 0}, ((1, 2, 3),), "size must be at least 1"),
    "gather": (
        "Gather",
        {"axis": 0},
        ((), ()),
        "element types must be one of int32, int64",
    ),
}


@pytest.mark.parametrize("one", REFUSED.values(), ids=REFUSED)
def test_ill_shaped_application_is_refused(
    one: tuple[str, Attributes, tuple[Shape, ...], str],
) -> None:
    """The shape rule raises and says what it needs."""
    name, attributes, shapes, text = one
    with pytest.raises(ShapeError, match=text):
        infer(name, attributes, *shapes)


def test_mixed_element_types_are_refused() -> None:
    """Arguments of an elementwise operator have one type."""
    with pytest.raises(ShapeError, match="found float32, float64"):
        OPERATORS["Add"].infer({}, (Tensor("float32", (2,)), Tensor("float64", (2,))))


def test_unknown_batch_sizes_are_taken_to_fit() -> None:
    """Broadcasting axes of unrelated symbols give a broadcast size."""
    shape = infer("MatMul", {}, (N, 2, 3), (M, 3, 4))
    assert shape is not None
    assert str(shape[0]) == "broadcast(m, n)"


def test_ceil_mode_drops_a_window_that_starts_in_the_padding() -> None:
    """With ceil_mode the last window must start inside the image or its begin padding."""
    window = {"strides": (3,), "pads": (0, 1), "dilations": (1,), "kernel": (1,)}
    assert infer("MaxPool", {**window, "ceil_mode": 1}, (1, 1, 6)) == (1, 1, 2)


def test_complete_fills_in_and_normalizes() -> None:
    """Defaults are added, floats become float32 values, lists become tuples."""
    attributes = complete(OPERATORS["LeakyRelu"], {})
    assert attributes == {"alpha": single(0.01)} == {"alpha": float(np.float32(0.01))}
    assert complete(OPERATORS["Elu"], {"alpha": 2}) == {"alpha": 2.0}
    assert complete(OPERATORS["Transpose"], {"perm": [1, 0]}) == {"perm": (1, 0)}


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("Relu", {"alpha": 1.0}, "'Relu' has no attribute 'alpha'; it has: none"),
        ("Elu", {"beta": 1.0}, "it has: alpha"),
        ("Softmax", {}, "'Softmax' needs attribute 'axis' of kind int; given: none"),
        ("Softmax", {"axis": 1.5}, "must be of kind int; found 1.5"),
        ("Transpose", {"perm": (0, "1")}, "must be of kind int; found '1'"),
        ("Gelu", {"approximate": 1}, "must be of kind string; found 1"),
    ],
    ids=str,
)
def test_wrong_attributes_are_refused(name: str, given: Attributes, text: str) -> None:
    """The error names operator and attribute, and what is possible."""
    with pytest.raises(AttributeValueError, match=text):
        complete(OPERATORS[name], given)


def test_frozen_attributes_do_not_depend_on_order() -> None:
    """Attributes given in another order are the same key."""
    one = complete(OPERATORS["HardSigmoid"], {"alpha": 0.5, "beta": 1.0})
    other = complete(OPERATORS["HardSigmoid"], {"beta": 1.0, "alpha": 0.5})
    assert freeze(one) == freeze(other)
    assert hash(freeze(one)) == hash(freeze(other))


@pytest.mark.parametrize("value", [1e300, -1e300, 0.1, float("inf")], ids=str)
def test_single_is_float32(value: float) -> None:
    """Rounding to float32 overflows to infinity."""
    with np.errstate(over="ignore"):
        assert single(value) == float(np.float32(value))


@pytest.mark.parametrize("name", sorted(SPECIAL))
def test_special_names_have_no_shape_rule(name: str) -> None:
    """What a graph names is not inferred."""
    with pytest.raises(ShapeError, match=f"'{name}' has no shape rule"):
        OPERATORS[name].infer({}, ())


@pytest.mark.parametrize("size", range(1, 7))
def test_band_sums_the_window_of_lrn(size: int) -> None:
    """A band matrix adds up the channels a local response normalization looks at."""
    channels = 5
    lower, upper = (size - 1) // 2, size // 2
    given = {"rows": channels, "cols": channels, "lower": lower, "upper": upper}
    band = array_of("Band", complete(OPERATORS["Band"], given))
    values = np.arange(1.0, channels + 1)
    expected = [
        values[max(0, channel - lower) : channel + upper + 1].sum()
        for channel in range(channels)
    ]
    np.testing.assert_array_equal(band @ values, expected)


def test_generators_must_have_numbers_as_sizes() -> None:
    """A constant of symbolic size is refused."""
    with pytest.raises(ShapeError, match="the sizes of Fill must be numbers"):
        array_of("Fill", complete(OPERATORS["Fill"], {"shape": (N,)}))

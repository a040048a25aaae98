"""Reading ONNX nodes whose tensors have symbolic sizes."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from rulesets.ops import END, OPERATORS
from rulesets.size import evaluate, floor_div
from rulesets.tensor import Tensor
from tensat.onnx_forms import lower, raise_call
from tests.tensat.onnx_forms.calls import (
    FAR,
    Form,
    M,
    N,
    call,
    sized,
    symbolic,
)
from tests.tensat.onnx_forms.models import (
    constant,
    model_of,
    random_array,
    run,
    variable,
)

SYMBOLIC = (
    Form(
        "pool-ceil",
        call(
            "MaxPool",
            13,
            symbolic(1, 2, N + 2, 6),
            kernel_shape=(2, 2),
            strides=(2, 2),
            ceil_mode=1,
        ),
        "MaxPool",
        {"ceil_mode": 1},
    ),
    Form(
        "reshape-merge",
        call("Reshape", 13, symbolic(N, 12, 64), constant([0, -1])),
        "Reshape",
        {"shape": (N, 768)},
    ),
    Form(
        "reshape-rest",
        call("Reshape", 13, symbolic(N, 12, M), constant([-1, 12])),
        "Reshape",
        {"shape": (N * M, 12)},
    ),
    Form(
        "reshape-computed",
        call("Reshape", 13, symbolic(N, M, 768), sized(N, M, 12, 64)),
        "Reshape",
        {"shape": (N, M, 12, 64)},
    ),
    Form("flatten", call("Flatten", 13, symbolic(N, 3, 4)), "Flatten", {"axis": 1}),
    Form(
        "expand-kept",
        call("Expand", 13, symbolic(N, 1), sized(N, 4)),
        "Expand",
        {"shape": (N, 4)},
    ),
    Form(
        "slice-head",
        call("Slice", 13, symbolic(N, 4), *map(constant, ([0], [FAR], [1]))),
        "Identity",
        {},
    ),
    Form(
        "slice-to-size",
        call("Slice", 13, symbolic(N + 3), constant([2]), sized(N + 3)),
        "Slice",
        {"starts": (2,), "ends": (END,)},
    ),
    Form(
        "slice-last",
        call("Slice", 13, symbolic(N + 3), constant([-1]), constant([FAR])),
        "Slice",
        {"starts": (-1,), "ends": (END,)},
    ),
    Form(
        "split-equal",
        replace(call("Split", 18, symbolic(N * 3), num_outputs=3), outputs=3),
        "Split",
        {"parts": (N, N, N)},
    ),
    Form(
        "split-equal-old",
        replace(call("Split", 7, symbolic(N * 2)), outputs=2),
        "Split",
        {"parts": (N, N)},
    ),
    Form(
        "conv-same-stride-one",
        call(
            "Conv",
            13,
            symbolic(N, 2, M, M),
            variable("float32", 2, 2, 3, 3),
            auto_pad="SAME_UPPER",
        ),
        "Conv",
        {"pads": (1, 1, 1, 1)},
    ),
    Form(
        "squeeze",
        call("Squeeze", 13, symbolic(N, 1), constant([1])),
        "Squeeze",
        {"axes": (1,)},
    ),
)


@pytest.mark.parametrize("form", SYMBOLIC, ids=[form.id for form in SYMBOLIC])
def test_symbolic_form_is_raised(form: Form) -> None:
    """Symbolic sizes do not hinder forms whose meaning does not depend on them."""
    raised = raise_call(form.call)
    assert raised is not None
    found = {name: raised.attributes[name] for name in form.attributes}
    assert (raised.name, found) == (form.name, form.attributes)


@pytest.mark.parametrize("form", SYMBOLIC, ids=[form.id for form in SYMBOLIC])
@pytest.mark.parametrize("values", [{"n": 2, "m": 4}, {"n": 3, "m": 5}], ids=str)
def test_symbolic_form_has_the_inferred_shape(
    form: Form, values: Mapping[str, int]
) -> None:
    """Lowered with symbolic sizes and run on actual ones, results have that shape."""
    raised = raise_call(form.call)
    assert raised is not None
    tensors = tuple([form.call.operand(position).tensor for position in raised.operands])
    outputs = OPERATORS[raised.name].infer(raised.attributes, tensors)
    nodes = lower(raised.name, raised.attributes, tensors, outputs, form.call.opset)
    assert nodes is not None
    actual = tuple(
        [
            Tensor(one.dtype, tuple([evaluate(size, values) for size in one.shape or ()]))
            for one in tensors
        ]
    )
    model = model_of(nodes, actual, len(outputs), form.call.opset)
    found = run(model, [random_array(one, 0) for one in actual])
    for array, one in zip(found, outputs, strict=True):
        assert array.shape == tuple([evaluate(size, values) for size in one.shape or ()])


def test_same_padding_of_a_symbolic_size_is_the_same_size() -> None:
    """A 3x3 convolution with stride 1 and padding 1 keeps a symbolic height."""
    height = floor_div(N + 1, 2)
    weight = Tensor("float32", (8, 4, 3, 3))
    given = {"strides": (1, 1), "dilations": (1, 1), "pads": (1, 1, 1, 1), "group": 1}
    image = Tensor("float32", (1, 4, height, 9))
    (result,) = OPERATORS["Conv"].infer(given, (image, weight))
    assert result.shape == (1, 8, height, 9)

"""Reading ONNX nodes: forms that changed with the opset, and what they mean."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from rulesets.ops import OPERATORS
from tensat.onnx_forms import lower, raise_call
from tests.tensat.onnx_forms.calls import (
    EVEN,
    FAR,
    IMAGE,
    WINDOW,
    Form,
    X,
    call,
    training,
    weighted,
)
from tests.tensat.onnx_forms.models import (
    constant,
    model_of,
    model_of_call,
    random_array,
    run,
    variable,
)
from tests.tensat.onnx_forms.upsampled import UPSAMPLED

FORMS = (
    Form("clip-attributes", call("Clip", 7, X, min=-0.5, max=0.5), "Clip", {"min": -0.5}),
    Form("clip-no-attributes", call("Clip", 10, X), "Clip", {"min": -inf, "max": inf}),
    Form(
        "clip-extreme-attributes",
        call("Clip", 8, X, min=0.0, max=3.4028234663852886e38),
        "Clip",
        {"min": 0.0, "max": inf},
    ),
    Form(
        "clip-only-max",
        call("Clip", 11, X, None, constant(0.5, "float32")),
        "Clip",
        {"min": -inf, "max": 0.5},
    ),
    Form("clip-no-inputs", call("Clip", 13, X), "Clip", {"min": -inf, "max": inf}),
    Form(
        "clip-vector-bound",
        call("Clip", 13, X, constant([0.25], "float32")),
        "Clip",
        {"min": 0.25, "max": inf},
    ),
    Form(
        "clip-integers",
        call("Clip", 12, variable("int32", 5), constant(0, "int32"), constant(1, "int32")),
        "Clip",
        {"min": 0.0, "max": 1.0},
    ),
    Form("dropout-old", call("Dropout", 7, X, ratio=0.3), "Identity", {}),
    Form(
        "dropout-ratio-input",
        call("Dropout", 13, X, constant(0.3, "float32")),
        "Identity",
        {},
    ),
    Form(
        "dropout-not-training",
        call("Dropout", 13, X, None, constant(False, "bool"), seed=3),
        "Identity",
        {},
    ),
    Form("softmax-old-last-axis", call("Softmax", 11, X, axis=2), "Softmax", {"axis": 2}),
    Form("softmax-old-negative", call("Softmax", 11, X, axis=-1), "Softmax", {"axis": 2}),
    Form(
        "softmax-old-ones-after",
        call("Softmax", 9, variable("float32", 2, 5, 1, 1)),
        "Softmax",
        {"axis": 1},
    ),
    Form(
        "softmax-old-ones-before",
        call("LogSoftmax", 9, variable("float32", 2, 1, 5)),
        "LogSoftmax",
        {"axis": 2},
    ),
    Form("softmax-new-default", call("Softmax", 13, X), "Softmax", {"axis": 2}),
    Form("softmax-new-middle", call("Softmax", 13, X, axis=-2), "Softmax", {"axis": 1}),
    Form(
        "reduce-all",
        call("ReduceSum", 11, X),
        "ReduceSum",
        {"axes": (0, 1, 2), "keepdims": 1},
    ),
    Form(
        "reduce-negative-unsorted",
        call("ReduceMean", 13, X, axes=(-1, 0), keepdims=0),
        "ReduceMean",
        {"axes": (0, 2), "keepdims": 0},
    ),
    Form(
        "reduce-axes-input",
        call("ReduceSum", 13, X, constant([-2])),
        "ReduceSum",
        {"axes": (1,), "keepdims": 1},
    ),
    Form("reduce-noop", call("ReduceSum", 13, X, noop_with_empty_axes=1), "Identity", {}),
    Form(
        "reduce-empty-axes",
        call("ReduceMax", 18, X, constant(np.zeros(0))),
        "ReduceMax",
        {"axes": (0, 1, 2)},
    ),
    Form(
        "batch-inference",
        training(15, epsilon=0.5, momentum=0.1),
        "BatchNormalization",
        {"epsilon": 0.5},
    ),
    Form("batch-spatial", training(7, spatial=1), "BatchNormalization", {}),
    Form("transpose-default", call("Transpose", 13, X), "Transpose", {"perm": (2, 1, 0)}),
    Form("flatten-negative", call("Flatten", 11, X, axis=-1), "Flatten", {"axis": 2}),
    Form("flatten-default", call("Flatten", 9, X), "Flatten", {"axis": 1}),
    Form("concat-negative", call("Concat", 11, X, X, axis=-1), "Concat", {"axis": 2}),
    Form(
        "squeeze-negative",
        call("Squeeze", 11, variable("float32", 1, 3, 1), axes=(-1, 0)),
        "Squeeze",
        {"axes": (0, 2)},
    ),
    Form(
        "squeeze-all",
        call("Squeeze", 13, variable("float32", 1, 3, 1)),
        "Squeeze",
        {"axes": (0, 2)},
    ),
    Form(
        "unsqueeze-negative",
        call("Unsqueeze", 13, X, constant([-1, 0])),
        "Unsqueeze",
        {"axes": (0, 4)},
    ),
    Form(
        "gather-negative-axis",
        call("Gather", 11, X, constant([[0, -1]]), axis=-1),
        "Gather",
        {"axis": 2},
    ),
    Form(
        "reshape-copy-and-rest",
        call("Reshape", 13, X, constant([0, -1])),
        "Reshape",
        {"shape": (2, 12)},
    ),
    Form(
        "reshape-to-scalar",
        call("Reshape", 13, variable("float32", 1, 1), constant(np.zeros(0))),
        "Reshape",
        {"shape": ()},
    ),
    Form(
        "reshape-copied-zero",
        call("Reshape", 13, variable("float32", 0, 3), constant([0, 3])),
        "Reshape",
        {"shape": (0, 3)},
    ),
    Form(
        "reshape-allowzero",
        call("Reshape", 14, variable("float32", 3, 0), constant([0, 3]), allowzero=1),
        "Reshape",
        {"shape": (0, 3)},
    ),
    Form(
        "expand-ones",
        call("Expand", 13, variable("float32", 3, 1), constant([2, 1, 4])),
        "Expand",
        {"shape": (2, 3, 4)},
    ),
    Form(
        "expand-fewer-axes",
        call("Expand", 8, X, constant([1])),
        "Expand",
        {"shape": (2, 3, 4)},
    ),
    *UPSAMPLED,
    Form(
        "slice-attributes",
        call("Slice", 9, X, starts=(-2, 0), ends=(FAR, -1), axes=(2, 1)),
        "Slice",
        {"axes": (1, 2), "starts": (0, 2), "ends": (2, 4), "steps": (1, 1)},
    ),
    Form(
        "slice-no-axes",
        call("Slice", 9, X, starts=(1, 0), ends=(9, 9)),
        "Slice",
        {"axes": (0,), "starts": (1,), "ends": (2,), "steps": (1,)},
    ),
    Form(
        "slice-reversed",
        call("Slice", 10, X, *map(constant, ([-1], [-FAR], [2], [-2]))),
        "Slice",
        {"axes": (2,), "starts": (3,), "ends": (-1,), "steps": (-2,)},
    ),
    Form(
        "slice-reversed-part",
        call("Slice", 13, X, *map(constant, ([9], [0], [-1], [-1]))),
        "Slice",
        {"axes": (2,), "starts": (3,), "ends": (0,), "steps": (-1,)},
    ),
    Form(
        "slice-empty",
        call("Slice", 13, X, *map(constant, ([3], [1], [2]))),
        "Slice",
        {"axes": (2,), "starts": (3,), "ends": (1,), "steps": (1,)},
    ),
    Form(
        "slice-everything",
        call("Slice", 13, X, *map(constant, ([0], [FAR]))),
        "Identity",
        {},
    ),
    Form(
        "pad-attributes",
        call("Pad", 10, X, pads=(0, 0, 1, 0, 2, 0), value=1.5),
        "Pad",
        {"pads": (0, 0, 1, 0, 2, 0), "value": 1.5},
    ),
    Form(
        "pad-inputs",
        call("Pad", 13, X, constant([0, 0, 1, 0, 2, 0]), constant(1.5, "float32")),
        "Pad",
        {"pads": (0, 0, 1, 0, 2, 0), "value": 1.5},
    ),
    Form(
        "pad-axes",
        call("Pad", 18, X, constant([1, 2, 3, 4]), None, constant([-1, 0])),
        "Pad",
        {"pads": (2, 0, 1, 4, 0, 3), "value": 0.0},
    ),
    Form(
        "pad-negative",
        call("Pad", 13, X, constant([0, 0, -1, 0, 0, 1])),
        "Pad",
        {"pads": (0, 0, -1, 0, 0, 1)},
    ),
    Form(
        "gemm-zero-third",
        call(
            "Gemm",
            9,
            variable("float32", 2, 3),
            variable("float32", 3, 2),
            constant([0.0], "float32"),
            beta=0.5,
        ),
        "Gemm",
        {"beta": 1.0},
    ),
    Form("conv-defaults", weighted("Conv"), "Conv", {**WINDOW, "group": 1}),
    Form("conv-valid", weighted("Conv", auto_pad="VALID"), "Conv", WINDOW),
    Form(
        "conv-same-upper",
        weighted("Conv", auto_pad="SAME_UPPER", strides=(2, 2), kernel_shape=(3, 3)),
        "Conv",
        {**EVEN, "pads": (1, 0, 1, 1)},
    ),
    Form(
        "conv-same-lower",
        weighted("Conv", auto_pad="SAME_LOWER", strides=(2, 2)),
        "Conv",
        {**EVEN, "pads": (1, 1, 1, 0)},
    ),
    Form(
        "conv-transpose",
        weighted("ConvTranspose", strides=(2, 2)),
        "ConvTranspose",
        {**EVEN, "output_padding": (0, 0)},
    ),
    Form(
        "pool-same-upper",
        call(
            "MaxPool", 8, IMAGE, kernel_shape=(2, 2), auto_pad="SAME_UPPER", strides=(2, 2)
        ),
        "MaxPool",
        {**EVEN, "pads": (0, 0, 1, 0), "kernel": (2, 2)},
    ),
    Form(
        "pool-ceil",
        call("MaxPool", 13, IMAGE, kernel_shape=(2, 2), strides=(2, 2), ceil_mode=1),
        "MaxPool",
        {**EVEN, "ceil_mode": 1},
    ),
    Form(
        "pool-storage-order",
        call("MaxPool", 12, IMAGE, kernel_shape=(2, 2), storage_order=1),
        "MaxPool",
        {**WINDOW, "kernel": (2, 2)},
    ),
    Form(
        "average-pads",
        call(
            "AveragePool",
            11,
            IMAGE,
            kernel_shape=(3, 3),
            pads=(1, 1, 1, 1),
            count_include_pad=1,
        ),
        "AveragePool",
        {"count_include_pad": 1},
    ),
    Form("cast", call("Cast", 13, X, to=7), "Cast", {"to": "int64"}),
    Form(
        "layer-norm-default-axis",
        call("LayerNormalization", 17, X, variable("float32", 4)),
        "LayerNormalization",
        {"axis": 2},
    ),
)


@pytest.mark.parametrize("form", FORMS, ids=[form.id for form in FORMS])
def test_form_is_raised(form: Form) -> None:
    """The node means the expected operator with the expected attributes."""
    raised = raise_call(form.call)
    assert raised is not None
    assert raised.name == form.name
    assert set(raised.attributes) == set(OPERATORS[form.name].kinds)
    found = {name: raised.attributes[name] for name in form.attributes}
    assert found == form.attributes


@pytest.mark.parametrize("form", FORMS, ids=[form.id for form in FORMS])
def test_value_of_a_raised_node_is_the_original_value(form: Form) -> None:
    """Raised and lowered again at the same opset, the node computes what it did."""
    raised = raise_call(form.call)
    assert raised is not None
    variables = [one for one in form.call.inputs if one is not None and one.array is None]
    arrays = [
        np.abs(random_array(one.tensor, number)) for number, one in enumerate(variables)
    ]
    expected = run(model_of_call(form.call), arrays)
    operands = [form.call.operand(position) for position in raised.operands]
    tensors = tuple([one.tensor for one in operands])
    outputs = OPERATORS[raised.name].infer(raised.attributes, tensors)
    nodes = lower(raised.name, raised.attributes, tensors, outputs, form.call.opset)
    assert nodes is not None
    model = model_of(nodes, tensors, len(outputs), form.call.opset)
    given = iter(arrays)
    feeds = [one.array if one.array is not None else next(given) for one in operands]
    for one, other in zip(run(model, feeds), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_uneven_split_has_a_smaller_last_part() -> None:
    """From opset 18 on, num_outputs allows a smaller last part."""
    one = call("Split", 18, variable("float32", 7), num_outputs=3)
    raised = raise_call(replace(one, outputs=3, used_outputs=frozenset({0, 2})))
    assert raised is not None
    assert raised.attributes["parts"] == (3, 3, 1)


def test_unused_second_output_does_not_matter() -> None:
    """A dropout whose mask is declared but unused is the identity."""
    raised = raise_call(replace(call("Dropout", 9, X), outputs=2))
    assert raised is not None
    assert raised.name == "Identity"

"""ONNX nodes that must stay as they are."""

from dataclasses import replace
from math import nan

import pytest

from rulesets.tensor import Tensor
from tensat.onnx_forms import OnnxCall, Operand, raise_call
from tests.tensat.onnx_forms.calls import (
    FAR,
    IMAGE,
    M,
    N,
    X,
    call,
    sized,
    symbolic,
    training,
    weighted,
)
from tests.tensat.onnx_forms.models import (
    constant,
    variable,
)


def pooled(**attributes: object) -> OnnxCall:
    """Return a max-pool."""
    return call("MaxPool", 13, IMAGE, kernel_shape=(2, 2), **attributes)


def _resized(scales: list[float], **attributes: object) -> OnnxCall:
    """Return a resize by factors."""
    return call("Resize", 13, X, None, constant(scales, "float32"), **attributes)


STAY = {
    "opset-too-old": call("Relu", 6, X),
    "unknown-operator": call("Einsum", 13, X, X, equation="ij,jk->ik"),
    "unknown-attribute": call("Relu", 13, X, slope=1.0),
    "attribute-of-another-opset": call("ReduceSum", 13, X, axes=(0,)),
    "string": call("Identity", 13, variable("string", 2)),
    "float8": call("Identity", 23, variable("float8e4m3fn", 2)),
    "int4": call("Transpose", 23, variable("int4", 2, 2)),
    "complex": call("Identity", 13, variable("complex64", 2)),
    "cast-to-string": call("Cast", 13, X, to=8),
    "cast-from-string": call("Cast", 13, variable("string", 2), to=1),
    "absent-argument": call("Add", 13, X, None),
    "nan-attribute": call("LeakyRelu", 13, X, alpha=nan),
    "dropout-mask-used": replace(
        call("Dropout", 13, X), outputs=2, used_outputs=frozenset({0, 1})
    ),
    "dropout-training": call("Dropout", 13, X, None, constant(True, "bool")),
    "dropout-training-unknown": call("Dropout", 13, X, None, variable("bool")),
    "max-pool-indices-used": replace(pooled(), outputs=2, used_outputs=frozenset({0, 1})),
    "pool-ceil-same": pooled(ceil_mode=1, auto_pad="SAME_UPPER"),
    "pool-ceil-symbolic": call(
        "MaxPool",
        13,
        symbolic(1, 2, N, 6),
        kernel_shape=(2, 2),
        strides=(3, 3),
        ceil_mode=1,
    ),
    "batch-training": training(15, training_mode=1),
    "batch-training-outputs": training(9, outputs=5),
    "batch-not-spatial": training(7, spatial=0),
    "layer-norm-mean-used": replace(
        call("LayerNormalization", 17, X, variable("float32", 4)),
        outputs=3,
        used_outputs=frozenset({0, 1}),
    ),
    "layer-norm-stash": call(
        "LayerNormalization", 17, X, variable("float32", 4), stash_type=10
    ),
    "softmax-old-middle": call("Softmax", 11, X, axis=1),
    "softmax-old-symbolic": call("Softmax", 11, symbolic(2, 3, N), axis=1),
    "softmax-unknown-rank": call("Softmax", 13, Operand(Tensor("float32", None))),
    "clip-bound-not-constant": call("Clip", 13, X, variable("float32")),
    "clip-nan": call("Clip", 13, X, constant(nan, "float32")),
    "clip-double-bound": call("Clip", 13, variable("float64", 2), constant(0.1, "float64")),
    "clip-large-integer": call(
        "Clip", 13, variable("int64", 2), constant(2**53 + 1, "int64")
    ),
    "reduce-axes-unknown": call("ReduceSum", 13, X, variable("int64", 1)),
    "reduce-l2-noop": call("ReduceL2", 18, X, noop_with_empty_axes=1),
    "reduce-twice": call("ReduceMean", 13, X, axes=(0, -3)),
    "pad-reflect": call("Pad", 13, X, constant([0] * 6), mode="reflect"),
    "pad-unknown": call("Pad", 13, X, variable("int64", 6)),
    "slice-step-zero": call("Slice", 13, X, *map(constant, ([0], [2], [0], [0]))),
    "slice-before-first-reversed": call(
        "Slice", 13, X, *map(constant, ([-9], [-9], [0], [-1]))
    ),
    "slice-unknown": call("Slice", 13, X, variable("int64", 1), constant([1])),
    "slice-symbolic-tail": call("Slice", 13, symbolic(N), constant([2]), constant([FAR])),
    "slice-symbolic-reversed": call(
        "Slice", 13, symbolic(N), *map(constant, ([-1], [-FAR], [0], [-1]))
    ),
    "squeeze-all-symbolic": call("Squeeze", 13, symbolic(N, 1)),
    "squeeze-not-one": call("Squeeze", 13, X, constant([1])),
    "unsqueeze-twice": call("Unsqueeze", 13, X, constant([0, 0])),
    "reshape-two-unknown": call("Reshape", 13, symbolic(N, M), sized(M, N)),
    "reshape-not-divisible": call("Reshape", 13, symbolic(N, 3), constant([2, -1])),
    "reshape-perhaps-negative": call("Reshape", 13, symbolic(N, 3), sized(N - 2, -1)),
    "reshape-unknown-rank": call(
        "Reshape", 13, Operand(Tensor("float32", None)), constant([0, -1])
    ),
    "resize-linear": _resized([1, 1, 2], mode="linear"),
    "resize-smaller": _resized([1, 1, 0.5]),
    "resize-by-parts": _resized([1, 1, 1.5]),
    "resize-corners": _resized([1, 1, 2], coordinate_transformation_mode="align_corners"),
    "resize-cornered": _resized([1, 1, 2], coordinate_transformation_mode="asymmetric"),
    "resize-centred-floor": _resized([1, 1, 2], nearest_mode="floor"),
    "resize-computed": call("Resize", 13, X, None, variable("float32", 3)),
    "resize-to-other-sizes": call("Resize", 13, X, None, None, constant([2, 3, 6])),
    "resize-to-symbols": call("Resize", 13, symbolic(N, 3), None, None, sized(N, M)),
    "resize-nothing": call("Resize", 13, X),
    "upsample-linear": call("Upsample", 7, X, scales=(1.0, 1.0, 2.0), mode="linear"),
    "expand-new-symbol": call("Expand", 13, symbolic(1), sized(N)),
    "split-count": replace(
        call("Split", 13, X, constant([1, 2]), axis=1),
        outputs=3,
        used_outputs=frozenset({0}),
    ),
    "split-uneven-old": replace(call("Split", 13, X, axis=1), outputs=2),
    "conv-kernel-disagrees": weighted("Conv", kernel_shape=(2, 2)),
    "conv-negative-pads": weighted("Conv", pads=(-1, 0, 0, 0)),
    "conv-same-symbolic": call(
        "Conv",
        13,
        symbolic(1, 2, N, N),
        variable("float32", 2, 2, 3, 3),
        auto_pad="SAME_UPPER",
        strides=(2, 2),
    ),
    "conv-transpose-output-shape": weighted("ConvTranspose", output_shape=(9, 8)),
    "conv-transpose-same": weighted("ConvTranspose", auto_pad="SAME_UPPER"),
    "matmul-inner-unknown": call("MatMul", 13, symbolic(2, N), symbolic(M, 3)),
    "concat-rank-unknown": call("Concat", 13, X, Operand(Tensor("float32", None)), axis=0),
    "gelu-unknown-form": call("Gelu", 20, X, approximate="sigmoid"),
    "mixed-types": call("Add", 13, X, variable("float64", 4)),
}


@pytest.mark.parametrize("one", STAY.values(), ids=STAY)
def test_node_stays_as_it_is(one: OnnxCall) -> None:
    """What has no exact canonical form is not raised."""
    assert raise_call(one) is None

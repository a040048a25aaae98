"""Each method of a graph computes what its name says, in the exported model."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

import tensat
from tensat import TasoGraph, TensorHandle, UsageError
from tests.tensat.model.onnx_models import random, run

type Build = Callable[[TasoGraph, TensorHandle], TensorHandle]
type Array = np.ndarray[Any, np.dtype[Any]]
X = random(2, 4, 6, 6)
K = random(8, 4, 3, 3, seed=1)
M = random(6, 5, seed=2)
C = random(4, seed=3)


def built(build: Build, x: Array = X) -> tuple[list[Array], TensorHandle]:
    """Outputs of the graph of one operator on x, and its handle."""
    graph = tensat.new_graph()
    handle = build(graph, graph.new_input(dims=x.shape, dtype=str(x.dtype)))
    proto = tensat.export_onnx(graph)
    onnx.checker.check_model(proto, full_check=True)
    return run(proto, {"data": x}), handle


def weight(graph: TasoGraph, array: Array) -> TensorHandle:
    """A constant."""
    return graph.new_weight(dims=array.shape, data=array)


def soft(x: Array) -> Array:
    """The logistic function."""
    result: Array = 1 / (1 + np.exp(-x))
    return result


UNARY: dict[str, tuple[Build, Callable[[Array], Any]]] = {
    "relu": (lambda g, x: g.relu(x), lambda x: np.maximum(x, 0)),
    "relu-inplace": (lambda g, x: g.relu(x, True), lambda x: np.maximum(x, 0)),
    "sigmoid": (lambda g, x: g.sigmoid(x), soft),
    "tanh": (lambda g, x: g.tanh(x), np.tanh),
    "leakyrelu": (lambda g, x: g.leakyrelu(x, 0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
    "prelu": (
        lambda g, x: g.prelu(x=x, slope=weight(g, C.reshape(4, 1, 1))),
        lambda x: np.where(x > 0, x, C.reshape(4, 1, 1) * x),
    ),
    "exp": (lambda g, x: g.exp(input=x), np.exp),
    "log-exp": (lambda g, x: g.log(input=g.exp(input=x)), lambda x: x),
    "sqrt-exp": (lambda g, x: g.sqrt(input=g.exp(input=x)), lambda x: np.exp(x / 2)),
    "ceil": (lambda g, x: g.ceil(input=x), np.ceil),
    "round": (lambda g, x: g.round(x), np.round),
    "dropout": (lambda g, x: g.dropout(x, 0.5), lambda x: x),
    "identity": (lambda g, x: g.identity(x), lambda x: x),
    "cast": (
        lambda g, x: g.cast(input=x, datatype="DOUBLE"),
        lambda x: x.astype(np.float64),
    ),
    "cast-int": (lambda g, x: g.cast(input=x, datatype="INT32"), lambda x: x.astype("i")),
    "not-less": (
        lambda g, x: g.logical_not(input=g.less(x=x, y=g.mul(x, x))),
        lambda x: x >= x * x,
    ),
    "add": (lambda g, x: g.add(x, x), lambda x: 2 * x),
    "sub": (lambda g, x: g.sub(x=g.mul(x, x), y=x), lambda x: x * x - x),
    "div": (lambda g, x: g.div(x=x, y=g.exp(input=x)), lambda x: x / np.exp(x)),
    "max": (lambda g, x: g.max(x, g.mul(x, x)), lambda x: np.maximum(x, x * x)),
    "min": (lambda g, x: g.min(x, g.mul(x, x)), lambda x: np.minimum(x, x * x)),
    "equal": (lambda g, x: g.equal(x=x, y=g.round(x)), lambda x: x == np.round(x)),
    "greater": (lambda g, x: g.greater(x=x, y=g.mul(x, x)), lambda x: x > x * x),
    "matmul": (lambda g, x: g.matmul(x, weight(g, M)), lambda x: x @ M),
    "matmul-tanh": (
        lambda g, x: g.matmul(x, weight(g, M), "TANH"),
        lambda x: np.tanh(x @ M),
    ),
    "concat": (lambda g, x: g.concat(-3, [x] * 8), lambda x: np.concatenate([x] * 8, 1)),
    "reshape": (lambda g, x: g.reshape(x, (0, -1, 9)), lambda x: x.reshape(2, 16, 9)),
    "transpose": (
        lambda g, x: g.transpose(x, (0, 2, 3, 1)),
        lambda x: x.transpose(0, 2, 3, 1),
    ),
    "slice": (
        lambda g, x: g.slice(x, [1, -1], [99, 0], [2, 3], [2, -2]),
        lambda x: x[:, :, 1:99:2, -1:0:-2],
    ),
    "slice-first-axes": (lambda g, x: g.slice(x, [0, 1], [1, 3]), lambda x: x[:1, 1:3]),
    "squeeze": (
        lambda g, x: g.squeeze(input=g.slice(x, [0], [1]), axes=(0,)),
        lambda x: x[0],
    ),
    "unsqueeze": (lambda g, x: g.unsqueeze(x, (0, -1)), lambda x: x[None, ..., None]),
    "shape": (lambda g, x: g.shape(x), lambda x: np.array(x.shape)),
    "size": (lambda g, x: g.size(input=x), lambda x: np.array(x.size)),
    "reduce_sum": (
        lambda g, x: g.reduce_sum(input=x, axes=(1, -1)),
        lambda x: x.sum((1, 3), keepdims=True),
    ),
    "reduce_mean": (
        lambda g, x: g.reduce_mean(input=x, axes=(2, 3), keepdims=False),
        lambda x: x.mean((2, 3)),
    ),
    "reduce_max": (
        lambda g, x: g.reduce_max(input=x, axes=(0,)),
        lambda x: x.max(0, keepdims=True),
    ),
    "reduce_min": (
        lambda g, x: g.reduce_min(input=x, axes=(0,)),
        lambda x: x.min(0, keepdims=True),
    ),
    "reduce_prod": (
        lambda g, x: g.reduce_prod(input=x, axes=(3,)),
        lambda x: x.prod(3, keepdims=True),
    ),
    "reduce_argmax": (
        lambda g, x: g.reduce_argmax(input=x, axes=(1,)),
        lambda x: x.argmax(1)[:, None],
    ),
    "reduce_argmin": (
        lambda g, x: g.reduce_argmin(input=x, axes=(-1,), keepdims=False),
        lambda x: x.argmin(3),
    ),
}


@pytest.mark.parametrize("name", UNARY)
def test_operator_computes(name: str) -> None:
    """The operator's result is NumPy's, and its handle has the result's sizes."""
    build, expected = UNARY[name]
    (found,), handle = built(build)
    want = np.asarray(expected(X))
    assert handle.dims == found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def _padded(x: Array, begin: int, end: int, value: float) -> Array:
    return np.pad(x, ((0, 0), (0, 0), (begin, end), (begin, end)), constant_values=value)


def _windows(x: Array, size: int, stride: int) -> Array:
    views = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))
    return views[:, :, ::stride, ::stride]


@pytest.mark.parametrize(
    ("size", "stride", "padding", "pads"),
    [
        (3, 1, "SAME", (1, 1)),
        (3, 2, "SAME", (1, 1)),
        (2, 1, "SAME", (0, 1)),
        (2, 2, "SAME", (0, 0)),
        (1, 2, "SAME", (0, 0)),
        (5, 2, "SAME", (2, 2)),
        (3, 1, "VALID", (0, 0)),
        (3, 2, "VALID", (0, 0)),
    ],
    ids=lambda one: str(one),
)
@pytest.mark.parametrize("kind", ["conv2d", "maxpool2d", "avgpool2d"])
def test_windows(
    kind: str, size: int, stride: int, padding: str, pads: tuple[int, int]
) -> None:
    """Windows pad as TASO documents: SAME keeps ceil(size / stride), VALID pads nothing."""
    kernel, step = random(4, 2, size, size, seed=4), (stride, stride)

    def build(g: TasoGraph, x: TensorHandle) -> TensorHandle:
        if kind == "conv2d":
            return g.conv2d(
                input=x, weight=weight(g, kernel), strides=step, padding=padding
            )
        if kind == "maxpool2d":
            return g.maxpool2d(x, (size, size), step, padding)
        return g.avgpool2d(input=x, kernels=(size, size), strides=step, padding=padding)

    (found,), handle = built(build)
    if kind == "conv2d":
        views = _windows(_padded(X, *pads, 0), size, stride)
        views = views.reshape(2, 2, 2, *found.shape[2:], size, size)
        want = np.einsum("ngchwkl,gockl->ngohw", views, kernel.reshape(2, 2, 2, size, size))
        want = want.reshape(found.shape)
    else:
        filler = -np.inf if kind == "maxpool2d" else np.nan
        views = _windows(_padded(X, *pads, filler), size, stride)
        axes = (-2, -1)
        want = views.max(axes) if kind == "maxpool2d" else np.nanmean(views, axis=axes)
    assert handle.dims == found.shape
    if padding == "SAME":
        assert found.shape[2] == -(-6 // stride)
    np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("NONE", lambda x: x),
        ("RELU", lambda x: np.maximum(x, 0)),
        ("SIGMOID", soft),
        ("TANH", np.tanh),
    ],
    ids=["none", "relu", "sigmoid", "tanh"],
)
def test_fused_activation_is_exported(
    activation: str, function: Callable[[Array], Array]
) -> None:
    """What TASO's export lost: the activation of a convolution or a pool."""

    def conv(g: TasoGraph, x: TensorHandle, activation: str) -> TensorHandle:
        y = g.conv2d(
            input=x,
            weight=weight(g, K),
            strides=(1, 1),
            padding="SAME",
            activation=activation,
        )
        return g.maxpool2d(y, (2, 2), (2, 2), "VALID", activation=activation)

    (plain,), _ = built(lambda g, x: conv(g, x, "NONE"))
    (found,), _ = built(lambda g, x: conv(g, x, activation))
    pooled, _ = built(
        lambda g, x: g.maxpool2d(x, (2, 2), (2, 2), "VALID", activation=activation)
    )
    np.testing.assert_allclose(found, function(function(plain)), rtol=1e-4, atol=1e-5)
    views = X.reshape(2, 4, 3, 2, 3, 2).max((3, 5))
    np.testing.assert_allclose(pooled[0], function(views), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("epsilon", "used"), [(-1, 1e-5), (0.0, 0.0), (0.5, 0.5)], ids=["default", "0", "0.5"]
)
def test_batchnorm_honours_epsilon(epsilon: float, used: float) -> None:
    """The epsilon is the model's, and the variance is not made positive."""
    scale, bias, mean, var = (random(4, seed=k) for k in range(4))
    var = np.abs(var) + 0.1

    def build(g: TasoGraph, x: TensorHandle) -> TensorHandle:
        s, b, m, v = (weight(g, one) for one in (scale, bias, mean, var))
        return g.batchnorm(x, s, b, m, v, epsilon=epsilon)

    (found,), _ = built(build)
    s, b, m, v = (one.reshape(4, 1, 1) for one in (scale, bias, mean, var))
    want = s * (X - m) / np.sqrt(v + np.float32(used)) + b
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("sizes", "cuts"), [([1, 3], [1]), (2, [2])], ids=["sizes", "number of parts"]
)
def test_split(sizes: list[int] | int, cuts: list[int]) -> None:
    """Parts by size or by number; every part that nothing uses is an output."""
    graph = tensat.new_graph()
    parts = graph.split(graph.new_input(dims=X.shape), 1, sizes)
    found = run(tensat.export_onnx(graph), {"data": X})
    assert [part.dims for part in parts] == [one.shape for one in found]
    for got, want in zip(found, np.split(X, cuts, 1), strict=True):
        np.testing.assert_array_equal(got, want)


MISUSES: dict[str, tuple[Build, str]] = {
    "padding": (lambda g, x: g.maxpool2d(x, (2, 2), (1, 1), "FULL"), "possible: SAME, V"),
    "activation": (lambda g, x: g.matmul(x, x, "GELU"), "possible: NONE, RELU"),
    "strides": (lambda g, x: g.maxpool2d(x, (2, 2), (0, 1), "SAME"), "strides must be two"),
    "channels": (
        lambda g, x: g.conv2d(
            input=x, weight=weight(g, random(2, 3, 1, 1)), strides=(1, 1), padding="SAME"
        ),
        "conv2d of 4 channels cannot use kernels of 3",
    ),
    "rank": (
        lambda g, x: g.conv2d(input=x, weight=weight(g, M), strides=(1, 1), padding="SAME"),
        "conv2d needs a tensor of 4 axes; found 2",
    ),
    "window too large": (lambda g, x: g.maxpool2d(x, (9, 9), (1, 1), "VALID"), "must fit"),
    "matmul": (lambda g, x: g.matmul(x, weight(g, C)), "MatMul does not apply here"),
    "broadcast": (lambda g, x: g.add(x, weight(g, C)), "do not broadcast"),
    "reshape": (lambda g, x: g.reshape(x, (7, 7)), "elements must stay equal"),
    "reshape rest": (lambda g, x: g.reshape(x, (7, -1)), "leaves a remainder"),
    "axis": (lambda g, x: g.concat(4, [x, x]), "axis 4 is asked for; there are 4"),
    "concat nothing": (lambda g, x: g.concat(0, []), "at least one tensor; found none"),
    "squeeze": (lambda g, x: g.squeeze(input=x, axes=(0,)), "must have size 1"),
    "split": (lambda g, x: g.split(x, 1, [1, 1])[0], "parts must sum to 4"),
    "split parts": (lambda g, x: g.split(x, 1, 3)[0], "4 along axis 1 is no multiple of 3"),
    "slice": (lambda g, x: g.slice(x, [0], [1, 2], [0]), "one start, end and step"),
    "perm": (lambda g, x: g.transpose(x, (0, 1, 2)), "permutation of 4 axes"),
    "datatype": (lambda g, x: g.cast(input=x, datatype="FLOAT8"), "possible: FLOAT, D"),
    "argmax": (lambda g, x: g.reduce_argmax(input=x, axes=(0, 1)), "goes along one axis"),
    "prelu": (lambda g, x: g.prelu(x=x, slope=weight(g, M)), "does not broadcast to"),
    "not of floats": (lambda g, x: g.logical_not(input=x), "Not does not apply here"),
    "weight data": (
        lambda g, x: g.new_weight(dims=(2, 2), data=[1.0, 2.0, 3.0]),
        r"a weight of \(2, 2\) is given data of shape \(3,\)",
    ),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuse_is_an_error(name: str) -> None:
    """What does not fit is an error that says what was asked and what is possible."""
    build, text = MISUSES[name]
    graph = tensat.new_graph()
    x = graph.new_input(dims=X.shape)
    with pytest.raises(UsageError, match=text):
        build(graph, x)

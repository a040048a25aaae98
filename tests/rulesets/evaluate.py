"""Values of canonical operators on float64 arrays, for tests of rules.

Written with NumPy from the operators' definitions, slowly and plainly; `test_evaluate`
compares the longer ones with the ONNX reference evaluator.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from rulesets.ops import GENERATORS, array_of

type Array = np.ndarray
type Attributes = Mapping[str, Any]

_erf = np.vectorize(math.erf, otypes=[float])

UNARY: Mapping[str, Callable[[Array], Array]] = {
    "Identity": lambda x: x,
    "Relu": lambda x: np.maximum(x, 0),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Tanh": np.tanh,
    "Erf": _erf,
    "Exp": np.exp,
    "Log": np.log,
    "Sqrt": np.sqrt,
    "Reciprocal": lambda x: 1 / x,
    "Neg": np.negative,
    "Abs": np.abs,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Not": np.logical_not,
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
}

BINARY: Mapping[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Pow": np.power,
    "MatMul": np.matmul,
    "Equal": np.equal,
    "Less": np.less,
}

ATTRIBUTED: Mapping[str, Callable[..., Array]] = {
    "Cast": lambda a, x: x.astype(a["to"]),
    "LeakyRelu": lambda a, x: np.where(x > 0, x, a["alpha"] * x),
    "Elu": lambda a, x: np.where(x > 0, x, a["alpha"] * (np.exp(x) - 1)),
    "Clip": lambda a, x: np.minimum(np.maximum(x, a["min"]), a["max"]),
    "HardSigmoid": lambda a, x: np.clip(a["alpha"] * x + a["beta"], 0, 1),
    "Gelu": lambda a, x: _gelu(a["approximate"], x),
    "Where": lambda a, c, x, y: np.where(c, x, y),
    "Sum": lambda a, *xs: _fold(np.add, xs),
    "Max": lambda a, *xs: _fold(np.maximum, xs),
    "Min": lambda a, *xs: _fold(np.minimum, xs),
    "Transpose": lambda a, x: np.transpose(x, a["perm"]),
    "Reshape": lambda a, x: np.reshape(x, a["shape"]),
    "Squeeze": lambda a, x: np.squeeze(x, a["axes"]),
    "Unsqueeze": lambda a, x: np.expand_dims(x, a["axes"]),
    "Flatten": lambda a, x: np.reshape(x, (math.prod(x.shape[: a["axis"]]), -1)),
    "Expand": lambda a, x: np.broadcast_to(x, a["shape"]),
    "Upsample": lambda a, x: _upsample(a["factors"], x),
    "Concat": lambda a, *xs: np.concatenate(xs, a["axis"]),
    "Gather": lambda a, x, i: np.take(x, i, a["axis"]),
    "Slice": lambda a, x: x[_slices(a, x.ndim)],
    "Pad": lambda a, x: _pad(a["pads"], a["value"], x),
    "Softmax": lambda a, x: _softmax(a["axis"], x),
    "LogSoftmax": lambda a, x: np.log(_softmax(a["axis"], x)),
    "Gemm": lambda a, *xs: _gemm(a, *xs),
    "GlobalAveragePool": lambda a, x: x.mean(tuple(range(2, x.ndim)), keepdims=True),
    "GlobalMaxPool": lambda a, x: x.max(tuple(range(2, x.ndim)), keepdims=True),
    "BatchNormalization": lambda a, *xs: _batch_norm(a["epsilon"], *xs),
    "LayerNormalization": lambda a, *xs: _layer_norm(a, *xs),
    "RMSNormalization": lambda a, x, g: _rms_norm(a, x, g),
    "LRN": lambda a, x: _lrn(a, x),
    "Conv": lambda a, *xs: _conv(a, *xs),
    "ConvTranspose": lambda a, *xs: _conv_transpose(a, *xs),
    "MaxPool": lambda a, x: _pool(a, x, -np.inf)[0],
    "AveragePool": lambda a, x: _average_pool(a, x),
}

REDUCTIONS: Mapping[str, Callable[..., Array]] = {
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
}


def evaluate(op: str, attributes: Attributes, arrays: list[Array]) -> tuple[Array, ...]:
    """Apply an operator to arrays; one array for each of its outputs."""
    if op == "Split":
        stops = np.cumsum(attributes["parts"])[:-1]
        return tuple(np.split(arrays[0], stops, attributes["axis"]))
    if op in GENERATORS:
        return (array_of(op, attributes).astype(np.float64),)
    if op in UNARY:
        return (UNARY[op](*arrays),)
    if op in BINARY:
        return (BINARY[op](*arrays),)
    if op in REDUCTIONS:
        axes, keepdims = attributes["axes"], bool(attributes["keepdims"])
        return (np.asarray(REDUCTIONS[op](arrays[0], axis=axes, keepdims=keepdims)),)
    return (np.asarray(ATTRIBUTED[op](attributes, *arrays)),)


def _fold(operation: Callable[[Array, Array], Array], arrays: tuple[Array, ...]) -> Array:
    result = arrays[0]
    for array in arrays[1:]:
        result = operation(result, array)
    return result


def _gelu(approximate: str, x: Array) -> Array:
    if approximate == "tanh":
        return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x * 0.5 * (1 + _erf(x / math.sqrt(2)))


def _slices(a: Attributes, rank: int) -> tuple[slice, ...]:
    result = [slice(None)] * rank
    for start, end, axis, step in zip(
        a["starts"], a["ends"], a["axes"], a["steps"], strict=True
    ):
        result[axis] = slice(start, None if step < 0 and end == -1 else end, step)
    return tuple(result)


def _pad(pads: tuple[int, ...], value: float, x: Array) -> Array:
    pairs = list(zip(pads[: x.ndim], pads[x.ndim :], strict=True))
    padded = np.pad(x, [(max(b, 0), max(e, 0)) for b, e in pairs], constant_values=value)
    cut = tuple(slice(-b if b < 0 else None, e if e < 0 else None) for b, e in pairs)
    return padded[cut]


def _softmax(axis: int, x: Array) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _gemm(a: Attributes, x: Array, y: Array, c: Array | float = 0.0) -> Array:
    x, y = (x.T if a["transA"] else x), (y.T if a["transB"] else y)
    return a["alpha"] * (x @ y) + a["beta"] * np.asarray(c)


def _channels(v: Array, rank: int) -> Array:
    return v.reshape(-1, *[1] * (rank - 2))


def _batch_norm(
    epsilon: float, x: Array, s: Array, b: Array, mean: Array, var: Array
) -> Array:
    s, b, mean, var = (_channels(v, x.ndim) for v in (s, b, mean, var))
    return (x - mean) / np.sqrt(var + epsilon) * s + b


def _layer_norm(a: Attributes, x: Array, g: Array, b: Array | float = 0.0) -> Array:
    axes = tuple(range(a["axis"], x.ndim))
    d = x - x.mean(axes, keepdims=True)
    return d / np.sqrt((d * d).mean(axes, keepdims=True) + a["epsilon"]) * g + b


def _rms_norm(a: Attributes, x: Array, g: Array) -> Array:
    axes = tuple(range(a["axis"], x.ndim))
    return x / np.sqrt((x * x).mean(axes, keepdims=True) + a["epsilon"]) * g


def _lrn(a: Attributes, x: Array) -> Array:
    size, channels = a["size"], x.shape[1]
    squares = np.zeros_like(x)
    for c in range(channels):
        start, stop = max(0, c - (size - 1) // 2), c + size // 2 + 1
        squares[:, c] = (x[:, start:stop] ** 2).sum(1)
    return x / (a["bias"] + a["alpha"] / size * squares) ** a["beta"]


def _windows(a: Attributes, x: Array, kernel: tuple[int, ...], fill: float) -> Iterator:
    """Yield each kernel position with the elements it sees, one for each window."""
    spatial, pads = x.ndim - 2, a["pads"]
    ends = [
        pads[spatial + i] + a["strides"][i] * a.get("ceil_mode", 0) for i in range(spatial)
    ]
    pairs = [(0, 0), (0, 0), *zip(pads[:spatial], ends, strict=True)]
    padded = np.pad(x, pairs, constant_values=fill)
    counts = []
    for i in range(spatial):
        room = x.shape[2 + i] + pads[i] + pads[spatial + i]
        room -= (kernel[i] - 1) * a["dilations"][i] + 1
        stride = a["strides"][i]
        count = room // stride + 1
        if a.get("ceil_mode", 0):
            count = -(-room // stride) + 1
            count -= (count - 1) * stride >= x.shape[2 + i] + pads[i]
        counts.append(count)
    for position in product(*map(range, kernel)):
        where = [slice(None), slice(None)]
        for i, offset in enumerate(position):
            start, stride = offset * a["dilations"][i], a["strides"][i]
            where.append(slice(start, start + (counts[i] - 1) * stride + 1, stride))
        yield position, padded[tuple(where)]


def _conv(a: Attributes, x: Array, w: Array, b: Array | None = None) -> Array:
    group = a["group"]
    outputs, inputs = w.shape[0] // group, w.shape[1]
    result = 0.0
    for position, seen in _windows(a, x, w.shape[2:], 0.0):
        taps = w[(slice(None), slice(None), *position)].reshape(group, outputs, inputs)
        parts = seen.reshape(seen.shape[0], group, inputs, *seen.shape[2:])
        part = np.einsum("goi,ngi...->ngo...", taps, parts)
        result = result + part.reshape(seen.shape[0], w.shape[0], *seen.shape[2:])
    return result if b is None else result + _channels(b, x.ndim)


def _conv_transpose(a: Attributes, x: Array, w: Array, b: Array | None = None) -> Array:
    group, spatial, pads = a["group"], x.ndim - 2, a["pads"]
    inputs, outputs = w.shape[0] // group, w.shape[1]
    parts = x.reshape(x.shape[0], group, inputs, *x.shape[2:])
    full = [
        (x.shape[2 + i] - 1) * a["strides"][i]
        + (w.shape[2 + i] - 1) * a["dilations"][i]
        + 1
        + a["output_padding"][i]
        for i in range(spatial)
    ]
    result = np.zeros((x.shape[0], group * outputs, *full))
    for position in product(*map(range, w.shape[2:])):
        taps = w[(slice(None), slice(None), *position)].reshape(group, inputs, outputs)
        part = np.einsum("gio,ngi...->ngo...", taps, parts)
        where = [slice(None), slice(None)]
        for i, offset in enumerate(position):
            start, stride = offset * a["dilations"][i], a["strides"][i]
            where.append(slice(start, start + (x.shape[2 + i] - 1) * stride + 1, stride))
        result[tuple(where)] += part.reshape(x.shape[0], group * outputs, *x.shape[2:])
    cut = [slice(pads[i], full[i] - pads[spatial + i]) for i in range(spatial)]
    result = result[(slice(None), slice(None), *cut)]
    return result if b is None else result + _channels(b, x.ndim)


def _upsample(factors: tuple[int, ...], x: Array) -> Array:
    for axis, factor in enumerate(factors):
        x = np.repeat(x, factor, axis)
    return x


def _pool(a: Attributes, x: Array, fill: float) -> tuple[Array, Array]:
    """Return the largest element and the sum of each window."""
    seen = np.stack([part for _, part in _windows(a, x, a["kernel"], fill)])
    return seen.max(0), seen.sum(0)


def _average_pool(a: Attributes, x: Array) -> Array:
    total = _pool(a, x, 0.0)[1]
    if not a["count_include_pad"]:
        return total / _pool(a, np.ones_like(x), 0.0)[1]
    if a["ceil_mode"]:  # what lies beyond the end padding is not counted
        spatial, pads = x.ndim - 2, a["pads"]
        pairs = [(0, 0), (0, 0), *zip(pads[:spatial], pads[spatial:], strict=True)]
        ones, inner = np.pad(np.ones_like(x), pairs, constant_values=1.0), dict(a)
        inner["pads"] = (0,) * len(pads)
        return total / _pool(inner, ones, 0.0)[1]
    return total / math.prod(a["kernel"])

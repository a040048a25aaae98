"""Fast kernels: an operator applied to a whole batch of terms at several points at once.

Every array is [terms, points, *shape] in float64; one NumPy call computes a chunk of terms.
On integers below 2**53 all operators but those in `REAL` are exact. The meaning is that of
the operator specifications; a test compares both.
"""

import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from rulesets.errors import UnknownOperatorError
from rulesets.ops import GENERATORS, array_of

type Array = npt.NDArray[np.float64]
type Given = Mapping[str, Any]

BATCH = 2
"""Leading axes that are no axes of the tensor: terms and points."""

REAL = frozenset(
    {
        *("Div", "Reciprocal", "Sqrt", "Exp", "Log", "Sigmoid", "Tanh", "Softmax"),
        *("AveragePool", "GlobalAveragePool", "ReduceMean"),
        *("LayerNormalization", "RMSNormalization", "Pow", "Erf", "Gelu", "Elu"),
        *("HardSigmoid", "HardSwish"),
    }
)
"""Operators whose values are no integers."""


def apply(op: str, attributes: Given, *arrays: Array) -> Array:
    """Apply an operator to batches.

    Args:
        op: A canonical operator; ``Output`` takes what its Split takes, see `part`.
        attributes: Complete attributes with sizes that are numbers.
        arrays: Arguments, [terms, points, *shape]; the first two axes broadcast.

    Raises:
        UnknownOperatorError: There is no kernel for it.
    """
    if op in GENERATORS:
        value: Array = np.asarray(array_of(op, attributes), np.float64)
        return value[None, None]
    kernel = KERNELS.get(op)
    if kernel is None:
        known = ", ".join(sorted(KERNELS))
        raise UnknownOperatorError(
            f"operator {op!r} has no kernel; there is one for {known}"
        )
    result: Array = kernel(attributes, *arrays)
    return result


def part(attributes: Given, index: int, x: Array) -> Array:
    """Return one output of a Split."""
    start = sum(attributes["parts"][:index])
    return _along(x, attributes["axis"], slice(start, start + attributes["parts"][index]))


def _along(x: Array, axis: int, where: slice) -> Array:
    return x[(slice(None),) * (BATCH + axis) + (where,)]


def _aligned(*arrays: Array) -> tuple[Array, ...]:
    """Write axes of size 1 behind the batch axes, as broadcasting does in front."""
    rank = max(array.ndim for array in arrays)
    return tuple(
        array.reshape(
            *array.shape[:BATCH], *[1] * (rank - array.ndim), *array.shape[BATCH:]
        )
        for array in arrays
    )


def _binary(operation: Callable[..., Array]) -> Callable[..., Array]:
    def kernel(_: Given, *arrays: Array) -> Array:
        first, *rest = _aligned(*arrays)
        for array in rest:
            first = operation(first, array)
        return first

    return kernel


def _unary(operation: Callable[[Array], Array]) -> Callable[..., Array]:
    return lambda _, x: operation(x)


def _matmul(_: Given, a: Array, b: Array) -> Array:
    a, b = _aligned(a, b)
    result: Array = np.matmul(a, b)
    return result


def _transpose(a: Given, x: Array) -> Array:
    return np.transpose(x, (0, 1, *(BATCH + axis for axis in a["perm"])))


def _reshape(a: Given, x: Array) -> Array:
    return x.reshape(*x.shape[:BATCH], *a["shape"])


def _flat(axis: int, x: Array) -> tuple[int, int]:
    sizes = x.shape[BATCH:]
    return math.prod(sizes[:axis]), math.prod(sizes[axis:])


def _unsqueeze(a: Given, x: Array) -> Array:
    return np.expand_dims(x, tuple(BATCH + axis for axis in a["axes"]))


def _concat(a: Given, *arrays: Array) -> Array:
    batch = np.broadcast_shapes(*(array.shape[:BATCH] for array in arrays))
    wide = [np.broadcast_to(array, (*batch, *array.shape[BATCH:])) for array in arrays]
    return np.concatenate(wide, BATCH + a["axis"])


def _slice(a: Given, x: Array) -> Array:
    where = [slice(None)] * x.ndim
    for start, end, axis, step in zip(
        a["starts"], a["ends"], a["axes"], a["steps"], strict=True
    ):
        where[BATCH + axis] = slice(start, None if step < 0 and end == -1 else end, step)
    return x[tuple(where)]


def _pad(a: Given, x: Array) -> Array:
    pads, rank = a["pads"], x.ndim - BATCH
    pairs = [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)]
    return np.pad(x, pairs, constant_values=a["value"])


def _expand(a: Given, x: Array) -> Array:
    (x,) = _aligned(x) if x.ndim - BATCH == len(a["shape"]) else _grown(x, len(a["shape"]))
    return np.broadcast_to(x, (*x.shape[:BATCH], *a["shape"]))


def _grown(x: Array, rank: int) -> tuple[Array]:
    ones = [1] * (rank - (x.ndim - BATCH))
    return (x.reshape(*x.shape[:BATCH], *ones, *x.shape[BATCH:]),)


def _reduction(operation: Callable[..., Array]) -> Callable[..., Array]:
    def kernel(a: Given, x: Array) -> Array:
        axes = tuple(BATCH + axis for axis in a["axes"])
        return operation(x, axis=axes, keepdims=bool(a["keepdims"]))

    return kernel


def _softmax(a: Given, x: Array) -> Array:
    axis = BATCH + a["axis"]
    powers = np.exp(x - x.max(axis, keepdims=True))
    result: Array = powers / powers.sum(axis, keepdims=True)
    return result


def _normalized(centred: bool) -> Callable[..., Array]:
    def kernel(a: Given, x: Array, *scales: Array) -> Array:
        axes = tuple(range(BATCH + a["axis"], x.ndim))
        if centred:
            x = x - x.mean(axes, keepdims=True)
        x = x / np.sqrt((x * x).mean(axes, keepdims=True) + a["epsilon"])
        if scales:
            x = _binary(np.multiply)({}, x, scales[0])
        return _binary(np.add)({}, x, scales[1]) if len(scales) > 1 else x

    return kernel


# -- windows -----------------------------------------------------------------------------


def _counts(a: Given, sizes: tuple[int, ...], kernel: tuple[int, ...]) -> tuple[int, ...]:
    spatial = len(sizes)
    return tuple(
        (
            sizes[i]
            + a["pads"][i]
            + a["pads"][spatial + i]
            - (kernel[i] - 1) * a["dilations"][i]
            - 1
        )
        // a["strides"][i]
        + 1
        for i in range(spatial)
    )


def _seen(a: Given, x: Array, kernel: tuple[int, ...], fill: float) -> list[Array]:
    """What each kernel position sees: one array [terms, points, n, c, *windows] each."""
    spatial, pads = len(kernel), a["pads"]
    pairs = [(0, 0)] * (BATCH + 2)
    pairs += list(zip(pads[:spatial], pads[spatial:], strict=True))
    padded = np.pad(x, pairs, constant_values=fill) if any(pads) else x
    counts = _counts(a, x.shape[BATCH + 2 :], kernel)
    result = []
    for position in product(*map(range, kernel)):
        where = [slice(None)] * (BATCH + 2)
        for i, offset in enumerate(position):
            start, stride = offset * a["dilations"][i], a["strides"][i]
            where.append(slice(start, start + (counts[i] - 1) * stride + 1, stride))
        result.append(padded[tuple(where)])
    return result


def _conv(a: Given, x: Array, w: Array, *bias: Array) -> Array:
    """Convolution as one matrix product over (channel, kernel position)."""
    group, kernel = a["group"], w.shape[BATCH + 2 :]
    outputs, inputs = w.shape[BATCH] // group, w.shape[BATCH + 1]
    columns = np.stack(_seen(a, x, kernel, 0.0), BATCH + 2)  # [t, p, n, c, taps, ...]
    n, windows = x.shape[BATCH], columns.shape[BATCH + 3 :]
    columns = columns.reshape(*columns.shape[:BATCH], n, group, -1, math.prod(windows))
    taps = w.reshape(*w.shape[:BATCH], 1, group, outputs, inputs * math.prod(kernel))
    result: Array = np.matmul(taps, columns)
    result = result.reshape(*result.shape[:BATCH], n, group * outputs, *windows)
    for b in bias:
        result = result + b.reshape(*b.shape[:BATCH], 1, -1, *[1] * len(kernel))
    return result


def _conv_transpose(a: Given, x: Array, w: Array) -> Array:
    """Transposed convolution: each kernel position adds a product, spread by strides."""
    group, kernel, spatial = a["group"], w.shape[BATCH + 2 :], len(w.shape) - BATCH - 2
    inputs, outputs = w.shape[BATCH] // group, w.shape[BATCH + 1]
    n, sizes, batch = x.shape[BATCH], x.shape[BATCH + 2 :], (*x.shape[:BATCH],)
    taps = w.reshape(*w.shape[:BATCH], 1, group, inputs, outputs, -1)
    columns = x.reshape(*batch, n, group, inputs, -1)
    full = tuple(
        (sizes[i] - 1) * a["strides"][i] + (kernel[i] - 1) * a["dilations"][i] + 1
        + a["output_padding"][i] for i in range(spatial)
    )  # fmt: skip
    shape = np.broadcast_shapes(x.shape[:BATCH], w.shape[:BATCH])
    result: Array = np.zeros((*shape, n, group * outputs, *full))
    for number, position in enumerate(product(*map(range, kernel))):
        where = [slice(None)] * (BATCH + 2)
        for i, offset in enumerate(position):
            start, stride = offset * a["dilations"][i], a["strides"][i]
            where.append(slice(start, start + (sizes[i] - 1) * stride + 1, stride))
        one = np.matmul(np.swapaxes(taps[..., number], -1, -2), columns)
        result[tuple(where)] += one.reshape(*shape, n, group * outputs, *sizes)
    pads = a["pads"]
    kept = [slice(None)] * (BATCH + 2)
    kept += [slice(pads[i], full[i] - pads[spatial + i]) for i in range(spatial)]
    return result[tuple(kept)]


def _max_pool(a: Given, x: Array) -> Array:
    result: Array = np.max(_seen(a, x, a["kernel"], -np.inf), axis=0)
    return result


def _average_pool(a: Given, x: Array) -> Array:
    total: Array = np.sum(_seen(a, x, a["kernel"], 0.0), axis=0)
    if a["count_include_pad"]:
        average: Array = total / math.prod(a["kernel"])
        return average
    ones = np.ones((1, 1, *x.shape[BATCH:]))
    counted: Array = np.sum(_seen(a, ones, a["kernel"], 0.0), axis=0)
    result: Array = total / counted
    return result


def _global(operation: Callable[..., Array]) -> Callable[..., Array]:
    def kernel(_: Given, x: Array) -> Array:
        axes = tuple(range(BATCH + 2, x.ndim))
        result: Array = operation(x, axis=axes, keepdims=True)
        return result

    return kernel


def _gelu(x: Array) -> Array:
    result: Array = 0.5 * x * (1 + _erf(x / math.sqrt(2)))
    return result


_erf = np.vectorize(math.erf, otypes=[np.float64])

KERNELS: Mapping[str, Callable[..., Array]] = {
    "Identity": _unary(lambda x: x),
    "Cast": _unary(lambda x: x),
    "Erf": _unary(_erf),
    "Gelu": _unary(_gelu),
    "HardSigmoid": lambda a, x: np.clip(a["alpha"] * x + a["beta"], 0, 1),
    "HardSwish": _unary(lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "Elu": lambda a, x: np.where(x > 0, x, a["alpha"] * np.expm1(np.minimum(x, 0))),
    "Pow": _binary(np.power),
    "Sum": _binary(np.add),
    "Relu": _unary(lambda x: np.maximum(x, 0)),
    "Neg": _unary(np.negative),
    "Abs": _unary(np.abs),
    "Exp": _unary(np.exp),
    "Log": _unary(np.log),
    "Sqrt": _unary(np.sqrt),
    "Reciprocal": _unary(np.reciprocal),
    "Tanh": _unary(np.tanh),
    "Sigmoid": _unary(lambda x: 1 / (1 + np.exp(-x))),
    "LeakyRelu": lambda a, x: np.where(x > 0, x, a["alpha"] * x),
    "Clip": lambda a, x: np.minimum(np.maximum(x, a["min"]), a["max"]),
    "Add": _binary(np.add),
    "Sub": _binary(np.subtract),
    "Mul": _binary(np.multiply),
    "Div": _binary(np.divide),
    "Max": _binary(np.maximum),
    "Min": _binary(np.minimum),
    "MatMul": _matmul,
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Squeeze": lambda a, x: np.squeeze(x, tuple(BATCH + axis for axis in a["axes"])),
    "Flatten": lambda a, x: _reshape({"shape": _flat(a["axis"], x)}, x),
    "Unsqueeze": _unsqueeze,
    "Concat": _concat,
    "Slice": _slice,
    "Pad": _pad,
    "Expand": _expand,
    "ReduceSum": _reduction(np.sum),
    "ReduceMean": _reduction(np.mean),
    "ReduceMax": _reduction(np.max),
    "ReduceMin": _reduction(np.min),
    "ReduceProd": _reduction(np.prod),
    "Softmax": _softmax,
    "LayerNormalization": _normalized(True),
    "RMSNormalization": _normalized(False),
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global(np.mean),
    "GlobalMaxPool": _global(np.max),
}

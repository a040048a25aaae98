"""TASO's operators that compute: one method each, with TASO's names and parameters.

What differs is what was wrong there: windows are written to the model as they are, a fused
activation is a node of its own, `epsilon` is honoured, and what does not fit is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from rulesets.errors import ShapeError
from rulesets.ops import Value
from rulesets.tensor import broadcast
from tensat.errors import UsageError
from tensat.taso.adding import Adder, window
from tensat.taso.handle import TensorHandle
from tensat.taso.model_builder import Dims

DATA_TYPES = ("FLOAT", "DOUBLE", "FLOAT16", "INT8", "UINT8", "INT32", "INT64", "BOOL")
"""Names of element types that `cast` takes; those of TASO."""


class ComputingOperators:
    """Inputs, weights, windows, products, norms and elementwise functions."""

    _adder: Adder
    _random: np.random.Generator

    # ---------------------------------------------------------- inputs and weights
    def new_input(
        self, *, dims: Dims, dtype: str = "float32", name: str = "data"
    ) -> TensorHandle:
        """Add an input.

        Args:
            dims: Its sizes; a name stands for a size that is open until the model runs.
            dtype: Element type, such as "int64".
            name: Its name; a number is added where it is taken.
        """
        return self._adder.handle(self._adder.builder.add_input(tuple(dims), dtype, name))

    def new_weight(
        self, *, dims: Sequence[int], data: npt.ArrayLike | None = None
    ) -> TensorHandle:
        """Add a constant.

        Args:
            dims: Its sizes.
            data: Its values, of any shape with that many elements; float64 becomes
                float32. If None, random: the same in every run, scaled so that what they
                are multiplied with keeps its magnitude; between 0.5 and 1.5 for
                weights of one axis, so that a variance is positive.

        Raises:
            UsageError: The values do not fit the sizes.
        """
        sizes = tuple(dims)
        if data is None:
            return self._adder.handle(self._adder.builder.add_weight(self._values(sizes)))
        array = np.asarray(data)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        if array.size != prod(sizes):
            raise UsageError(f"a weight of {sizes} is given data of shape {array.shape}")
        return self._adder.handle(self._adder.builder.add_weight(array.reshape(sizes)))

    def _values(self, dims: tuple[int, ...]) -> np.ndarray:
        values = self._random.random(dims, dtype=np.float32)
        if len(dims) < 2:
            return np.asarray(values + np.float32(0.5))
        fan = dims[-2] if len(dims) < 4 else prod(dims[1:])
        return (2 * values - 1) * np.float32((6 / max(fan, 1)) ** 0.5)

    # ----------------------------------------------------- windows, products, norms
    def conv2d(
        self,
        *,
        input: TensorHandle,
        weight: TensorHandle,
        strides: Sequence[int],
        padding: str,
        activation: str = "NONE",
    ) -> TensorHandle:
        """Convolve [n, c, h, w] with kernels [k, c / groups, kh, kw]."""
        for tensor in (input, weight):
            self._adder.ranked(tensor, 4, "conv2d")
        kernel = (weight.dim(2), weight.dim(3))
        channels, per_group = input.dim(1), weight.dim(1)
        if per_group < 1 or channels % per_group:
            raise UsageError(
                f"conv2d of {channels} channels cannot use kernels of {per_group}"
            )
        attributes = window(input, kernel, strides, padding)
        attributes["group"] = channels // per_group
        return self._adder.activated(activation, "Conv", input, weight, **attributes)

    def maxpool2d(
        self,
        input: TensorHandle,
        kernels: Sequence[int],
        strides: Sequence[int],
        padding: str,
        activation: str = "NONE",
    ) -> TensorHandle:
        """Maximum over each window of [n, c, h, w]."""
        return self._pool("MaxPool", input, kernels, strides, padding, activation)

    def avgpool2d(
        self,
        *,
        input: TensorHandle,
        kernels: Sequence[int],
        strides: Sequence[int],
        padding: str,
        activation: str = "NONE",
    ) -> TensorHandle:
        """Mean over each window of [n, c, h, w]; padding does not count."""
        return self._pool("AveragePool", input, kernels, strides, padding, activation)

    def _pool(
        self,
        name: str,
        input: TensorHandle,
        kernels: Sequence[int],
        strides: Sequence[int],
        padding: str,
        activation: str,
    ) -> TensorHandle:
        self._adder.ranked(input, 4, name)
        attributes = window(input, kernels, strides, padding)
        attributes["kernel"] = tuple(kernels)
        return self._adder.activated(activation, name, input, **attributes)

    def matmul(
        self, input: TensorHandle, weight: TensorHandle, activation: str = "NONE"
    ) -> TensorHandle:
        """Matrix product [..., m, k] x [..., k, n]; leading axes broadcast."""
        return self._adder.activated(activation, "MatMul", input, weight)

    def batchnorm(
        self,
        input: TensorHandle,
        scale: TensorHandle,
        bias: TensorHandle,
        mean: TensorHandle,
        var: TensorHandle,
        epsilon: float = -1,
    ) -> TensorHandle:
        """Normalize each channel of [n, c, ...]; a negative epsilon means 1e-5."""
        chosen: dict[str, Value] = {} if epsilon < 0 else {"epsilon": float(epsilon)}
        inputs = (input, scale, bias, mean, var)
        return self._adder.apply("BatchNormalization", *inputs, **chosen)

    # ------------------------------------------------------------------ elementwise
    def add(self, x: TensorHandle, y: TensorHandle) -> TensorHandle:
        """The sum x + y, broadcast."""
        return self._adder.apply("Add", x, y)

    def mul(self, x: TensorHandle, y: TensorHandle) -> TensorHandle:
        """The product x * y, broadcast."""
        return self._adder.apply("Mul", x, y)

    def sub(self, *, x: TensorHandle, y: TensorHandle) -> TensorHandle:
        """The difference x - y, broadcast."""
        return self._adder.apply("Sub", x, y)

    def div(self, *, x: TensorHandle, y: TensorHandle) -> TensorHandle:
        """The quotient x / y, broadcast."""
        return self._adder.apply("Div", x, y)

    def max(self, x: TensorHandle, y: TensorHandle) -> TensorHandle:
        """The larger of both, broadcast."""
        return self._adder.apply("Max", x, y)

    def min(self, x: TensorHandle, y: TensorHandle) -> TensorHandle:
        """The smaller of both, broadcast."""
        return self._adder.apply("Min", x, y)

    def equal(self, *, x: TensorHandle, y: TensorHandle) -> TensorHandle:
        """Whether x = y, broadcast."""
        return self._adder.apply("Equal", x, y)

    def greater(self, *, x: TensorHandle, y: TensorHandle) -> TensorHandle:
        """Whether x > y, broadcast."""
        return self._adder.apply("Greater", x, y)

    def less(self, *, x: TensorHandle, y: TensorHandle) -> TensorHandle:
        """Whether x < y, broadcast."""
        return self._adder.apply("Less", x, y)

    def relu(self, input: TensorHandle, inplace: bool = False) -> TensorHandle:
        """max(x, 0); where results lie in memory is the runtime's business."""
        return self._adder.apply("Relu", input)

    def sigmoid(self, input: TensorHandle, inplace: bool = False) -> TensorHandle:
        """1 / (1 + exp(-x))."""
        return self._adder.apply("Sigmoid", input)

    def tanh(self, input: TensorHandle, inplace: bool = False) -> TensorHandle:
        """Hyperbolic tangent."""
        return self._adder.apply("Tanh", input)

    def leakyrelu(
        self, input: TensorHandle, alpha: float, inplace: bool = False
    ) -> TensorHandle:
        """Keep x where positive, else alpha * x."""
        return self._adder.apply("LeakyRelu", input, alpha=float(alpha))

    def prelu(self, *, x: TensorHandle, slope: TensorHandle) -> TensorHandle:
        """Keep x where positive, else slope * x; the slope broadcasts to x."""
        x, slope = self._adder.checked(x), self._adder.checked(slope)
        try:
            fits = broadcast(x.dims, slope.dims) == x.dims
        except ShapeError:
            fits = False
        if not fits:
            raise UsageError(f"a slope of {slope.dims} does not broadcast to {x.dims}")
        return self._adder.apply_onnx("PRelu", x, slope)

    def exp(self, *, input: TensorHandle) -> TensorHandle:
        """Exponential."""
        return self._adder.apply("Exp", input)

    def log(self, *, input: TensorHandle) -> TensorHandle:
        """Natural logarithm."""
        return self._adder.apply("Log", input)

    def sqrt(self, *, input: TensorHandle) -> TensorHandle:
        """Square root."""
        return self._adder.apply("Sqrt", input)

    def ceil(self, *, input: TensorHandle) -> TensorHandle:
        """Round up."""
        return self._adder.apply("Ceil", input)

    def round(self, input: TensorHandle) -> TensorHandle:
        """Round to the nearest, halves to even."""
        return self._adder.apply("Round", input)

    def logical_not(self, *, input: TensorHandle) -> TensorHandle:
        """Whether not x."""
        return self._adder.apply("Not", input)

    def cast(self, *, input: TensorHandle, datatype: str) -> TensorHandle:
        """Another element type, one of `DATA_TYPES`."""
        if datatype not in DATA_TYPES:
            raise UsageError(
                f"datatype {datatype!r} is unknown; possible: {', '.join(DATA_TYPES)}"
            )
        name = {"FLOAT": "float32", "DOUBLE": "float64"}.get(datatype, datatype.lower())
        return self._adder.apply("Cast", input, to=name)

    def dropout(self, input: TensorHandle, rate: float = 0) -> TensorHandle:
        """The input itself: a model that is only run drops nothing at any rate."""
        return self._adder.apply_onnx("Dropout", input)

    def identity(self, input: TensorHandle) -> TensorHandle:
        """The input itself."""
        return self._adder.apply("Identity", input)

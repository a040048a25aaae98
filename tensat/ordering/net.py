"""An ONNX model written operator by operator, with weights from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

type Array = np.ndarray

OPSET = 17
_IR_VERSION = 8
_MOST_ELEMENTS = 4096  # of an output


class Net:
    """A model under construction; values are known by their names."""

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._weights: list[TensorProto] = []

    def input(self, *dims: int) -> str:
        """Return a new float32 input of these sizes."""
        name = f"x{len(self._inputs)}"
        value = helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        self._inputs.append(value)
        return name

    def weight(self, array: Array) -> str:
        """Return a constant."""
        name = f"w{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def number(self, value: float) -> str:
        """Return a constant float32 of rank 0."""
        return self.weight(np.array(value, np.float32))

    def sizes(self, *values: int) -> str:
        """Return a constant list of int64."""
        return self.weight(np.array(values, np.int64))

    def op(self, name: str, /, *inputs: str, **attributes: object) -> str:
        """Return the result of an operator with one output; see `ops`."""
        return self.ops(1, name, *inputs, **attributes)[0]

    def ops(
        self, count: int, name: str, /, *inputs: str, **attributes: object
    ) -> Sequence[str]:
        """Return the results of an operator.

        Args:
            count: How many.
            name: The operator; of a domain other than ONNX's own as ``domain:Type``.
            inputs: Names of values.
            attributes: As ONNX has them.
        """
        domain, _, op_type = name.rpartition(":")
        outputs = [f"v{len(self._nodes)}_{place}" for place in range(count)]
        node = helper.make_node(op_type, inputs, outputs, domain=domain)
        node.attribute.extend(
            helper.make_attribute(key, value) for key, value in attributes.items()
        )
        self._nodes.append(node)
        return outputs

    def reshape(self, x: str, *dims: int) -> str:
        """Return a value in other sizes."""
        return self.op("Reshape", x, self.sizes(*dims))

    def conv(self, x: str, weight: Array, /, *bias: Array, **attributes: object) -> str:
        """Return a Conv of [n, c, h, w] with constant weights."""
        constants = [self.weight(each) for each in (weight, *bias)]
        sides = list(weight.shape[2:])
        return self.op("Conv", x, *constants, kernel_shape=sides, **attributes)

    def model(self, outputs: Sequence[str], dims: Sequence[Sequence[int]]) -> ModelProto:
        """Return the model with these outputs, which it calls y0, y1 and so on.

        Of large ones only evenly spaced elements are handed out: a run must get new memory
        for its outputs, which would take longer than many kernels.

        Args:
            outputs: Names of values.
            dims: Sizes of each.
        """
        declared = []
        for place, (name, sizes) in enumerate(zip(outputs, dims, strict=True)):
            if prod(sizes) > _MOST_ELEMENTS:
                name, sizes = self._samples(name, prod(sizes))
            self._nodes.append(helper.make_node("Identity", [name], [f"y{place}"]))
            declared.append(
                helper.make_tensor_value_info(f"y{place}", TensorProto.FLOAT, sizes)
            )
        graph = helper.make_graph(self._nodes, "g", self._inputs, declared, self._weights)
        domains = sorted({node.domain for node in self._nodes if node.domain})
        opsets = [helper.make_opsetid("", OPSET)]
        opsets += [helper.make_opsetid(domain, 1) for domain in domains]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        assert isinstance(model, onnx.ModelProto)
        return model

    def _samples(self, name: str, elements: int) -> tuple[str, tuple[int]]:
        """Return evenly spaced elements of a value, and their number."""
        step = ceil(elements / _MOST_ELEMENTS) | 1  # odd: all channels of a block occur
        places = (self.sizes(each) for each in (0, elements, 0, step))
        sample = self.op("Slice", self.reshape(name, elements), *places)
        return sample, (ceil(elements / step),)


def two() -> tuple[Net, Net]:
    """Return two empty nets."""
    return Net(), Net()


class Weights:
    """Random weights from a seed, so small that values stay in range behind them."""

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)

    def matrix(self, *dims: int) -> Array:
        """Return weights [.., k, n] of a MatMul over k."""
        return self._normal(dims, dims[-2])

    def kernel(self, outputs: int, inputs: int, height: int = 1, width: int = 0) -> Array:
        """Return weights [outputs, inputs, height, width] of a Conv."""
        dims = (outputs, inputs, height, width or height)
        return self._normal(dims, dims[1] * dims[2] * dims[3])

    def vector(self, *dims: int) -> Array:
        """Return numbers between 0.5 and 1.5."""
        return self._random.uniform(0.5, 1.5, dims).astype(np.float32)

    def _normal(self, dims: tuple[int, ...], fan_in: int) -> Array:
        numbers: Array = self._random.standard_normal(dims) / fan_in**0.5
        return numbers.astype(np.float32)

"""Random small models of the operators that rules speak of, for property tests.

A *chooser* answers ``choose(n)`` with a number below n; a seeded generator or Hypothesis
stand behind it, so failures can be repeated and shrunk. Sizes that are symbolic in the
model are `Open`: the generator knows a value, the model only says ``N``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Choose = Callable[[int], int]
Shape = tuple[int, ...]

OPSETS = (11, 13, 17, 18, 20)
BATCH = 2
"""The value that the generator gives to ``N``."""


class Open(int):
    """A size that the model does not state."""


@dataclass(frozen=True)
class Value:
    """A value of the model."""

    name: str
    shape: Shape
    constant: bool = False

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def open(self) -> bool:
        """Whether a size is not stated."""
        return any(isinstance(size, Open) for size in self.shape)


type Made = list[Value] | None
"""What a maker adds to the values; None where nothing fits."""


@dataclass
class Builder:
    """A model under construction."""

    choose: Choose
    opset: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    tensors: list[TensorProto] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)

    def pick(self, options: Sequence[Any]) -> Any:
        """One of some options."""
        return options[self.choose(len(options))]

    def chance(self, one_in: int) -> bool:
        """True once in so many times."""
        return self.choose(one_in) == one_in - 1

    def rng(self) -> np.random.Generator:
        """Numbers for one constant."""
        return np.random.default_rng(self.choose(1 << 16))

    def input(self, shape: Shape) -> Value:
        """A new input."""
        value = Value(f"x{len(self.inputs)}", shape)
        self.inputs.append(value)
        self.values.append(value)
        return value

    def stored(self, array: np.ndarray) -> Value:
        """A constant."""
        name = f"c{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(array.copy(order="C"), name))
        return Value(name, array.shape, True)

    def ints(self, *numbers: int) -> Value:
        """A constant of integers."""
        return self.stored(np.array(numbers, np.int64))

    def weights(self, *shape: int, positive: bool = False) -> Value:
        """A constant of random numbers."""
        numbers = self.rng().standard_normal(shape) * 0.5
        numbers = np.abs(numbers) + 0.5 if positive else numbers
        return self.stored(numbers.astype(np.float32))

    def node(self, op: str, inputs: Sequence[Value | None], *shapes: Shape,
             **attributes: Any) -> list[Value]:  # fmt: skip
        """A node; its results may be used from now on."""
        constant = bool(inputs) and all(v is None or v.constant for v in inputs)
        results = [
            Value(f"v{len(self.nodes)}_{k}", shape, constant)
            for k, shape in enumerate(shapes)
        ]
        names = ["" if value is None else value.name for value in inputs]
        outputs = [value.name for value in results]
        self.nodes.append(helper.make_node(op, names, outputs, **attributes))
        return results

    def one(self, op: str, inputs: Sequence[Value | None], shape: Shape,
            **attributes: Any) -> Value:  # fmt: skip
        """A node with one result."""
        return self.node(op, inputs, shape, **attributes)[0]

    def any(self, least: int = 0, most: int = 9) -> Value | None:
        """A value of some rank, late ones more often."""
        fitting = [v for v in self.values if least <= v.rank <= most]
        if not fitting:
            return None
        return fitting[-1 - min(self.choose(len(fitting)), self.choose(len(fitting)))]

    def scalar(self) -> Value:
        """A constant that rules may ask for by value."""
        number = self.pick([1, 2, -1, 0.5, 3, 6, 0, 1 / 6, -0.25, 1.5])
        shape = self.pick([(), (), (1,), (1, 1)])
        return self.stored(np.full(shape, number, np.float32))

    def beside(self, shape: Shape) -> Value:
        """Something that broadcasts into a shape: constant or not."""
        kind = self.choose(6)
        if kind == 0:
            return self.scalar()
        if kind == 1:
            same = [v for v in self.values if v.shape == shape]
            if same:
                return self.pick(same)
        if kind == 2 and any(same_end(v.shape, shape) for v in self.values):
            return self.pick([v for v in self.values if same_end(v.shape, shape)])
        keep = [not isinstance(size, Open) and self.chance(2) for size in shape]
        if kind == 3 and len(shape) > 1:
            keep = [axis == 1 and not isinstance(n, Open) for axis, n in enumerate(shape)]
        sizes = [size if kept else 1 for size, kept in zip(shape, keep, strict=True)]
        while sizes and sizes[0] == 1 and self.chance(2):
            sizes.pop(0)
        return self.weights(*sizes)


def same_end(small: Shape, large: Shape) -> bool:
    """Whether a shape broadcasts into another, sizes that are open only onto themselves."""
    if len(small) > len(large):
        return False
    pairs = zip(reversed(small), reversed(large), strict=False)
    return all(
        (a == b and isinstance(a, Open) == isinstance(b, Open))
        or (a == 1 and not isinstance(a, Open))
        for a, b in pairs
    )


def size_of(shape: Sequence[int]) -> int:
    """Product of sizes; open if one of them is."""
    number = math.prod(shape)
    return Open(number) if any(isinstance(size, Open) for size in shape) else number


def random_model(choose: Choose, makers: Sequence[Callable[[Builder], list[Value] | None]],
                 *, symbolic: bool = False, most: int = 14) -> onnx.ModelProto:  # fmt: skip
    """A random model.

    Args:
        choose: Decides everything.
        makers: Each adds an operator, or a few, to a model.
        symbolic: Whether the first axis of the inputs is open.
        most: Number of steps at most.
    """
    build = Builder(choose, OPSETS[choose(len(OPSETS))])
    batch = Open(BATCH) if symbolic else build.pick([1, 2])
    shapes: list[Shape] = [
        (batch, 4), (batch, 3, 4), (batch, 4, 6, 6), (batch, 6, 5, 5), (batch, 64),
        (batch, 5, 1, 4),
    ]  # fmt: skip
    for _ in range(1 + choose(2)):
        build.input(build.pick(shapes))
    for _ in range(2 + choose(most - 1)):
        made = build.pick(makers)(build)
        build.values.extend(made or ())
    return finish(build)


def finish(build: Builder) -> onnx.ModelProto:
    """The model; what nobody uses, and a little more, are its outputs."""
    used = {name for node in build.nodes for name in node.input}
    computed = [value for value in build.values if value not in build.inputs]
    last = [v for v in computed if v.name not in used] or build.inputs[:1]
    if computed and build.chance(3):
        extra = build.pick(computed)
        last = last if extra in last else [*last, extra]

    def declared(value: Value) -> onnx.ValueInfoProto:
        open_size = "N" if value in build.inputs else None
        sizes = [open_size if isinstance(n, Open) else n for n in value.shape]
        return helper.make_tensor_value_info(value.name, TensorProto.FLOAT, sizes)

    graph = helper.make_graph(
        build.nodes, "random", [declared(v) for v in build.inputs],
        [declared(v) for v in last], build.tensors,
    )  # fmt: skip
    imports = [helper.make_opsetid("", build.opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def feeds(model: onnx.ModelProto, seed: int, batch: int = BATCH) -> dict[str, np.ndarray]:
    """Random inputs of a random model."""
    rng = np.random.default_rng(seed)
    return {
        value.name: rng.standard_normal(
            [d.dim_value if d.HasField("dim_value") else batch
             for d in value.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for value in model.graph.input
    }  # fmt: skip

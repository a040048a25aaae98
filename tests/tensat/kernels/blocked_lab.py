"""Kernels built by hand, run in the runtime as written and as it optimizes them itself."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from rulesets.ops import OPERATORS, complete
from rulesets.size import symbol
from rulesets.tensor import Tensor
from tensat.costs.source import Argument
from tensat.kernels.blocked_reorder import to_blocked, to_plain
from tensat.kernels.blocked_steps import NCHWC, arguments_of, blocked_type
from tensat.kernels.collect import Reorder
from tensat.kernels.kernel import Application, BlockedForm, Layout, Members, Step
from tensat.kernels.nhwc_moves import to_first, to_last
from tensat.kernels.nhwc_steps import last_type
from tensat.onnx_forms import Absent, Arg, Const, Node, lower

BLOCK = 16
OPSET = 17

type Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Ways:
    """Between plain tensors and a layout; all take a type and a block size."""

    there: Reorder
    back: Reorder
    lies: Callable[[Tensor, int], Tensor]


WAYS = {
    Layout.BLOCKED: Ways(to_blocked, to_plain, blocked_type),
    Layout.CHANNELS_LAST: Ways(to_last, to_first, lambda plain, _: last_type(plain)),
}


@dataclass(slots=True)
class Lab:
    """Values by number, and the operators that were applied to them.

    Attributes:
        rng: Makes the values.
        arrays: What each value is made of; results of operators have none.
        arguments: The type of each value.
        symbolic: Whether numbers of images and their sizes are symbols to kernels.
        types: The type of each value, as kernels see it.
    """

    rng: np.random.Generator
    symbolic: bool = False
    types: list[Tensor] = field(default_factory=list)
    arrays: dict[int, Array] = field(default_factory=dict)
    arguments: list[Argument] = field(default_factory=list)

    def value(self, *dims: int, constant: bool = False, low: float = -1.0) -> int:
        """Return a new float32 value, uniform from `low` to 1."""
        self.arrays[len(self.arguments)] = self.rng.uniform(low, 1, dims).astype(np.float32)
        self.arguments.append(Argument("float32", dims, constant))
        self.types.append(self._seen(dims) if not constant else Tensor("float32", dims))
        return len(self.arguments) - 1

    def _seen(self, dims: tuple[int, ...]) -> Tensor:
        """Return a type in which equal sizes of images are equal symbols."""
        if not self.symbolic:
            return Tensor("float32", dims)
        return Tensor(
            "float32",
            tuple(
                symbol(f"s{size}") if axis != 1 and (size != 1 or axis == 0) else size
                for axis, size in enumerate(dims)
            ),
        )

    def weight(self, *dims: int, low: float = -1.0) -> int:
        """Return a new constant."""
        return self.value(*dims, constant=True, low=low)

    def scalar(self, number: float) -> int:
        """Return a new constant of rank 0."""
        self.arrays[len(self.arguments)] = np.array(number, np.float32)
        self.arguments.append(Argument("float32", (), True, float(np.float32(number))))
        self.types.append(Tensor("float32", ()))
        return len(self.arguments) - 1

    def apply(self, op: str, *children: int, **given: object) -> Application:
        """Apply an operator; attributes left out have their defaults."""
        inputs = tuple(self.arguments[child] for child in children)
        attributes = complete(OPERATORS[op], given)  # type: ignore[arg-type]
        types = tuple(Tensor(one.dtype, one.dims) for one in inputs)
        outputs = tuple(
            Argument(one.dtype, one.shape)  # type: ignore[arg-type]
            for one in OPERATORS[op].infer(attributes, types)
        )
        seen = tuple(self.types[child] for child in children)
        results = OPERATORS[op].infer(attributes, seen)
        self.arguments.append(outputs[0])
        self.types.append(results[0])
        number = len(self.arguments) - 1
        return Application(op, attributes, inputs, outputs, children, number, seen, results)

    def conv(self, x: int, w: int, *bias: int, **given: object) -> Application:
        """Apply a convolution; stride, dilation and group are 1 and pads 0 by default."""
        usual = {"strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1), "group": 1}
        return self.apply("Conv", x, w, *bias, **(usual | given))

    def image(self, *dims: int) -> tuple[int, Members]:
        """Return a new value that the runtime makes blocked, and what makes it."""
        n, channels, *spatial = dims
        conv = self.conv(self.value(n, 3, *spatial), self.weight(channels, 3, 1, 1))
        tanh = self.apply("Tanh", conv.value)
        made = (tanh, conv)
        self.arrays[tanh.value] = run(self.standard(made), self.feeds(made))
        return tanh.value, made

    def feeds(self, members: Members) -> dict[str, Array]:
        """Return the arguments of a kernel that are not constant, by name."""
        return {
            f"v{number}": self.arrays[number]
            for number, (_, _, constant) in arguments_of(members).items()
            if not constant
        }

    def standard(self, members: Members) -> onnx.ModelProto:
        """Return the kernel's operators as a model of standard operators."""
        nodes: list[onnx.NodeProto] = []
        constants: dict[str, Array] = {}
        done: set[int] = set()
        for member in reversed(members):
            if member.value not in done:
                names = [f"v{child}" for child in member.children]
                types = [Tensor(one.dtype, one.dims) for one in _present(member)]
                _write(
                    nodes, constants, member.op, member.attributes, types,
                    names, f"v{member.value}",
                )  # fmt: skip
                done.add(member.value)
        for number, (_, _, constant) in arguments_of(members).items():
            if constant:
                constants[f"v{number}"] = self.arrays[number]
        return _model(nodes, self.feeds(members), constants, f"v{members[0].value}")

    def written(self, members: Members, form: BlockedForm) -> onnx.ModelProto:
        """Return the kernel's steps as a model, reorders around them."""
        nodes: list[onnx.NodeProto] = []
        constants: dict[str, Array] = {}
        names: list[str] = []
        types: list[Tensor] = []
        given = arguments_of(members).items()
        for (number, (_, kind, constant)), layout in zip(given, form.layouts, strict=True):
            name = f"v{number}"
            if constant:
                constants[name] = self.arrays[number]
            if layout is not Layout.PLAIN:
                reorder = WAYS[layout].there(kind, BLOCK)
                assert reorder is not None
                name, kind = _steps(nodes, constants, reorder.steps, [name], [kind], "b")
            names.append(name)
            types.append(kind)
        out, kind = _steps(nodes, constants, form.steps, names, types, "s")
        plain = members[0].results[0]
        if form.result is Layout.PLAIN:
            assert kind == plain
        else:
            assert kind == WAYS[form.result].lies(plain, BLOCK)
            reorder = WAYS[form.result].back(plain, BLOCK)
            assert reorder is not None
            out, _ = _steps(nodes, constants, reorder.steps, [out], [kind], "o")
        return _model(nodes, self.feeds(members), constants, out)

    def reordered(
        self, members: Members, there: BlockedForm, back: BlockedForm
    ) -> onnx.ModelProto:
        """Return a model that takes the first argument there and back."""
        nodes: list[onnx.NodeProto] = []
        constants: dict[str, Array] = {}
        ((number, (_, kind, _)),) = arguments_of(members).items()
        name, kind = _steps(nodes, constants, there.steps, [f"v{number}"], [kind], "b")
        name, _ = _steps(nodes, constants, back.steps, [name], [kind], "o")
        if not nodes:
            nodes.append(helper.make_node("Identity", [name], ["same"]))
            name = "same"
        return _model(nodes, self.feeds(members), constants, name)

    def lanes(self, members: Members, form: BlockedForm) -> Array:
        """Return a kernel's blocked result as it lies, of random numbers everywhere."""
        nodes: list[onnx.NodeProto] = []
        constants: dict[str, Array] = {}
        feeds: dict[str, Array] = {}
        names: list[str] = []
        types: list[Tensor] = []
        given = arguments_of(members).items()
        for (number, (_, kind, constant)), layout in zip(given, form.layouts, strict=True):
            names.append(f"v{number}")
            if layout is Layout.BLOCKED:
                kind = blocked_type(kind, BLOCK)
                array = self.rng.uniform(-3, 3, kind.shape).astype(np.float32)
            else:
                array = self.arrays[number]
            (constants if constant else feeds)[names[-1]] = array
            types.append(kind)
        result, _ = _steps(nodes, constants, form.steps, names, types, "s")
        return run(_model(nodes, feeds, constants, result), feeds, "NONE")


def computed(steps: Sequence[Step], array: Array) -> Array:
    """Return the result of steps on constants, of one constant."""
    constants = {"w": array}
    kind = Tensor("float32", array.shape)
    name, _ = _steps([], constants, steps, ["w"], [kind], "s")
    return constants[name]


def run(model: onnx.ModelProto, feeds: Mapping[str, Array], level: str = "ALL") -> Array:
    """Return the only output of a model at an optimization level."""
    return np.asarray(session(model, level).run(None, dict(feeds))[0])


def optimized(model: onnx.ModelProto, without: Sequence[str] = ()) -> onnx.ModelProto:
    """Return what the runtime makes of a model, without some of its passes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "optimized.onnx"
        session(model, "ALL", str(path), without)
        return onnx.load(path)


def blocked_nodes(model: onnx.ModelProto) -> list[tuple[object, ...]]:
    """Return the nodes on blocks, reorders left out: type, attributes, weights, inputs.

    Attributes that are equal to their defaults are left out.
    """
    return [
        described(model, node)
        for node in model.graph.node
        if node.domain == NCHWC and not node.op_type.startswith("Reorder")
    ]


def described(model: onnx.ModelProto, node: onnx.NodeProto) -> tuple[object, ...]:
    """Return all that decides what a node computes, but its computed inputs."""
    arrays = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    kept = {
        name: value
        for name, value in attributes.items()
        if value not in _DEFAULTS.get(name, ())
    }
    inputs = [bool(name) for name in node.input]
    weights = [arrays[name].tolist() for name in node.input if name in arrays]
    shapes = [arrays[name].shape for name in node.input if name in arrays]
    return (node.op_type, repr(sorted(kept.items())), inputs, shapes, weights)


_DEFAULTS: Mapping[str, tuple[object, ...]] = {
    "auto_pad": (b"NOTSET",),
    "group": (1,),
    "strides": ([1, 1],),
    "dilations": ([1, 1],),
    "pads": ([0, 0, 0, 0],),
    "ceil_mode": (0,),
    "storage_order": (0,),
    "count_include_pad": (0,),
    "axis": (1,),
    "allowzero": (0,),
    "alpha": (0.20000000298023224,),
    "beta": (0.5,),
    "kernel_shape": ([1, 1],),
}


def _present(member: Application) -> list[Argument]:
    return [one for one in member.inputs if one is not None]


def session(
    model: onnx.ModelProto, level: str, save: str = "", without: Sequence[str] = ()
) -> ort.InferenceSession:
    """Return a session of one thread; it saves what it makes of the model."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.graph_optimization_level = getattr(
        ort.GraphOptimizationLevel, f"ORT_{'ENABLE' if level == 'ALL' else 'DISABLE'}_ALL"
    )
    if save:
        options.optimized_model_filepath = save
    return ort.InferenceSession(
        model.SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=list(without),
    )


def _steps(
    nodes: list[onnx.NodeProto],
    constants: dict[str, Array],
    steps: Sequence[Step],
    names: Sequence[str],
    types: Sequence[Tensor],
    label: str,
) -> tuple[str, Tensor]:
    """Append steps; those of constants are computed and become constants."""
    label = f"{label}{len(nodes)}_"
    made: list[str] = []
    for at, step in enumerate(steps):
        inputs, kinds = [], []
        for ref in step.inputs:
            if isinstance(ref, Absent):
                inputs.append("")
                kinds.append(None)
            else:
                of, place = (
                    (names, ref.position) if isinstance(ref, Arg) else (made, ref.index)
                )
                inputs.append(of[place])
                kinds.append(types[place] if isinstance(ref, Arg) else steps[place].output)
        made.append(f"{label}{at}")
        target: list[onnx.NodeProto] = [] if step.constant else nodes
        own: dict[str, Array] = {} if step.constant else constants
        _write(target, own, step.op, dict(step.attributes), kinds, inputs, made[-1])
        if step.constant:
            own |= {name: constants[name] for name in inputs}
            constants[made[-1]] = run(_model(target, {}, own, made[-1]), {}, "NONE")
    return (made[-1], steps[-1].output) if steps else (names[0], types[0])


def _write(
    nodes: list[onnx.NodeProto],
    constants: dict[str, Array],
    op: str,
    attributes: Mapping[str, object],
    types: Sequence[Tensor | None],
    names: Sequence[str],
    result: str,
) -> None:
    lowered = lower(op, attributes, tuple(types), (), OPSET)  # type: ignore[arg-type]
    assert lowered is not None, op
    made: list[str] = []
    for at, node in enumerate(lowered):
        inputs = []
        for ref in node.inputs:
            if isinstance(ref, Const):
                inputs.append(f"{result}_c{len(constants)}")
                constants[inputs[-1]] = ref.array
            elif isinstance(ref, Arg):
                inputs.append(names[ref.position])
            else:
                inputs.append(made[ref.index] if isinstance(ref, Node) else "")
        made.append(result if at == len(lowered) - 1 else f"{result}_{at}")
        given = {
            name: numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
            for name, value in node.attributes.items()
        }
        nodes.append(
            helper.make_node(node.op_type, inputs, [made[-1]], domain=node.domain, **given)
        )


def _model(
    nodes: Sequence[onnx.NodeProto],
    feeds: Mapping[str, Array],
    constants: Mapping[str, Array],
    output: str,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "kernel",
        [helper.make_tensor_value_info(n, 1, list(a.shape)) for n, a in feeds.items()],
        [onnx.ValueInfoProto(name=output)],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    domains = ((NCHWC, 1), ("com.microsoft", 1))
    opsets = [helper.make_opsetid("", OPSET), *[helper.make_opsetid(*d) for d in domains]]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)

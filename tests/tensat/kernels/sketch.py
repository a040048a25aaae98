"""Small graphs of canonical operators: what fusions say, and what the runtime does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from rulesets.ops import OPERATORS, complete
from rulesets.size import Size, evaluate, symbol
from rulesets.tensor import Tensor
from tensat.costs.source import Argument, Signature
from tensat.kernels.fusions import FUSIONS
from tensat.kernels.kernel import Application, Fusion, Members, Tree
from tensat.onnx_forms import Arg, Const, Node, OnnxCall, Operand, lower, raise_call

LAST = "Abs"
"""No fusion knows it: it keeps the root from being an output of the model."""


@dataclass
class Sketch:
    """A graph under construction; values are numbers."""

    opset: int = 17
    types: list[Argument] = field(default_factory=list)
    made: dict[int, Application] = field(default_factory=dict)
    symbolic: dict[int, tuple[Size, ...]] = field(default_factory=dict)
    arrays: dict[int, np.ndarray] = field(default_factory=dict)

    def input(self, *dims: int, dtype: str = "float32", names: str = "") -> int:
        """Add an input; a letter names a symbolic size, anything else leaves the number."""
        self.types.append(Argument(dtype, dims))
        self.symbolic[len(self.types) - 1] = tuple(
            symbol(name) if name.isalpha() else size
            for name, size in zip(names.ljust(len(dims), "."), dims, strict=True)
        )
        return len(self.types) - 1

    def constant(self, *dims: int, dtype: str = "float32") -> int:
        """Add a constant of random numbers."""
        array = np.random.default_rng(len(self.types)).uniform(0.5, 1.5, dims)
        return self._stored(array.astype(dtype))

    def number(self, value: float, *dims: int) -> int:
        """Add a constant all of whose elements are a number."""
        return self._stored(np.full(dims, value, np.float32))

    def _stored(self, array: np.ndarray) -> int:
        value = float(array.reshape(-1)[0]) if array.size == 1 else None
        self.types.append(Argument(array.dtype.name, array.shape, True, value))
        self.arrays[len(self.types) - 1] = array
        return len(self.types) - 1

    def apply(self, op: str, *children: int, **given: object) -> int:
        """Add an application of a canonical operator."""
        operator = OPERATORS[op]
        attributes = complete(operator, given)  # type: ignore[arg-type]
        inputs = tuple(self.types[child] for child in children)
        tensors = tuple(Tensor(one.dtype, one.dims) for one in inputs)
        outputs = tuple(
            Argument(one.dtype, tuple(evaluate(size, {}) for size in one.shape or ()))
            for one in operator.infer(attributes, tensors)
        )
        value = len(self.types)
        kinds = tuple(self._tensor(child) for child in children)
        results = operator.infer(attributes, kinds)
        self.types.append(outputs[0])
        self.symbolic[value] = results[0].shape or ()
        self.made[value] = Application(
            op, attributes, inputs, outputs, children, value, kinds, results
        )
        return value

    def _tensor(self, value: int) -> Tensor:
        known = self.types[value]
        return Tensor(known.dtype, self.symbolic.get(value, known.dims))

    def model(self, outputs: Sequence[int]) -> onnx.ModelProto:
        """Return the graph in standard operators; each output goes through one more."""
        nodes, constants = [], [numpy_helper.from_array(a, f"v{v}") for v, a in
                                self.arrays.items()]  # fmt: skip
        for value, one in self.made.items():
            nodes += _written(one, f"v{value}", self.opset, constants)
        nodes += [helper.make_node(LAST, [f"v{v}"], [f"out{v}"]) for v in outputs]
        inputs = [
            v for v in range(len(self.types)) if v not in self.made and v not in self.arrays
        ]
        graph = helper.make_graph(
            nodes,
            "sketch",
            [_declared(f"v{v}", self._tensor(v)) for v in inputs],
            [_declared(f"out{v}", self._tensor(v)) for v in outputs],
            constants,
        )
        imports = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _written(
    one: Application, name: str, opset: int, constants: list[onnx.TensorProto]
) -> list[onnx.NodeProto]:
    tensors = tuple(Tensor(a.dtype, a.dims) for a in one.inputs if a is not None)
    outputs = tuple(Tensor(a.dtype, a.dims) for a in one.outputs)
    nodes = lower(one.op, one.attributes, tensors, outputs, opset)  # type: ignore[arg-type]
    assert nodes is not None
    result = []
    for index, node in enumerate(nodes):
        names = []
        for ref in node.inputs:
            if isinstance(ref, Arg):
                names.append(f"v{one.children[ref.position]}")
            elif isinstance(ref, Node):
                names.append(f"{name}_{ref.index}")
            else:
                assert isinstance(ref, Const)
                names.append(f"c{len(constants)}")
                constants.append(numpy_helper.from_array(ref.array, names[-1]))
        output = name if index == len(nodes) - 1 else f"{name}_{index}"
        made = helper.make_node(node.op_type, names, [output])
        for key, given in node.attributes.items():
            made.attribute.append(helper.make_attribute(key, given))
        result.append(made)
    return result


def _declared(name: str, one: Tensor) -> onnx.ValueInfoProto:
    dims = [size if isinstance(size, int) else str(size) for size in one.shape or ()]
    return helper.make_tensor_value_info(name, _number(one.dtype), dims)


def _number(dtype: str) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def matched(sketch: Sketch, tree: Tree, value: int) -> Members | None:
    """Return the members of a tree at a value: root first, then depth first."""
    root = sketch.made.get(value)
    if root is None or root.op != tree.op:
        return None
    found: Members = (root,)
    for place, inner in tree.inner:
        if place >= len(root.children):
            return None
        below = matched(sketch, inner, root.children[place])
        if below is None:
            return None
        found += below
    return found


def _closed(tree: Tree, members: Members) -> bool:
    """Whether values made inside are read only where the tree says so."""
    made, waiting = {one.value for one in members[1:]}, iter(members)

    def walk(part: Tree) -> bool:
        member, inside = next(waiting), {place for place, _ in part.inner}
        outside = [c for at, c in enumerate(member.children) if at not in inside]
        return not made.intersection(outside) and all(walk(i) for _, i in part.inner)

    return walk(tree)


def claims(sketch: Sketch, value: int) -> Iterator[tuple[Fusion, tuple[Signature, ...]]]:
    """The fusions that compute a value, the largest first."""
    found = []
    for fusion in FUSIONS:
        members = matched(sketch, fusion.tree, value)
        if members is None or not _closed(fusion.tree, members):
            continue
        signatures = fusion.plain(members)
        if signatures is not None:
            found.append((len(members), fusion, signatures))
    yield from ((f, s) for _, f, s in sorted(found, key=lambda one: -one[0]))


@dataclass(frozen=True)
class Ran:
    """A node that the runtime keeps: as a signature without constness and values."""

    op: str
    attributes: Mapping[str, object]
    inputs: tuple[tuple[Size, ...] | None, ...]
    outputs: tuple[tuple[Size, ...], ...]


def wanted(signature: Signature) -> Ran:
    """What a signature says of a node."""
    attributes = {name: _rounded(value) for name, value in signature.attributes}
    inputs = tuple(None if one is None else one.dims for one in signature.inputs)
    outputs = tuple(one.dims for one in signature.outputs)
    return Ran(signature.op, attributes, inputs, outputs)


def ran(sketch: Sketch, outputs: Sequence[int], path: Path) -> list[Ran]:
    """The nodes that the runtime keeps of a sketch at its highest level."""
    highest = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    _session(sketch.model(outputs), highest, str(path))
    saved = onnx.load(path)
    dims = _dims(saved)
    return [_read(node, saved, dims) for node in saved.graph.node if node.op_type != LAST]


def _session(
    model: onnx.ModelProto,
    level: onnxruntime.GraphOptimizationLevel,
    target: str | None = None,
) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = level
    if target is not None:
        options.optimized_model_filepath = target
    return onnxruntime.InferenceSession(
        model.SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["NchwcTransformer"],
    )


def _dims(saved: onnx.ModelProto) -> dict[str, tuple[Size, ...]]:
    """Shape of every value, as the runtime infers it."""
    open_model = onnx.ModelProto()
    open_model.CopyFrom(saved)
    graph = open_model.graph
    declared = {one.name for one in graph.output}
    names = [name for node in graph.node for name in node.output if name not in declared]
    graph.output.extend([onnx.ValueInfoProto(name=name) for name in names])
    session = _session(open_model, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    values = (*session.get_inputs(), *session.get_outputs())
    return {
        one.name: tuple(
            size if isinstance(size, int) else symbol(size) for size in one.shape
        )
        for one in values
    }


def _read(
    node: onnx.NodeProto, saved: onnx.ModelProto, dims: Mapping[str, tuple[Size, ...]]
) -> Ran:
    arrays = {one.name: numpy_helper.to_array(one) for one in saved.graph.initializer}
    dims = {**dims, **{name: array.shape for name, array in arrays.items()}}
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    given = {n: v.decode() if isinstance(v, bytes) else v for n, v in given.items()}
    given = {n: tuple(v) if isinstance(v, list) else v for n, v in given.items()}
    inputs = tuple(dims[name] if name else None for name in node.input)
    while inputs[-1] is None:
        inputs = inputs[:-1]
    outputs = tuple(dims[name] for name in node.output)
    if node.domain == "com.microsoft":
        rounded = {name: _rounded(value) for name, value in given.items()}
        return Ran(f"{node.domain}:{node.op_type}", rounded, inputs, outputs)
    operands = [
        Operand(Tensor("float32", dims[name]), arrays.get(name)) for name in node.input
    ]
    # The runtime has these at every opset, RMS normalization under an older name.
    renamed = {
        "SimplifiedLayerNormalization": ("RMSNormalization", 23),
        "LayerNormalization": ("LayerNormalization", 17),
    }
    opset = next(one.version for one in saved.opset_import if one.domain in {"", "ai.onnx"})
    op, opset = renamed.get(node.op_type, (node.op_type, opset))
    raised = raise_call(OnnxCall(op, opset, given, tuple(operands), len(node.output)))
    assert raised is not None, node
    attributes = complete(OPERATORS[raised.name], raised.attributes)
    rounded = {name: _rounded(value) for name, value in attributes.items()}
    return Ran(raised.name, rounded, tuple(inputs[k] for k in raised.operands), outputs)


def _rounded(value: object) -> object:
    """Numbers of float32 that were computed in different orders are one."""
    return float(f"{value:.6g}") if isinstance(value, float) else value

"""Small models from nodes, and their values in the reference evaluator or the runtime."""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from rulesets.tensor import Tensor
from tensat.onnx_forms import Absent, Arg, Const, OnnxCall, OnnxNode, Operand
from tensat.onnx_forms.schema import array_dtype, type_number

type Array = npt.NDArray[np.generic]

NEWEST = onnx.defs.onnx_opset_version()
OPSETS = range(7, NEWEST + 1)


def node_proto(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], given: Mapping[str, object]
) -> onnx.NodeProto:
    """Return a node; arrays among the attributes become tensors."""
    attributes = {
        name: numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for name, value in given.items()
    }
    return helper.make_node(op_type, list(inputs), list(outputs), **attributes)


def model_of(
    nodes: tuple[OnnxNode, ...], inputs: tuple[Tensor, ...], outputs: int, opset: int
) -> onnx.ModelProto:
    """Return a model with inputs x0, x1, … and outputs y0, y1, … from a lowered form."""
    protos, constants = [], []
    for index, node in enumerate(nodes):
        names = []
        for ref in node.inputs:
            if isinstance(ref, Const):
                name = f"c{len(constants)}"
                constants.append(numpy_helper.from_array(ref.array, name))
                names.append(name)
            elif isinstance(ref, Absent):
                names.append("")
            else:
                names.append(
                    f"x{ref.position}" if isinstance(ref, Arg) else f"t{ref.index}"
                )
        last = index == len(nodes) - 1
        results = [f"y{number}" for number in range(outputs)] if last else [f"t{index}"]
        protos.append(node_proto(node.op_type, names, results, node.attributes))
    return _model(protos, inputs, outputs, opset, constants)


def _model(
    nodes: list[onnx.NodeProto],
    inputs: tuple[Tensor, ...],
    outputs: int,
    opset: int,
    constants: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "graph",
        [
            helper.make_tensor_value_info(f"x{index}", type_number(one.dtype), one.shape)
            for index, one in enumerate(inputs)
        ],
        [
            helper.make_tensor_value_info(f"y{index}", TensorProto.UNDEFINED, None)
            for index in range(outputs)
        ],
        list(constants),
    )
    for value in graph.output:
        value.ClearField("type")
    imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)


def types_of(model: onnx.ModelProto) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return element type number and shape of every output, by ONNX's own inference."""
    return tuple(
        (
            value.type.tensor_type.elem_type,
            tuple(one.dim_value for one in value.type.tensor_type.shape.dim),
        )
        for value in model.graph.output
    )


def model_of_call(call: OnnxCall) -> onnx.ModelProto:
    """Return the model of a node whose inputs with a known value are initializers."""
    names, tensors, constants = [], [], []
    for index, operand in enumerate(call.inputs):
        if operand is None:
            names.append("")
        elif operand.array is not None:
            names.append(f"c{index}")
            constants.append(numpy_helper.from_array(operand.array, f"c{index}"))
        else:
            names.append(f"x{len(tensors)}")
            tensors.append(operand.tensor)
    results = [f"y{number}" for number in range(call.outputs)]
    node = node_proto(call.op_type, names, results, call.attributes)
    return _model([node], tuple(tensors), call.outputs, call.opset, constants)


def run(model: onnx.ModelProto, arrays: Sequence[Array]) -> list[Array]:
    """Return the outputs from the runtime, or from the reference where it has no kernel."""
    feeds = {f"x{index}": array for index, array in enumerate(arrays)}
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = (
            onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        )
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # the runtime has no kernel for this type or opset
        return reference(model, feeds)
    return list(session.run(None, feeds))


def reference(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """Return the outputs from ONNX's reference evaluator."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return list(ReferenceEvaluator(model).run(None, dict(feeds)))


def random_array(tensor: Tensor, seed: int) -> Array:
    """Return values in (-1, 1), whole numbers 0 and 1 for integer and bool types."""
    rng = np.random.default_rng(seed)
    dtype = array_dtype(tensor.dtype)
    assert tensor.shape is not None
    if dtype.kind in "iub":
        return np.asarray(rng.integers(0, 2, tensor.shape)).astype(dtype)
    return np.asarray(rng.uniform(-1, 1, tensor.shape)).astype(dtype)


def variable(dtype: str, *shape: int) -> Operand:
    """Return an operand whose value is not known."""
    return Operand(Tensor(dtype, shape))


def constant(values: object, dtype: str = "int64") -> Operand:
    """Return an operand whose value is known."""
    array = np.asarray(values, array_dtype(dtype))
    return Operand(Tensor(dtype, array.shape), array)

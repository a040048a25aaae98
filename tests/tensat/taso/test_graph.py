"""The graph object: inspection, outputs, names, loaded models, and foreign tensors."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tensat
from tensat import InputNotFoundError, TasoGraph, UsageError
from tests.tensat.model.onnx_models import model, node, random, run, value


def small() -> TasoGraph:
    """A convolution with 2 groups and relu, split in two, one half squared."""
    graph = tensat.new_graph()
    x = graph.new_input(dims=(1, 4, 8, 8))
    w = graph.new_weight(dims=(6, 2, 3, 3), data=random(6, 2, 3, 3))
    y = graph.conv2d(input=x, weight=w, strides=(2, 2), padding="SAME", activation="RELU")
    left, _ = graph.split(y, 1, [2, 4])
    graph.mul(left, left)
    return graph


def loaded(folder: Path, opset: int = 11, batch: Any = "batch") -> TasoGraph:
    """A graph from a file of an old opset, its sizes open."""
    proto = model(
        [
            node("Constant", "", "c", value=onnx.numpy_helper.from_array(random(4, 3))),
            node("MatMul", "x c", "product", name="first"),
            node("Squeeze", "product", "y", axes=[1]),
        ],
        [value("x", [batch, 1, 4])],
        [value("product", [batch, 1, 3]), value("y", [batch, 3])],
        opset=opset,
    )
    onnx.save(proto, folder / "old.onnx")
    return tensat.load_onnx(str(folder / "old.onnx"))


def test_operators_in_order() -> None:
    """The list has operators only, each before those that use it, under stable numbers."""
    graph = small()
    listed = graph.get_operator_list()
    kinds = [graph.get_operator_type(op) for op in listed]
    assert kinds == ["Conv", "Relu", "Split", "Mul"]
    assert graph.get_operator_list() == listed
    assert [graph.get_num_outputs(op) for op in listed] == [1, 1, 2, 1]


def test_edges_join_results_and_inputs() -> None:
    """An edge says which result of which operator goes where; weights are sources too."""
    graph = small()
    conv, relu, split, mul = graph.get_operator_list()
    sources = [edge["srcOp"] for edge in graph.get_input_edges(conv)]
    assert [graph.get_operator_type(op) for op in sources] == ["Input", "Weight"]
    assert graph.get_input_edges(relu) == [
        {"srcOp": conv, "dstOp": relu, "srcIdx": 0, "dstIdx": 0}
    ]
    assert [edge["dstIdx"] for edge in graph.get_input_edges(mul)] == [0, 1]
    assert all(edge["srcOp"] == split for edge in graph.get_input_edges(mul))
    np.testing.assert_array_equal(graph.get_weight_value(sources[1]), random(6, 2, 3, 3))
    assert graph.get_output_dims(sources[1], 0) == [6, 2, 3, 3]


def test_sizes_of_inputs_and_results() -> None:
    """Sizes are lists, by operator and place."""
    graph = small()
    conv, _, split, _ = graph.get_operator_list()
    assert graph.get_input_dims(conv, 0) == [1, 4, 8, 8]
    assert graph.get_input_dims(conv, 1) == [6, 2, 3, 3]
    assert graph.get_output_dims(conv, 0) == [1, 6, 4, 4]
    assert graph.get_output_dims(split, 1) == [1, 4, 4, 4]
    assert graph.get_split_lens(split) == [2, 4]
    with pytest.raises(UsageError, match="output 2 is asked for; there are 2"):
        graph.get_output_dims(split, 2)


@pytest.mark.parametrize(
    ("place", "name", "wanted"),
    [
        (0, "kernel_shape", [3, 3]),
        (0, "strides", [2, 2]),
        (0, "pads", [1, 1, 1, 1]),
        (0, "group", 2),
        (2, "axis", 1),
        (2, "split", [2, 4]),
    ],
    ids=["kernel", "strides", "pads", "group", "axis", "split"],
)
def test_attributes_by_onnx_name(place: int, name: str, wanted: Any) -> None:
    """Attributes have their ONNX names, also those that ONNX passes as inputs."""
    graph = small()
    assert graph.get_operator_attr(graph.get_operator_list()[place], name) == wanted


def test_axes_are_the_models() -> None:
    """TASO said [0] whatever the axes were."""
    graph = tensat.new_graph()
    x = graph.new_input(dims=(2, 1, 1, 3))
    graph.squeeze(input=x, axes=(1, -2))
    graph.transpose(x, (3, 0, 1, 2), shuffle=True)
    squeeze, transpose = graph.get_operator_list()
    assert graph.get_operator_attr(squeeze, "axes") == [1, 2]
    assert graph.get_operator_attr(transpose, "perm") == [3, 0, 1, 2]


def test_questions_without_an_answer() -> None:
    """Wrong numbers and names are errors that list what there is."""
    graph = small()
    conv, relu, *_ = graph.get_operator_list()
    with pytest.raises(UsageError, match="Relu has no attribute 'axis'; known: none"):
        graph.get_operator_attr(relu, "axis")
    with pytest.raises(UsageError, match="no operator with guid 99"):
        graph.get_operator_type({"guid": 99})
    with pytest.raises(UsageError, match="parts of a Split are asked for; found Conv"):
        graph.get_split_lens(conv)
    with pytest.raises(UsageError, match="a weight's value is asked for; found Conv"):
        graph.get_weight_value(conv)


def test_outputs_are_what_nothing_uses() -> None:
    """Both the square and the half that is not used come out, and nothing else."""
    outputs = tensat.export_onnx(small()).graph.output
    assert [[d.dim_value for d in o.type.tensor_type.shape.dim] for o in outputs] == [
        [1, 4, 4, 4],
        [1, 2, 4, 4],
    ]


def test_inputs_have_names_of_their_own() -> None:
    """TASO named every input "data"."""
    graph = tensat.new_graph()
    x, y = (graph.new_input(dims=("n", 2)) for _ in range(2))
    graph.add(x, graph.add(y, graph.new_input(dims=(1,), name="bias")))
    inputs = tensat.export_onnx(graph).graph.input
    assert [one.name for one in inputs] == ["data", "data_1", "bias"]
    assert inputs[1].type.tensor_type.shape.dim[0].dim_param == "n"


def test_an_empty_graph_computes_nothing() -> None:
    """A graph without operators cannot be exported."""
    graph = tensat.new_graph()
    graph.new_input(dims=(1,))
    with pytest.raises(UsageError, match="no operator, so it computes nothing"):
        tensat.export_onnx(graph)


def test_export_does_not_end_the_graph() -> None:
    """An exported graph grows on, and the exported model does not change."""
    graph = tensat.new_graph()
    y = graph.relu(graph.new_input(dims=(2, 3)))
    first = tensat.export_onnx(graph)
    graph.tanh(y)
    second = tensat.export_onnx(graph)
    assert [n.op_type for n in first.graph.node] == ["Relu"]
    assert [n.op_type for n in second.graph.node] == ["Relu", "Tanh"]
    assert [o.name for o in second.graph.output] == ["tanh_0"]


def test_a_loaded_graph_grows_in_its_opset(tmp_path: Path) -> None:
    """New operators are written as the file's opset has them; its outputs stay first."""
    graph = loaded(tmp_path)
    matmul, squeeze = graph.get_operator_list()
    assert graph.get_operator_attr(squeeze, "axes") == [1]
    kinds = [graph.get_operator_type(e["srcOp"]) for e in graph.get_input_edges(matmul)]
    assert kinds == ["Input", "Weight"]
    assert [str(size) for size in graph.get_output_dims(squeeze, 0)] == ["batch", "3"]
    last = graph.new_input(dims=("batch", 3), name="x")
    graph.unsqueeze(last, (0,))
    proto = tensat.export_onnx(graph)
    onnx.checker.check_model(proto, full_check=True)
    assert [o.name for o in proto.graph.output][:2] == ["product", "y"]
    assert [i.name for i in proto.graph.input] == ["x", "x_1"]
    found = run(proto, {"x": random(5, 1, 4), "x_1": random(5, 3)})
    assert [one.shape for one in found] == [(5, 1, 3), (5, 3), (1, 5, 3)]


def test_tensors_of_other_graphs_are_refused() -> None:
    """An operator takes tensors of its own graph, and tensors only."""
    graph, other = tensat.new_graph(), tensat.new_graph()
    x, y = graph.new_input(dims=(2,)), other.new_input(dims=(2,))
    with pytest.raises(InputNotFoundError, match="'data' belongs to another graph"):
        graph.add(x, y)
    with pytest.raises(InputNotFoundError, match="a tensor of the graph, not ndarray"):
        graph.relu(np.zeros(2))  # type: ignore[arg-type]


def test_handles_know_their_sizes() -> None:
    """TASO's dim and nDim; an open size is an error where a number is asked for."""
    graph = tensat.new_graph()
    x = graph.new_input(dims=("n", 3))
    assert (x.nDim, x.dim(1)) == (2, 3)
    with pytest.raises(UsageError, match="axis 0 of 'data' has no fixed size: n"):
        x.dim(0)
    with pytest.raises(UsageError, match="axis 2 is asked for; there are 2"):
        x.dim(2)


def test_random_weights_come_from_the_seed() -> None:
    """The same seed gives the same bytes, another one gives others."""

    def proto(seed: int) -> bytes:
        graph = tensat.new_graph(seed=seed)
        graph.matmul(graph.new_input(dims=(1, 4)), graph.new_weight(dims=(4, 4)))
        return bytes(tensat.export_onnx(graph).SerializeToString())

    assert proto(0) == proto(0) != proto(1)


def test_weights_keep_their_type() -> None:
    """Integers stay integers; TASO made everything float."""
    graph = tensat.new_graph()
    x = graph.new_input(dims=(3,), dtype="int64")
    y = graph.add(x, graph.new_weight(dims=(3,), data=np.array([1, 2, 3])))
    assert y.type.dtype == "int64"
    (found,) = run(tensat.export_onnx(graph), {"data": np.array([5, 5, 5])})
    assert found.tolist() == [6, 7, 8]


def test_computed_shapes_have_sizes_too(tmp_path: Path) -> None:
    """Results that the optimizer would fold away can still be asked for their sizes."""
    proto = model(
        [
            node("Shape", "x", "sizes"),
            node("Gather", "sizes zero", "first"),
            node("Reshape", "x first", "y"),
        ],
        [value("x", [12])],
        [value("y", [12])],
        {"zero": np.array([0])},
    )
    onnx.save(proto, tmp_path / "m.onnx")
    graph = tensat.load_onnx(tmp_path / "m.onnx")
    sizes = [graph.get_output_dims(op, 0) for op in graph.get_operator_list()]
    assert sizes == [[1], [1], [12]]

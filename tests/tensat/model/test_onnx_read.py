"""Reading: invalid graphs and unreadable files are one line each."""

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import helper

from tensat.errors import ModelError, UsageError
from tensat.model.graph import CONSTANT, INPUT, OPAQUE, Graph
from tensat.model.onnx_import import read, to_graph
from tests.tensat.model.onnx_models import (
    BOOL,
    FLOAT,
    INT64,
    body,
    model,
    node,
    random,
    value,
)

X = [value("x", [2, 3])]
Y = [value("y", [2, 3])]


def imported(proto: onnx.ModelProto, **options: Any) -> Graph:
    """The graph of a model."""
    return to_graph(read(proto), **options)


def ops(graph: Graph) -> list[str]:
    """Operators of the graph; opaque nodes by their ONNX type."""
    return [
        graph.opaque[n.key].operator if n.op == OPAQUE else n.op
        for n in graph.nodes
        if n.op not in (INPUT, CONSTANT)
    ]


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (
            [node("Relu", "ghost", "y", name="n")],
            "node 'n' .Relu. reads 'ghost', which noth",
        ),
        ([node("Relu", "x", "z")], "nothing computes the output 'y' of the model"),
        ([node("Relu", "y", "t"), node("Exp", "t", "y")], "the graph has a cycle"),
        ([node("Relu", "x", "y"), node("Exp", "x", "y")], "the model is invalid"),
    ],
    ids=["undefined", "no output", "cycle", "twice"],
)
def test_invalid_graphs_are_refused(nodes: list[onnx.NodeProto], text: str) -> None:
    """One line says what is wrong and where."""
    with pytest.raises(ModelError, match=text) as caught:
        imported(model(nodes, X, Y))
    assert "\n" not in str(caught.value)


def test_an_undefined_value_in_a_subgraph_is_refused() -> None:
    """Subgraphs are looked at too."""
    branch = body([node("Relu", "ghost", "o")], [value("o", [2, 3])])
    proto = model(
        [node("If", "c", "y", then_branch=branch, else_branch=branch)],
        [value("c", [], BOOL)],
        Y,
    )
    with pytest.raises(ModelError, match="in subgraph 'body' reads 'ghost'"):
        imported(proto)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "no such file"),
        (b"", "the file is empty"),
        (b"this is not a protobuf", "it is no ONNX model, or cut off"),
        ("cut", "it is no ONNX model, or cut off"),
        (b"\x08\x08", "it has no graph"),
    ],
    ids=["missing", "empty", "text", "truncated", "no graph"],
)
def test_unreadable_files_are_refused(
    tmp_path: Path, content: bytes | str | None, text: str
) -> None:
    """The error names the file and what is wrong with it, in one line."""
    path = tmp_path / "bad.onnx"
    if content == "cut":
        whole = model([node("Add", "x w", "y")], X, Y, {"w": random(3)}).SerializeToString()
        path.write_bytes(whole[:-20])
    elif isinstance(content, bytes):
        path.write_bytes(content)
    with pytest.raises(ModelError, match=text) as caught:
        read(path)
    assert "bad.onnx" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_external_data_is_refused(tmp_path: Path) -> None:
    """The error names the tensor and the file that should have its data."""
    proto = model([node("Add", "x w", "y")], X, Y, {"w": random(2, 3)})
    onnx.save(
        proto, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin",
        size_threshold=0,
    )  # fmt: skip
    data = (tmp_path / "w.bin").read_bytes()
    (tmp_path / "w.bin").write_bytes(data[:-4])
    with pytest.raises(ModelError, match=r"tensor 'w' should end at byte 24 of '.*w.bin'"):
        read(tmp_path / "m.onnx")
    (tmp_path / "w.bin").unlink()
    with pytest.raises(ModelError, match=r"tensor 'w' should be in '.*w.bin', which does"):
        read(tmp_path / "m.onnx")


def test_other_objects_are_no_models() -> None:
    """The error lists what a model can be."""
    with pytest.raises(UsageError, match=r"a model is a path, bytes, .* not int"):
        read(3)  # type: ignore[arg-type]


def test_reading_does_not_change_the_model() -> None:
    """A ModelProto with things that onnx_ir cannot hold is copied first."""
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("s", FLOAT, [1], [2.0]),
        helper.make_tensor("", INT64, [1], [4]),
        [2, 3],
    )
    proto = model([node("Add", "x s", "y")], X, Y)
    proto.graph.sparse_initializer.append(sparse)
    before = proto.SerializeToString()
    assert ops(imported(proto)) == ["Constant", "Add"]
    assert proto.SerializeToString() == before

"""Writing: streamed files, external data, and nothing half-written."""

import os
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from tensat.errors import WriteError
from tensat.model import onnx_write
from tensat.model.graph import Graph
from tensat.model.onnx_export import to_model, to_proto, write
from tensat.model.onnx_import import read, to_graph
from tests.tensat.model.onnx_models import (
    BOOL,
    Y,
    body,
    model,
    node,
    random,
    run,
    value,
)


def _weighty() -> onnx.ModelProto:
    tensors = {
        "w": random(40, 3),
        "s": helper.make_tensor("s", onnx.TensorProto.STRING, [2], [b"a", b"bc"]),
        "h": helper.make_tensor("h", onnx.TensorProto.INT4, [3], [1, -2, 3]),
        "z": np.float32(2),
    }
    return model(
        [
            node("Mul", "x z", "t"),
            node("MatMul", "w t", "y"),
            node("Identity", "s", "strings"),
            node("DequantizeLinear", "h z", "d"),
        ],
        [value("x", [3, 2])],
        [
            value("y", [40, 2]),
            value("strings", [2], onnx.TensorProto.STRING),
            value("d", [3]),
        ],
        tensors,
        opset=21,
        ir_version=10,
    )


def _imported(path: Path) -> Graph:
    return to_graph(read(path))


@pytest.mark.parametrize("external", [False, True])
def test_written_files_hold_the_model(tmp_path: Path, external: bool) -> None:
    """A written file is the model, external data included."""
    result = to_model(to_graph(read(_weighty())))
    write(result, tmp_path / "m.onnx", external=external)
    onnx.checker.check_model(str(tmp_path / "m.onnx"))
    loaded = onnx.load(tmp_path / "m.onnx")
    if external:
        assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.data"]
        for tensor in loaded.graph.initializer:
            tensor.ClearField("data_location")
            tensor.ClearField("external_data")
    assert loaded == to_proto(result)
    feeds = {"x": random(3, 2)}
    for want, got in zip(run(_weighty(), feeds), run(loaded, feeds), strict=True):
        np.testing.assert_array_equal(got, want)


def test_external_data_stays_external(tmp_path: Path) -> None:
    """A model with weights in another file is written that way, in place too."""
    feeds = {"x": random(3, 2)}
    proto = model(
        [node("MatMul", "w x", "y")], [value("x", [3, 2])], [value("y", [400, 2])],
        {"w": random(400, 3)},
    )  # fmt: skip
    path = tmp_path / "m.onnx"
    want = run(proto, feeds)[0]
    onnx.save(proto, path, save_as_external_data=True, location="m.onnx.data")
    for _ in range(2):
        write(to_model(_imported(path)), path)
        assert path.stat().st_size < 1000
        np.testing.assert_array_equal(run(onnx.load(path), feeds)[0], want)
    (tmp_path / "sub").mkdir()
    write(to_model(_imported(path)), tmp_path / "sub" / "n.onnx")
    assert sorted(os.listdir(tmp_path / "sub")) == ["n.onnx", "n.onnx.data"]
    moved = onnx.load(tmp_path / "sub" / "n.onnx")
    np.testing.assert_array_equal(run(moved, feeds)[0], want)


def test_a_stale_tensor_is_not_read_from_the_new_file(tmp_path: Path) -> None:
    """After writing in place, the old tensors say that their file is gone."""
    proto = model([node("Add", "x w", "y")], [value("x", [400])], Y, {"w": random(400)})
    path = tmp_path / "m.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="m.onnx.data")
    result = to_model(_imported(path))
    write(result, path)
    with pytest.raises(WriteError, match="invalidated"):
        write(result, path)


def test_external_weights_of_subgraphs_move_into_the_model(tmp_path: Path) -> None:
    """Their old file need not be beside the new model."""
    branch = body([node("Add", "x v", "o")], [value("o", [400])])
    branch.initializer.append(onnx.numpy_helper.from_array(random(400), "v"))
    proto = model(
        [node("If", "c", "y", then_branch=branch, else_branch=branch)],
        [value("x", [400]), value("c", [], BOOL)],
        [value("y", [400])],
    )
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    external = onnx.ModelProto()
    external.CopyFrom(proto)
    for attribute in external.graph.node[0].attribute:
        tensor = attribute.g.initializer[0]
        (tmp_path / "a" / "v.bin").write_bytes(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="v.bin")
    (tmp_path / "a" / "m.onnx").write_bytes(external.SerializeToString())
    write(to_model(_imported(tmp_path / "a" / "m.onnx")), tmp_path / "b" / "m.onnx")
    feeds = {"x": random(400, seed=3), "c": np.array(True)}
    moved = onnx.load(tmp_path / "b" / "m.onnx")
    np.testing.assert_array_equal(run(moved, feeds)[0], run(proto, feeds)[0])


def test_a_large_model_gets_external_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the limit of protobuf; a ModelProto is refused then."""
    monkeypatch.setattr(onnx_write, "LIMIT", 1000)
    proto = model([node("Add", "x w", "y")], [value("x", [400])], Y, {"w": random(400)})
    result = to_model(to_graph(read(proto)))
    write(result, tmp_path / "m.onnx")
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.data"]
    with pytest.raises(WriteError, match=r"1600 bytes do not fit .* \(limit 1000\)"):
        to_proto(result)


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    """Weights that cannot be read: the old file stays, no other is left."""
    path = tmp_path / "m.onnx"
    path.write_bytes(b"old")

    def fail() -> ir.TensorProtocol:
        raise RuntimeError("the disk is gone")

    result = to_model(to_graph(read(_weighty())))
    lazy = ir.LazyTensor(fail, dtype=ir.DataType.FLOAT, shape=ir.Shape([40, 3]), name="w")
    result.graph.initializers["w"].const_value = lazy
    for external in (False, True):
        with pytest.raises(WriteError, match="the disk is gone"):
            write(result, path, external=external)
        assert os.listdir(tmp_path) == ["m.onnx"]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize(
    ("where", "text"),
    [("no/such/m.onnx", "there is no folder '.*such'"), (".", "it is a folder")],
    ids=["folder", "directory"],
)
def test_places_that_cannot_be_written(tmp_path: Path, where: str, text: str) -> None:
    """The error names what is missing."""
    with pytest.raises(WriteError, match=text):
        write(to_model(to_graph(read(_weighty()))), tmp_path / where)


def test_permissions_and_links_are_kept(tmp_path: Path) -> None:
    """A file that is replaced keeps its permissions; a link still points to it."""
    path, link = tmp_path / "m.onnx", tmp_path / "link.onnx"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    write(to_model(to_graph(read(_weighty()))), link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert onnx.load(path).graph.node

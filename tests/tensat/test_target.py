"""Models for one kind of machine say so, are checked, and have a portable form beside."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import typer
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from tensat.cli_target import add_target_command
from tensat.costs.cuda import Gpu
from tensat.costs.store import Setting
from tensat.cuda.provider import Settings
from tensat.errors import InternalError, ModelError, TargetError, UsageError
from tensat.model.onnx_read import read
from tensat.model.onnx_write import write
from tensat.runtime import Runtime
from tensat.target import (
    PREFIX,
    Target,
    check_portable,
    digest,
    fit,
    for_gpu,
    gpu_for,
    misfit,
    portable_path,
    refuse_targeted,
    runnable,
    save,
    stamp,
    target_of,
    this_machine,
)

HERE = Target("ort-cpu", 16, "1.32.0", "a processor")


def _model(op: str = "Relu", domain: str = "", weight: float = 1.0) -> ir.Model:
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in "xy"]
    nodes = [
        helper.make_node("Add", ["x", "w"], ["t"]),
        helper.make_node(op, ["t"], ["y"], domain=domain),
    ]
    weights = numpy_helper.from_array(np.full((2, 3), weight, np.float32), "w")
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [weights])
    opsets = [
        helper.make_opsetid("", 17),
        *([helper.make_opsetid(domain, 1)] * bool(domain)),
    ]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    helper.set_model_props(proto, {"author": "me"})
    return read(proto)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a model for a machine like `HERE`, its portable form beside it."""
    path = tmp_path / "fast.onnx"
    save(_model("Sigmoid"), _model(), path, HERE)
    return path


# ------------------------------------------------------------------------- metadata
def test_a_model_says_what_it_is_for(files: Path) -> None:
    """Target, block, runtime and processor come back; other entries stay."""
    model = read(files)
    assert target_of(model) == replace(HERE, portable=digest(_model()))
    assert model.metadata_props["author"] == "me"
    assert target_of(read(portable_path(files))) is None


def test_stamping_changes_no_model() -> None:
    """The model that is stamped stays as it is, and so does what it computes."""
    model = _model()
    stamped = stamp(model, None, HERE)
    assert target_of(model) is None
    assert target_of(stamped) == HERE
    assert digest(stamped) == digest(model)


def test_a_damaged_entry_is_said() -> None:
    """A block that is no number."""
    model = stamp(_model(), None, HERE)
    model.metadata_props[f"{PREFIX}block"] = "many"
    with pytest.raises(ModelError, match="blocks of 'many' channels; a number is needed"):
        target_of(model)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (_model(), True),
        (_model(weight=2.0), False),
        (_model("Tanh"), False),
        (_model("Relu", "com.example"), False),
    ],
    ids=["equal", "weights", "operator", "domain"],
)
def test_a_digest_tells_models_apart(other: ir.Model, same: bool) -> None:
    """By operators and weights."""
    assert (digest(other) == digest(_model())) == same


def test_a_digest_does_not_depend_on_where_weights_are(tmp_path: Path) -> None:
    """In the model or in a file beside it."""
    model = _model()
    model.graph.initializers["w"].const_value = ir.tensor(
        np.ones((2, 300), np.float32), name="w"
    )
    for name, external in (("in.onnx", False), ("out.onnx", True)):
        write(model, tmp_path / name, external=external)
        assert digest(read(tmp_path / name)) == digest(model)
    assert (tmp_path / "out.onnx.data").exists()


# ------------------------------------------------------------------------- the check
@pytest.mark.parametrize(
    ("there", "reason"),
    [
        (HERE, ""),
        (replace(HERE, runtime="1.32.5"), ""),
        (replace(HERE, processor="another"), ""),
        (replace(HERE, block=8), "made for blocks of 16 channels, here they have 8"),
        (replace(HERE, block=0), "made for blocks of 16 channels, here they have none"),
        (replace(HERE, runtime="1.33.0"), "for ONNX Runtime 1.32.0, here is 1.33.0"),
        (replace(HERE, runtime=""), "for ONNX Runtime 1.32.0, here is none"),
        (replace(HERE, name="ort-cuda"), "made for ort-cpu, this is ort-cuda"),
    ],
    ids=["same", "patch", "processor", "block", "no blocks", "release", "none", "target"],
)
def test_what_keeps_a_model_from_running(there: Target, reason: str) -> None:
    """Blocks and the runtime's release must agree."""
    assert misfit(HERE, there).endswith(reason)
    assert bool(misfit(HERE, there)) == bool(reason)


def test_the_file_to_load(files: Path) -> None:
    """The model where it fits, its portable form elsewhere, any other model everywhere."""
    other = replace(HERE, block=8)
    assert fit(files, lambda _: HERE).load == files
    assert fit(files, lambda _: other).load == portable_path(files)
    assert fit(portable_path(files), lambda _: other).load == portable_path(files)


@pytest.mark.parametrize(
    ("damage", "trouble"),
    [
        (lambda path: path.unlink(), "is missing"),
        (lambda path: write(_model("Tanh"), path), "is not the portable form"),
    ],
    ids=["missing", "another"],
)
def test_a_portable_form_that_is_not_there(
    files: Path, damage: object, trouble: str
) -> None:
    """Where the model does not fit, nothing is loaded in its place."""
    assert callable(damage)
    damage(portable_path(files))
    found = fit(files, lambda _: replace(HERE, block=8))
    assert found.load is None
    assert trouble in found.trouble
    assert fit(files, lambda _: HERE).load == files


def test_this_machine_is_asked(tmp_path: Path) -> None:
    """The runtime tells its version and its blocks."""
    with Runtime() as runtime:
        here = this_machine(runtime)
    assert here.name == "ort-cpu"
    assert here.block in {0, 8, 16}
    assert here.runtime.count(".") == 2
    assert here.processor
    save(_model("Sigmoid"), _model(), tmp_path / "a.onnx", here)
    assert runnable(tmp_path / "a.onnx") == tmp_path / "a.onnx"


def test_nothing_runs(files: Path) -> None:
    """An error says why the model does not run, and why its portable form does not."""
    save(_model("Sigmoid"), _model(), files, replace(HERE, block=7))
    assert runnable(files) == portable_path(files)
    portable_path(files).unlink()
    with pytest.raises(TargetError, match=r"does not run here: .*blocks of 7.*is missing"):
        runnable(files)


# ---------------------------------------------------------------------------- on a GPU
GPU = for_gpu(Gpu("a GPU compute 9.0", "1.31.1", Settings()))


def test_a_model_for_a_gpu_says_so(tmp_path: Path) -> None:
    """Layout, GPU, version and the options under which it was measured come back."""
    save(_model("Sigmoid"), _model(), tmp_path / "a.onnx", GPU)
    model = read(tmp_path / "a.onnx")
    assert target_of(model) == replace(GPU, portable=digest(_model()))
    assert model.metadata_props[f"{PREFIX}layout"] == "channels-last"
    assert model.metadata_props[f"{PREFIX}processor"] == "a GPU compute 9.0"
    assert json.loads(model.metadata_props[f"{PREFIX}options"])["use_tf32"] == "0"
    with pytest.raises(ModelError, match="ort-cuda with channels-last convolutions and"):
        refuse_targeted(model)


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        (GPU, ""),
        (replace(GPU, runtime="1.31.0"), ""),
        (replace(GPU, processor="its sister compute 9.0"), ""),
        (replace(GPU, options=""), ""),
        (replace(GPU, processor="old compute 8.0"), "here is old compute 8.0"),
        (replace(GPU, runtime="1.30.0"), "for ONNX Runtime 1.31.1, here is 1.30.0"),
        (Target("ort-cuda", 0, "", "no GPU: none found"), "here is no GPU: none found"),
        (HERE, "made for ort-cuda, this is ort-cpu"),
    ],
    ids=["same", "patch", "sister", "options", "older", "release", "none", "processor"],
)
def test_what_keeps_a_model_from_a_gpu(there: Target, reason: str) -> None:
    """Compute capability and the runtime's release must agree."""
    assert misfit(GPU, there).endswith(reason)
    assert bool(misfit(GPU, there)) == bool(reason)


def test_the_gpu_is_asked_for_a_model_that_needs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only then; where there is none, the portable form is loaded and the text says why."""
    asked: list[str] = []

    def no_gpu() -> Gpu:
        asked.append("gpu")
        raise UsageError("costs of CUDA need a GPU; the driver finds none")

    monkeypatch.setattr("tensat.target.this_gpu", no_gpu)
    save(_model("Sigmoid"), _model(), tmp_path / "a.onnx", GPU)
    with Runtime() as runtime:
        machine = partial(this_machine, runtime)
        assert fit(portable_path(tmp_path / "a.onnx"), machine).misfit == ""
        assert asked == []
        found = fit(tmp_path / "a.onnx", machine)
    assert found.misfit.endswith("here is no GPU: costs of CUDA need a GPU; the driver "
                                 "finds none")  # fmt: skip
    assert found.load == portable_path(tmp_path / "a.onnx")


def test_costs_and_target_are_of_one_device() -> None:
    """Costs of a processor say nothing of layouts on a GPU, and the other way round."""
    processor = Setting("a processor", "onnxruntime 1.32.0 CPU, single kernels 4", 1)
    gpu = Setting(
        "a GPU compute 9.0",
        "onnxruntime 1.31.1 CUDA 13.0 driver 13.0, tf32 off, NCHW, exhaustive, "
        "ORT_DISABLE_ALL, kernels 1",
        1,
    )
    assert gpu_for("ort-cuda", gpu) == gpu_for("portable", gpu) == Gpu(
        "a GPU compute 9.0", "1.31.1", Settings()
    )  # fmt: skip
    assert gpu_for("ort-cpu", processor) is gpu_for("portable", None) is None
    with pytest.raises(UsageError, match=r"'ort-cuda' needs costs of a GPU; .* 'a proc"):
        gpu_for("ort-cuda", processor)
    with pytest.raises(UsageError, match=r"'ort-cpu' needs costs of a proc.* 'a GPU"):
        gpu_for("ort-cpu", gpu)


# ------------------------------------------------------------------ what is not done
def test_a_model_for_one_machine_is_not_optimized_again(files: Path) -> None:
    """The error names the file to optimize instead."""
    refuse_targeted(_model())
    with pytest.raises(ModelError, match=r"cannot be optimized again; optimize its port"):
        refuse_targeted(read(files))
    with pytest.raises(ModelError, match=r"optimize '.*fast\.portable\.onnx'$"):
        refuse_targeted(read(files), files)


def test_a_portable_result_has_nothing_of_its_own() -> None:
    """Operators of other domains may come from the original only."""
    own = _model("QuickGelu", "com.microsoft")
    check_portable(own, own)
    check_portable(own, _model())
    with pytest.raises(InternalError, match=r"result holds com\.microsoft:QuickGelu$"):
        check_portable(_model(), own)


def test_subgraphs_are_looked_into() -> None:
    """An operator hidden in a branch is found."""
    inner = helper.make_graph(
        [helper.make_node("Odd", ["x"], ["z"], domain="com.example")],
        "branch",
        [],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [2])],
    )
    branches = {"then_branch": inner, "else_branch": inner}
    values = [
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        *[helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"],
    ]
    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], **branches)], "g", values[:2], values[2:]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    with pytest.raises(InternalError, match=r"com\.example:Odd"):
        check_portable(_model(), read(proto))


# ----------------------------------------------------------------------- the command
@pytest.fixture
def app() -> typer.Typer:
    """A command line with this command and another one, so that names are needed."""
    made = typer.Typer()
    add_target_command(made)
    made.command("other")(lambda: None)
    return made


def test_the_command_for_a_model_of_this_machine(app: typer.Typer, tmp_path: Path) -> None:
    """Exit status 0, and the file itself is to be loaded."""
    path = tmp_path / "a.onnx"
    with Runtime() as runtime:
        save(_model("Sigmoid"), _model(), path, this_machine(runtime))
    result = CliRunner().invoke(app, ["target", str(path)])
    assert result.exit_code == 0, result.output
    assert "fits: yes" in result.stdout
    assert f"load: {path}" in result.stdout
    quiet = CliRunner().invoke(app, ["target", "-q", str(path)])
    assert quiet.stdout == f"{path}\n"


def test_the_command_for_a_model_of_another_machine(app: typer.Typer, files: Path) -> None:
    """Exit status 1, the reason, and the portable form to load; or nothing."""
    save(_model("Sigmoid"), _model(), files, replace(HERE, block=7))
    result = CliRunner().invoke(app, ["target", str(files)])
    assert result.exit_code == 1
    assert "fits: no, it was made for blocks of 7 channels" in result.stdout
    assert f"load: {portable_path(files)}" in result.stdout
    portable_path(files).unlink()
    result = CliRunner().invoke(app, ["target", "-q", str(files)])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "is missing" in result.stderr


def test_the_command_for_a_model_of_a_gpu(
    app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The GPU of this machine is what it is compared with."""
    path = tmp_path / "a.onnx"
    gpu = Gpu("a GPU compute 9.0", "1.31.4", Settings())
    monkeypatch.setattr("tensat.target.this_gpu", lambda: gpu)
    save(_model("Sigmoid"), _model(), path, GPU)
    result = CliRunner().invoke(app, ["target", str(path)])
    assert result.exit_code == 0, result.output
    made = "ort-cuda, channels-last convolutions, ONNX Runtime"
    assert f"made for: {made} 1.31.1, a GPU compute 9.0" in result.stdout
    assert f"here: {made} 1.31.4, a GPU compute 9.0" in result.stdout


def test_the_command_for_any_other_model(app: typer.Typer, tmp_path: Path) -> None:
    """It runs everywhere; what is no model is said in one line."""
    path = tmp_path / "plain.onnx"
    onnx.save(ir.to_proto(_model()), path)
    result = CliRunner().invoke(app, ["target", str(path)])
    assert result.exit_code == 0
    assert "made for: any machine" in result.stdout
    missing = CliRunner().invoke(app, ["target", str(tmp_path / "none.onnx")])
    assert missing.exit_code == 3
    assert "no such file" in missing.stderr

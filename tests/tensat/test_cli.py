"""The command line: exit codes, one-line errors, and nothing left behind."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from tensat.cli import app
from tests.tensat.model.onnx_models import model, node, ops, random, run, value

FAST = ("--cost", "roofline", "--no-measure")

X, Y = [value("x", ["n", 300])], [value("y", ["n", 40])]
BETTER = model(
    [node("Neg", "x", "a"), node("Neg", "a", "b"), node("MatMul", "b w", "y")],
    X, Y, {"w": random(300, 40)},
)  # fmt: skip
BEST = model([node("MatMul", "x w", "y")], X, Y, {"w": random(300, 40)})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder of its own, and one for temporary files that must be empty after."""
    temporary, work = tmp_path / "temporary", tmp_path / "work"
    temporary.mkdir()
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield work
    assert list(temporary.iterdir()) == []


def tensat(*arguments: str, stdin: bytes = b"") -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(app, ["optimize", *arguments], input=stdin)


def save_external(proto: onnx.ModelProto, location: str) -> None:
    """Save as ``in.onnx`` with its weights in another file."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    onnx.save(
        copy, "in.onnx", save_as_external_data=True, location=location, size_threshold=0
    )


def names(folder: Path) -> set[str]:
    """What lies in a folder."""
    return {path.name for path in folder.iterdir()}


def agree(first: Path, second: Path) -> None:
    """Check that two model files compute the same."""
    feeds = {"x": random(3, 300, seed=5)}
    for a, b in zip(
        run(onnx.load(first), feeds), run(onnx.load(second), feeds), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_model_gets_better(folder: Path) -> None:
    """Exit code 0, a table, and a model that computes the same with fewer nodes."""
    onnx.save(BETTER, "in.onnx")
    result = tensat("in.onnx", "out.onnx", *FAST)
    assert result.exit_code == 0, result.output
    assert ops(onnx.load("out.onnx")) == ["MatMul"]
    assert "Improved" in result.stdout
    agree(folder / "in.onnx", folder / "out.onnx")
    assert names(folder) == {"in.onnx", "out.onnx"}


def test_nothing_better(folder: Path) -> None:
    """Exit code 0, a plain sentence, and the original byte for byte."""
    onnx.save(BEST, "in.onnx")
    result = tensat("in.onnx", "out.onnx", *FAST)
    assert result.exit_code == 0
    assert "The original is kept: nothing cheaper was found." in result.stdout
    assert Path("out.onnx").read_bytes() == Path("in.onnx").read_bytes()


def test_measured_costs(folder: Path) -> None:
    """With the default costs and the race, whatever the clock says."""
    onnx.save(BETTER, "in.onnx")
    result = tensat("in.onnx", "out.onnx", "--cost-db", "costs.db", "--seconds", "5")
    assert result.exit_code == 0, result.output
    agree(folder / "in.onnx", folder / "out.onnx")
    assert {"in.onnx", "out.onnx", "costs.db"} <= names(folder)


def test_quiet_prints_nothing(folder: Path) -> None:
    """Neither table nor progress."""
    onnx.save(BETTER, "in.onnx")
    result = tensat("in.onnx", "out.onnx", "-q", *FAST)
    assert (result.exit_code, result.output) == (0, "")


def test_the_report_is_json(folder: Path) -> None:
    """What was done, readable by programs."""
    onnx.save(BETTER, "in.onnx")
    tensat("in.onnx", "out.onnx", "--report", "report.json", *FAST)
    report = json.loads(Path("report.json").read_text())
    assert report["improved"] is True
    assert report["before"]["operators"] == {"MatMul": 1, "Neg": 2}
    assert report["after"]["operators"] == {"MatMul": 1}
    assert report["saturation"]["stop"] == "saturated"
    assert report["extraction"]["status"] == "optimal"
    assert report["input_shapes"] == {"x": [1, 300]}


def test_the_report_goes_to_standard_output(folder: Path) -> None:
    """Then the table goes to standard error."""
    onnx.save(BETTER, "in.onnx")
    result = tensat("in.onnx", "out.onnx", "--report", "-", *FAST)
    assert json.loads(result.stdout)["improved"] is True
    assert "Improved" in result.stderr


def test_standard_input_and_output(folder: Path) -> None:
    """A dash for either; what is printed is the model and nothing else."""
    onnx.save(BETTER, "in.onnx")
    result = tensat("-", "-", *FAST, stdin=Path("in.onnx").read_bytes())
    assert result.exit_code == 0
    assert ops(onnx.load_from_string(result.stdout_bytes)) == ["MatMul"]
    assert "Improved" in result.stderr
    assert names(folder) == {"in.onnx"}


@pytest.mark.parametrize("proto", [BETTER, BEST], ids=["improved", "kept"])
def test_in_place(folder: Path, proto: onnx.ModelProto) -> None:
    """IN may be OUT."""
    onnx.save(proto, "model.onnx")
    assert tensat("model.onnx", "model.onnx", "-q", *FAST).exit_code == 0
    assert ops(onnx.load("model.onnx")) == ["MatMul"]
    assert names(folder) == {"model.onnx"}


@pytest.mark.parametrize("proto", [BETTER, BEST], ids=["improved", "kept"])
@pytest.mark.parametrize("target", ["out.onnx", "in.onnx"])
def test_external_weights_stay_external(
    folder: Path, proto: onnx.ModelProto, target: str
) -> None:
    """The result has a weight file of its own, and the original's is untouched."""
    save_external(proto, "w.bin")
    onnx.save(proto, "whole.onnx")
    before = hashlib.sha256(Path("w.bin").read_bytes()).digest()
    assert tensat("in.onnx", target, "-q", *FAST).exit_code == 0
    assert hashlib.sha256(Path("w.bin").read_bytes()).digest() == before
    agree(folder / "whole.onnx", folder / target)
    assert Path(target).stat().st_size < 1000
    bare = onnx.load(target, load_external_data=False)
    (location,) = (
        entry.value
        for entry in bare.graph.initializer[0].external_data
        if entry.key == "location"
    )
    assert location in names(folder)
    if target == "out.onnx":
        assert location != "w.bin"
        agree(folder / "whole.onnx", folder / "in.onnx")


def test_weights_of_the_original_are_never_replaced(folder: Path) -> None:
    """OUT's weight file would be the one that IN reads: another name is asked for."""
    save_external(BETTER, "out.onnx.data")
    before = Path("out.onnx.data").read_bytes()
    result = tensat("in.onnx", "out.onnx", "-q", *FAST)
    assert result.exit_code == 2
    assert "holds weights of IN" in result.stderr
    assert Path("out.onnx.data").read_bytes() == before
    assert names(folder) == {"in.onnx", "out.onnx.data"}


def test_a_pipe_is_not_replaced(folder: Path) -> None:
    """OUT may be a device or a named pipe."""
    onnx.save(BETTER, "in.onnx")
    for proto in (BETTER, BEST):
        onnx.save(proto, "in.onnx")
        os.mkfifo("pipe")
        read: list[bytes] = []
        reader = threading.Thread(target=lambda r=read: r.append(Path("pipe").read_bytes()))
        reader.start()
        assert tensat("in.onnx", "pipe", "-q", *FAST).exit_code == 0
        reader.join(timeout=10)
        assert ops(onnx.load_from_string(read[0])) == ["MatMul"]
        assert Path("pipe").is_fifo()
        Path("pipe").unlink()


def test_a_link_is_followed(folder: Path) -> None:
    """The file behind a link is written, the link stays."""
    onnx.save(BEST, "in.onnx")
    Path("real.onnx").write_bytes(b"old")
    Path("link.onnx").symlink_to("real.onnx")
    assert tensat("in.onnx", "link.onnx", "-q", *FAST).exit_code == 0
    assert Path("link.onnx").is_symlink()
    assert ops(onnx.load("real.onnx")) == ["MatMul"]


BYTES = BEST.SerializeToString()
CYCLE = model([node("Add", "x b", "a"), node("Neg", "a", "b")], X, [value("b", None)])
UNDEFINED = model([node("Neg", "nowhere", "y")], X, Y)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param(None, "no such file", id="missing"),
        pytest.param(b"", "the file is empty", id="empty"),
        pytest.param(b"hello\n", "no ONNX model", id="text"),
        pytest.param(np.random.default_rng(0).bytes(3000), "no ONNX model", id="garbage"),
        pytest.param(BYTES[: len(BYTES) // 2], "cut off", id="truncated"),
        pytest.param(CYCLE.SerializeToString(), "cycle", id="cycle"),
        pytest.param(UNDEFINED.SerializeToString(), "nothing defines", id="undefined"),
    ],
)
@pytest.mark.parametrize("source", ["in.onnx", "-"])
def test_models_that_cannot_be_read(
    folder: Path, content: bytes | None, text: str, source: str
) -> None:
    """Exit code 3, one line that says what and where, no traceback, no file."""
    if content is None and source == "-":
        pytest.skip("standard input always exists")
    if content is not None:
        Path("in.onnx").write_bytes(content)
    before = names(folder)
    result = tensat(source, "out.onnx", "--report", "r.json", *FAST, stdin=content or b"")
    assert result.exit_code == 3
    assert text in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output
    assert "/temporary/" not in result.output
    assert names(folder) == before


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(["in.onnx", "."], "is a folder", id="OUT is a folder"),
        pytest.param(["in.onnx", "none/o.onnx"], "no folder 'none'", id="no folder"),
        pytest.param(
            ["in.onnx", "o", "--report", "none/r"], "--report 'none/r'", id="report"
        ),
        pytest.param(["in.onnx", "-", "--report", "-"], "cannot both", id="two dashes"),
        pytest.param(["in.onnx", "o", "--cost", "gpu"], "possible: cpu", id="cost"),
        pytest.param(["in.onnx", "o", "--input-shape", "x"], "not NAME:SIZE", id="form"),
        pytest.param(["in.onnx", "o", "--input-shape", "x:1"], "declares n,300", id="rank"),
        pytest.param(["in.onnx", "o", "--input-shape", "q:1"], "no such input", id="input"),
        pytest.param(["in.onnx", "o", "--skip", "nothing"], "no rule is called", id="rule"),
        pytest.param(["in.onnx", "o", "--seconds", "0"], "seconds must be", id="seconds"),
        pytest.param(["in.onnx", "o", "--max-nodes", "0"], "--max-nodes must", id="nodes"),
        pytest.param(["in.onnx", "o", "--seed", "-1"], "--seed must be", id="seed"),
        pytest.param(["in.onnx", "o", "--seed", "x"], "Invalid value for", id="no number"),
        pytest.param(["in.onnx"], "Missing argument 'OUT'", id="no OUT"),
        pytest.param(["in.onnx", "o", "--what"], "No such option", id="option"),
        pytest.param(["in.onnx", "o", "--cost-db", "in.onnx"], "cost database", id="db"),
    ],
)
def test_arguments_that_make_no_sense(
    folder: Path, arguments: list[str], text: str
) -> None:
    """Exit code 2, a line that says what is possible, no file."""
    onnx.save(BEST, "in.onnx")
    result = tensat(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1
    assert text in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert names(folder) == {"in.onnx"}


def test_a_model_that_is_a_folder(folder: Path) -> None:
    """It cannot be read."""
    result = tensat(".", "out.onnx")
    assert result.exit_code == 3
    assert "it is no file" in result.stderr


@pytest.mark.parametrize("proto", [BETTER, BEST], ids=["improved", "kept"])
def test_a_folder_that_cannot_be_written(
    folder: Path, proto: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 3 and one line; the file that was there stays as it was."""
    onnx.save(proto, "in.onnx")
    Path("out.onnx").write_bytes(b"old")

    move = Path.replace

    def refuse(self: Path, target: Path) -> Path:
        if Path(target).resolve() == (folder / "out.onnx").resolve():
            raise PermissionError(13, "Permission denied")
        return move(self, target)

    monkeypatch.setattr(Path, "replace", refuse)
    result = tensat("in.onnx", "out.onnx", *FAST)
    assert result.exit_code == 3
    assert "cannot write 'out.onnx': Permission denied" in result.stderr
    assert result.stderr.count("\n") == 1
    assert Path("out.onnx").read_bytes() == b"old"
    assert names(folder) == {"in.onnx", "out.onnx"}


def test_a_model_that_does_not_run_is_kept(folder: Path) -> None:
    """An operator that the runtime does not know: the reason is said, the file copied."""
    proto = model([node("F", "x", "y", domain="elsewhere")], X, Y, domains={"elsewhere": 1})
    onnx.save(proto, "in.onnx")
    result = tensat("in.onnx", "out.onnx", *FAST)
    assert result.exit_code == 0
    assert "The original is kept" in result.stdout
    assert "/temporary/" not in "".join(result.stdout.split())
    assert Path("out.onnx").read_bytes() == Path("in.onnx").read_bytes()


def test_skipped_rules_are_not_used(folder: Path) -> None:
    """Without the rule of two signs nothing better is found."""
    onnx.save(BETTER, "in.onnx")
    result = tensat(
        "in.onnx", "out.onnx", "--report", "r.json", "--skip", "neg-of-neg", *FAST
    )
    assert result.exit_code == 0
    assert "neg-of-neg" not in json.loads(Path("r.json").read_text())["rules"]


def test_an_interrupt_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a file of ours nor half of the result, and no traceback."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    onnx.save(BETTER, "in.onnx")
    places = (("improve", "saturate"), ("job", "judge"), ("job", "fold"))
    for place, name in places:
        with monkeypatch.context() as patch:
            patch.setattr(import_module(f"tensat.{place}"), name, interrupted)
            result = tensat("in.onnx", "out.onnx", "--report", "r.json", *FAST)
        assert result.exit_code not in (0, 2, 3)
        assert "Traceback" not in result.output
        assert names(folder) == {"in.onnx"}


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_signal_ends_the_whole_process(folder: Path, tmp_path: Path) -> None:
    """Ctrl-C while operators are timed: the process ends soon and leaves nothing."""
    onnx.save(BETTER, "in.onnx")
    temporary = tmp_path / "temporary"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tensat",
            "optimize",
            "in.onnx",
            "out.onnx",
            "--seconds",
            "60",
        ],
        env={
            **os.environ,
            "TMPDIR": str(temporary),
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while not any(temporary.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert b"Traceback" not in errors
    if process.returncode:
        assert names(folder) == {"in.onnx"}
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)

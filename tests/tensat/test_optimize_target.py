"""Results for this kind of machine: blocked kernels, a portable twin, and safety."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from tensat.errors import ModelError
from tensat.kernels.machine import block_size
from tensat.optimize import optimize
from tensat.options import Options
from tensat.runtime import Runtime
from tensat.target import portable_path, runnable, target_of
from tests.tensat.model.onnx_models import model, node, ops, random, run, value

TARGETED = Options(cost="roofline", measure=False, target="ort-cpu")
PORTABLE = replace(TARGETED, target="portable")

NETWORK = model(
    [
        node("Conv", "x k", "a", pads=[1] * 4), node("Relu", "a", "b"),
        node("GlobalAveragePool", "b", "c"), node("Conv", "c g", "d"),
        node("Sigmoid", "d", "e"), node("Mul", "b e", "f"),
        node("Conv", "f l", "h"), node("Add", "h b", "i"), node("Relu", "i", "y"),
    ],
    [value("x", ["n", 32, "h", "w"])],
    [value("y", ["n", 32, "h", "w"])],
    {
        "k": random(32, 32, 3, 3), "g": random(32, 32, 1, 1, seed=1),
        "l": random(32, 32, 1, 1, seed=2),
    },
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def blocks() -> None:
    """Nothing here can be tested where the runtime does not block."""
    with Runtime() as runtime:
        if not block_size(runtime):
            pytest.skip("ONNX Runtime has no blocked kernels for this processor")


def _domains(proto: onnx.ModelProto) -> set[str]:
    return {node.domain for node in proto.graph.node}


@pytest.mark.parametrize("sizes", [(1, 7, 5), (2, 8, 8), (3, 1, 1)], ids=str)
def test_blocked_kernels_compute_the_same_at_all_sizes(sizes: tuple[int, ...]) -> None:
    """Optimized for one image of one size, right for others: sizes stay symbols."""
    result = optimize(NETWORK, replace(TARGETED, input_shapes={"x": (1, 32, 16, 16)}))
    assert result.report.improved, result.report.reason
    assert "com.microsoft.nchwc" in _domains(result.model)
    feeds = {"x": random(sizes[0], 32, *sizes[1:], seed=5)}
    (want,) = run(NETWORK, feeds)
    for proto in (result.model, onnx.load_from_string(_portable(result))):
        (got,) = run(proto, feeds)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


def _portable(result: object) -> bytes:
    from tensat.model.onnx_write import to_proto

    portable = getattr(result, "portable", None)
    assert portable is not None
    return to_proto(portable).SerializeToString()


def test_a_targeted_file_has_a_portable_twin(tmp_path: Path) -> None:
    """It says what it is for, is checked, and is not optimized again."""
    result = optimize(NETWORK, TARGETED)
    path = tmp_path / "fast.onnx"
    result.save(path)
    assert {p.name for p in tmp_path.iterdir()} == {"fast.onnx", "fast.portable.onnx"}
    assert _domains(onnx.load(portable_path(path))) == {""}
    assert runnable(path) == path
    target = target_of(result.ir_model)
    assert target is not None
    assert target.name == "ort-cpu"
    for again in (path, result.model):
        with pytest.raises(ModelError, match=r"cannot be optimized again; optimize .*port"):
            optimize(again, PORTABLE)


def test_a_portable_result_has_standard_operators_only() -> None:
    """Whatever the kernels are that it was priced with."""
    result = optimize(NETWORK, PORTABLE)
    assert _domains(result.model) == {""}
    assert result.portable is None
    assert target_of(result.ir_model) is None


def test_a_model_without_blocked_kernels_stays_portable() -> None:
    """A target changes nothing where nothing can be blocked."""
    proto = model(
        [node("Neg", "x", "a"), node("Neg", "a", "b"), node("Relu", "b", "y")],
        [value("x", [4])],
        [value("y", [4])],
    )
    result = optimize(proto, TARGETED)
    assert ops(result.model) == ["Relu"]
    assert (result.portable, target_of(result.ir_model)) == (None, None)

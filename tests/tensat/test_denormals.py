"""Numbers too small to be normal are set to zero, and nothing else is touched."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from tensat.denormals import flush_denormals
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_read import read
from tests.tensat.model.onnx_models import model, node, value

TINY = float(np.finfo(np.float32).tiny)


def _flushed(weights: np.ndarray) -> tuple[np.ndarray, int, int]:
    """The weights afterwards, and the counts."""
    name = {"float32": 1, "float64": 11, "float16": 10}[weights.dtype.name]
    shape = list(weights.shape)
    proto = model(
        [node("Mul", "x w", "y")],
        [value("x", shape, name)],
        [value("y", shape, name)],
        {"w": weights},
    )
    found = flush_denormals(to_graph(read(proto)))
    (tensor,) = found.graph.constants.values()
    return tensor.numpy(), found.numbers, found.tensors


def test_denormals_become_zero() -> None:
    """Of both signs; the smallest normal number, zero, infinity and NaN stay."""
    kept = np.array([TINY, -TINY, 0.0, np.inf, np.nan, 1.0], np.float32)
    small = np.array([TINY / 2, -TINY / 4, 1e-45], np.float32)
    got, numbers, tensors = _flushed(np.concatenate([kept, small]))
    np.testing.assert_array_equal(got, np.concatenate([kept, [0, 0, 0]]).astype("f4"))
    assert (numbers, tensors) == (3, 1)


@pytest.mark.parametrize(("dtype", "small"), [("float64", 1e-310), ("float16", 1e-6)])
def test_each_type_has_its_own_limit(dtype: DTypeLike, small: float) -> None:
    """1e-40 is normal in float64; what is denormal in float16 counts, and stays."""
    weights = np.array([small, 1.0], dtype)
    got, numbers, _ = _flushed(weights)
    assert numbers == (1 if dtype == "float64" else 0)
    assert got[0] == (0 if dtype == "float64" else weights[0])
    assert _flushed(np.array([1e-40, 1.0], np.float64))[1] == 0


def test_a_graph_without_them_is_the_same_object() -> None:
    """Nothing is copied for nothing."""
    graph = to_graph(
        read(
            model(
                [node("Mul", "x w", "y")],
                [value("x", [2])],
                [value("y", [2])],
                {"w": np.array([1.0, 2.0], np.float32)},
            )
        )
    )
    assert flush_denormals(graph).graph is graph

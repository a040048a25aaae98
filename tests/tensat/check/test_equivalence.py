"""Outputs agree within rounding, and nothing else passes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tensat.check.equivalence import compare


def _f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def _of(dtype: type, *values: complex) -> np.ndarray:
    return np.array(values, dtype)


def _text(*values: str) -> np.ndarray:
    return np.array(values, object)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param(_f32(1, 2, 240), _f32(1.001, 2, 240), id="relative to the largest"),
        pytest.param(_f32(6e-5, 1e-7), _f32(6.02e-5, 3e-7), id="small, absolute"),
        pytest.param(_f32(np.nan, np.inf, 1), _f32(np.nan, np.inf, 1), id="NaN, infinity"),
        pytest.param(_f32(), _f32(), id="empty"),
        pytest.param(_f32(np.nan), _f32(np.nan), id="NaN only"),
        pytest.param(
            np.array(["a", "b"], object), np.array(["a", "b"], object), id="strings"
        ),
        pytest.param(np.array([1, 2]), np.array([1, 2]), id="integers"),
        pytest.param(_of(np.float16, 1, 2), _of(np.float16, 1.01, 2), id="float16"),
        pytest.param(
            _of(np.complex64, 1 + 1j), _of(np.complex64, 1 + 1.0005j), id="complex"
        ),
        pytest.param([_f32(1), _f32(2)], [_f32(1), _f32(2)], id="sequence"),
        pytest.param([{1: _f32(1)}], [{1: _f32(1)}], id="sequence of maps"),
        pytest.param(None, None, id="absent optional"),
    ],
)
def test_equal(a: object, b: object) -> None:
    """These pairs are the same but for rounding."""
    found = compare(["y"], [a], [b])
    assert found.equal, found.text


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        pytest.param(_f32(1, 2), _f32(1, 2.01), "1 of 2 differ beyond", id="value"),
        pytest.param(_f32(1, np.nan), _f32(1, 0), "NaN or infinity", id="NaN lost"),
        pytest.param(_f32(1, 0), _f32(1, np.nan), "NaN or infinity", id="NaN made"),
        pytest.param(_f32(np.inf), _f32(-np.inf), "NaN or infinity", id="other infinity"),
        pytest.param(_f32(np.inf), _f32(np.nan), "NaN or infinity", id="NaN for infinity"),
        pytest.param(_f32(1), np.array([1.0]), "float64 in place of float32", id="type"),
        pytest.param(_f32(1), _f32(1).reshape(1, 1), r"shape \(1, 1\)", id="shape"),
        pytest.param(np.array([1, 2]), np.array([1, 3]), "1 of 2 differ", id="integer"),
        pytest.param(np.array([True]), np.array([False]), "1 of 1 differ", id="bool"),
        pytest.param(_text("a"), _text("b"), "'b'", id="string"),
        pytest.param([_f32(1)], [_f32(1), _f32(1)], "2 outputs in place of 1", id="length"),
        pytest.param([_f32(1), _f32(1)], [_f32(1), _f32(2)], r"y\[1\]", id="element"),
        pytest.param({1: 0.5}, {2: 0.5}, "other keys", id="keys"),
        pytest.param(None, _f32(1), "in place of None", id="absent"),
    ],
)
def test_different(a: object, b: object, text: str) -> None:
    """These pairs are told apart, and the text says how."""
    found = compare(["y"], [a], [b])
    assert not found.equal
    assert re.search(text, found.text)


def test_every_output_counts() -> None:
    """The first difference is named, the deviation is that of the worst output."""
    a = [_f32(1), _f32(1), _f32(10)]
    b = [_f32(1), _f32(1.1), _f32(20)]
    found = compare(["p", "q", "r"], a, b)
    assert found.text.startswith("q:")
    assert found.deviation == pytest.approx(1.0)

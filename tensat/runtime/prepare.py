"""A small model made ready to run: its session, its tensors; child process only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime as ort

from tensat.runtime.messages import Filling, Kernel

_NUMPY_TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64",
}  # fmt: skip
_BFLOAT16 = 16
_WEIGHTS = 4096  # elements from which on constants are drawn around 0
_BLOCK = 1 << 20  # random numbers from which all tensors are filled


def options(level: str, threads: int) -> Any:
    """Return session options: silent, and no spinning pool that disturbs others."""
    result = ort.SessionOptions()
    result.intra_op_num_threads = threads
    result.inter_op_num_threads = 1
    result.log_severity_level = 4
    result.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    result.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return result


def prepared(kernel: Kernel) -> Callable[[], object]:
    """Return what runs a kernel once, its tensors bound."""
    rng = np.random.default_rng(kernel.seed)
    numbers = rng.random(_BLOCK, dtype=np.float32)
    setup = options("ORT_DISABLE_ALL", kernel.threads)
    constants = [_fill(filling, rng, numbers, weights=True) for filling in kernel.constants]
    if constants:
        setup.add_external_initializers([f.name for f in kernel.constants], constants)
    session = ort.InferenceSession(kernel.model, setup, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for filling in kernel.inputs:
        binding.bind_ortvalue_input(filling.name, _fill(filling, rng, numbers))
    for filling in kernel.outputs:
        _bind_output(binding, filling)
    return lambda: session.run_with_iobinding(binding)


def _fill(
    filling: Filling, rng: np.random.Generator, numbers: np.ndarray, weights: bool = False
) -> Any:
    """Return an OrtValue; inputs are positive, to keep logarithms on the fast path."""
    if filling.array is not None:
        return ort.OrtValue.ortvalue_from_numpy(np.array(filling.array, order="C"))
    count = int(np.prod(filling.dims, dtype=np.int64))
    name = _NUMPY_TYPES.get(filling.onnx_type)
    if name is None and filling.onnx_type != _BFLOAT16:
        raise ValueError(f"no random values for ONNX type {filling.onnx_type}")
    values: np.ndarray
    if filling.value is not None:
        values = np.full(count, filling.value, np.float32)
    elif name is None or np.dtype(name).kind == "f":
        # Tensors begin at different numbers, so no two are equal and could be merged.
        values = np.resize(numbers[rng.integers(_BLOCK // 2) :], count)
        if weights and count >= _WEIGHTS:
            values = (values - np.float32(0.5)) * np.float32(0.1)
        else:
            values = values + np.float32(0.25)
    else:
        values = rng.integers(0, max(filling.below, 1), count)
    if name is None:
        bits = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        shaped = bits.reshape(filling.dims)
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(shaped, _BFLOAT16)
    return ort.OrtValue.ortvalue_from_numpy(values.astype(name).reshape(filling.dims))


def _bind_output(binding: Any, filling: Filling) -> None:
    """Bind a buffer of our own, so that no run allocates; the runtime's if that fails."""
    name = _NUMPY_TYPES.get(filling.onnx_type)
    if name is None or not filling.dims or any(size < 1 for size in filling.dims):
        binding.bind_output(filling.name)
        return
    buffer = ort.OrtValue.ortvalue_from_shape_and_type(list(filling.dims), np.dtype(name))
    binding.bind_ortvalue_output(filling.name, buffer)

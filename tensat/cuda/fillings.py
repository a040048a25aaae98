"""Values of the tensors that a small model is timed with, made on the host."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from tensat.cuda.trouble import DeviceError, Trouble
from tensat.runtime.messages import Filling

_LARGE = 4096  # elements from which on constants are weights


def host_array(
    filling: Filling, rng: np.random.Generator, *, weights: bool = False
) -> np.ndarray:
    """Return an array for a tensor of a small model.

    Floats are positive, so that no logarithm or root leaves the fast path; integers lie
    below what they address. Large constants lie around zero as weights do, so that a chain
    of products stays finite.

    Args:
        filling: Which tensor.
        rng: Where random numbers come from.
        weights: Whether it is a constant.

    Raises:
        DeviceError: The element type has no array type (strings, or below one byte).
    """
    kind = ir.DataType(filling.onnx_type)
    if kind == ir.DataType.STRING or kind.bitwidth < 8:
        text = f"tensor {filling.name} of {kind.name.lower()} has no device buffer"
        raise DeviceError(Trouble.NO_KERNEL, text)
    dtype = kind.numpy()
    count = math.prod(filling.dims)
    if filling.value is not None:
        values = np.full(count, filling.value)
    elif kind.is_floating_point():
        values = rng.random(count, dtype=np.float32)
        large = weights and count >= _LARGE
        values = (values - 0.5) / 10 if large else values + np.float32(0.25)
    else:
        values = rng.integers(0, max(filling.below, 1), count)
    return np.ascontiguousarray(values.astype(dtype).reshape(filling.dims))

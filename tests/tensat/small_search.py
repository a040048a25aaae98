"""A model that a search makes smaller, and options with which that takes a moment."""

from __future__ import annotations

import numpy as np

from tensat.options import Options
from tests.tensat.model.onnx_models import model, node, random, value

FAST = Options(cost="roofline", measure=False, seconds=20.0)

IMAGE = [1, 4, 16, 16]
CONV = model(
    [
        node("Conv", "x w", "a", pads=[1] * 4, name="conv"),
        node("BatchNormalization", "a s b m v", "c", name="norm"),
        node("Relu", "c", "d", name="relu"),
        node("Relu", "d", "e", name="again"),
        node("Add", "e x", "y", name="sum"),
    ],
    [value("x", IMAGE)],
    [value("y", IMAGE)],
    {
        "w": random(4, 4, 3, 3), "s": random(4), "b": random(4), "m": random(4),
        "v": np.abs(random(4)) + 1,
    },
)  # fmt: skip

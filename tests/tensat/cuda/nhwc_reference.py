"""The meaning of the runtime's channels-last convolution, for ONNX's own evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


class NhwcConv(OpRun):
    """What the operator computes: a Conv of x and weights with their channels last."""

    op_domain = "com.microsoft"

    def _run(  # type: ignore[no-untyped-def]
        self, x, w, b=None, **attributes: Any
    ) -> tuple[np.ndarray]:
        given = {name: value for name, value in attributes.items() if value is not None}
        names = ["x", "w", "b"][: 2 if b is None else 3]
        node = helper.make_node("Conv", names, ["y"], **given)
        kind = helper.np_dtype_to_tensor_dtype(x.dtype)
        values = [helper.make_tensor_value_info(n, kind, None) for n in [*names, "y"]]
        graph = helper.make_graph([node], "conv", values[:-1], values[-1:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        feeds = {"x": x.transpose(0, 3, 1, 2), "w": w.transpose(0, 3, 1, 2), "b": b}
        found = ReferenceEvaluator(model).run(None, {n: feeds[n] for n in names})
        return (found[0].transpose(0, 2, 3, 1),)

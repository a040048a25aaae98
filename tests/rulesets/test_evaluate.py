"""The plain evaluation that rules are tested with agrees with the ONNX reference."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from tests.rulesets.evaluate import evaluate

WINDOW = {"strides": (2, 1), "pads": (1, 0, 1, 1), "dilations": (1, 2)}
PLAIN = {"strides": (2, 1), "pads": (1, 0, 1, 1), "dilations": (1, 1)}
CASES: list[tuple[str, dict[str, Any], list[tuple[int, ...]]]] = [
    ("Conv", {**WINDOW, "group": 1}, [(2, 4, 6, 5), (6, 4, 3, 2)]),
    ("Conv", {**WINDOW, "group": 2}, [(2, 4, 6, 5), (6, 2, 3, 2), (6,)]),
    ("Conv", {"strides": (2,), "pads": (1, 0), "dilations": (1,), "group": 1},
     [(2, 4, 6), (6, 4, 3)]),
    ("ConvTranspose", {**PLAIN, "group": 1, "output_padding": (1, 0)},
     [(1, 4, 3, 5), (4, 2, 3, 2), (2,)]),
    ("MaxPool", {**PLAIN, "kernel": (3, 2), "ceil_mode": 0}, [(2, 4, 6, 5)]),
    ("AveragePool", {**PLAIN, "kernel": (3, 2), "ceil_mode": 0, "count_include_pad": 0},
     [(2, 4, 6, 5)]),
    ("AveragePool", {**PLAIN, "kernel": (3, 2), "ceil_mode": 0, "count_include_pad": 1},
     [(2, 4, 6, 5)]),
    ("LRN", {"alpha": 0.5, "beta": 0.75, "bias": 2.0, "size": 4}, [(7, 7, 3, 3)]),
    ("LayerNormalization", {"axis": 2, "epsilon": 1e-3}, [(2, 3, 4), (4,), (4,)]),
    ("BatchNormalization", {"epsilon": 1e-3}, [(2, 3, 4), (3,), (3,), (3,), (3,)]),
    ("Gemm", {"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1}, [(4, 5), (3, 4), (3,)]),
    ("HardSwish", {}, [(4, 9)]),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}, [(4, 9)]),
    ("Gelu", {"approximate": "tanh"}, [(4, 9)]),
    ("Elu", {"alpha": 0.3}, [(4, 9)]),
    ("LeakyRelu", {"alpha": 0.3}, [(4, 9)]),
    ("Softplus", {}, [(4, 9)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "attributes", "shapes"),
    CASES,
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_evaluation_agrees_with_the_reference(
    op: str, attributes: dict[str, Any], shapes: list[tuple[int, ...]]
) -> None:
    """An operator's value is that of the ONNX reference evaluator."""
    rng = np.random.default_rng(0)
    arrays = [
        np.abs(rng.normal(size=shape)) - 0.2 * (k == 0) for k, shape in enumerate(shapes)
    ]
    (found,) = evaluate(op, attributes, arrays)
    given = {k: list(v) if isinstance(v, tuple) else v for k, v in attributes.items()}
    if "kernel" in given:
        given["kernel_shape"] = given.pop("kernel")
        del given["dilations"]
    elif "strides" in given:
        given["kernel_shape"] = list(shapes[1][2:])
    names = [f"i{position}" for position in range(len(arrays))]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["o"], **given)],
        "one",
        [helper.make_tensor_value_info(n, TensorProto.DOUBLE, None) for n in names],
        [helper.make_tensor_value_info("o", TensorProto.DOUBLE, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    (wanted,) = ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)

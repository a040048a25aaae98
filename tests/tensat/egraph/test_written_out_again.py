"""What an old opset writes out is found again as the composite operator."""

from __future__ import annotations

import onnx
import pytest

from rulesets.ops import OPERATORS, Attributes, complete
from rulesets.store import load
from rulesets.tensor import Tensor
from tensat.egraph.compile_rules import compile_rules, literals_of
from tensat.egraph.encode import encode
from tensat.egraph.price import operator_of
from tensat.egraph.saturate import Limits, saturate
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_read import read
from tensat.onnx_forms import lower
from tests.tensat.onnx_forms.models import model_of

RULES = load()
SHAPE = (2, 3, 8)
COMPOSITES: dict[str, tuple[str, tuple[tuple[int, ...], ...], Attributes]] = {
    "HardSwish": ("HardSwish", (SHAPE,), {}),
    "Gelu": ("Gelu", (SHAPE,), {}),
    "LayerNormalization": (
        "LayerNormalization", (SHAPE, (8,), (8,)), {"axis": 2, "epsilon": 1e-3}
    ),
    "RMSNormalization": (
        "RMSNormalization", (SHAPE, (8,)), {"axis": 2, "epsilon": 1e-3}
    ),
}  # fmt: skip


def _written(name: str, opset: int) -> onnx.ModelProto:
    op, shapes, given = COMPOSITES[name]
    attributes = complete(OPERATORS[op], given)
    inputs = tuple(Tensor("float32", shape) for shape in shapes)
    nodes = lower(op, attributes, inputs, inputs[:1], opset)
    assert nodes is not None
    assert len(nodes) > 1
    return model_of(nodes, inputs, 1, opset)


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize("name", COMPOSITES)
def test_rules_make_the_composite_of_what_is_written(name: str, opset: int) -> None:
    """Read again and saturated, the result's class has the operator, attributes equal."""
    graph = to_graph(read(_written(name, opset)))
    literals = literals_of(RULES)
    encoded = encode(graph, literals)
    patterns = compile_rules(RULES, encoded.egraph, literals)
    saturate(encoded.egraph, patterns, Limits(2_000, 20.0, 8))
    tables = encoded.egraph.refresh()
    (root,) = (encoded.egraph.find(one) for one in encoded.roots)
    op, _, given = COMPOSITES[name]
    found = [
        dict(encoded.egraph.attributes(row.attributes))
        for row in tables.enodes()
        if row.eclass == root and operator_of(row.symbol) == op
    ]
    assert complete(OPERATORS[op], given) in found

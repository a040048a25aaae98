"""The e-graph of a search as JSON and as a picture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from extraction.egraph_json import read as read_egraph
from tensat.egraph_export import egraph_json, egraph_svg
from tensat.errors import UsageError
from tensat.optimize import Result, optimize
from tests.tensat.model.onnx_models import model, node, value
from tests.tensat.small_search import CONV, FAST


@pytest.fixture(scope="module")
def result() -> Result:
    """A convolution and its norm that become one, and a Relu too many."""
    return optimize(CONV, FAST)


def test_egraph_json(result: Result, tmp_path: Path) -> None:
    """Extraction reads it; e-nodes that a rule made name it."""
    assert result.found is not None
    graph, plan = result.found
    path = tmp_path / "e.json"
    path.write_bytes(egraph_json(graph, plan))
    kept = [node for node in plan.problem.egraph.nodes if node.cost < float("inf")]
    assert len(read_egraph(path).nodes) <= len(kept)
    nodes = json.loads(path.read_text())["nodes"]
    rules = {each["rule"] for each in nodes.values()}
    assert {None, "add-is-conv-bias", "scale-after-conv"} <= rules
    assert any(each["name"] == "Conv conv" for each in nodes.values())


def test_egraph_json_compressed(result: Result, tmp_path: Path) -> None:
    """The same in less space."""
    assert result.found is not None
    path = tmp_path / "e.json.gz"
    path.write_bytes(egraph_json(*result.found, compress=True))
    assert read_egraph(path).roots


def test_egraph_svg(result: Result) -> None:
    """Every e-node with its rule."""
    assert result.found is not None
    text = egraph_svg(*result.found)
    assert text.startswith("<svg")
    assert "(add-is-conv-bias)" in text


def test_egraph_svg_is_for_small_ones() -> None:
    """More classes than anybody can read are refused."""
    nodes = [node("Exp", f"t{i}", f"t{i + 1}") for i in range(130)]
    proto = model(nodes, [value("t0", [2])], [value("t130", [2])])
    result = optimize(proto, FAST)
    assert result.found is not None
    with pytest.raises(UsageError, match="131 classes; a picture shows up to 120"):
        egraph_svg(*result.found)

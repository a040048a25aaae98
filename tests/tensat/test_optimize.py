"""The main job: equal and better, or the original with a reason; the same every time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from extraction import ExtractionError
from rulesets.rule import TIERS
from rulesets.store import load
from tensat.errors import InternalError, ModelError, UnsoundRuleError, UsageError
from tensat.optimize import named, optimize, select_rules
from tensat.options import Options
from tensat.runtime import Runtime
from tests.tensat.model.onnx_models import X, Y, model, node, ops, random, run, value
from tests.tensat.pipeline import RandomCosts, improved

FAST = Options(cost="roofline", measure=False)

NETWORK = model(
    [
        node("Conv", "x k b", "c", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "c s t m v", "n"),
        node("Add", "n three", "a"), node("Clip", "a zero six", "l"),
        node("Mul", "n l", "p"), node("Div", "p six", "h"),
        node("GlobalAveragePool", "h", "g"), node("Flatten", "g", "f"),
        node("MatMul", "f w1", "q"), node("MatMul", "f w2", "r"),
        node("Concat", "q r", "y", axis=1),
    ],
    [value("x", ["batch", 3, 8, 8])],
    [value("y", ["batch", 9])],
    {
        "k": random(4, 3, 3, 3), "b": random(4, seed=1), "s": random(4, seed=2),
        "t": random(4, seed=3), "m": random(4, seed=4), "v": np.abs(random(4, seed=5)) + 1,
        "three": np.float32(3), "zero": np.float32(0), "six": np.float32(6),
        "w1": random(4, 5, seed=6), "w2": random(4, 4, seed=7),
    },
)  # fmt: skip


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """One child for all tests of this file."""
    with Runtime() as made:
        yield made


@pytest.mark.parametrize("kind", ["path", "text", "ModelProto", "onnx_ir"])
def test_any_form_of_a_model(tmp_path: Path, kind: str) -> None:
    """Path, ModelProto or onnx_ir model; what was given is not changed."""
    path = tmp_path / "in.onnx"
    onnx.save(NETWORK, path)
    given = {
        "path": path, "text": str(path), "ModelProto": NETWORK,
        "onnx_ir": ir.serde.deserialize_model(NETWORK),
    }[kind]  # fmt: skip
    before = NETWORK.SerializeToString()
    result = optimize(given, FAST)
    assert NETWORK.SerializeToString() == before
    assert path.read_bytes() == before
    assert result.report.improved
    assert "BatchNormalization" not in ops(result.model)
    result.save(tmp_path / "out.onnx")
    assert onnx.load(tmp_path / "out.onnx").SerializeToString() == (
        result.model.SerializeToString()
    )


@pytest.mark.parametrize("salt", range(4))
def test_optimized_at_one_batch_right_at_all(runtime: Runtime, salt: int) -> None:
    """Sizes that the file leaves open stay open, whatever costs were asked for."""
    source = RandomCosts(salt) if salt else None
    result, _ = improved(NETWORK, runtime, source, sizes={"batch": 1})
    for batch in (1, 2, 5):
        feeds = {"x": random(batch, 3, 8, 8, seed=batch)}
        (want,), (got,) = run(NETWORK, feeds), run(result, feeds)
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    dims = [d.dim_param for d in result.graph.input[0].type.tensor_type.shape.dim]
    assert dims[0] == "batch"


def test_the_report_is_complete() -> None:
    """Every part says something, and the interface is as before."""
    result = optimize(NETWORK, FAST)
    report = result.report
    assert report.after == report.candidate
    assert report.after.nodes < report.before.nodes
    assert report.before.predicted_seconds is not None
    assert report.after.predicted_seconds is not None
    assert report.after.predicted_seconds < report.before.predicted_seconds
    assert report.input_shapes == {"x": (1, 3, 8, 8)}
    assert report.ratio is None
    assert report.deviation is not None
    assert report.saturation["stop"] == "saturated"
    assert report.extraction["status"] == "optimal"
    assert {"read", "inputs", "saturate", "extract", "rebuild", "check"} <= set(
        report.stages
    )
    assert {"tensat", "onnxruntime", "egglog"} <= set(report.versions)
    assert [i.name for i in result.model.graph.input] == ["x"]
    assert [o.name for o in result.model.graph.output] == ["y"]


def test_a_model_that_is_good_is_kept() -> None:
    """The very same model comes back."""
    proto = model(
        [node("MatMul", "x w", "y")], X, [value("y", [2, 4])], {"w": random(3, 4)}
    )
    result = optimize(proto, FAST)
    assert not result.report.improved
    assert result.report.reason == "The original is kept: nothing cheaper was found."
    assert result.report.after == result.report.before
    assert ops(result.model) == ["MatMul"]


def test_a_wrong_candidate_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong rule can cost the gain, never the result."""
    from tests.tensat.egraph.lab import rule

    module = sys.modules["tensat.optimize"]
    wrong = rule("(Tanh (Tanh ?x))", "(Tanh ?x)", name="wrong")
    monkeypatch.setattr(module, "load", lambda: (wrong,))
    proto = model([node("Tanh", "x", "t"), node("Tanh", "t", "y")], X, Y)
    result = optimize(proto, FAST)
    assert not result.report.improved
    assert "The original is kept: the candidate is" in result.report.reason
    assert ops(result.model) == ["Tanh", "Tanh"]
    assert result.report.candidate is not None
    assert result.report.candidate.operators == {"Tanh": 1}


@pytest.mark.parametrize("kind", [UnsoundRuleError, InternalError, ExtractionError])
def test_faults_of_ours_are_reported(
    monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    """A wrong rule, or whatever else goes wrong inside: told, and the original is kept."""

    def fail(*_: object) -> None:
        raise kind("classes 1 and 2 became one; last rules: wrong")

    monkeypatch.setattr(sys.modules["tensat.improve"], "saturate", fail)
    result = optimize(NETWORK, FAST)
    assert not result.report.improved
    assert result.report.reason.endswith("last rules: wrong")


def test_rules_are_selected_by_name() -> None:
    """A name that no rule has is a mistake of the caller."""
    rules = load()
    assert len(select_rules(rules, ["neg-of-neg"])) == len(rules) - 1
    with pytest.raises(UsageError, match=r"no rule is called 'neg'; similar: neg-of-neg"):
        select_rules(rules, ["neg"])


def test_only_proved_rules() -> None:
    """Without a proof a rule is left out; the two best verdicts are proofs."""
    rules = [replace(rule, name=v, verdict=v) for rule in load()[:1] for v in (*TIERS, "")]
    assert [rule.verdict for rule in select_rules(rules, (), True)] == list(TIERS[:2])
    assert select_rules(rules) == tuple(rules)


@pytest.mark.parametrize(
    ("name", "similar"),
    [("relu-of-rely", "relu-of-relu"), ("conv-bias", "conv-bias-is-add[Conv]")],
    ids=["misspelt", "part"],
)
def test_unknown_rules_have_similar_names(name: str, similar: str) -> None:
    """The error lists them."""
    with pytest.raises(UsageError, match="no rule is called") as caught:
        named(load(), name)
    assert similar in str(caught.value)


def test_estimated_costs_leave_out_rules_that_only_change_the_kernel() -> None:
    """They double e-graphs, and no estimate tells their sides apart."""
    rules = load()
    kernels = {rule.name for rule in rules if rule.measured_only}
    assert "one-row-matmul-is-conv" in kernels
    names = {rule.name for rule in select_rules(rules, cost="roofline")}
    assert names == {rule.name for rule in rules} - kernels
    assert select_rules(rules, cost="table") == tuple(rules)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param(Options(input_shapes={"q": (1,)}), "no such input", id="name"),
        pytest.param(Options(input_shapes={"x": (1, 4, 8, 8)}), "declares", id="size"),
    ],
)
def test_input_shapes_must_fit(options: Options, text: str) -> None:
    """Shapes that contradict the model are refused before anything is done."""
    with pytest.raises(UsageError, match=text):
        optimize(NETWORK, options)


def test_input_shapes_are_used() -> None:
    """Costs are asked for at the sizes that were given."""
    options = Options(cost="roofline", measure=False, input_shapes={"x": (7, 3, 8, 8)})
    assert optimize(NETWORK, options).report.input_shapes == {"x": (7, 3, 8, 8)}


def test_what_is_no_model(tmp_path: Path) -> None:
    """The text says which file and what is wrong."""
    with pytest.raises(ModelError, match=r"cannot read '.*none.onnx': no such file"):
        optimize(tmp_path / "none.onnx", FAST)


SCRIPT = """
import hashlib, json, sys
from tensat import Options, optimize
result = optimize(sys.argv[1], Options(cost="roofline", measure=False))
record = json.loads(result.report.to_json())
del record["stages"]
print(hashlib.sha256(result.model.SerializeToString()).hexdigest())
print(json.dumps(record, sort_keys=True))
"""


def test_two_processes_give_the_same_bytes(tmp_path: Path) -> None:
    """Model and report are equal but for times, whatever the hash seed."""
    path = tmp_path / "in.onnx"
    onnx.save(NETWORK, path)
    printed = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(path)],
            env=environment, capture_output=True, check=True, text=True,
        )  # fmt: skip
        printed.add(done.stdout)
    here = optimize(path, FAST).model.SerializeToString()
    assert len(printed) == 1
    assert printed.pop().splitlines()[0] == hashlib.sha256(here).hexdigest()

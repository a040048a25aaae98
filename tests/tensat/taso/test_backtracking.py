"""`alpha` and `budget` of the TASO-shaped `optimize`: they steer a search that counts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import tensat
from tensat import Options, TasoGraph, UsageError
from tensat.check.guard import Race, Reason, Verdict
from tensat.taso import backtracking
from tensat.taso.backtracking import _slower
from tests.tensat.model.onnx_models import X, Y, model, node

QUICK = Options(cost="roofline", measure=False, seconds=10)

HINDERED = dataclasses.replace(QUICK, max_nodes=1, iterations=1)
"""The e-graph has no room, so that whatever is found was found by backtracking."""

WAY = ("batch-norm-is-affine", "scale-after-conv", "add-is-conv-bias")
"""A batch norm goes into a convolution by these; the first step costs something."""


def relus() -> TasoGraph:
    """Two products, each with two relus where one would do."""
    graph = tensat.new_graph()
    x = graph.new_input(dims=(16, 64))
    for _ in range(2):
        y = graph.matmul(x, graph.new_weight(dims=(64, 64)))
        graph.relu(graph.relu(y))
    return graph


def conv_and_norm() -> TasoGraph:
    """A convolution and a batch norm."""
    graph = tensat.new_graph()
    x = graph.new_input(dims=(1, 8, 16, 16))
    w = graph.new_weight(dims=(8, 8, 3, 3))
    y = graph.conv2d(input=x, weight=w, strides=(1, 1), padding="SAME")
    ones = [graph.new_weight(dims=(8,), data=np.ones(8, np.float32)) for _ in range(4)]
    graph.batchnorm(y, *ones, 1e-5)
    return graph


def kinds(graph: TasoGraph) -> list[str]:
    """The types of a graph's operators."""
    return sorted(graph.get_operator_type(op) for op in graph.get_operator_list())


@pytest.mark.parametrize(
    ("budget", "left"), [(0, 4), (1, 3), (1000, 2)], ids=["none", "one", "enough"]
)
def test_the_budget_bounds_what_is_found(budget: int, left: int) -> None:
    """Each graph that may be rewritten takes one relu away, in the result itself."""
    graph = relus().optimize(budget=budget, options=HINDERED)
    assert kinds(graph).count("Relu") == left
    assert graph.report is not None
    assert graph.report.improved is (left < 4)
    assert graph.backtracked is not None
    assert graph.backtracked.taken <= budget
    assert (graph.backtracked.stop == "budget") is (budget < 1000)
    assert len(repr(graph.backtracked)) < 2000


@pytest.mark.parametrize(("alpha", "found"), [(1.0, False), (2.0, True)], ids=str)
def test_alpha_lets_dearer_graphs_pass(alpha: float, found: bool) -> None:
    """A way over a dearer graph is gone with a larger alpha only."""
    graph = tensat.optimize(conv_and_norm(), alpha=alpha, options=HINDERED)
    assert ("BatchNormalization" not in kinds(graph)) is found
    if found:
        assert graph.report is not None
        assert {rule: graph.report.rules.get(rule) for rule in WAY} == dict.fromkeys(WAY, 1)


def test_without_them_only_the_e_graph_is_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No second search runs that nobody asked for."""
    monkeypatch.setattr(backtracking, "backtrack", None)
    graph = relus().optimize(options=QUICK)
    assert kinds(graph).count("Relu") == 2
    assert graph.backtracked is None
    assert graph.report is not None
    assert not graph.report.notes


def test_the_better_result_is_kept() -> None:
    """Where the e-graph has more, backtracking without a budget takes nothing away."""
    graph = relus().optimize(1.0, 0, options=QUICK)
    assert kinds(graph).count("Relu") == 2
    assert graph.report is not None
    assert graph.report.reason.startswith("Improved by prediction")
    (note,) = graph.report.notes
    assert "budget 0: 0 graphs rewritten, 1 seen, ended by budget" in note


def test_the_result_computes_the_same() -> None:
    """What backtracking found is folded, checked and equal; costs are those of `cost`."""
    before = relus()
    after = before.optimize(1.05, 100, options=HINDERED)
    x = np.random.default_rng(0).normal(size=(16, 64)).astype(np.float32)
    outputs = []
    for graph in (before, after):
        proto = tensat.export_onnx(graph)
        onnx.checker.check_model(proto, full_check=True)
        outputs.append(ReferenceEvaluator(proto).run(None, {"data": x}))
    for want, got in zip(*outputs, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    report = after.report
    assert report is not None
    assert report.before.predicted_seconds is not None
    assert report.after.predicted_seconds is not None
    assert before.cost(options=QUICK) == pytest.approx(
        1e3 * report.before.predicted_seconds
    )
    assert after.cost(options=QUICK) == pytest.approx(1e3 * report.after.predicted_seconds)


def test_the_guard_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that the guard refuses is not taken, and the report says why."""
    refused = Verdict(False, Reason.DIFFERENT, "gives other outputs: y")
    monkeypatch.setattr(backtracking, "judge", lambda *_, **__: refused)
    graph = relus().optimize(1.0, 100, options=HINDERED)
    assert kinds(graph).count("Relu") == 4
    assert graph.report is not None
    assert not graph.report.improved
    assert graph.report.notes[-1].endswith("not kept: gives other outputs: y")


def _verdict(ratio: float | None) -> Verdict:
    race = None if ratio is None else Race(2.0, 2.0 / ratio, ratio, 0.01, 9)
    return Verdict(True, Reason.FASTER, "", race=race)


@pytest.mark.parametrize(
    ("ratio", "before", "improved", "slower"),
    [
        (1.5, 1.2, True, False),
        (1.1, 1.2, True, True),
        (1.1, 0.9, False, False),
        (None, 1.2, True, False),
        (1.1, None, True, False),
    ],
    ids=["gains more", "gains less", "the original", "not timed", "other not timed"],
)
def test_of_two_that_were_timed_the_faster_one_is_kept(
    ratio: float | None, before: float | None, improved: bool, slower: bool
) -> None:
    """Measured beats predicted, where both were measured."""
    report = relus().optimize(options=QUICK).report
    assert report is not None
    report = dataclasses.replace(report, ratio=before, improved=improved)
    assert _slower(_verdict(ratio), report) is slower


def test_models_that_cannot_run_are_not_searched(tmp_path: Path) -> None:
    """Without a run there are no sizes; the original comes back and the reason with it."""
    strange = node("Strange", "x", "y", domain="of.nobody")
    onnx.save(model([strange], X, Y), tmp_path / "strange.onnx")
    graph = tensat.load_onnx(tmp_path / "strange.onnx")
    after = tensat.optimize(graph, 1.0, 10, options=QUICK)
    assert kinds(after) == ["of.nobody::Strange"]
    assert after.backtracked is None
    assert after.report is not None
    assert after.report.notes[-1].startswith("no backtracking: ")
    assert "tensat-" not in after.report.notes[-1]


@pytest.mark.parametrize(
    ("alpha", "budget", "text"),
    [
        (0.0, 10, "alpha must be positive, not 0.0"),
        (-1.0, None, "alpha must be positive, not -1.0"),
        (None, -1, "budget must be >= 0, not -1"),
    ],
    ids=str,
)
def test_senseless_limits_are_errors(
    alpha: float | None, budget: int | None, text: str
) -> None:
    """They are refused before anything is searched."""
    with pytest.raises(UsageError, match=text):
        relus().optimize(alpha, budget)


def test_print_subst_tells_of_both(capsys: pytest.CaptureFixture[str]) -> None:
    """What was kept, what backtracking did, and its rules with their numbers."""
    relus().optimize(1.0, 100, True, options=HINDERED)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Improved by backtracking, by prediction: 1.")
    assert lines[1].startswith("backtracking, alpha 1, budget 100: 4 graphs rewritten")
    assert lines[2:] == ["     2  relu-of-relu"]

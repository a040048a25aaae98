"""`tensat.optimize` takes models and graphs; costs and times of graphs."""

import re

import pytest

import tensat
from tensat import Options, TasoGraph, UsageError

QUICK = Options(cost="roofline", measure=False, seconds=10)


def wasteful() -> TasoGraph:
    """Two products of one input that the rules merge, and a relu twice."""
    graph = tensat.new_graph()
    x = graph.new_input(dims=(16, 64))
    for _ in range(2):
        y = graph.matmul(x, graph.new_weight(dims=(64, 64)))
        graph.relu(graph.relu(y))
    return graph


@pytest.fixture(scope="module")
def optimized() -> TasoGraph:
    """The wasteful graph, optimized in TASO's way."""
    return tensat.optimize(wasteful(), 1.05, 100, options=QUICK)


def test_a_graph_gives_a_graph(optimized: TasoGraph) -> None:
    """The result is a graph that is cheaper, can be looked into, and says what was done."""
    before, after = wasteful(), optimized
    assert len(after.get_operator_list()) < len(before.get_operator_list())
    assert after.cost(options=QUICK) < before.cost(options=QUICK)
    assert after.report is not None
    assert after.report.improved
    assert before.report is None


def test_predictions_agree(optimized: TasoGraph) -> None:
    """`cost` is what the optimizer predicted, before and after."""
    assert optimized.report is not None
    before, after = optimized.report.before, optimized.report.after
    assert before.predicted_seconds is not None
    assert after.predicted_seconds is not None
    assert wasteful().cost(options=QUICK) == pytest.approx(1e3 * before.predicted_seconds)
    assert optimized.cost(options=QUICK) == pytest.approx(1e3 * after.predicted_seconds)


def test_a_model_gives_a_result() -> None:
    """A ModelProto or an onnx_ir Model gives a Result, options in second place."""
    graph = wasteful()
    for model in (tensat.export_onnx(graph), graph.model()):
        result = tensat.optimize(model, QUICK)
        assert isinstance(result, tensat.Result)
        assert result.report.improved


def test_arguments_by_name() -> None:
    """Both forms take their arguments by name, TASO's names for a graph."""
    graph = tensat.new_graph()
    graph.relu(graph.new_input(dims=(2,)))
    by_name = tensat.optimize(
        graph=graph, alpha=1.0, budget=10, print_subst=False, options=QUICK
    )
    assert isinstance(by_name, TasoGraph)
    result = tensat.optimize(model=graph.model(), options=QUICK)
    assert isinstance(result, tensat.Result)
    with pytest.raises(UsageError, match="a model is a path"):
        tensat.optimize(42)  # type: ignore[call-overload]


def test_the_graph_itself_does_not_change() -> None:
    """Optimizing leaves the graph as it was, and results share no nodes with it."""
    graph = tensat.new_graph()
    graph.relu(graph.new_input(dims=(2,)))
    kept = graph.optimize(1.0, 10, False, options=QUICK)
    kept.tanh(kept.new_input(dims=(3,)))
    assert len(kept.get_operator_list()) == 2
    assert len(graph.get_operator_list()) == 1


def test_print_subst_prints_rules(capsys: pytest.CaptureFixture[str]) -> None:
    """The rules behind the result, each with its number."""
    graph = tensat.new_graph()
    x = graph.new_input(dims=(64, 64))
    a, b = (graph.matmul(x, graph.new_weight(dims=(64, 64))) for _ in range(2))
    graph.add(a, b)
    tensat.optimize(graph, print_subst=True, options=QUICK)
    printed = capsys.readouterr().out
    assert "Improved" in printed
    assert re.search(
        r"^ +\d+  (sum-of-matmuls|generated-add-matmul)", printed, re.MULTILINE
    )


def test_print_measurements_prints_costs(capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each operator with its milliseconds; their sum is the cost."""
    graph = tensat.new_graph(print_measurements=True)
    x = graph.new_input(dims=(16, 64))
    graph.relu(graph.matmul(x, graph.new_weight(dims=(64, 64))))
    total = graph.cost(options=QUICK)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines] == ["MatMul", "Relu"]
    assert sum(float(line.split()[0]) for line in lines) == pytest.approx(total, abs=2e-4)


def test_equal_operators_count_each() -> None:
    """The cost of a graph counts an operator that is there twice two times."""
    graph = tensat.new_graph()
    x = graph.new_input(dims=(64, 64))
    graph.relu(x)
    once = graph.cost(options=QUICK)
    graph.relu(x)
    assert graph.cost(options=QUICK) == pytest.approx(2 * once)


def test_open_sizes_are_bound_for_costs() -> None:
    """A graph with an open batch costs what it costs at the size that is asked for."""
    costs = []
    for dims, shapes in ((("n", 64), {"data": (512, 64)}), ((512, 64), {})):
        graph = tensat.new_graph()
        graph.tanh(graph.new_input(dims=dims))
        options = Options(cost="roofline", input_shapes=shapes)
        costs.append(graph.cost(options=options))
    assert costs[0] == pytest.approx(costs[1])


def test_run_time_is_milliseconds_of_a_run() -> None:
    """A whole run in ONNX Runtime takes a positive time, far below a second here."""
    assert 0 < wasteful().run_time() < 1000

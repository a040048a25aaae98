"""Backtracking over graphs: against all rewrites done naively, and against the ILP."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx
import pytest

from rulesets.errors import ShapeError, SizeError
from rulesets.find import matches
from rulesets.rule import Match, Rule, build, holds
from rulesets.store import relevant
from rulesets.term import applications
from tensat.backtrack import Backtracked, Bounds, backtrack
from tensat.comparison.search import Task, run_task
from tensat.costs.roofline import Roofline
from tensat.costs.source import CostSource
from tensat.egraph.compile_rules import arities_of, written_out
from tensat.egraph.encode import encode
from tensat.errors import UsageError
from tensat.fold import fold
from tensat.model.onnx_export import to_model, to_proto
from tensat.model.onnx_import import read, to_graph
from tensat.runtime import Runtime
from tensat.search import sites, state, terms
from tests.tensat.model.onnx_models import X, Y, model, node, random, run, value
from tests.tensat.pipeline import RULES, RandomCosts
from tests.tensat.random_models import feeds, random_model
from tests.tensat.random_nodes import MAKERS

WIDE = Bounds(alpha=1e6, budget=100_000)
"""Nothing is left out."""

EXACT = Task(("ilp",), rounds=2, iterations=10)


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """One child for all tests of this file."""
    with Runtime() as made:
        yield made


def rules_named(*names: str) -> tuple[Rule, ...]:
    """Shipped rules."""
    found = tuple(rule for rule in RULES if rule.name.split("[")[0] in names)
    assert {rule.name.split("[")[0] for rule in found} == set(names)
    return found


def searched(
    proto: onnx.ModelProto,
    rules: Sequence[Rule],
    source: CostSource,
    bounds: Bounds = WIDE,
    sizes: Mapping[str, int] | None = None,
) -> Backtracked:
    """What backtracking finds."""
    return backtrack(to_graph(read(proto)), rules, source, sizes or {}, bounds)


PRODUCTS = model(
    [
        node("MatMul", "x v", "a"), node("MatMul", "x w", "b"),
        node("Relu", "a", "c"), node("Add", "b bias", "d"),
        node("Concat", "c d", "y", axis=1),
    ],
    [value("x", [2, 3])], [value("y", [2, 8])],
    {"v": random(3, 4), "w": random(3, 4, seed=1), "bias": random(4, seed=2)},
)  # fmt: skip
SUMS = model(
    [
        node("MatMul", "x v", "a"), node("MatMul", "x w", "b"), node("Add", "a b", "c"),
        node("Transpose", "c", "d", perm=[1, 0]), node("Neg", "d", "e"),
        node("Neg", "e", "y"),
    ],
    [value("x", [2, 3])], [value("y", [4, 2])],
    {"v": random(3, 4), "w": random(3, 4, seed=1)},
)  # fmt: skip
TRIPLE = model(
    [
        node("MatMul", "x v", "a"), node("MatMul", "x w", "b"), node("MatMul", "x u", "c"),
        node("Neg", "a", "d"), node("Neg", "d", "e"), node("Concat", "e b c", "y", axis=1),
    ],
    [value("x", [2, 3])], [value("y", [2, 9])],
    {"v": random(3, 4), "w": random(3, 4, seed=1), "u": random(3, 1, seed=2)},
)  # fmt: skip
CONVS = model(
    [
        node("Conv", "x v", "a"), node("Conv", "x w", "b"), node("Mul", "a s", "c"),
        node("Relu", "b", "d"), node("Add", "c d", "y"),
    ],
    [value("x", [1, 3, 4, 4])], [value("y", [1, 2, 4, 4])],
    {
        "v": random(2, 3, 1, 1), "w": random(2, 3, 1, 1, seed=1),
        "s": random(2, 1, 1, seed=2),
    },
)  # fmt: skip
TWINS = model(
    [
        node("Neg", "x", "a"), node("Neg", "a", "b"), node("Relu", "b", "c"),
        node("Relu", "x", "d"), node("Add", "c d", "y"),
    ],
    X, Y,
)  # fmt: skip

CASES = {
    "products": (
        PRODUCTS,
        ("parallel-matmul", "matmul-add-is-gemm", "gemm-is-matmul-add", "concat-of-split"),
    ),
    "triple": (TRIPLE, ("parallel-matmul", "concat-of-matmuls", "neg-of-neg")),
    "sums": (SUMS, ("sum-of-matmuls-of-one-input", "transpose-of-matmul", "neg-of-neg")),
    "convs": (CONVS, ("parallel-conv", "scale-after-conv", "add-is-conv-bias")),
    "merging": (TWINS, ("neg-of-neg",)),
}
EACH_CASE = pytest.mark.parametrize(("proto", "names"), CASES.values(), ids=list(CASES))


def closure(
    proto: onnx.ModelProto, rules: Sequence[Rule], source: CostSource
) -> tuple[float, int]:
    """Least cost and number of all graphs that rewriting leads to, one step after another.

    The definition, slowly: at each graph every rule is tried at every tuple of its terms,
    and each result is built as a whole.
    """
    graph = to_graph(read(proto))
    encoded = encode(graph)
    arities = arities_of(encoded.egraph)
    chosen = relevant(rules, {each.op for each in graph.nodes})
    instances = [each for rule in chosen for each in written_out(rule, arities)]
    store = terms.Terms(encoded, source, {}, graph.header.opset)
    first = state.state_of(store, encoded.roots)
    found = {first.roots: first}
    waiting = [first]
    while waiting:
        old = waiting.pop()
        for rule in instances:
            outermost = [next(applications(side)).op for side in rule.lhs]
            places = [[h for h in old.order if store.nodes[h].op == op] for op in outermost]
            for group in itertools.product(*places):
                for new in _results(store, old, rule, group):
                    if new.operators < 2 * first.operators and new.roots not in found:
                        found[new.roots] = new
                        waiting.append(new)
    return min(each.cost for each in found.values()), len(found)


def _results(
    store: terms.Terms, old: state.State, rule: Rule, roots: tuple[int, ...]
) -> Iterator[state.State]:
    reach = state.reach_of(store, old)
    places = [old.place[root] for root in roots]
    if len(set(roots)) < len(roots) or any(
        reach[a] >> b & 1 for a, b in itertools.permutations(places, 2)
    ):
        return
    if store.egraph.evaluated(roots[0]):
        return
    for match in matches(rule, store, roots):
        new = _built(store, rule, match)
        if new is not None and new != roots:
            yield _replaced(store, old, dict(zip(roots, new, strict=True)))


def _built(store: terms.Terms, rule: Rule, match: Match) -> tuple[int, ...] | None:
    if not holds(rule, match, store):
        return None
    try:
        return tuple(store.canonical(each) for each in build(rule, match, store))
    except (ShapeError, SizeError):
        return None


def _replaced(store: terms.Terms, old: state.State, now: dict[int, int]) -> state.State:
    for handle in old.order:
        if handle not in now:
            arguments = store.nodes[handle].arguments
            now[handle] = store.over(handle, tuple(now[each] for each in arguments))
    return state.state_of(store, [now[root] for root in old.roots])


@EACH_CASE
@pytest.mark.parametrize(
    "source",
    [Roofline(), RandomCosts(0), RandomCosts(1)],
    ids=["roofline", "random-0", "random-1"],
)
def test_all_searches_reach_the_same_least_cost(
    proto: onnx.ModelProto, names: tuple[str, ...], source: CostSource
) -> None:
    """Backtracking without bounds, the ILP, and the definition agree on tiny graphs.

    Where a Conv may cost less than a part of it, as with random costs, the ILP can be
    cheaper: an e-graph merges values that no single graph has both of.
    """
    rules = rules_named(*names)
    least, graphs = closure(proto, rules, source)
    found = searched(proto, rules, source)
    assert found.stop == "exhausted"
    assert found.seconds == pytest.approx(least, rel=1e-9)
    (exact,) = run_task(EXACT, to_graph(read(proto)), rules, source, {})
    assert exact.row.cost <= least * (1 + 1e-9)
    if isinstance(source, Roofline):
        assert exact.row.cost == pytest.approx(least, rel=1e-9)
    # A rule that may exchange its two sides is applied in one order only.
    assert 1 < found.graphs <= graphs


@EACH_CASE
def test_nothing_is_lost_by_carrying_over(
    proto: onnx.ModelProto, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that looks for every match anew in every graph sees the same graphs."""
    rules = rules_named(*names)
    quick = searched(proto, rules, RandomCosts(3))
    monkeypatch.setattr(sites.Sites, "_carried", lambda *_: {})
    slow = searched(proto, rules, RandomCosts(3))
    assert (slow.graphs, slow.taken) == (quick.graphs, quick.taken)
    assert slow.seconds == pytest.approx(quick.seconds, rel=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_results_compute_the_same(seed: int, runtime: Runtime) -> None:
    """Whatever the costs make of a random model, its outputs stay."""
    rng = np.random.default_rng(seed)
    proto = random_model(lambda n: int(rng.integers(n)), MAKERS, most=8)
    bounds = Bounds(alpha=1.5, budget=12, seconds=5.0)
    found = searched(proto, RULES, RandomCosts(seed), bounds)
    folded = fold(found.decoded.graph, runtime, found.decoded.constants)
    assert not folded.refused
    result = to_proto(to_model(folded.graph))
    onnx.checker.check_model(result)
    given = feeds(proto, seed)
    for want, got in zip(run(proto, given), run(result, given), strict=True):
        largest = float(np.abs(want).max(initial=0.0))
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-6 + 1e-4 * largest)


def test_the_same_search_twice() -> None:
    """Equal arguments give equal graphs, records aside from their times."""
    rules = rules_named(*CASES["convs"][1])
    one, two = (searched(CONVS, rules, RandomCosts(1)) for _ in range(2))
    assert one.decoded.graph.nodes == two.decoded.graph.nodes
    assert [cost for _, cost in one.record] == [cost for _, cost in two.record]
    assert dataclasses.replace(one, record=(), decoded=two.decoded) == dataclasses.replace(
        two, record=()
    )


def test_records_go_down() -> None:
    """Each entry of the record is cheaper than the one before; the last is the result."""
    found = searched(CONVS, RULES, Roofline(), Bounds(alpha=1.2, budget=50))
    times, costs = zip(*found.record, strict=True)
    assert list(costs) == sorted(set(costs), reverse=True)
    assert list(times) == sorted(times)
    assert (costs[0], costs[-1]) == (found.original_seconds, found.seconds)
    assert found.seconds < found.original_seconds


def test_alpha_one_follows_improvements_only() -> None:
    """What needs a dearer graph on the way is found with a larger alpha only."""
    rules = rules_named("batch-norm-is-affine", "scale-after-conv", "add-is-conv-bias")
    ones = {name: np.ones(2, np.float32) for name in ("g", "h", "m", "n")}
    nodes = [node("Conv", "x w", "a"), node("BatchNormalization", "a g h m n", "y")]
    shapes = [value("x", [1, 2, 4, 4])], [value("y", [1, 2, 4, 4])]
    proto = model(nodes, *shapes, {"w": random(2, 2, 1, 1), **ones})
    narrow = searched(proto, rules, Roofline(), Bounds(alpha=1.0))
    wide = searched(proto, rules, Roofline(), Bounds(alpha=2.0))
    assert (narrow.stop, narrow.graphs) == ("exhausted", 1)
    assert wide.seconds < narrow.seconds
    assert wide.applied == {name.name: 1 for name in rules}


@pytest.mark.parametrize(
    ("bounds", "stop"),
    [(Bounds(budget=0), "budget"), (Bounds(alpha=9.0, seconds=1e-9), "seconds")],
    ids=["budget", "seconds"],
)
def test_ends_with_the_best_so_far(bounds: Bounds, stop: str) -> None:
    """A search that cannot begin returns the original or better, and says why."""
    found = searched(PRODUCTS, RULES, Roofline(), bounds)
    assert found.stop == stop
    assert found.seconds <= found.original_seconds


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"alpha": 0.0}, "alpha must be positive, not 0.0"),
        ({"alpha": math.nan}, "alpha must be positive, not nan"),
        ({"budget": -1}, "budget must be >= 0, not -1"),
        ({"seconds": 0.0}, "seconds must be positive, not 0.0"),
    ],
    ids=str,
)
def test_bounds_are_checked(wrong: dict[str, float], text: str) -> None:
    """Bounds that make no sense are refused."""
    with pytest.raises(UsageError, match=text):
        Bounds(**wrong)  # type: ignore[arg-type]

"""A sample of the fuzzer's 100,000 e-graphs, and the fuzzer itself."""

import pytest

from extraction.fuzz import check_graph, fuzz
from extraction.random_graph import random_egraph


@pytest.mark.parametrize("seed", range(0, 8000, 1000))
def test_nothing_differs_from_brute_force(seed):
    """Each reduction alone, all together, and every extractor, on 1,000 e-graphs a seed."""
    assert list(fuzz(1000, seed, solver_every=100)) == []


def test_random_graphs_repeat():
    """The same seed gives the same e-graph."""
    assert random_egraph(7).nodes == random_egraph(7).nodes
    assert random_egraph(7).nodes != random_egraph(8).nodes


def test_a_planted_fault_is_found(monkeypatch):
    """A reduction that drops too much does not go unnoticed."""
    from extraction import upper_bound

    monkeypatch.setattr(upper_bound, "worthwhile", lambda upper, step: 0.7 * upper)
    found = [
        m for seed in range(150) for m in check_graph(random_egraph(seed), seed, False)
    ]
    assert {mismatch.what for mismatch in found} >= {"expensive", "all"}

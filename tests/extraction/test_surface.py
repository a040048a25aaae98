"""The public surface, and the known figures where the e-graphs are at hand."""

from pathlib import Path

import pytest

import extraction
from extraction import extract, read

GYM = Path(__file__).parents[2].parent / "shared" / "gym"
KEPT = sorted((Path(__file__).parent / "kept").glob("*.json"))


def test_all_is_sorted_and_complete():
    """`__all__` names what `__init__` imports, in order."""
    public = {
        name
        for name, value in vars(extraction).items()
        if not name.startswith("_") and type(value).__name__ != "module"
    }
    assert set(extraction.__all__) == public
    assert extraction.__all__ == sorted(
        extraction.__all__, key=lambda n: (not n.isupper(), n)
    )


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_kept_graphs(path):
    """E-graphs that once went wrong stay right."""
    graph = read(path)
    assert extract(graph).cost == pytest.approx(extract(graph, "exhaustive").cost)


@pytest.mark.skipif(not GYM.is_dir(), reason="the e-graphs are not at hand")
@pytest.mark.parametrize(
    ("name", "cost"),
    [
        ("tensat/vgg_acyclic", 4.866775),
        ("tensat/resnet50_acyclic", 4.415993),
        ("tensat/resnet50", 4.385795),
        ("rover/box_filter_5iteration_egraph", 1819),
        ("rover/mcm_3_7_21_original_9iteration_egraph", 1050),
        ("flexc/fea54919-328c-4f00-aedc-2698d17914b6", 88),
        ("impress/mul512", 136680),
    ],
)
def test_known_optima(name, cost):
    """Proven optima do not change."""
    choice = extract(read(GYM / f"{name}.json.gz"), seconds=60)
    assert choice.status == "optimal"
    assert choice.cost == pytest.approx(cost, rel=1e-6)

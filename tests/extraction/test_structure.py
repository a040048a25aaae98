"""Components, must sets and scaling."""

import pytest

from extraction.facts import Facts
from extraction.scaling import Scale, find_scale
from extraction.scc import strong_components


def test_components_come_children_first():
    """A child's component number is never above its parent's."""
    found = strong_components({0: [1], 1: [2], 2: [1, 3], 3: [], 4: [0, 9]})
    assert found[1] == found[2]
    assert found[3] < found[1] < found[0] < found[4]


def test_components_of_a_long_cycle():
    """Depth is no problem."""
    count = 30_000
    found = strong_components({at: [(at + 1) % count] for at in range(count)})
    assert set(found.values()) == {0}


@pytest.mark.parametrize(
    ("text", "must"),
    [
        ("r: f a b = 1; a: x = 1; b: y = 1", "rab"),
        ("r: f a = 1; r: g b = 1; a: h c = 1; b: h c = 1; c: x = 1", "rc"),
        ("r: f a = 1; a: x = 1; a: g r = 1", "ra"),
        ("r: f a = 1; a: g b = 1; a: x c = 1; b: h a c = 1; c: y = 1", "rac"),
    ],
    ids=["children", "shared below", "cycle", "cycle that cannot be"],
)
def test_must_sets(make, pose, text, must):
    """What every acyclic derivation of the root contains."""
    graph = make(text)
    found = Facts(pose(text)).must
    names = {graph.ids[number] for number in found.classes(found.of_class[0])}
    assert names == set(must)


@pytest.mark.parametrize(
    ("costs", "scale"),
    [
        ([1.0, 2.0, 0.0], Scale(1.0, whole=True)),
        ([64.0, 256.0], Scale(1 / 64, whole=True)),
        ([0.25, 1.5], Scale(4.0, whole=True)),
        ([0.17881600558757782, 0.004863999783992767], Scale(7812.5, whole=True)),
        ([at**0.5 for at in range(30)], Scale()),
        ([1e300, 1.0], Scale()),
        ([], Scale(1.0, whole=True)),
    ],
    ids=["whole", "common factor", "quarters", "float32", "roots", "huge", "none"],
)
def test_scales(costs, scale):
    """Whole multiples of a unit are found through float32 noise."""
    assert find_scale(costs) == scale

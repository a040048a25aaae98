"""Explanations: what changed, and by which rules."""

from __future__ import annotations

import json
from random import Random

import numpy as np
import pytest

from tensat.explain import explain
from tensat.explanation import Explanation
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_read import read
from tensat.optimize import Result, optimize
from tensat.runtime import Runtime
from tests.tensat.model.onnx_models import model, node, value
from tests.tensat.pipeline import RULES, RandomCosts, improved
from tests.tensat.random_models import random_model
from tests.tensat.random_nodes import MAKERS
from tests.tensat.small_search import CONV, FAST


@pytest.fixture(scope="module")
def result() -> Result:
    """A convolution and its norm that become one, and a Relu too many."""
    return optimize(CONV, FAST)


@pytest.fixture(scope="module")
def found(result: Result) -> Explanation:
    """What is said about it."""
    return result.explain()


def names(explanation: Explanation, numbers: tuple[int, ...], side: str) -> list[str]:
    """Names of nodes of one side."""
    return [getattr(explanation, side)[number].name for number in numbers]


def test_new_nodes_have_chains(found: Explanation) -> None:
    """The one new node is the convolution; three rules made it, one after the other."""
    (new,) = found.new
    assert found.after[new.node].operator == "Conv"
    assert names(found, new.others, "before") == ["conv", "norm"]
    assert found.rules(new) == (
        "batch-norm-is-affine", "scale-after-conv", "add-is-conv-bias",
    )  # fmt: skip


def test_gone_nodes_say_what_became_of_them(found: Explanation) -> None:
    """Absorbed, replaced by an equal new node, or by an equal old one."""
    gone = {found.before[each.node].name: each for each in found.gone}
    assert set(gone) == {"conv", "norm", "again"}
    assert gone["conv"].why == "it became part of other nodes"
    assert found.rules(gone["conv"]) == ("scale-after-conv",)
    assert gone["norm"].why.endswith("computes the same")
    assert names(found, gone["again"].others, "after") == ["relu"]
    assert found.rules(gone["again"]) == ("relu-of-relu",)


def test_links_name_both_sides(found: Explanation) -> None:
    """Nodes of the model by their names, new ones by operator and shape."""
    first = found.links[found.new[0].chain[0]]
    assert first.before == ("BatchNormalization norm",)
    assert first.after == ("Add [1, 4, 16, 16]",)
    assert first.proof == found.proofs["batch-norm-is-affine"]


def test_the_text_tells_all(found: Explanation) -> None:
    """Counts, rules, new and gone nodes."""
    text = str(found)
    assert "6 nodes before, 4 after: 3 kept, 3 gone, 1 new." in text
    assert "in place of Conv conv, BatchNormalization norm" in text
    assert "because of relu-of-relu" in text


def test_the_json_tells_all(found: Explanation) -> None:
    """Plain values only."""
    document = json.loads(found.to_json())
    assert document["fired"] == dict(found.fired)
    assert len(document["links"]) == len(found.links)


def test_equal_nodes_are_computed_once() -> None:
    """A node that another one equals needs no rule to go."""
    nodes = [node("Exp", "x", "a"), node("Exp", "x", "b"), node("Mul", "a b", "y")]
    proto = model(nodes, [value("x", [64, 64])], [value("y", [64, 64])])
    found = optimize(proto, FAST).explain()
    gone = [each for each in found.gone if found.before[each.node].operator == "Exp"]
    assert any("computed once" in each.why and not each.chain for each in gone)


def test_a_chain_goes_over_equal_arguments() -> None:
    """Two Relus with a product by one between them meet only after the product went."""
    nodes = [node("Relu", "x", "a"), node("Mul", "a one", "b"), node("Relu", "b", "y")]
    proto = model(
        nodes, [value("x", [64, 64])], [value("y", [64, 64])],
        {"one": np.ones((), np.float32)},
    )  # fmt: skip
    found = optimize(proto, FAST).explain()
    (last,) = [each for each in found.gone if found.before[each.node].name == "y"]
    assert found.rules(last) == ("mul-by-one", "relu-of-relu")


def test_no_plan_no_nodes() -> None:
    """A model that cannot run is kept, and the explanation is its reason."""
    proto = model(
        [node("Reshape", "x s", "y")], [value("x", [4])], [value("y", [3])],
        {"s": np.array([3])},
    )  # fmt: skip
    result = optimize(proto, FAST)
    assert str(result.explain()).startswith("The original is kept")


@pytest.mark.parametrize("seed", range(8))
def test_every_change_has_its_reason(seed: int) -> None:
    """Whatever is chosen: sides add up, new nodes have chains of rules that fired."""
    proto = random_model(Random(seed).randrange, MAKERS)
    with Runtime() as runtime:
        _, plan = improved(proto, runtime, RandomCosts(seed))
    found = explain(to_graph(read(proto)), plan, True, "")
    assert len(found.before) - len(found.gone) == len(found.after) - len(found.new)
    for change in found.new:
        assert change.chain, found.after[change.node]
    for change in (*found.new, *found.gone):
        assert change.why or change.others or change.chain
        assert list(change.chain) == list(dict.fromkeys(change.chain))
    for link in found.links:
        assert found.fired[link.rule] > 0
        assert link.before


@pytest.mark.parametrize("seed", [21, 25, 120, 133, 175, 181, 252, *range(300, 306)])
def test_the_rules_named_are_enough(seed: int) -> None:
    """With no other rules than those of the chains, the same graph is found again."""
    proto = random_model(Random(seed).randrange, MAKERS)
    with Runtime() as runtime:
        _, plan = improved(proto, runtime, RandomCosts(seed))
        used = explain(to_graph(read(proto)), plan, True, "").used
        rules = [rule for rule in RULES if rule.name in used]
        _, again = improved(proto, runtime, RandomCosts(seed), rules=rules)
    assert again.choice.cost <= plan.choice.cost * (1 + 1e-9)

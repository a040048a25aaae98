"""Explanations: what changed, by which rules, and why a rule did not apply."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
import typer
from click.testing import Result as CliResult
from typer.testing import CliRunner

from extraction.egraph_json import read as read_egraph
from rulesets.rule import TIERS
from rulesets.store import load
from tensat.cli import app
from tensat.egraph_export import egraph_json, egraph_svg
from tensat.errors import UsageError
from tensat.explain import explain
from tensat.explanation import Explanation
from tensat.model.onnx_import import to_graph
from tensat.model.onnx_read import read
from tensat.optimize import Result, named, optimize, select_rules
from tensat.options import Options
from tensat.runtime import Runtime
from tensat.why_not import APPLIED, why_not
from tests.tensat.model.onnx_models import model, node, random, value
from tests.tensat.pipeline import RULES, RandomCosts, improved
from tests.tensat.random_models import random_model
from tests.tensat.random_nodes import MAKERS

OWN = Path(__file__).parents[2] / "examples" / "own_operator"

FAST = Options(cost="roofline", measure=False, seconds=20.0)

IMAGE = [1, 4, 16, 16]
CONV = model(
    [
        node("Conv", "x w", "a", pads=[1] * 4, name="conv"),
        node("BatchNormalization", "a s b m v", "c", name="norm"),
        node("Relu", "c", "d", name="relu"),
        node("Relu", "d", "e", name="again"),
        node("Add", "e x", "y", name="sum"),
    ],
    [value("x", IMAGE)],
    [value("y", IMAGE)],
    {
        "w": random(4, 4, 3, 3), "s": random(4), "b": random(4), "m": random(4),
        "v": np.abs(random(4)) + 1,
    },
)  # fmt: skip


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


# -- why not -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("transpose-of-transpose", "there is no Transpose, nor did a rule make one"),
        ("relu-of-clip", "there is no Clip"),
        ("relu-of-relu", APPLIED),
        ("conv-bias-is-add[Conv]", APPLIED),
        ("add-zero", "not true: every element of the constant"),
        ("pointwise-after-conv", "nothing looks like (Conv (Conv ?x ?v) ?w)"),
    ],
    ids=["operator", "other operator", "fired", "variant", "condition", "arrangement"],
)
def test_why_not(result: Result, rule: str, text: str) -> None:
    """The text says how far the rule got."""
    assert result.found is not None
    answer = str(why_not(*result.found, named(load(), rule)))
    assert text in answer
    assert answer.startswith(rule)


def test_why_not_names_places_and_values() -> None:
    """A Conv of groups is not a matter of attributes alone; the place has its name."""
    nodes = [
        node("Relu", "x", "a"),
        node("Conv", "a w", "b", name="first", strides=[2, 2]),
        node("Conv", "a v", "c", name="second"),
        node("GlobalAveragePool", "b", "d"), node("GlobalAveragePool", "c", "e"),
        node("Add", "d e", "y"),
    ]  # fmt: skip
    proto = model(
        nodes, [value("x", [1, 4, 9, 9])], [value("y", [1, 4, 1, 1])],
        {"w": random(4, 4, 1, 1), "v": random(4, 4, 1, 1, seed=1)},
    )  # fmt: skip
    result = optimize(proto, FAST)
    assert result.found is not None
    answer = why_not(*result.found, named(load(), "parallel-conv"))
    assert answer.fired == 0
    (obstacle,) = [each for each in answer.obstacles if "attributes of Conv" in each.text]
    assert any("Conv second has" in place for place in obstacle.places.values())


# -- options -----------------------------------------------------------------------------


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


# -- the e-graph as a file ---------------------------------------------------------------


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


# -- commands ----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model."""
    monkeypatch.chdir(tmp_path)
    onnx.save(CONV, "in.onnx")
    return tmp_path


def tensat(*arguments: str, stdin: bytes = b"") -> CliResult:
    """Run a command in this process."""
    cost = ("--cost", "roofline")
    return CliRunner().invoke(app, [*arguments, *cost], input=stdin)


def test_explain_writes_nothing(folder: Path) -> None:
    """A text on standard output, no file."""
    ran = tensat("explain", "in.onnx")
    assert ran.exit_code == 0, ran.output
    assert "add-is-conv-bias" in ran.stdout
    assert [path.name for path in folder.iterdir()] == ["in.onnx"]


def test_explain_reads_standard_input(folder: Path) -> None:
    """A dash reads the model from there."""
    ran = tensat("explain", "-", stdin=Path("in.onnx").read_bytes())
    assert ran.exit_code == 0, ran.output
    assert "add-is-conv-bias" in ran.stdout


def test_explain_files(folder: Path) -> None:
    """JSON and a page."""
    ran = tensat("explain", "in.onnx", "--json", "e.json", "--html", "e.html")
    assert ran.exit_code == 0, ran.output
    assert json.loads(Path("e.json").read_text())["improved"] is True
    assert Path("e.html").read_text().startswith("<!doctype html>")


def test_the_report_is_a_page(folder: Path) -> None:
    """Where its file's name says so."""
    arguments = ("in.onnx", "out.onnx", "--no-measure", "--report", "report.html", "-q")
    ran = tensat("optimize", *arguments)
    assert ran.exit_code == 0, ran.output
    page = Path("report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "scale-after-conv" in page


def test_explain_only_proved(folder: Path) -> None:
    """The shipped rules are proved: nothing changes."""
    ran = tensat("explain", "in.onnx", "--only-proved")
    assert ran.exit_code == 0, ran.output
    assert "proved for all sizes" in ran.stdout
    assert "not proved" not in ran.stdout


def test_explain_why_not(folder: Path) -> None:
    """A rule that is left out is followed all the same."""
    arguments = ("--why-not", "relu-of-relu", "--skip", "relu-of-relu")
    ran = tensat("explain", "in.onnx", *arguments)
    assert ran.exit_code == 0, ran.output
    assert "relu-of-relu changed the e-graph 0 times. It was left out" in ran.stdout
    assert "it would apply" in ran.stdout


def test_explain_knows_what_the_user_brings(folder: Path) -> None:
    """Own operators and rules change what is found, and are explained and followed."""
    for name in ("softsign.py", "softsign.toml", "model.py"):
        shutil.copy(OWN / name, folder)
    subprocess.run([sys.executable, "model.py"], cwd=folder, check=True)
    own = ("--operators", "softsign.py", "--rules", "softsign.toml")
    ran = tensat("explain", "model.onnx", *own)
    assert ran.exit_code == 0, ran.output
    assert "+ Softsign" in ran.stdout
    assert "softsign-from-parts" in ran.stdout
    ran = tensat("explain", "model.onnx", *own, "--why-not", "softsign-from-parts")
    assert ran.exit_code == 0, ran.output
    assert "softsign-from-parts changed the e-graph 1 time" in ran.stdout


@pytest.mark.parametrize("name", ["explain", "egraph"])
def test_they_search_as_optimize_does(name: str) -> None:
    """What steers the search of one command steers that of the others."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    options = [{each.name for each in commands[n].params} for n in ("optimize", name)]
    results = {"source", "target", "for_target", "measure", "report", "threads", "quiet"}
    assert options[0] - options[1] == results


def test_egraph_files(folder: Path) -> None:
    """JSON and a picture."""
    ran = tensat("egraph", "in.onnx", "--json", "e.json", "--svg", "e.svg")
    assert ran.exit_code == 0, ran.output
    assert read_egraph("e.json").nodes
    assert Path("e.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["explain", "in.onnx", "--why-not", "x"], 2, "no rule is called 'x'"),
        (["explain", "in.onnx", "--skip", "x"], 2, "no rule is called 'x'"),
        (["explain", "in.onnx", "--html", "no/x.html"], 2, "there is no folder 'no'"),
        (["explain", "none.onnx"], 3, "none.onnx"),
        (["explain", "-"], 3, "standard input is no ONNX model"),
        (["egraph", "in.onnx"], 2, "nothing to write; possible: --json FILE"),
        (["egraph", "in.onnx", "--svg", "."], 2, "is a folder"),
    ],
    ids=["why-not", "skip", "folder", "missing", "stdin", "nothing", "is folder"],
)
def test_bad_arguments(folder: Path, arguments: list[str], code: int, text: str) -> None:
    """One line and an exit code."""
    ran = tensat(*arguments, stdin=b"not a model")
    assert ran.exit_code == code, ran.output
    assert text in ran.stderr
    assert len(ran.stderr.splitlines()) == 1

"""The report as a page: what is in it, where things are drawn, what a browser shows."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tensat.explanation import KEPT, NEW, Change, Explanation, Link, NodeView
from tensat.html_report import html_report, operator_costs, page_data
from tensat.optimize import Result, optimize
from tensat.options import Options
from tensat.report import ModelSummary, Report
from tensat.report_page.layered_layout import ascending, lay_out
from tensat.report_page.picture import folded, picture
from tests.tensat.model.onnx_models import model, node, random, value

NAUGHTY = "</script><script>document.title='broken'</script>&<b>"

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium here")

MOST_BYTES = 5_000_000
MOST_MILLISECONDS = 3_000


@pytest.fixture(scope="module")
def result() -> Result:
    """A small model that gets better, with a name that is hostile to pages."""
    proto = model(
        [
            node("Neg", "x", "a", name=NAUGHTY), node("Neg", "a", "b"),
            node("MatMul", "b w", "y"),
        ],
        [value("x", ["n", 300])], [value("y", ["n", 40])], {"w": random(300, 40)},
    )  # fmt: skip
    return optimize(proto, Options(cost="roofline", measure=False))


def large(count: int, seed: int = 0) -> Explanation:
    """An explanation of two graphs of many nodes, a tenth of them changed."""
    choose = Random(seed)
    sides = []
    for state in ("gone", NEW):
        nodes = [NodeView("Input", "x", "float32[1, 3, n]", "", (), 0, 0.0, KEPT)]
        for index in range(1, count):
            back = choose.choice([1, 1, 1, 1, 2, 3, 12])
            inputs = tuple({max(0, index - 1), max(0, index - back)})
            changed = choose.random() < 0.1
            nodes.append(
                NodeView(
                    choose.choice(["Conv", "Relu", "BatchNormalization", "Add"]),
                    f"stage/block.{index}/node_{index}", f"float32[1, {index}, 56, 56]",
                    "pads=[1, 1, 1, 1] strides=[2, 2]", inputs, 2, choose.random() * 1e-3,
                    state if changed else KEPT,
                )
            )  # fmt: skip
        sides.append(tuple(nodes))
    links = tuple(
        Link("some-rule", "proved", (f"Conv {i}",), ("Conv",)) for i in range(900)
    )
    changes = [
        tuple(
            Change(i, (min(i, count - 1),), tuple(choose.sample(range(900), 6)))
            for i, each in enumerate(side)
            if each.state != KEPT
        )
        for side in sides
    ]
    return Explanation(
        True, "Improved.", {"some-rule": 900}, {"some-rule": "proved"}, *sides, links,
        changes[1], changes[0],
    )  # fmt: skip


def report() -> Report:
    """A report of nothing in particular."""
    size = ModelSummary({"Conv": 10}, 10, 1000, 0.02, 0.03)
    return Report(True, "Improved.", size, size, stages={"read": 0.1, "saturate": 2.0})


# -- what is in it -----------------------------------------------------------------------


def test_the_page_needs_no_network(result: Result) -> None:
    """No address but that of SVG itself, and a policy that forbids any."""
    page = html_report(result.report, result.explain(), "model.onnx")
    assert set(re.findall(r"https?://[^\s\"'<]+", page)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in page
    assert not re.search(r"<(link|img|iframe)\b|@import|url\(", page)


def test_names_are_never_markup(result: Result) -> None:
    """What a model calls its nodes ends no element; it is there all the same."""
    page = html_report(result.report, result.explain(), NAUGHTY)
    assert page.count("</script>") == 2
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["title"] == NAUGHTY


def test_the_data_is_complete(result: Result) -> None:
    """Both graphs, growth, stages, rules and the extraction's gap."""
    explanation = result.explain()
    data = page_data(result.report, explanation, "m")
    assert len(data["before"]["nodes"]) == len(explanation.before)
    assert len(data["growth"]) >= 2
    assert "extract" in dict(data["stages"])
    assert ["neg-of-neg", 1, 1] in [row[:3] for row in data["rules"]]
    assert ["extraction", "proved optimal", "ilp, optimal"] in data["facts"]


def test_operator_costs(result: Result) -> None:
    """Numbers and seconds of both sides, the dearest operator first."""
    explanation = result.explain()
    rows = operator_costs(explanation)
    assert [row[:3] for row in rows if row[0] == "Neg"] == [["Neg", 2, 0]]
    dearest = [max(row[3:]) for row in rows]
    assert dearest == sorted(dearest, reverse=True)
    total = sum(each.seconds for each in explanation.before)
    assert sum(row[3] for row in rows) == pytest.approx(total)


def test_a_report_without_a_plan() -> None:
    """What failed early still makes a page."""
    page = html_report(report(), Explanation(False, "The original is kept."), "m")
    assert "The original is kept" not in page.split("<script")[0]
    assert '"before":{"nodes":[]' in page


# -- where things are drawn --------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_layers(seed: int) -> None:
    """Edges go down, boxes do not overlap, routes begin and end at their boxes."""
    choose = Random(seed)
    count = 40
    sizes = [(choose.randrange(20, 120), choose.randrange(10, 60)) for _ in range(count)]
    edges = list({(choose.randrange(i), i) for i in range(1, count) for _ in range(2)})
    layout = lay_out(sizes, edges)
    boxes = [
        (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
        for (w, h), (x, y) in zip(sizes, layout.centres, strict=True)
    ]
    for first, last in edges:
        assert boxes[first][3] < boxes[last][1]
    for a, b in itertools.combinations(boxes, 2):
        apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        assert apart
    for (first, last), route in zip(edges, layout.routes, strict=True):
        assert route[0][1] == pytest.approx(boxes[first][3])
        assert route[-1][1] == pytest.approx(boxes[last][1])
    assert all(box[0] >= -1e-6 and box[2] <= layout.width + 1e-6 for box in boxes)


def test_layers_of_a_cycle() -> None:
    """An e-graph may have cycles: some edge goes up."""
    layout = lay_out([(10, 10)] * 3, [(0, 1), (1, 2), (2, 0)])
    assert len({y for _, y in layout.centres}) == 3
    assert layout.routes[2][0][1] > layout.routes[2][-1][1]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_layers_of_nearly_nothing(count: int) -> None:
    """No nodes, and nodes without edges."""
    layout = lay_out([(30, 10)] * count, [])
    assert len(layout.centres) == count
    assert layout.height == (10 if count else 0)


def test_ascending() -> None:
    """Values out of order meet at their mean, by weight."""
    assert ascending([1, 4, 2, 9], [1, 1, 1, 1]) == [1, 3, 3, 9]
    assert ascending([4, 1], [3, 1]) == [3.25, 3.25]


@pytest.mark.parametrize("seed", range(5))
def test_folding_keeps_the_order(seed: int) -> None:
    """Every node is in one box, changed ones alone, and no box depends on itself."""
    nodes = large(80, seed).before
    groups = folded(nodes, {7})
    assert sorted(itertools.chain(*groups)) == list(range(len(nodes)))
    home = {index: at for at, group in enumerate(groups) for index in group}
    for index, each in enumerate(nodes):
        if each.state != KEPT or index in (0, 7):
            assert groups[home[index]] == (index,)
    below: dict[int, set[int]] = {at: set() for at in range(len(groups))}
    for index, each in enumerate(nodes):
        for source in each.inputs:
            if home[source] != home[index]:
                below[home[index]].add(home[source])
    done: set[int] = set()
    while len(done) < len(groups):
        ready = {at for at in below if at not in done and below[at] <= done}
        assert ready, "a cycle of boxes"
        done |= ready


def test_folding_saves_boxes() -> None:
    """A graph with few changes gets small."""
    drawn = picture(large(300).before)
    assert len(drawn["folded"]["boxes"]) < len(drawn["whole"]["boxes"])


# -- in a browser ------------------------------------------------------------------------


def _browse(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    assert BROWSER is not None
    return subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            f"--user-data-dir={folder / 'profile'}", *arguments,
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def _opened(page: str, folder: Path, mark: str = "") -> str:
    """The page's elements after its script ran."""
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return _browse("--dump-dom", f"file://{path}{mark}", folder=folder).stdout


@needs_browser
def test_a_browser_draws_it(result: Result, tmp_path: Path) -> None:
    """Boxes, tables, and the name of the model as plain text."""
    page = html_report(result.report, result.explain(), NAUGHTY)
    drawn = _opened(page, tmp_path)
    assert "data-ready" in drawn
    assert drawn.count('class="box g"') == 2
    assert '<h1 id="title">&lt;/script&gt;' in drawn
    assert "<title>broken" not in drawn
    assert "neg-of-neg" in drawn


@needs_browser
def test_a_click_explains(tmp_path: Path) -> None:
    """The first change is chosen, its partner marked, its chain told."""
    drawn = _opened(html_report(report(), large(40, seed=2), "m"), tmp_path, "#first")
    assert 'class="box n chosen"' in drawn
    assert "partner" in drawn
    assert "Because of 6 applications of rules" in drawn


@needs_browser
@pytest.mark.slow
def test_a_thousand_nodes(tmp_path: Path) -> None:
    """A page of moderate size that is soon there, and not empty to the eye."""
    page = html_report(report(), large(1000), "large.onnx")
    assert len(page.encode()) < MOST_BYTES
    drawn = _opened(page, tmp_path)
    found = re.search(r'data-ready="(\d+)"', drawn)
    assert found is not None
    assert int(found[1]) < MOST_MILLISECONDS
    shot = tmp_path / "shot.png"
    _browse(
        f"--screenshot={shot}", "--window-size=1500,1100",
        f"file://{tmp_path / 'report.html'}", folder=tmp_path,
    )  # fmt: skip
    assert shot.stat().st_size > 40_000


def _values(data: Any) -> int:
    """How many values a nested list has."""
    return sum(map(_values, data)) if isinstance(data, list) else 1


def test_lines_are_flat() -> None:
    """A line is two box numbers and pairs of coordinates."""
    drawn = picture(large(50).before)["whole"]
    assert all(len(line) % 2 == 0 and len(line) >= 6 for line in drawn["lines"])
    assert _values(drawn["boxes"]) == 5 * 50

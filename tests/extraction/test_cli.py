"""The command line and the bench."""

import json
import math

import pytest

from extraction import read, write
from extraction.bench import find_files, run, summarize, to_line
from extraction.cli import main
from extraction.random_graph import random_egraph


@pytest.fixture
def folder(tmp_path, make):
    """Two good e-graphs and a broken one."""
    suite = tmp_path / "suite"
    suite.mkdir()
    write(
        make("r: f a b = 0; a: x s = 1; a: y = 6; b: x s = 1; b: y = 6; s: z = 9"),
        suite / "a.json",
    )
    write(make("r: f = 1; r: g = 2"), suite / "b.json.gz")
    (suite / "c.json").write_text("{}")
    return suite


def test_one_graph_as_json(folder, capsys):
    """`--json` prints the choice."""
    assert main([str(folder / "a.json"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["status"], document["cost"], document["gap"]) == ("optimal", 11.0, 0.0)
    assert document["choice"]["s"] == {"node": 5, "op": "z"}


def test_one_graph_as_text(folder, capsys):
    """Without it, a few lines."""
    assert main([str(folder / "b.json.gz"), "--method", "greedy"]) == 0
    assert "cost     1\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["c.json"], "'nodes' is missing"),
        (["d.json"], "No such file"),
        (["a.json", "--method", "magic"], "'magic' was asked for"),
        (["a.json", "--root", "q"], "root 'q' has no e-node"),
        (["bench", "empty"], "no .json or .json.gz file"),
    ],
    ids=["malformed", "missing", "method", "root", "no files"],
)
def test_faults_are_one_line(folder, capsys, monkeypatch, arguments, text):
    """A fault of the input is one line on standard error and exit code 2."""
    monkeypatch.chdir(folder)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert text in error
    assert error.count("\n") == 1


def test_lost_roots_are_told(tmp_path, capsys):
    """Roots that unions made obsolete are named on standard error."""
    nodes = {"3": {"op": "x", "eclass": "3", "children": []}}
    path = tmp_path / "g.json"
    path.write_text(json.dumps({"nodes": nodes, "root_eclasses": ["3", "1"]}))
    assert main([str(path)]) == 0
    assert "roots ['1'] were merged" in capsys.readouterr().err


def test_bench_writes_lines_and_a_plot(folder, tmp_path, capsys):
    """One line per file, errors included, a summary and a picture."""
    out, plot = tmp_path / "out.jsonl", tmp_path / "out.svg"
    code = main(
        ["bench", str(folder), "--seconds", "5", "--out", str(out), "--plot", str(plot)]
    )
    assert code == 1
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["status"] for line in lines] == ["optimal", "optimal", "error"]
    assert "'nodes' is missing" in lines[2]["error"]
    assert "<svg" in plot.read_text()
    assert "suite" in capsys.readouterr().out


def test_bench_results(folder):
    """Results count what was proven and what beats greedy."""
    results = list(run(find_files([folder]), seconds=5.0))
    assert [row[:4] for row in summarize(results)] == [("suite", 3, 2, 1), ("all", 3, 2, 1)]
    assert math.isnan(results[2].cost)
    assert json.loads(to_line(results[0]))["greedy"] == 12.0
    assert find_files([folder / "a.json"]) == [folder / "a.json"]


def test_fuzz_and_methods(capsys):
    """Both commands print what they did."""
    assert main(["fuzz", "--count", "20", "--seed", "5"]) == 0
    assert "20 e-graphs from seed 5: 0 mismatches" in capsys.readouterr().out
    assert main(["methods"]) == 0
    assert "ilp" in capsys.readouterr().out


def test_written_files_are_read(tmp_path):
    """Bench files may come from `write`."""
    write(random_egraph(1), tmp_path / "x.json")
    assert read(tmp_path / "x.json").roots == tuple(map(str, random_egraph(1).roots))

"""Reading and writing JSON."""

import gzip
import json

import pytest

from extraction import (
    EGraph,
    FormatError,
    GraphError,
    MissingRootError,
    extract,
    read,
    write,
)
from extraction.egraph_json import document_of, parse
from extraction.random_graph import random_egraph

GOOD = {
    "nodes": {
        "r.0": {"op": "f", "eclass": "r", "children": ["a.0", "a.1"], "cost": 2.0},
        "a.0": {"op": "x", "eclass": "a", "children": []},
        "a.1": {"op": "y", "eclass": "a", "children": [], "cost": 5},
    },
    "root_eclasses": ["r"],
}


def test_children_stand_for_their_classes():
    """Children are node names; a missing cost is 1."""
    graph = parse(GOOD)
    assert graph.nodes[0].children == ("a", "a")
    assert [node.cost for node in graph.nodes] == [2.0, 1.0, 5.0]


@pytest.mark.parametrize("name", ["g.json", "g.json.gz"])
def test_plain_and_gzip(tmp_path, name):
    """Both forms are read whatever the file is called, and written by suffix."""
    path = tmp_path / name
    write(parse(GOOD), path)
    assert path.read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
    other = tmp_path / "other.dat"
    other.write_bytes(path.read_bytes())
    assert extract(read(other)).cost == 3.0


@pytest.mark.parametrize("seed", range(20))
def test_writing_keeps_the_optimum(seed):
    """What is written and read again has the same least cost."""
    graph = random_egraph(1000 + seed)
    try:
        cost = extract(graph, "exhaustive").cost
    except GraphError:
        pytest.skip("roots underivable")
    again = parse(json.loads(json.dumps(document_of(graph))))
    assert extract(again, "exhaustive").cost == pytest.approx(cost)


def test_explicit_roots_replace_the_files():
    """Egglog's files come without roots."""
    document = {"nodes": GOOD["nodes"], "root_eclasses": []}
    assert parse(document, roots=["a"]).roots == ("a",)
    with pytest.raises(MissingRootError, match="no roots"):
        parse(document)


def _changed(**fields: object) -> dict[str, object]:
    nodes = {name: dict(node) for name, node in GOOD["nodes"].items()}
    nodes["a.1"].update(fields)
    return {"nodes": nodes, "root_eclasses": ["r"]}


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ([], "a list was found; an object with 'nodes'"),
        ({}, "'nodes' is missing; found nothing"),
        ({"nodes": []}, "'nodes' is \\[\\]; a dict is needed"),
        ({"nodes": {}}, "'root_eclasses' is missing; found 'nodes'"),
        ({"nodes": {"n": 3}, "root_eclasses": []}, "node 'n': a int was found"),
        (_changed(children=["q"]), "node 'a.1': child 'q' is no node"),
        (_changed(children=[["q"]]), "node 'a.1': child \\['q'\\] is no node"),
        (_changed(children="q"), "node 'a.1': children is 'q'"),
        (_changed(cost="dear"), "node 'a.1': cost is 'dear'; a number"),
        (_changed(op=None), "node 'a.1': 'op' is None; a str"),
        (_changed(eclass=None), "node 'a.1': 'eclass' is None"),
    ],
)
def test_malformed_documents_say_what_and_where(document, text):
    """The text names the node, what was found and what is needed."""
    with pytest.raises(FormatError, match=text):
        parse(document)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe\x00", "neither gzip nor text"),
        (gzip.compress(b"{}" * 99)[:20], "does not unpack"),
    ],
    ids=["cut", "binary", "cut gzip"],
)
def test_malformed_files_are_named(tmp_path, data, text):
    """The text starts with the file's path."""
    path = tmp_path / "broken.json"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=rf"broken.json: .*{text}"):
        read(path)


def _numbered(*roots: str) -> dict[str, object]:
    nodes = {
        "9": {"op": "f", "eclass": "9", "children": ["3"]},
        "3": {"op": "x", "eclass": "3", "children": []},
    }
    return {"nodes": nodes, "root_eclasses": list(roots)}


@pytest.mark.parametrize(
    ("roots", "kept"),
    [(("3", "5"), ("3",)), (("5",), ("9",))],
    ids=["one left", "none left"],
)
def test_roots_lost_in_unions(roots, kept):
    """A gap in the numbering is dropped, or gives way to the e-classes nobody uses."""
    assert parse(_numbered(*roots)).roots == kept
    with pytest.raises(MissingRootError, match="root '5' has no e-node"):
        parse(_numbered(*roots), strict=True)


@pytest.mark.parametrize("root", ["12", "q"])
def test_other_unknown_roots_are_errors(root):
    """A number beyond the numbering, or a name, was never an e-class."""
    with pytest.raises(MissingRootError, match=f"root '{root}' has no e-node"):
        parse(_numbered(root))


def test_document_leaves_out_what_cannot_be_chosen(make):
    """E-nodes of infinite cost or over an e-class without e-nodes are not written."""
    graph = make("r: f = 1; r: g = inf; r: h q = 1")
    assert list(document_of(graph)["nodes"]) == ["r__0"]
    assert isinstance(parse(document_of(graph)), EGraph)

"""Read and write e-graphs as JSON, gzip too.

Two dialects share one shape, `{"nodes": {id: {op, eclass, children, cost}}, …}`, where
children are e-*node* identifiers that stand for their e-class:

- extraction-gym and egraph-serialize: `root_eclasses` names the roots;
- egglog's own serialization: the roots may be missing or empty, so the caller gives them.

Source: the README files of the two formats' projects.
"""

import gzip
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from extraction.egraph import ClassId, EGraph, ENode
from extraction.errors import FormatError

GZIP_MAGIC = b"\x1f\x8b"


def read(path: str | Path, roots: Iterable[ClassId] | None = None) -> EGraph:
    """Read an e-graph from a JSON file, compressed or not.

    Args:
        path: The file.
        roots: Root e-classes; those of the file when left out.

    Raises:
        FormatError: The file is not a serialized e-graph.
        GraphError: Its costs or roots are refused by `EGraph`.
    """
    raw = Path(path).read_bytes()
    try:
        text = gzip.decompress(raw) if raw.startswith(GZIP_MAGIC) else raw
        document = json.loads(text)
    except (OSError, EOFError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FormatError(f"{path}: not JSON, plain or gzip: {error}") from error
    return parse(document, str(path), roots)


def parse(
    document: object, where: str = "document", roots: Iterable[ClassId] | None = None
) -> EGraph:
    """Make an e-graph from a parsed JSON document.

    Args:
        document: What `json.load` returned.
        where: A name for error texts.
        roots: Root e-classes; those of the document when left out.

    Raises:
        FormatError: Something is missing or of another type; the text says where.
    """
    nodes = _field(document, "nodes", dict, where)
    class_of = {
        name: _field(node, "eclass", (str, int), f"{where}: node {name!r}")
        for name, node in nodes.items()
    }
    enodes = [_enode(name, node, class_of, where) for name, node in nodes.items()]
    if roots is None:
        roots = _field(document, "root_eclasses", list, where)
    return EGraph(enodes, roots)


def _enode(name: str, node: Any, class_of: dict[str, Any], where: str) -> ENode:
    at = f"{where}: node {name!r}"
    children = node.get("children", ())
    if not isinstance(children, list | tuple):
        raise FormatError(f"{at}: children is {children!r}; a list of node names is needed")
    try:
        below = tuple([class_of[child] for child in children])
    except (KeyError, TypeError) as error:
        raise FormatError(
            f"{at}: child {error.args[0]!r} is no node; children name other nodes"
        ) from error
    cost = node.get("cost", 1.0)
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        raise FormatError(f"{at}: cost is {cost!r}; a number is needed")
    return ENode(_field(node, "op", str, at), class_of[name], below, float(cost))


def _field(holder: Any, key: str, kind: type | tuple[type, ...], where: str) -> Any:
    if not isinstance(holder, dict) or key not in holder:
        found = sorted(holder)[:5] if isinstance(holder, dict) else type(holder).__name__
        raise FormatError(f"{where}: {key!r} is missing; found {found}")
    if not isinstance(holder[key], kind):
        raise FormatError(f"{where}: {key!r} is {holder[key]!r:.60}; {kind} is needed")
    return holder[key]


def document_of(graph: EGraph) -> dict[str, Any]:
    """Return the JSON document of an e-graph; e-node names are `<e-class>__<position>`.

    Infinite costs are left out with their e-nodes, e-classes become strings.
    """
    kept = [n for n, node in enumerate(graph.nodes) if node.cost < math.inf]
    first = {number: members[0] for number, members in enumerate(graph.members) if members}
    name = {n: f"{graph.nodes[n].eclass}__{n}" for n in kept}
    nodes = {}
    for n in kept:
        enode = graph.nodes[n]
        numbers = [graph.number_of[child] for child in enode.children]
        if all(number in first for number in numbers):
            nodes[name[n]] = {
                "op": enode.op,
                "children": [name[first[number]] for number in numbers],
                "eclass": str(enode.eclass),
                "cost": enode.cost,
            }
    return {"nodes": nodes, "root_eclasses": [str(root) for root in graph.roots]}


def write(graph: EGraph, path: str | Path) -> None:
    """Write an e-graph as JSON; compressed when the name ends in `.gz`."""
    data = json.dumps(document_of(graph), indent=1).encode()
    if str(path).endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    Path(path).write_bytes(data)

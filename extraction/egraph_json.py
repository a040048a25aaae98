"""Read and write e-graphs as JSON, gzip too.

Two dialects share one shape, `{"nodes": {id: {op, eclass, children, cost}}, …}`, where
children are e-*node* identifiers that stand for their e-class:

- extraction-gym and egraph-serialize: `root_eclasses` names the roots;
- egglog's own serialization: the roots may be missing or empty, so the caller gives them.

Some files (all of lean-egg) name roots by numbers that later unions made obsolete: the
e-classes are numbered, and the root's number is a gap in that numbering. Which e-class took
it in, the file does not say. While another root remains, such a root is left out (both
sides of a proved equation are one e-class); when none remains, the e-classes that nobody
uses are the roots, since one of them contains it. `lost_roots` tells; `strict` refuses.
Any other unknown root is an error.
"""

import gzip
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from extraction.egraph import ClassId, EGraph, ENode
from extraction.errors import FormatError

GZIP_MAGIC = b"\x1f\x8b"


def read(
    path: str | Path, roots: Iterable[ClassId] | None = None, *, strict: bool = False
) -> EGraph:
    """Read an e-graph from a JSON file, compressed or not.

    Args:
        path: The file.
        roots: Root e-classes; those of the file when left out.
        strict: Whether roots made obsolete by unions are an error too.

    Raises:
        FormatError: The file is not a serialized e-graph.
        GraphError: Its costs or roots are refused by `EGraph`.
        OSError: There is no such file.
    """
    return parse(load(path), str(path), roots, strict=strict)


def load(path: str | Path) -> object:
    """Return the JSON document of a file, compressed or not.

    Raises:
        FormatError: The file is not JSON.
        OSError: There is no such file.
    """
    raw = Path(path).read_bytes()
    try:
        text = gzip.decompress(raw) if raw.startswith(GZIP_MAGIC) else raw
        document: object = json.loads(text)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FormatError(
            f"{path}: starts like gzip but does not unpack: {error}"
        ) from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: neither gzip nor text: {error}") from error
    except json.JSONDecodeError as error:
        raise FormatError(f"{path}: not JSON: {error}") from error
    return document


def parse(
    document: object,
    where: str = "document",
    roots: Iterable[ClassId] | None = None,
    *,
    strict: bool = False,
) -> EGraph:
    """Make an e-graph from a parsed JSON document.

    Args:
        document: What `load` returned.
        where: A name for error texts.
        roots: Root e-classes, all of which must exist; those of the document when left out.
        strict: Whether roots made obsolete by unions are an error too.

    Raises:
        FormatError: Something is missing or of another type; the text says where.
        GraphError: Costs or roots are refused by `EGraph`.
    """
    nodes = _field(document, "nodes", dict, where)
    class_of: dict[str, Any] = {}
    for name, node in nodes.items():
        eclass = node.get("eclass") if isinstance(node, dict) else None
        if not isinstance(eclass, str | int):
            eclass = _field(node, "eclass", str, f"{where}: node {name!r}")
        class_of[name] = eclass
    enodes = [_enode(name, node, class_of, where) for name, node in nodes.items()]
    if roots is None:
        named = _field(document, "root_eclasses", list, where)
        lost = set() if strict else set(lost_roots(document))
        roots = [root for root in named if root not in lost]
        if lost and not roots:
            used = {child for enode in enodes for child in enode.children}
            roots = [c for c in dict.fromkeys(class_of.values()) if c not in used]
            roots = roots or named
    return EGraph(enodes, roots)


def lost_roots(document: object) -> list[str]:
    """Return the roots of a document that are gaps in the numbering of its e-classes."""
    nodes = _field(document, "nodes", dict, "document")
    named = _field(document, "root_eclasses", list, "document")
    known = {str(node["eclass"]) for node in nodes.values()}
    if not known or not all(name.isdecimal() for name in known):
        return []
    last = max(map(int, known))
    return [
        root
        for root in named
        if str(root).isdecimal() and str(root) not in known and int(root) < last
    ]


def _enode(
    name: str, node: Mapping[str, Any], class_of: Mapping[str, ClassId], where: str
) -> ENode:
    children = node.get("children", ())
    cost = node.get("cost", 1.0)
    op = node.get("op")
    if not isinstance(children, list | tuple):
        found = f"children is {children!r:.60}; a list of node names is needed"
        raise FormatError(f"{where}: node {name!r}: {found}")
    try:
        below = tuple([class_of[child] for child in children])
    except (KeyError, TypeError):
        strange = next(c for c in children if not isinstance(c, str) or c not in class_of)
        found = f"child {strange!r:.60} is no node; children name other nodes"
        raise FormatError(f"{where}: node {name!r}: {found}") from None
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        found = f"cost is {cost!r:.60}; a number is needed"
        raise FormatError(f"{where}: node {name!r}: {found}")
    if not isinstance(op, str):
        op = _field(node, "op", str, f"{where}: node {name!r}")
    return ENode(op, class_of[name], below, float(cost))


def _field(holder: Any, key: str, kind: type, where: str) -> Any:
    if not isinstance(holder, dict):
        found = f"a {type(holder).__name__} was found; an object with {key!r} is needed"
        raise FormatError(f"{where}: {found}")
    if key not in holder:
        found = ", ".join(repr(name) for name in list(holder)[:5]) or "nothing"
        raise FormatError(f"{where}: {key!r} is missing; found {found}")
    if not isinstance(holder[key], kind):
        found = f"{key!r} is {holder[key]!r:.60}; a {kind.__name__} is needed"
        raise FormatError(f"{where}: {found}")
    return holder[key]


def document_of(graph: EGraph) -> dict[str, Any]:
    """Return the JSON document of an e-graph; e-node names are `<e-class>__<position>`.

    E-class identifiers become strings. E-nodes that can never be chosen have no place in
    the format and are left out: those of infinite cost or with an e-class without e-nodes
    among their children.
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

"""A graph of a search becomes a `Graph` again."""

from __future__ import annotations

from dataclasses import replace

from rulesets.ops import freeze
from tensat.egraph.encode import ABSENT, Encoded
from tensat.kernels.emit import Decoded
from tensat.model.graph import CONSTANT, INPUT, OUTPUT, Graph, Node, Ref
from tensat.search.state import State
from tensat.search.terms import Terms


def rebuild(graph: Graph, encoded: Encoded, terms: Terms, state: State) -> Decoded:
    """The graph that a state stands for.

    Args:
        graph: The original graph.
        encoded: Its values as terms.
        terms: The store.
        state: What was found.

    Returns:
        The new graph: same inputs, outputs and header; names and metadata of nodes that
        are still there. Constant parts are not folded yet.
    """
    now = _now(encoded, terms, state)
    labels = _labels(graph, now)
    nodes = [graph.nodes[index] for index in graph.inputs]
    place = {now[Ref(index)]: Ref(at) for at, index in enumerate(graph.inputs)}
    constants: set[int] = set()
    rules: dict[int, str] = {}
    for handle in state.order:
        term = terms.nodes[handle]
        if handle in place or term.op == ABSENT:
            continue
        if term.op == OUTPUT:
            source = place[term.arguments[0]]
            place[handle] = Ref(source.node, int(term.attributes["index"]))
            continue
        inputs = tuple(
            None if terms.nodes[a].op == ABSENT else place[a] for a in term.arguments
        )
        outputs = terms.egraph.outputs[handle]
        node = Node(term.op, freeze(term.attributes), inputs, outputs)
        place[handle] = Ref(len(nodes))
        if term.constant and term.op != CONSTANT:
            constants.add(len(nodes))
        rule = terms.egraph.rule_of[handle]
        if rule is not None:
            rules[len(nodes)] = rule
        nodes.append(_labelled(node, graph, labels.get(handle)))
    names: dict[Ref, str] = {}
    for ref, name in graph.names.items():
        at = place.get(now.get(ref, -1))
        if at is not None:
            names.setdefault(at, name)
    keys = {node.key for node in nodes if node.op in (CONSTANT, "Opaque")}
    result = replace(
        graph,
        nodes=tuple(nodes),
        outputs=tuple((name, place[now[ref]]) for name, ref in graph.outputs),
        inputs=tuple(range(len(graph.inputs))),
        constants={k: v for k, v in graph.constants.items() if k in keys},
        opaque={k: v for k, v in graph.opaque.items() if k in keys},
        names=names,
    )
    return Decoded(result, frozenset(constants), rules)


def _now(encoded: Encoded, terms: Terms, state: State) -> dict[Ref, int]:
    """What each value of the original graph has become."""
    steps = []
    at: State | None = state
    while at is not None:
        steps.append(at.moved)
        at = at.parent
    result = {}
    for ref, handle in encoded.handle_of.items():
        handle = terms.canonical(handle)
        for moved in reversed(steps):
            handle = moved.get(handle, handle)
        result[ref] = handle
    return result


def _labels(graph: Graph, now: dict[Ref, int]) -> dict[int, int]:
    """The original node of each value that has one; first come, first served."""
    labels: dict[int, int] = {}
    for ref, handle in now.items():
        if graph.nodes[ref.node].op not in (CONSTANT, INPUT):
            labels.setdefault(handle, ref.node)
    return labels


def _labelled(node: Node, graph: Graph, index: int | None) -> Node:
    """The node with name and metadata of an original one of the same operator."""
    if index is None or graph.nodes[index].op != node.op:
        return node
    old = graph.nodes[index]
    return replace(
        node, name=old.name, doc=old.doc, metadata=old.metadata, origin=old.origin
    )

"""A choice of e-nodes becomes a graph again.

Values made of constants only are written out as the cheapest derivation from stored
constants; `tensat.fold` computes them afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from extraction import Choice, EGraph, ENode
from rulesets.ops import freeze
from tensat.egraph.encode import ABSENT, Encoded
from tensat.egraph.engine import ENodeRow
from tensat.egraph.price import PricedENode, operator_of
from tensat.model.graph import Graph, Node, Ref

HYSTERESIS = 0.01
"""Relative surcharge on e-nodes that the model does not have itself."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A graph read out of an e-graph.

    Attributes:
        graph: The graph, constant parts not folded yet.
        constants: Indices of nodes whose value is to be computed now and stored.
        rules: For each node made by a rule: the node's index and the rule's name.
        handles: The e-node behind each node.
    """

    graph: Graph
    constants: frozenset[int]
    rules: Mapping[int, str]
    handles: tuple[int, ...] = ()


def extraction_problem(
    encoded: Encoded, priced: Iterable[PricedENode], forms: Mapping[int, ENodeRow]
) -> tuple[EGraph, tuple[PricedENode | None, ...]]:
    """The e-graph as extraction sees it, and the e-node behind each of its nodes.

    Classes of constants are single nodes without children and cost; their e-nodes are None.
    What a rule made counts as dearer by `HYSTERESIS`, so that nothing is changed for a gain
    that is smaller than the noise of measured costs.

    Args:
        encoded: The e-graph, saturated.
        priced: Its e-nodes with their costs.
        forms: As `constant_forms` gives them; constants without a form cannot be used.
    """
    egraph = encoded.egraph
    nodes: list[ENode] = []
    behind: list[PricedENode | None] = []
    constants: dict[int, None] = {egraph.find(r): None for r in encoded.roots}
    for enode in priced:
        made = egraph.rule_of[enode.handle] is not None
        cost = enode.seconds * (1 + HYSTERESIS) if made else enode.seconds
        nodes.append(ENode(enode.operator, enode.eclass, enode.children, cost))
        behind.append(enode)
        constants.update(dict.fromkeys(enode.children))
    for eclass in constants:
        if eclass in forms:
            nodes.append(ENode("Constant", eclass, (), 0.0))
            behind.append(None)
    roots = tuple(dict.fromkeys(egraph.find(root) for root in encoded.roots))
    return EGraph(nodes, roots), tuple(behind)


def decode(
    graph: Graph,
    encoded: Encoded,
    forms: Mapping[int, ENodeRow],
    choice: Choice,
    behind: tuple[PricedENode | None, ...],
) -> Decoded:
    """The graph that a choice stands for.

    Args:
        graph: The original graph.
        encoded: Its e-graph, saturated.
        forms: As `constant_forms` gives them.
        choice: What extraction chose.
        behind: As returned by `extraction_problem`.

    Returns:
        The new graph: same inputs, outputs, header; names and metadata of nodes that
        survive.
    """
    return _Decoder(graph, encoded, forms, choice, behind).run()


class _Decoder:
    """Builds the nodes of the new graph, arguments first."""

    def __init__(
        self,
        graph: Graph,
        encoded: Encoded,
        forms: Mapping[int, ENodeRow],
        choice: Choice,
        behind: tuple[PricedENode | None, ...],
    ) -> None:
        self.graph, self.encoded, self.egraph = graph, encoded, encoded.egraph
        self.forms = forms
        self.nodes: list[Node] = []
        self.handles: list[int] = []
        self.place: dict[int, Ref] = {}
        self.rules: dict[int, str] = {}
        self.constants: set[int] = set()
        self.source: dict[int, ENodeRow | PricedENode] = dict(forms)
        for eclass, node in choice.node_of.items():
            enode = behind[node]
            if enode is not None:
                assert isinstance(eclass, int)
                self.source[eclass] = enode
        self.original: dict[int, int] = {}
        for ref, handle in encoded.handle_of.items():
            key_handle = handle if len(graph.nodes[ref.node].outputs) == 1 else None
            if key_handle is None:
                key = self.egraph.key_of[handle]
                key_handle = key.arguments[0]
            self.original.setdefault(key_handle, ref.node)

    def run(self) -> Decoded:
        inputs = tuple(self._input(index) for index in self.graph.inputs)
        for root in self.encoded.roots:
            self._build(self.egraph.find(root))
        names: dict[Ref, str] = {}
        for ref, name in self.graph.names.items():
            handle = self.encoded.handle_of.get(ref)
            place = None if handle is None else self.place.get(self.egraph.find(handle))
            if place is not None:
                names.setdefault(place, name)
        find, handle_of = self.egraph.find, self.encoded.handle_of
        outputs = tuple(
            (name, self.place[find(handle_of[ref])]) for name, ref in self.graph.outputs
        )
        keys = {node.key for node in self.nodes if node.op == "Constant"}
        opaque = {node.key for node in self.nodes if node.op == "Opaque"}
        graph = replace(
            self.graph,
            nodes=tuple(self.nodes),
            outputs=outputs,
            inputs=inputs,
            constants={k: v for k, v in self.graph.constants.items() if k in keys},
            opaque={k: v for k, v in self.graph.opaque.items() if k in opaque},
            names=names,
        )
        return Decoded(graph, frozenset(self.constants), self.rules, tuple(self.handles))

    def _input(self, index: int) -> int:
        handle = self.egraph.find(self.encoded.handle_of[Ref(index)])
        self.nodes.append(self.graph.nodes[index])
        self.handles.append(self.encoded.handle_of[Ref(index)])
        self.place.setdefault(handle, Ref(len(self.nodes) - 1))
        return len(self.nodes) - 1

    def _build(self, root: int) -> None:
        stack = [root]
        while stack:
            eclass = stack[-1]
            if eclass in self.place:
                stack.pop()
                continue
            missing = [c for c in self.source[eclass].children if c not in self.place]
            missing = [c for c in missing if not self._absent(c)]
            if missing:
                stack.extend(reversed(missing))
            else:
                stack.pop()
                self._emit(eclass)

    def _absent(self, eclass: int) -> bool:
        return self.egraph.key_of[eclass].operator == ABSENT

    def _emit(self, eclass: int) -> None:
        enode = self.source[eclass]
        operator = (
            enode.operator if isinstance(enode, PricedENode) else operator_of(enode.symbol)
        )
        attributes = self.egraph.attributes(enode.attributes)
        if operator == "Output":
            source = self.place[enode.children[0]]
            self.place[eclass] = Ref(source.node, int(dict(attributes)["index"]))
            return
        inputs = tuple(None if self._absent(c) else self.place[c] for c in enode.children)
        handle = self.egraph.handle_of(operator, enode.attributes, enode.children)
        outputs = self.egraph.outputs[handle]
        if len(outputs) == 1:
            outputs = self.egraph.outputs[eclass]
        node = Node(operator, freeze(dict(attributes)), inputs, outputs)
        self.nodes.append(self._labelled(node, handle))
        self.handles.append(handle)
        self.place[eclass] = Ref(len(self.nodes) - 1)
        if eclass in self.forms and operator != "Constant":
            self.constants.add(len(self.nodes) - 1)
        rule = self.egraph.rule_of[handle]
        if rule is not None:
            self.rules[len(self.nodes) - 1] = rule

    def _labelled(self, node: Node, handle: int) -> Node:
        index = self.original.get(handle)
        if index is None:
            return node
        old = self.graph.nodes[index]
        return replace(
            node, name=old.name, doc=old.doc, metadata=old.metadata, origin=old.origin
        )

"""A choice of kernels becomes a graph again.

For a portable result the operators of each kernel are written and layouts are left to the
runtime; for a targeted one the steps of kernels in other layouts and the reorders are
written as they are. Values made of constants only are written out as the cheapest
derivation from stored constants; `tensat.fold` computes them afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from extraction import Choice
from rulesets.ops import freeze
from tensat.egraph.encode import ABSENT, Encoded
from tensat.egraph.engine import ENodeRow
from tensat.egraph.price import handle_of_row, operator_of
from tensat.kernels.collect import Kernel
from tensat.kernels.kernel import Layout
from tensat.kernels.problem import Problem
from tensat.model.graph import Graph, Node, Ref
from tensat.onnx_forms.call import Arg
from tensat.onnx_forms.call import Node as Made


@dataclass(frozen=True, slots=True)
class Decoded:
    """A graph read out of an e-graph.

    Attributes:
        graph: The graph, constant parts not folded yet.
        constants: Indices of nodes whose value is to be computed now and stored.
        rules: For each node made by a rule: the node's index and the rule's name.
        handles: The e-node behind each node; -1 for what is none, as a reorder.
        seconds: Predicted cost of each node; of operators that one kernel computes the
            last one has it all.
        targeted: How many kernels are written as the runtime's own operators.
    """

    graph: Graph
    constants: frozenset[int]
    rules: Mapping[int, str]
    handles: tuple[int, ...] = ()
    seconds: Mapping[int, float] = field(default_factory=dict)
    targeted: int = 0


def emit(
    graph: Graph,
    encoded: Encoded,
    forms: Mapping[int, ENodeRow],
    problem: Problem,
    choice: Choice,
    *,
    targeted: bool = False,
) -> Decoded:
    """The graph that a choice stands for.

    Args:
        graph: The original graph.
        encoded: Its e-graph, saturated.
        forms: As `constant_forms` gives them.
        problem: What was chosen from.
        choice: What extraction chose.
        targeted: Whether kernels on tensors that are not plain are written as such.

    Returns:
        The new graph: same inputs, outputs, header; names and metadata of nodes that
        survive.
    """
    return _Emitter(graph, encoded, forms, problem, choice, targeted).run()


class _Emitter:
    """Builds the nodes of the new graph, arguments first.

    Places are known by class of the problem; of a portable result a class and its twin in
    another layout may be one place.
    """

    def __init__(
        self,
        graph: Graph,
        encoded: Encoded,
        forms: Mapping[int, ENodeRow],
        problem: Problem,
        choice: Choice,
        targeted: bool,
    ) -> None:
        self.graph, self.encoded, self.egraph = graph, encoded, encoded.egraph
        self.forms, self.problem, self.choice = forms, problem, choice
        self.targeted = targeted
        self.nodes: list[Node] = []
        self.handles: list[int] = []
        self.place: dict[object, Ref] = {}
        self.known: dict[tuple[object, ...], Ref] = {}
        self.rules: dict[int, str] = {}
        self.seconds: dict[int, float] = {}
        self.constants: set[int] = set()
        self.kernels = 0
        self.original: dict[int, int] = {}
        for ref, handle in encoded.handle_of.items():
            several = len(graph.nodes[ref.node].outputs) > 1
            first = self.egraph.key_of[handle].arguments[0] if several else handle
            self.original.setdefault(first, ref.node)

    def run(self) -> Decoded:
        inputs = tuple(self._input(index) for index in self.graph.inputs)
        for root in self.encoded.roots:
            self._build(self.egraph.find(root))
        handle_of, find = self.encoded.handle_of, self.egraph.find
        names: dict[Ref, str] = {}
        for ref, name in self.graph.names.items():
            if ref in handle_of:
                place = self._plain_place(find(handle_of[ref]))
                if place is not None:
                    names.setdefault(place, name)
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
        return Decoded(
            graph, frozenset(self.constants), self.rules, tuple(self.handles),
            self.seconds, self.kernels,
        )  # fmt: skip

    def _plain_place(self, eclass: int) -> Ref | None:
        """Where the value of a class is, as ONNX means it."""
        others = [] if self.targeted else [f"{eclass}.{each}" for each in Layout]
        for identifier in (eclass, *others):
            if identifier in self.place:
                return self.place[identifier]
        return None

    def _input(self, index: int) -> int:
        handle = self.encoded.handle_of[Ref(index)]
        place = self._append(self.graph.nodes[index], handle)
        self.place.setdefault(self.egraph.find(handle), place)
        return place.node

    def _append(self, node: Node, handle: int) -> Ref:
        self.nodes.append(node)
        self.handles.append(handle)
        return Ref(len(self.nodes) - 1)

    def _build(self, root: int) -> None:
        stack: list[object] = [root]
        while stack:
            identifier = stack[-1]
            if identifier in self.place:
                stack.pop()
                continue
            missing = [c for c in self._children(identifier) if c not in self.place]
            if missing:
                stack.extend(reversed(missing))
            else:
                stack.pop()
                self.place[identifier] = self._emit(identifier)

    def _constant(self, identifier: object) -> ENodeRow | None:
        """How a constant is written; None for what is no constant."""
        if not isinstance(identifier, int) or identifier not in self.forms:
            return None
        return self.forms[identifier]

    def _children(self, identifier: object) -> tuple[object, ...]:
        """Classes whose places are needed first."""
        constant = self._constant(identifier)
        if constant is not None:
            return tuple(c for c in constant.children if not self._absent(c))
        index = self.choice.node_of[identifier]
        kernel, children = (
            self.problem.behind[index],
            self.problem.egraph.nodes[index].children,
        )
        # Behind its arguments a kernel asks that they are made at all.
        return children if kernel is None else children[: len(kernel.arguments)]

    def _absent(self, eclass: int) -> bool:
        return self.egraph.key_of[eclass].operator == ABSENT

    def _emit(self, identifier: object) -> Ref:
        constant = self._constant(identifier)
        if constant is not None:
            return self._operator(constant, dict(self.place))
        index = self.choice.node_of[identifier]
        kernel = self.problem.behind[index]
        places = [self.place[child] for child in self._children(identifier)]
        if kernel is None:
            return places[0]
        before = len(self.nodes)
        if self.targeted and kernel.form is not None:
            place = self._steps(kernel, places)
        elif not kernel.rows:  # a reorder, of which a portable model knows nothing
            place = places[0]
        else:
            place = self._members(kernel, places)
        if len(self.nodes) > before:
            cost = self.problem.seconds[index]
            self.seconds[place.node] = self.seconds.get(place.node, 0.0) + cost
        return place

    def _members(self, kernel: Kernel, places: list[Ref]) -> Ref:
        """The operators of a kernel, arguments first."""
        value: dict[object, Ref] = {
            eclass: place
            for (eclass, _), place in zip(kernel.arguments, places, strict=True)
        }
        for row in reversed(kernel.rows):
            value[row.eclass] = self._operator(row, value)
        return value[kernel.eclass]

    def _operator(self, row: ENodeRow, value: Mapping[object, Ref]) -> Ref:
        """One e-node over given values; the node that is there already, if there is."""
        operator = operator_of(row.symbol)
        attributes = self.egraph.attributes(row.attributes)
        inputs = tuple(None if self._absent(c) else value[c] for c in row.children)
        if operator == "Output":
            source = value[row.children[0]]
            return Ref(source.node, int(dict(attributes)["index"]))
        known = self.known.get((row, inputs))
        if known is not None:
            return known
        handle = handle_of_row(self.egraph, row)
        outputs = self.egraph.outputs[handle]
        if len(outputs) == 1:
            outputs = self.egraph.outputs[row.eclass]
        node = Node(operator, freeze(dict(attributes)), inputs, outputs)
        place = self._append(self._labelled(node, handle), handle)
        self.known[row, inputs] = place
        if row.eclass in self.forms and operator != "Constant":
            self.constants.add(place.node)
        rule = self.egraph.rule_of[handle]
        if rule is not None:
            self.rules[place.node] = rule
        return place

    def _steps(self, kernel: Kernel, places: list[Ref]) -> Ref:
        """The steps of a kernel; what they compute of constants is to be stored."""
        assert kernel.form is not None
        handle, rule = -1, None
        if kernel.rows:
            handle = handle_of_row(self.egraph, kernel.rows[0])
            rules = (self._rule(row) for row in kernel.rows)
            rule = next((name for name in rules if name is not None), None)
        results: list[Ref] = []
        for step in kernel.form.steps:
            inputs = tuple(
                places[ref.position] if isinstance(ref, Arg)
                else results[ref.index] if isinstance(ref, Made) else None
                for ref in step.inputs
            )  # fmt: skip
            known = self.known.get((step.op, step.attributes, inputs))
            if known is None:
                known = self._append(
                    Node(step.op, step.attributes, inputs, (step.output,)),
                    -1 if step.constant else handle,
                )
                self.known[step.op, step.attributes, inputs] = known
                if step.constant:
                    self.constants.add(known.node)
            results.append(known)
        self.kernels += 1
        if rule is not None and results:
            self.rules[results[-1].node] = rule
        return results[-1] if results else places[0]

    def _rule(self, row: ENodeRow) -> str | None:
        return self.egraph.rule_of[handle_of_row(self.egraph, row)]

    def _labelled(self, node: Node, handle: int) -> Node:
        index = self.original.get(handle)
        if index is None:
            return node
        old = self.graph.nodes[index]
        return replace(
            node, name=old.name, doc=old.doc, metadata=old.metadata, origin=old.origin
        )

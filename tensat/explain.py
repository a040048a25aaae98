"""From a plan to its explanation: what changed, and by which rules.

A node of the new graph is *kept* if the original has the same e-node, else *new*; a node of
the original is *gone* if its e-node was not chosen. Why is asked of the e-graph's history
(`tensat.egraph.provenance`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from rulesets.ops import OPERATORS
from rulesets.tensor import Tensor
from tensat.egraph.encode import ABSENT
from tensat.egraph.price import handle_of_row, operator_of
from tensat.egraph.provenance import Provenance, Step
from tensat.explanation import (
    GONE,
    KEPT,
    NEW,
    Change,
    Explanation,
    Link,
    NodeView,
    proof_text,
)
from tensat.improve import Plan
from tensat.model.graph import CONSTANT, OPAQUE, Attributes, Graph, Node, Ref

MOST_TEXT = 60
"""Characters of an attribute's value that are shown."""

MOST_SIZE = 8
"""Characters of a size in the chain."""


def explain(graph: Graph, plan: Plan, improved: bool, reason: str) -> Explanation:
    """What a plan changed and why.

    Args:
        graph: The original graph.
        plan: What was found for it.
        improved: Whether the plan's graph is the result.
        reason: Why the result is what it is.
    """
    return _Explainer(graph, plan).run(improved, reason)


class Namer:
    """Says e-nodes in words: those of the original by their names.

    Attributes:
        handles: The e-node of each node of the original, constants left out.
        first: The first node of the original for each e-node, by `same`.
    """

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self.graph, self.plan, self.egraph = graph, plan, plan.encoded.egraph
        self.handles = {i: self._handle(i) for i, n in enumerate(graph.nodes) if shown(n)}
        self.first: dict[int, int] = {}
        for index, handle in self.handles.items():
            self.first.setdefault(self.same(handle), index)

    def _handle(self, index: int) -> int:
        handle = self.plan.encoded.handle_of[Ref(index)]
        if len(self.graph.nodes[index].outputs) > 1:
            handle = self.plan.saturation.encoded[handle].arguments[0]
        return handle

    def same(self, handle: int) -> int:
        """The oldest handle of the same e-node."""
        key = self.egraph.key_of[handle]
        return self.egraph.handle_of(key.operator, key.attributes, key.arguments)

    def word(self, handle: int) -> str:
        """An e-node in a few words: a name of the original, or operator and shape."""
        key = self.egraph.key_of[handle]
        source = self.first.get(self.same(handle))
        if source is not None:
            operator = operator_name(self.graph, self.graph.nodes[source])
            return f"{operator} {node_name(self.graph, source)}".rstrip()
        if key.operator == CONSTANT:
            return "constant"
        return f"{key.operator} {short_shape(self.egraph.outputs[handle][0])}"


class _Explainer:
    """Puts the two graphs beside each other.

    E-nodes are named by handles; ``made`` are the nodes of the new graph that run.
    """

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self.graph, self.plan = graph, plan
        self.decoded = plan.decoded.graph
        self.egraph = plan.encoded.egraph
        saturation = plan.saturation
        self.provenance = Provenance(self.egraph, saturation.encoded, saturation.history)
        self.rows = plan.chosen_rows()
        self.seconds = plan.seconds_before()
        self.namer = Namer(graph, plan)
        self.old, self.first = self.namer.handles, self.namer.first
        self.made = {
            i: plan.decoded.handles[i]
            for i, node in enumerate(self.decoded.nodes)
            if shown(node) and i not in plan.decoded.constants
        }
        self.chosen = {self.namer.same(handle): i for i, handle in self.made.items()}
        self.by_class = {self.egraph.find(h): i for i, h in self.made.items()}
        self.number_before = {index: at for at, index in enumerate(self.old)}
        self.number_after = {index: at for at, index in enumerate(self.made)}
        self.links: dict[Link, int] = {}
        self.absorbed: dict[int, list[int]] = {}

    def run(self, improved: bool, reason: str) -> Explanation:
        same = {i: self.namer.same(handle) for i, handle in self.made.items()}
        new = [i for i in self.made if same[i] not in self.first]
        gone = [i for i in self.old if not self._is_kept(i)]
        users = self._users()
        news = [self._new(i, users.get(i, ())) for i in new]
        losses = {i: self._gone(i) for i in reversed(gone)}
        losses = {i: self._inherit(i, losses) for i in gone}
        verdicts = {
            f.pattern.rule.name: f.pattern.rule for f in self.plan.saturation.history
        }
        return Explanation(
            improved=improved,
            reason=reason,
            fired=dict(self.plan.saturation.fired),
            proofs={n: proof_text(r.verdict, r.ranks) for n, r in verdicts.items()},
            before=tuple(self._before(i, i in losses) for i in self.old),
            after=tuple(self._after(i, i in new) for i in self.made),
            links=tuple(self.links),
            new=tuple(news),
            gone=tuple(losses.values()),
        )

    # ---------------------------------------------------------------- changes
    def _is_kept(self, index: int) -> bool:
        same = self.namer.same(self.old[index])
        return same in self.chosen and self.first[same] == index

    def _users(self) -> dict[int, list[tuple[int, int]]]:
        """For each node of the new graph the pairs of handles that it makes one.

        The first is what a user of the node was made with, the second what it reads now.
        """
        users: dict[int, list[tuple[int, int]]] = {}
        for handle in self.made.values():
            for argument in self.provenance.born(handle):
                source, value = self._source(argument)
                if source is not None and argument != value:
                    users.setdefault(source, []).append((argument, value))
        return users

    def _source(self, handle: int) -> tuple[int | None, int]:
        """The node of the new graph that computes a value, and the e-node of that value.

        None if no node does; the e-node is then a constant, or the handle itself.
        """
        eclass = self.egraph.find(handle)
        row = self.rows.get(eclass)
        if row is not None and operator_of(row.symbol) == "Output":
            source = self.by_class.get(self.egraph.find(row.children[0]))
            return source, handle_of_row(self.egraph, row)
        if eclass in self.by_class:
            index = self.by_class[eclass]
            return index, self.made[index]
        if self.egraph.constant(handle):
            members = self.provenance.matcher.members(eclass)
            return None, next(filter(self.provenance.forest.is_constant, members), handle)
        return None, handle

    def _values(self, index: int) -> list[int]:
        """Handles of the results of a node of the original."""
        places = self.plan.encoded.handle_of
        count = len(self.graph.nodes[index].outputs)
        return [places[Ref(index, at)] for at in range(count) if Ref(index, at) in places]

    def _new(self, index: int, users: Iterable[tuple[int, int]]) -> Change:
        handle = self.made[index]
        eclass = self.egraph.find(handle)
        arguments = self.provenance.born(handle)
        joins = [*users, *((each, self._source(each)[1]) for each in arguments)]
        before = [i for i, h in self.old.items() if self.egraph.find(h) == eclass]
        if before:
            joins.append((self.old[before[0]], handle))
        steps = self.provenance.why([handle], joins)
        others = {i for i in before if not self._is_kept(i)}
        for step in steps:
            for enode in step.enodes:
                source = self.first.get(self.namer.same(enode))
                if source is not None and not self._is_kept(source):
                    others.add(source)
                    self.absorbed.setdefault(source, []).append(index)
        return Change(
            self.number_after[index],
            tuple(self.number_before[i] for i in sorted(others)),
            tuple(dict.fromkeys(self._link(step) for step in steps)),
        )

    def _gone(self, index: int) -> Change:
        handle, at = self.old[index], self.number_before[index]
        twin = self.first[self.namer.same(handle)]
        if twin != index:
            name = node_name(self.graph, twin)
            heir = self.chosen.get(self.namer.same(handle))
            same = () if heir is None else (self.number_after[heir],)
            chain = self._chain((), [(handle, self.old[twin])])
            return Change(at, same, chain, f"it equals {name}, which is computed once")
        if self.provenance.forest.is_constant(handle):
            return Change(at, (), (), "it depends on constants only and is computed before")
        sources = {value: self._source(value) for value in self._values(index)}
        heirs = [source for source, _ in sources.values() if source is not None]
        if heirs or any(self.egraph.constant(value) for value in sources):
            ends = [value for _, value in sources.values()]
            chain = self._chain(ends, [(a, b) for a, (_, b) in sources.items()])
            others = tuple(self.number_after[heir] for heir in dict.fromkeys(heirs))
            words = [str(self._after(heir, False)) for heir in dict.fromkeys(heirs)]
            verb = "compute" if len(words) > 1 else "computes"
            why = f"{' and '.join(words)} {verb} the same" if words else "it is a constant"
            return Change(at, others, chain, why)
        takers = list(dict.fromkeys(self.absorbed.get(index, ())))
        if takers:
            steps = tuple(
                step
                for step in self.provenance.why([self.made[i] for i in takers])
                if handle in {self.namer.same(enode) for enode in step.enodes}
            )
            chain = tuple(dict.fromkeys(self._link(step) for step in steps))
            others = tuple(self.number_after[i] for i in takers)
            return Change(at, others, chain, "it became part of other nodes")
        return Change(at, (), (), "nothing needs it any more")

    def _chain(
        self, handles: Iterable[int], joins: Iterable[tuple[int, int]]
    ) -> tuple[int, ...]:
        """Links to e-nodes, and between pairs of handles of one class."""
        steps = self.provenance.why(handles, joins)
        return tuple(dict.fromkeys(self._link(step) for step in steps))

    def _inherit(self, index: int, losses: dict[int, Change]) -> Change:
        """A node that nothing needs went for the reasons of its users."""
        change = losses[index]
        if change.chain or change.others or not change.why.startswith("nothing"):
            return change
        chain: dict[int, None] = {}
        for user, node in enumerate(self.graph.nodes):
            if user in losses and any(
                r is not None and r.node == index for r in node.inputs
            ):
                chain.update(dict.fromkeys(losses[user].chain))
        losses[index] = Change(change.node, (), tuple(chain), change.why)
        return losses[index]

    def _link(self, step: Step) -> int:
        rule = step.firing.pattern.rule
        before = tuple(self.namer.word(enode) for enode in step.enodes or step.firing.roots)
        link = Link(
            rule.name,
            proof_text(rule.verdict, rule.ranks),
            before,
            tuple(self.namer.word(handle) for handle in step.firing.built),
        )
        return self.links.setdefault(link, len(self.links))

    # ---------------------------------------------------------------- nodes
    def _before(self, index: int, gone: bool) -> NodeView:
        seconds = self.seconds.get(self.namer.same(self.old[index]), 0.0)
        return self._view(
            self.graph, index, seconds, self.number_before, GONE if gone else KEPT
        )

    def _after(self, index: int, new: bool) -> NodeView:
        seconds = self.plan.decoded.seconds.get(index, 0.0)
        return self._view(
            self.decoded, index, seconds, self.number_after, NEW if new else KEPT
        )

    def _view(self, graph: Graph, index: int, seconds: float, numbers: dict[int, int],
              state: str) -> NodeView:  # fmt: skip
        node = graph.nodes[index]
        present = [ref.node for ref in node.inputs if ref is not None]
        return NodeView(
            operator=operator_name(graph, node),
            name=node_name(graph, index),
            shape=shape_text(node.outputs[0]),
            attributes=attributes_words(node.op, node.attributes),
            inputs=tuple(dict.fromkeys(numbers[i] for i in present if i in numbers)),
            constants=sum(i not in numbers for i in present),
            seconds=seconds if math.isfinite(seconds) else 0.0,
            state=state,
        )


def shown(node: Node) -> bool:
    """Whether a node is more than a stored tensor."""
    return node.op not in {CONSTANT, ABSENT}


def shape_text(tensor: Tensor) -> str:
    """Type and shape, as ``float32[1, 3, n]``; ``?`` for a rank that is not known."""
    if tensor.shape is None:
        return f"{tensor.dtype}[?]"
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"


def short_shape(tensor: Tensor) -> str:
    """The shape, without sizes that take more than a name."""
    dims = [str(dim) for dim in tensor.shape or ()]
    text = ", ".join(dim if len(dim) <= MOST_SIZE else "…" for dim in dims)
    return f"[{text if tensor.shape is not None else '?'}]"


def attributes_words(op: str, attributes: Attributes) -> str:
    """The attributes of an operator that are not their default."""
    defaults = OPERATORS[op].defaults if op in OPERATORS else {}
    parts = []
    for name, value in attributes:
        if name != "key" and defaults.get(name) != value:
            listed = isinstance(value, tuple)
            text = f"[{', '.join(map(str, value))}]" if listed else str(value)
            text = f"{text[:MOST_TEXT]}…" if len(text) > MOST_TEXT else text
            parts.append(f"{name}={text}")
    return " ".join(parts)


def operator_name(graph: Graph, node: Node) -> str:
    """The operator; domain and type of an ONNX node that is kept as it is."""
    return graph.opaque[node.key].operator if node.op == OPAQUE else node.op


def node_name(graph: Graph, index: int) -> str:
    """Name of a node, of its result where it has none, of an input as declared."""
    node = graph.nodes[index]
    if node.op == "Input":
        return str(node.attribute("name"))
    return node.name or graph.names.get(Ref(index), "")

"""The only module that talks to egglog: program text in, tables out.

Encoding. One sort ``T`` of tensors. Every operator of every arity is one constructor, named
``Operator_arity``, whose first column is the number of its interned attributes; the other
columns are its arguments. A table ``node`` maps a *handle* (a small integer given out by
the caller) to its e-class: every statement refers to other classes through it, which keeps
program text flat however deep the graph is, and answers "which class is handle 17 now?"
after any number of unions.

Facts that rules test are tables too (``rank``, ``constant``, ``literal``, ``attribute``),
so that a guard is a join column and never a filter over a Cartesian product.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from egglog.bindings import EGraph, Value

PRELUDE = """
(sort T)
(function node (i64) T :no-merge)
(function rank (T) i64 :merge old)
(function literal (T) i64 :merge old)
(function attribute (i64 String) i64 :merge old)
(relation constant (T))
(relation same (i64 i64))
(ruleset unite)
(rule ((same i j) (= x (node i)) (= y (node j)) (!= x y)) ((union x y))
 :ruleset unite :name "unite")
"""


@dataclass(frozen=True, slots=True)
class ENodeRow:
    """One e-node: constructor symbol, number of its attributes, arguments, class.

    Classes are canonical handles: the smallest handle of the class.
    """

    symbol: str
    attributes: int
    children: tuple[int, ...]
    eclass: int


class Engine:
    """An egglog e-graph of tensors, addressed by handles.

    Statements are queued and sent together by ``flush``: egglog parses one long text much
    faster than many short ones.
    """

    def __init__(self) -> None:
        self._egraph = EGraph()
        self._queue: list[str] = []
        self._symbols: set[str] = set()
        self._unite = False
        self._egraph.parse_and_run_program(PRELUDE)

    def symbol(self, operator: str, arity: int) -> str:
        """The constructor of an operator of that arity, declared on first use."""
        name = f"{operator}_{arity}"
        if name not in self._symbols:
            self._symbols.add(name)
            self._queue.append(f"(constructor {name} (i64{' T' * arity}) T)")
        return name

    def put(
        self, handle: int, symbol: str, attributes: int, arguments: Sequence[int]
    ) -> None:
        """Queue an e-node and give its class the handle."""
        terms = "".join(f" (node {argument})" for argument in arguments)
        self._queue.append(f"(set (node {handle}) ({symbol} {attributes}{terms}))")

    def union(self, first: int, second: int) -> None:
        """Queue the union of the classes of two handles.

        Unions are rows of a table that one rule reads: egglog restores congruence once for
        all of them, where a union as a statement of its own costs a pass each.
        """
        self._queue.append(f"(same {first} {second})")
        self._unite = True

    def state(self, text: str) -> None:
        """Queue one statement of egglog text."""
        self._queue.append(text)

    def flush(self) -> None:
        """Run what is queued.

        Raises:
            EggSmolError: a statement is malformed; the e-graph is then useless.
        """
        if self._queue:
            text = "\n".join(self._queue)
            self._queue.clear()
            self._egraph.parse_and_run_program(text)
        if self._unite:
            self._unite = False
            self._egraph.parse_and_run_program("(run unite 1)")

    def run(self, ruleset: str) -> Mapping[str, int]:
        """Run a ruleset once; the number of matches of each of its rules."""
        self.flush()
        report = self._egraph.parse_and_run_program(f"(run {ruleset} 1)")[-1].report  # type: ignore[union-attr]
        return dict(report.num_matches_per_rule)

    def run_limited(self, ruleset: str, most: int) -> bool:
        """Run a ruleset once, rules with too many matches left out.

        All matches are looked for, not only new ones.

        Args:
            ruleset: Its name.
            most: Matches that a rule may have.

        Returns:
            Whether no rule was left out.
        """
        self.flush()
        report = self._egraph.parse_and_run_program(
            f"(run-schedule (let-scheduler fuse (back-off :match-limit {most}"
            f" :ban-length 1)) (run-with fuse {ruleset}))"
        )[-1].report  # type: ignore[union-attr]
        counts = [
            part.num_matches
            for step in report.iterations
            for parts in step.rule_set_report.rule_reports.values()
            for part in parts
        ]
        return max(counts, default=0) <= most

    def tables(self) -> Tables:
        """The e-graph as it is now."""
        self.flush()
        return Tables(self._egraph)


class Tables:
    """A frozen copy of the e-graph, read with canonical handles in place of classes."""

    def __init__(self, egraph: EGraph) -> None:
        self._egraph = egraph
        self._functions = egraph.freeze().functions
        self._handle_of: dict[Value, int] = {}
        number = egraph.value_to_i64
        self.canonical: dict[int, int] = {}
        rows = [(number(row.inputs[0]), row.output) for row in self._functions["node"].rows]
        rows.sort(key=lambda row: row[0])
        for handle, value in rows:
            self.canonical[handle] = self._handle_of.setdefault(value, handle)

    def matches(self, relation: str) -> list[tuple[int, ...]]:
        """Rows of a relation; tensors as canonical handles, integers as they are."""
        table = self._functions.get(relation)
        if table is None:
            return []
        handle_of, number = self._handle_of, self._egraph.value_to_i64
        sorts = [sort == "T" for sort in table.input_sorts]
        return [
            tuple(
                handle_of[value] if tensor else number(value)
                for tensor, value in zip(sorts, row.inputs, strict=True)
            )
            for row in table.rows
        ]

    def enodes(self) -> Iterable[ENodeRow]:
        """Every e-node, tables in order of their names and rows in order of their age."""
        handle_of, number = self._handle_of, self._egraph.value_to_i64
        for symbol in sorted(self._functions):
            table = self._functions[symbol]
            if table.output_sort != "T" or symbol == "node" or table.is_let_binding:
                continue
            for row in table.rows:
                if row.subsumed:
                    continue
                attributes, *children = row.inputs
                yield ENodeRow(
                    symbol,
                    number(attributes),
                    tuple(handle_of[child] for child in children),
                    handle_of[row.output],
                )

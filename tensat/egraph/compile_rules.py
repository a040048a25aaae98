"""Rules become egglog joins.

The left side of a rule, in each order that its commutative operators allow, becomes one
egglog rule that only records where it matched: a row of roots, variables and attribute
numbers in a relation of the rule's own. What is expensive to say in tables (attribute
arithmetic, values, shapes of the right side) is decided in Python from that row, see
`tensat.egraph.apply_rules`.

Everything that narrows the join is a table: operators, shared variables, constness, rank,
scalar literals and attribute values (see notes in `tensat.egraph.engine`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rulesets.condition import Condition
from rulesets.expression import Call, Expression, Number, Parameter, Text
from rulesets.ops import OPERATORS, single
from rulesets.rule import Rule
from rulesets.term import (
    Apply,
    Literal,
    Rest,
    Spread,
    Term,
    Variable,
    applications,
    subterms,
)
from tensat.egraph.tensor_egraph import TensorEGraph

SINGLE, MULTI = "single", "multi"
"""Rulesets: rules with one root, and multi-pattern rules."""

MOST_ARGUMENTS = 16
"""Largest number of arguments to which a rest variable is written out."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled left side.

    Attributes:
        rule: The rule, rest variables written out.
        relation: The egglog relation that its matches are written to.
        variables: Names of the tensor columns that follow the roots.
        applications: The operators of the left side, one attribute column each.
        symmetric: Whether the first two roots may be exchanged.
        spread: Whether an operator stands in place of each argument of another. It may
            match as often as a class has e-nodes, to the power of the number of arguments.
    """

    rule: Rule
    relation: str
    variables: tuple[str, ...]
    applications: tuple[Apply, ...]
    symmetric: bool
    spread: bool

    @property
    def ruleset(self) -> str:
        """The ruleset it belongs to; one that may explode has its own."""
        if self.spread:
            return f"spread_{self.relation}"
        return MULTI if len(self.rule.lhs) > 1 else SINGLE


def literals_of(rules: Iterable[Rule]) -> tuple[float, ...]:
    """All numbers that left sides compare constants with, ascending."""
    found = {
        term.value
        for rule in rules
        for side in rule.lhs
        for term in subterms(side)
        if isinstance(term, Literal)
    }
    return tuple(sorted(found))


def compile_rules(
    rules: Sequence[Rule], egraph: TensorEGraph, literals: Sequence[float]
) -> tuple[Pattern, ...]:
    """Declare every rule's join in the e-graph.

    Args:
        rules: The rules; those with rest variables are written out for the numbers of
            arguments that occur in the e-graph.
        egraph: The e-graph, already holding the graph.
        literals: As given to the e-graph.

    Returns:
        One pattern for each rule and number of arguments.
    """
    egraph.engine.state("(ruleset single) (ruleset multi)")
    _declare_twins(egraph)
    arities = arities_of(egraph)
    patterns: list[Pattern] = []
    for rule in rules:
        for instance in written_out(rule, arities):
            name = f"m{len(patterns)}"
            pattern = _declare(instance, name, egraph, literals, _is_spread(rule))
            patterns.append(pattern)
    return tuple(patterns)


def _declare_twins(egraph: TensorEGraph) -> None:
    """Unite applications of a commutative operator that differ in argument order only.

    Left sides are matched in both orders, so the other order need not be added: it is
    united where the model or a right side has both.
    """
    for name, operator in OPERATORS.items():
        if operator.commutative:
            symbol = egraph.engine.symbol(name, 2)
            egraph.engine.state(
                f"(rule ((= r ({symbol} a x y)) (= s ({symbol} a y x)) (!= r s))"
                f' ((union r s)) :ruleset single :name "commutative-{name}")'
            )


def arities_of(egraph: TensorEGraph) -> dict[str, set[int]]:
    """The numbers of arguments with which each operator occurs."""
    found: dict[str, set[int]] = {}
    for key in egraph.key_of:
        found.setdefault(key.operator, set()).add(len(key.arguments))
    return found


def written_out(rule: Rule, arities: dict[str, set[int]]) -> Iterator[Rule]:
    """The rule without rest variables, for each number of arguments that may occur."""
    if not rule.variadic:
        yield rule
        return
    counts: set[int] = set()
    for side in rule.lhs:
        for term in applications(side):
            fixed = sum(not isinstance(each, Rest | Spread) for each in term.arguments)
            if fixed < len(term.arguments):
                counts |= {count - fixed for count in arities.get(term.op, ())}
    for count in sorted(counts):
        if 1 <= count <= MOST_ARGUMENTS:
            yield rule.at_arity(count)


def _is_spread(rule: Rule) -> bool:
    return any(isinstance(term, Spread) for side in rule.lhs for term in subterms(side))


def _declare(rule: Rule, relation: str, egraph: TensorEGraph, literals: Sequence[float],
             spread: bool) -> Pattern:  # fmt: skip
    apps = tuple(term for side in rule.lhs for term in applications(side))
    names = _variables(rule)
    columns = " ".join(["T"] * (len(rule.lhs) + len(names)) + ["i64"] * len(apps))
    egraph.engine.state(f"(relation {relation} ({columns}))")
    texts: dict[str, None] = {}
    for orders in itertools.product(*(_orders(term) for term in apps)):
        writer = _Writer(rule, egraph, literals, orders)
        texts.setdefault(writer.facts(), None)
    tensors = [f"r{k}" for k in range(len(rule.lhs))] + [
        f"v_{_plain(name)}" for name in names
    ]
    row = " ".join([*tensors, *(f"a{k}" for k in range(len(apps)))])
    pattern = Pattern(rule, relation, names, apps, symmetric(rule), spread)
    if spread:
        egraph.engine.state(f"(ruleset {pattern.ruleset})")
    for number, facts in enumerate(texts):
        head = (
            f'(({relation} {row})) :ruleset {pattern.ruleset} :name "{relation}.{number}"'
        )
        egraph.engine.state(f"(rule ({facts}) {head})")
    return pattern


def _orders(term: Apply) -> tuple[tuple[int, ...], ...]:
    """The argument orders in which an application may match."""
    straight = tuple(range(len(term.arguments)))
    operator = OPERATORS.get(term.op)
    if operator is None or not operator.commutative or len(straight) != 2:
        return (straight,)
    if term.arguments[0] == term.arguments[1]:
        return (straight,)
    return (straight, (1, 0))


def _variables(rule: Rule) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for side in rule.lhs:
        for term in subterms(side):
            if isinstance(term, Variable):
                found.setdefault(term.name, None)
            elif isinstance(term, Apply) and term.label is not None:
                found.setdefault(term.label, None)
    return tuple(found)


def symmetric(rule: Rule) -> bool:
    """Whether two left sides are equal up to the names of variables."""
    if len(rule.lhs) != 2:
        return False

    def shape(term: Term) -> object:
        if isinstance(term, Apply):
            return (term.op, term.attributes, tuple(map(shape, term.arguments)))
        return type(term)

    return shape(rule.lhs[0]) == shape(rule.lhs[1])


class _Writer:
    """Writes the facts of one left side in one order of its commutative arguments."""

    def __init__(self, rule: Rule, egraph: TensorEGraph, literals: Sequence[float],
                 orders: Sequence[tuple[int, ...]]) -> None:  # fmt: skip
        self.rule, self.egraph, self.literals = rule, egraph, literals
        self.orders = orders
        self.parts: list[str] = []
        self.used = 0
        self.inner = 0

    def facts(self) -> str:
        """The body of the egglog rule."""
        for number, side in enumerate(self.rule.lhs):
            self.write(side, f"r{number}")
        for condition in self.rule.where:
            self.parts.extend(guards(condition))
        return " ".join(self.parts)

    def write(self, term: Term, name: str | None) -> str:
        """Add the facts of a term; the egglog variable of its class."""
        if isinstance(term, Variable):
            variable = f"v_{_plain(term.name)}"
            if name is not None:
                self.parts.append(f"(= {name} {variable})")
            return variable
        if isinstance(term, Literal):
            self.inner += 1
            variable = f"l{self.inner}"
            number = list(self.literals).index(term.value)
            self.parts.append(f"(= {number} (literal {variable}))")
            return variable
        assert isinstance(term, Apply), f"{term} must be written out first"
        return self._apply(term, name)

    def _apply(self, term: Apply, name: str | None) -> str:
        column, order = self.used, self.orders[self.used]
        self.used += 1
        if name is None:
            self.inner += 1
            name = f"t{self.inner}"
        at = len(self.parts)
        arguments = [""] * len(order)
        for argument, place in zip(term.arguments, order, strict=True):
            arguments[place] = self.write(argument, None)
        symbol = self.egraph.engine.symbol(term.op, len(arguments))
        facts = [
            f"(= {name} ({symbol} a{column}{''.join(' ' + each for each in arguments)}))"
        ]
        if term.label is not None:
            facts.append(f"(= {name} v_{_plain(term.label)})")
        facts.extend(self._attributes(term, column))
        self.parts[at:at] = facts
        return name

    def _attributes(self, term: Apply, column: int) -> Iterator[str]:
        kinds = {each.name: each.kind for each in OPERATORS[term.op].attributes}
        for name, expression in term.attributes:
            if isinstance(expression, Parameter):
                yield f'(= p_{_plain(expression.name)} (attribute a{column} "{name}"))'
            value = _exact(expression, kinds[name])
            if value is not None:
                number = self.egraph.numbers.value(value)
                yield f'(= {number} (attribute a{column} "{name}"))'


def _exact(expression: Expression, kind: str) -> object:
    """The attribute value that an expression states to the last bit, or None."""
    if isinstance(expression, Text):
        return expression.value
    if not isinstance(expression, Number):
        return None
    if kind != "float":
        return expression.value
    return single(expression.value)


def guards(condition: Condition) -> Iterator[str]:
    """The part of a condition that is a table look-up; the rest is decided in Python."""
    if condition.word in {"const", "scalar", "positive", "nonzero"}:
        yield f"(constant v_{_plain(condition.tensors[0].name)})"
    elif condition.word == "=" and len(condition.expressions) == 2:
        left, right = condition.expressions
        if isinstance(left, Call) and left.function == "rank" and isinstance(right, Number):
            (tensor,) = left.arguments
            if isinstance(tensor, Parameter):
                yield f"(= {int(right.value)} (rank v_{_plain(tensor.name)}))"


def _plain(name: str) -> str:
    return name.replace(".", "_")


__all__ = ["MULTI", "SINGLE", "Pattern", "compile_rules", "literals_of"]

"""Why a rule changed nothing, or less than expected: how far each of its matches got.

A left side must find its operators, then their arrangement, then attributes and conditions
must hold, then the right side must have the same type. Each place where the arrangement is
found is followed until something stops it; what stops it is said in English and counted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from rulesets.condition import Condition, describe
from rulesets.condition import holds as condition_holds
from rulesets.errors import ShapeError, SizeError
from rulesets.expression import evaluate
from rulesets.rule import Match, Rule, bind, build
from rulesets.tensor import FLOATS
from rulesets.term import Apply, Literal, Rest, Spread, Term, Variable, applications
from tensat.egraph.apply_rules import independent
from tensat.egraph.compile_rules import arities_of, written_out
from tensat.egraph.ematch import Found, Matcher
from tensat.explain import Namer, attributes_words, shape_text
from tensat.improve import Plan
from tensat.model.graph import Graph

MOST = 5_000
"""Places that are followed."""

SECONDS = 20.0
"""Wall time after which no more places are followed."""

EXAMPLES = 3
"""Places that are named for each obstacle."""

APPLIED = "it applies, and both sides are one class now"


@dataclass(slots=True)
class Obstacle:
    """Something that stops a rule, and where.

    Attributes:
        text: What, in English.
        places: By the classes of the roots where it does: their names and particulars.
    """

    text: str
    places: dict[tuple[int, ...], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WhyNot:
    """What became of one rule.

    Attributes:
        rule: Its name.
        fired: How often it changed the e-graph.
        obstacles: What stopped it, most frequent first; `APPLIED` is among them.
        complete: Whether all places were followed.
        note: Whether it was used at all.
    """

    rule: str
    fired: int
    obstacles: tuple[Obstacle, ...]
    complete: bool = True
    note: str = ""

    def __str__(self) -> str:
        """The text for a terminal."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f"{self.rule} changed the e-graph {self.fired} times." + (
            f" {self.note}" if self.note else ""
        )
        for obstacle in self.obstacles:
            count = f"{len(obstacle.places)} x " if obstacle.places else ""
            yield f"  {count}{obstacle.text}"
            for place in islice(obstacle.places.values(), EXAMPLES):
                yield f"      at {place}"
            if len(obstacle.places) > EXAMPLES:
                yield f"      and at {len(obstacle.places) - EXAMPLES} others"
        if not self.complete:
            yield f"Only the first {MOST} places, or {SECONDS:.0f} s, were followed."


def why_not(graph: Graph, plan: Plan, rule: Rule, note: str = "") -> WhyNot:
    """Follow a rule on a saturated e-graph.

    Args:
        graph: The original graph.
        plan: What was found for it.
        rule: Any rule, also one that was left out of the search.
        note: A sentence about its part in the search.
    """
    return _Follower(graph, plan, rule).run(note)


class _Follower:
    """Follows the matches of one rule and collects what stops them."""

    def __init__(self, graph: Graph, plan: Plan, rule: Rule) -> None:
        self.egraph, self.rule, self.plan = plan.encoded.egraph, rule, plan
        self.matcher = Matcher(self.egraph)
        self.namer = Namer(graph, plan)
        self.obstacles: dict[str, Obstacle] = {}

    def run(self, note: str) -> WhyNot:
        deadline = time.monotonic() + SECONDS
        complete = True
        instances = tuple(written_out(self.rule, arities_of(self.egraph)))
        if not instances:
            self._meet(self._lacking(self.rule) or "no operator has a fitting arity")
        for instance in instances:
            count = 0
            for found in self.matcher.matches(instance.lhs):
                self._follow(instance, found)
                count += 1
                if count >= MOST or time.monotonic() > deadline:
                    complete = False
                    break
            if not count:
                self._meet(self._lacking(instance) or self._unarranged(instance))
        ordered = sorted(self.obstacles.values(), key=lambda each: -len(each.places))
        fired = self.plan.saturation.fired.get(self.rule.name, 0)
        return WhyNot(self.rule.name, fired, tuple(ordered), complete, note)

    def _meet(self, text: str, found: Found | None = None, particulars: str = "") -> None:
        obstacle = self.obstacles.setdefault(text, Obstacle(text))
        if found is not None:
            roots = _roots(found)
            words = " and ".join(self.namer.word(enode) for enode in roots)
            classes = tuple(self.egraph.find(enode) for enode in roots)
            obstacle.places.setdefault(classes, f"{words}{particulars}")

    # ---------------------------------------------------------------- no match at all
    def _lacking(self, rule: Rule) -> str:
        """Operators that no e-node has."""
        known = {key.operator for key in self.egraph.key_of}
        wanted = {term.op for side in rule.lhs for term in applications(side)}
        lacking = sorted(wanted - known)
        if not lacking:
            return ""
        return f"there is no {' and no '.join(lacking)}, nor did a rule make one"

    def _unarranged(self, rule: Rule) -> str:
        """The smallest part of the left sides that stands nowhere."""
        for side in rule.lhs:
            for term in reversed(list(applications(side))):
                if next(self.matcher.matches((term,)), None) is None:
                    return f"nothing looks like {term_text(term)}{self._counts(term)}"
        sides = " and ".join(term_text(side) for side in rule.lhs)
        return f"no two nodes together look like {sides}"

    def _counts(self, term: Apply) -> str:
        counts = [
            f"{len(set(self.matcher.classes(each.op, len(each.arguments))))} {each.op}"
            for each in {each.op: each for each in applications(term)}.values()
        ]
        return f" (values made by its operators: {', '.join(counts)})"

    # ---------------------------------------------------------------- one match
    def _follow(self, rule: Rule, found: Found) -> None:
        roots = tuple(self.egraph.find(enode) for enode in _roots(found))
        if len(roots) != len(rule.lhs):  # a side that is a variable has no e-node
            return
        if self.egraph.evaluated(roots[0]):
            self._meet("the value is known already: it depends on constants only", found)
        elif len(set(roots)) < len(roots):
            self._meet("both nodes are one value", found)
        elif len(roots) > 1 and not independent(self.egraph, roots, False):
            self._meet("one of the nodes is computed from the other", found)
        else:
            self._attributes(rule, found, roots)

    def _attributes(self, rule: Rule, found: Found, roots: tuple[int, ...]) -> None:
        match: Match = Match(found.variables, {}, roots)
        terms = [term for side in rule.lhs for term in applications(side)]
        for term, enode in zip(terms, found.enodes, strict=True):
            values = dict(self.egraph.attributes(self.egraph.key_of[enode].attributes))
            bound = bind(term, values, match)
            if bound is None:
                text = f"the attributes of {term.op} do not fit the rule"
                has = attributes_words(term.op, tuple(values.items())) or "defaults only"
                self._meet(text, found, f": {self.namer.word(enode)} has {has}")
                return
            match = bound
        self._conditions(rule, found, match)

    def _conditions(self, rule: Rule, found: Found, match: Match) -> None:
        dtype = self.egraph.tensor(match.roots[0]).dtype
        if rule.dtypes == "float" and dtype not in FLOATS:
            self._meet("it is a rule for floating point numbers", found, f": {dtype}")
            return
        for handle in (*match.roots, *match.variables.values()):
            shape = self.egraph.tensor(handle).shape
            if shape is None or 0 in shape:
                what = "has a rank that is not known" if shape is None else "is empty"
                self._meet(f"a tensor {what}", found)
                return
        for condition in rule.where:
            if not condition_holds(condition, match, self.egraph):
                particulars = self._particulars(condition, match)
                self._meet(f"not true: {describe(condition)}", found, particulars)
                return
        self._build(rule, found, match)

    def _particulars(self, condition: Condition, match: Match) -> str:
        """What the condition's variables are there."""
        parts = []
        for each in condition.tensors:
            handle = match.variables[each.name]
            value = self.egraph.scalar(handle)
            known = "" if value is None else f" = {value:g}"
            kind = "constant " if self.egraph.constant(handle) else ""
            tensor = shape_text(self.egraph.tensor(handle))
            parts.append(f"?{each.name} is {kind}{tensor}{known}")
        for expression in condition.expressions:
            try:
                parts.append(str(evaluate(expression, match, self.egraph)))
            except (ShapeError, SizeError) as error:
                parts.append(str(error))
        return f": {', '.join(parts)}" if parts else ""

    def _build(self, rule: Rule, found: Found, match: Match) -> None:
        egraph = self.egraph
        mark = egraph.mark()
        try:
            built = build(rule, match, egraph)
        except (ShapeError, SizeError) as error:
            self._meet("the right side does not have the type of the left", found,
                       f": {error}")  # fmt: skip
            return
        finally:
            egraph.rollback(mark)
        if all(
            handle < mark and egraph.find(handle) == egraph.find(root)
            for handle, root in zip(built, match.roots, strict=True)
        ):
            self._meet(APPLIED, found)
        elif len(rule.lhs) > 1:
            self._meet(
                "it would apply, but rules with several roots run at first only", found
            )
        else:
            self._meet("it would apply, but the search had ended or left it out", found)


def _roots(found: Found) -> tuple[int, ...]:
    """The e-nodes that left sides begin with."""
    pairs = zip(found.enodes, found.places, strict=True)
    return tuple(enode for enode, (parent, _) in pairs if parent < 0)


def term_text(term: Term) -> str:
    """A term without its attributes."""
    match term:
        case Variable(name=name):
            return f"?{name}"
        case Rest(name=name):
            return f"?{name}..."
        case Literal(value=value):
            return f"{value:g}"
        case Spread(body=body):
            return f"{term_text(body)}..."
        case Apply():
            inside = " ".join([term.op, *(term_text(each) for each in term.arguments)])
            return f"({inside})"
    return str(term)

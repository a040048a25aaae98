"""A rewrite rule, and what the engine does with one.

The engine finds the operators of a left side and the tensors its variables stand for.
Here the rest is decided: `bind` unifies attributes, `holds` checks conditions, `build`
makes the right side. All three only read the facts they are given.

A rule applies only where ranks are known and no axis is empty, and only if the right
side has exactly the type and shape of the left: that guard lets a rule speak of
broadcasting operators without saying each time that nothing may grow.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf

from rulesets.condition import Condition
from rulesets.condition import holds as condition_holds
from rulesets.errors import AttributeValueError, ShapeError
from rulesets.expand import expand_condition, expand_terms
from rulesets.expression import (
    Expression,
    Number,
    Parameter,
    Sequenced,
    Text,
    evaluate,
    same_number,
)
from rulesets.instance import Instance
from rulesets.match import Builder, Facts, Match, Value
from rulesets.ops import OPERATORS, complete
from rulesets.origin import Origin
from rulesets.tensor import FLOATS, Tensor
from rulesets.term import (
    Apply,
    Literal,
    Rest,
    Select,
    Spread,
    Term,
    Variable,
    applications,
    subterms,
)

TIERS = ("all-sizes", "at-sizes", "tested", "refuted", "unknown")
"""The verdicts of the verifier, the best first; only the first two are proofs."""

__all__ = ["TIERS", "Match", "Rule", "attributes_of", "bind", "build", "holds"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewrite: where every left side stands and `where` holds, the right sides do too.

    Attributes:
        name: Unique over all files.
        lhs: Left sides; several make a multi-pattern rule, whose roots must not depend
            on one another.
        rhs: One right side for each left side.
        where: Conditions.
        dtypes: ``float`` (real arithmetic, judged by the first root) or ``any``.
        float_tag: ``exact``, ``reassociates`` or ``risky``: what rounding does.
        family: Name of the file it comes from, without the ending.
        instances: Concrete tensors and attributes it is tested with.
        note: Why it is there, where that is not plain.
        verdict: What the verifier found: one of `TIERS`; empty if it was not asked.
        ranks: For which ranks.
        origin: Where it comes from, None if its row does not say.
        bounded: Whether it keeps away from ranks above those it was proved for. A proof
            at all sizes goes up to some rank, and no operator means another thing above;
            a proof at given sizes never speaks of other ranks.
        measured_only: Whether its sides do the same work and differ only in what a runtime
            makes of them, which estimated costs cannot see.
    """

    name: str
    lhs: tuple[Term, ...]
    rhs: tuple[Term, ...]
    where: tuple[Condition, ...] = ()
    dtypes: str = "float"
    float_tag: str = "exact"
    family: str = ""
    instances: tuple[Instance, ...] = ()
    note: str = ""
    verdict: str = ""
    ranks: str = ""
    origin: Origin | None = None
    bounded: bool = False
    measured_only: bool = False

    @property
    def variadic(self) -> bool:
        """Whether it has a rest variable, so that `at_arity` must come first."""
        sides = (*self.lhs, *self.rhs)
        return any(isinstance(t, Rest | Spread) for side in sides for t in subterms(side))

    def at_arity(self, count: int) -> "Rule":
        """Return the rule with ``?xs...`` written out as ``?xs.0 ?xs.1 ...``."""
        if not self.variadic:
            return self
        return replace(
            self,
            lhs=expand_terms(self.lhs, count),
            rhs=expand_terms(self.rhs, count),
            where=tuple(
                expanded
                for condition in self.where
                for expanded in expand_condition(condition, count)
            ),
        )


def bind(pattern: Apply, attributes: Mapping[str, Value], match: Match) -> Match | None:
    """Unify the attributes of one pattern node with those of an operator found there.

    Args:
        pattern: An application of the left side.
        attributes: The complete attributes found.
        match: What is bound already.

    Returns:
        The match with more attributes bound, or None if the attributes do not fit.
    """
    bound = dict(match.attributes)
    mentioned = dict(pattern.attributes)
    for name, expression in mentioned.items():
        if not _unify(expression, attributes[name], bound):
            return None
    others = tuple(sorted((k, v) for k, v in attributes.items() if k not in mentioned))
    if pattern.bundle is not None:
        if not _assign(f"..{pattern.bundle}", others, bound):
            return None
    elif not _are_defaults(pattern.op, others):
        return None
    return replace(match, attributes=bound)


def _unify(pattern: Expression, value: Value, bound: dict[str, Value]) -> bool:
    match pattern:
        case Parameter(name=name):
            return _assign(name, value, bound)
        case Sequenced(items=items):
            return (
                isinstance(value, tuple)
                and len(value) == len(items)
                and all(
                    _unify(item, each, bound)  # type: ignore[arg-type]
                    for item, each in zip(items, value, strict=True)
                )
            )
        case Number(value=wanted) | Text(value=wanted):
            return same_number(wanted, value)
    raise AssertionError(f"a left side holds {pattern}")


def _assign(name: str, value: Value, bound: dict[str, Value]) -> bool:
    if name in bound:
        return same_number(bound[name], value)
    bound[name] = value
    return True


def _are_defaults(op: str, values: tuple[tuple[str, Value], ...]) -> bool:
    defaults = OPERATORS[op].defaults
    return all(
        name in defaults and same_number(defaults[name], value) for name, value in values
    )


def holds(rule: Rule, match: Match, facts: Facts) -> bool:
    """Say whether a rule is known to apply at a match whose roots are given."""
    assert len(match.roots) == len(rule.lhs), "the match lacks its roots"
    if rule.dtypes == "float" and facts.tensor(match.roots[0]).dtype not in FLOATS:
        return False
    handles = (*match.roots, *match.variables.values())
    if not all(_is_plain(facts.tensor(handle)) for handle in handles):
        return False
    if not _at_proved_ranks(rule, match, facts):
        return False
    return all(condition_holds(condition, match, facts) for condition in rule.where)


def _at_proved_ranks(rule: Rule, match: Match, facts: Facts) -> bool:
    """Say whether the tensors of the left side have ranks that were proved."""
    low, high = _bounds(rule.ranks)
    if rule.verdict == "all-sizes" and not rule.bounded:
        high = inf
    if low == 0 and high == inf:
        return True
    labels = _labels(rule.lhs)
    return all(
        name in labels or low <= len(facts.tensor(handle).shape or ()) <= high
        for name, handle in match.variables.items()
    )


@lru_cache
def _bounds(ranks: str) -> tuple[int, float]:
    """Return the least and the greatest rank of a text like ``2-4, 1-3 arguments``."""
    numbers = [int(each) for each in re.findall(r"\d+", ranks.split(",")[0])]
    return (numbers[0], numbers[-1]) if numbers else (0, inf)


@lru_cache(maxsize=1000)
def _labels(lhs: tuple[Term, ...]) -> frozenset[str | None]:
    return frozenset(each.label for side in lhs for each in applications(side))


def _is_plain(tensor: Tensor) -> bool:
    return tensor.shape is not None and 0 not in tensor.shape


@dataclass(frozen=True, slots=True)
class _Plan:
    """A right-hand node before it is made: what it is and what its types will be."""

    op: str
    attributes: Mapping[str, Value]
    arguments: tuple["_Plan | int | float", ...]
    outputs: tuple[Tensor, ...]


def build(rule: Rule, match: Match, builder: Builder) -> tuple[int, ...]:
    """Make the right sides.

    Everything is checked before anything is made.

    Returns:
        The handle of each right side, in the order of the roots.

    Raises:
        ShapeError: The right side is ill-shaped, or not of the type of the left.
    """
    plans = []
    for side, root in zip(rule.rhs, match.roots, strict=True):
        wanted = builder.tensor(root)
        plan = _plan(side, match, builder, wanted.dtype)
        found = _type(plan, builder, wanted.dtype)
        if found != (wanted,):
            raise ShapeError(f"rule {rule.name!r} would turn {wanted} into {found[0]}")
        plans.append((plan, wanted.dtype))
    return tuple(_make(plan, builder, dtype) for plan, dtype in plans)


def _plan(term: Term, match: Match, facts: Facts, dtype: str) -> _Plan | int | float:
    match term:
        case Variable(name=name):
            return match.variables[name]
        case Select(name=name, index=index):
            position = evaluate(index, match, facts)
            try:
                return match.variables[f"{name}.{position}"]
            except KeyError:
                raise ShapeError(f"?{name} has no element {position}") from None
        case Literal(value=value):
            return value
        case Apply():
            arguments = tuple(_plan(each, match, facts, dtype) for each in term.arguments)
            attributes = attributes_of(term, match, facts)
            inputs = tuple(t for each in arguments for t in _type(each, facts, dtype))
            outputs = _infer(term.op, attributes, inputs)
            return _Plan(term.op, attributes, arguments, outputs)
    raise AssertionError(f"{term} must be expanded first; use Rule.at_arity")


def _infer(
    op: str, attributes: Mapping[str, Value], inputs: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    if op == "Output":
        index = attributes["index"]
        assert isinstance(index, int)
        return inputs[index : index + 1]
    return OPERATORS[op].infer(attributes, inputs)  # type: ignore[arg-type]


def attributes_of(term: Apply, match: Match, facts: Facts) -> dict[str, Value]:
    """Compute all attributes of a right-hand application, defaults filled in.

    Raises:
        ShapeError: An expression has no value here, or not one of the attribute's kind.
    """
    given: dict[str, Value] = {}
    if term.bundle is not None:
        given.update(match.attributes[f"..{term.bundle}"])  # type: ignore[arg-type]
    for name, expression in term.attributes:
        given[name] = evaluate(expression, match, facts)
    try:
        return complete(OPERATORS[term.op], given)  # type: ignore[arg-type,return-value]
    except AttributeValueError as error:
        raise ShapeError(str(error)) from error


def _type(plan: _Plan | float, facts: Facts, dtype: str) -> tuple[Tensor, ...]:
    if isinstance(plan, _Plan):
        return plan.outputs
    if isinstance(plan, int):
        return (facts.tensor(plan),)
    return (Tensor(dtype, ()),)


def _make(plan: _Plan | float, builder: Builder, dtype: str) -> int:
    if isinstance(plan, int):
        return plan
    if isinstance(plan, _Plan):
        arguments = [_make(each, builder, dtype) for each in plan.arguments]
        return builder.node(plan.op, plan.attributes, arguments)
    return builder.literal(plan, dtype)

"""Writing out rest variables: ``?xs...`` becomes ``?xs.0 ?xs.1 ...``.

In a spread the body is written once for each element, with ``?xs...`` for that element
and ``#`` for its position; the same holds for ``expr...`` in a list and for a condition
that speaks of ``?xs...``.
"""

from dataclasses import replace

from rulesets.condition import Condition
from rulesets.expression import (
    Call,
    Each,
    Expression,
    Number,
    Parameter,
    Position,
    Sequenced,
)
from rulesets.term import Apply, Rest, Spread, Term, Variable


def expand_terms(terms: tuple[Term, ...], count: int) -> tuple[Term, ...]:
    """Write out the rest variables of terms for `count` elements."""
    return tuple(_term(term, count, None) for term in terms)


def expand_condition(condition: Condition, count: int) -> tuple[Condition, ...]:
    """Write out a condition; one that speaks of each element becomes `count` of them."""
    each = any(tensor.each for tensor in condition.tensors)
    each = each or any(map(_is_each, condition.expressions))
    return tuple(
        replace(
            condition,
            tensors=tuple(_parameter(tensor, at) for tensor in condition.tensors),
            expressions=tuple(expand(e, count, at) for e in condition.expressions),
        )
        for at in (range(count) if each else (None,))
    )


def _is_each(expression: Expression) -> bool:
    match expression:
        case Parameter(each=each):
            return each
        case Position():
            return True
        case Call(arguments=arguments):
            return any(map(_is_each, arguments))
        case Sequenced(items=items):
            return any(_is_each(item) for item in items if not isinstance(item, Each))
    return False


def _term(term: Term, count: int, at: int | None) -> Term:
    if isinstance(term, Rest):
        return Variable(f"{term.name}.{at}")
    if not isinstance(term, Apply):
        return term
    return replace(
        term,
        attributes=tuple((name, expand(e, count, at)) for name, e in term.attributes),
        arguments=tuple(
            made for argument in term.arguments for made in _argument(argument, count, at)
        ),
    )


def _argument(term: Term, count: int, at: int | None) -> tuple[Term, ...]:
    if isinstance(term, Spread):
        return tuple(_term(term.body, count, each) for each in range(count))
    if isinstance(term, Rest) and at is None:
        return tuple(Variable(f"{term.name}.{each}") for each in range(count))
    return (_term(term, count, at),)


def expand(expression: Expression, count: int, at: int | None) -> Expression:
    """Write out an expression, inside the element at position `at` if there is one."""
    match expression:
        case Parameter():
            return _parameter(expression, at)
        case Position() if at is not None:
            return Number(at)
        case Call():
            arguments = tuple(expand(each, count, at) for each in expression.arguments)
            return replace(expression, arguments=arguments)
        case Sequenced(items=items):
            return Sequenced(
                tuple(
                    expand(item.body if isinstance(item, Each) else item, count, position)
                    for item in items
                    for position in (range(count) if isinstance(item, Each) else (at,))
                )
            )
    return expression


def _parameter(parameter: Parameter, at: int | None) -> Parameter:
    return Parameter(f"{parameter.name}.{at}") if parameter.each else parameter

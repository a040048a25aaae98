"""Checks that a rule can be: every operator, attribute and variable is known."""

from collections.abc import Iterator

from rulesets.condition import Condition
from rulesets.errors import RuleError
from rulesets.expression import (
    FUNCTIONS,
    Call,
    Each,
    Expression,
    Number,
    Parameter,
    Sequenced,
    Text,
)
from rulesets.ops import OPERATORS
from rulesets.term import (
    Apply,
    Rest,
    Select,
    Spread,
    Term,
    Variable,
    applications,
    subterms,
)

type Terms = tuple[Term, ...]


def tensor_variables(terms: Terms) -> frozenset[str]:
    """Return the tensor variables of terms, labels included, rest variables not."""
    found: set[str] = set()
    for term in _all(terms):
        if isinstance(term, Variable):
            found.add(term.name)
        elif isinstance(term, Apply) and term.label is not None:
            found.add(term.label)
    return frozenset(found)


def rest_variables(terms: Terms) -> frozenset[str]:
    """Return the rest variables of terms."""
    return frozenset(t.name for t in _all(terms) if isinstance(t, Rest | Select))


def attribute_variables(terms: Terms) -> frozenset[str]:
    """Return the attribute variables that terms mention, and bundles as ``..k``."""
    found: set[str] = set()
    for term in _all(terms):
        if isinstance(term, Select):
            found |= attributes_in(term.index)
        elif isinstance(term, Apply):
            if term.bundle is not None:
                found.add(f"..{term.bundle}")
            for _, expression in term.attributes:
                found |= attributes_in(expression)
    return frozenset(found)


def attributes_in(expression: Expression | Each) -> frozenset[str]:
    """Return the attribute variables of an expression."""
    return frozenset(p.name for p, of_tensor in _parameters(expression) if not of_tensor)


def tensors_in(expression: Expression | Each) -> frozenset[str]:
    """Return the tensor variables of an expression."""
    return frozenset(p.name for p, of_tensor in _parameters(expression) if of_tensor)


def _parameters(expression: Expression | Each) -> Iterator[tuple[Parameter, bool]]:
    match expression:
        case Parameter():
            yield expression, False
        case Each(body=body):
            yield from _parameters(body)
        case Sequenced(items=items):
            for item in items:
                yield from _parameters(item)
        case Call(function=function, arguments=arguments):
            for position, argument in enumerate(arguments):
                if FUNCTIONS[function].on_tensor and position == 0:
                    assert isinstance(argument, Parameter)
                    yield argument, True
                else:
                    yield from _parameters(argument)


def _all(terms: Terms) -> Iterator[Term]:
    return (each for term in terms for each in subterms(term))


def check_rule(lhs: Terms, rhs: Terms, where: tuple[Condition, ...]) -> None:
    """Check the parts of a rule against one another and against the operators.

    Raises:
        RuleError: What is wrong, and what is possible.
    """
    if len(lhs) != len(rhs) or not lhs:
        raise RuleError(f"{len(lhs)} left sides and {len(rhs)} right sides; one for each")
    for side in lhs:
        if not isinstance(side, Apply):
            raise RuleError("a left side must be an operator application '(Op ...)'")
    for application in (each for side in (*lhs, *rhs) for each in applications(side)):
        _check_application(application)
    for application in (each for side in lhs for each in applications(side)):
        for name, expression in application.attributes:
            _check_pattern(name, expression)
    _check_bound(lhs, rhs, where)


def _check_application(application: Apply) -> None:
    operator = OPERATORS.get(application.op)
    if operator is None:
        raise RuleError(
            f"unknown operator {application.op!r}; known: {', '.join(sorted(OPERATORS))}"
        )
    known = {each.name: each for each in operator.attributes}
    for name, _ in application.attributes:
        if name not in known:
            raise RuleError(
                f"{application.op} has no attribute {name!r}; it has: "
                f"{', '.join(known) or 'none'}"
            )
    missing = [
        each.name
        for each in operator.attributes
        if each.default is None and each.name not in dict(application.attributes)
    ]
    if missing and application.bundle is None:
        raise RuleError(
            f"{application.op} needs attribute {missing[0]!r}; "
            f"write {missing[0]}=... or ..k for all"
        )
    _check_arity(application)


def _check_arity(application: Apply) -> None:
    least, most = OPERATORS[application.op].arity
    many = any(isinstance(each, Rest | Spread) for each in application.arguments)
    count = len(application.arguments)
    if (count < least and not many) or (most is not None and count > most):
        wanted = f"{least}" if least == most else f"{least} to {most or 'any number'}"
        raise RuleError(f"{application.op} takes {wanted} arguments, found {count}")


def _check_pattern(name: str, expression: Expression | Each) -> None:
    if isinstance(expression, Sequenced):
        for item in expression.items:
            _check_pattern(name, item)
    elif isinstance(expression, Call | Each):
        raise RuleError(
            f"attribute {name!r} of a left side is computed; possible: a number, a text, "
            "a variable, a list of these; put the computation into 'where'"
        )
    else:
        assert not isinstance(expression, Number | Text) or expression.value is not None


def _check_bound(lhs: Terms, rhs: Terms, where: tuple[Condition, ...]) -> None:
    tensors = tensor_variables(lhs) | rest_variables(lhs)
    attributes = attribute_variables(lhs)
    used_tensors = set(tensor_variables(rhs) | rest_variables(rhs))
    used_attributes = set(attribute_variables(rhs))
    expressions: list[Expression] = [e for c in where for e in c.expressions]
    expressions += [
        expression
        for side in rhs
        for application in applications(side)
        for _, expression in application.attributes
    ]
    for condition in where:
        used_tensors |= {tensor.name for tensor in condition.tensors}
    for expression in expressions:
        used_tensors |= tensors_in(expression)
        used_attributes |= attributes_in(expression)
    for used, bound in ((used_tensors, tensors), (used_attributes, attributes)):
        for name in sorted(used - bound):
            known = ", ".join(sorted(bound)) or "none"
            raise RuleError(f"?{name} is not bound by the left side; bound: {known}")

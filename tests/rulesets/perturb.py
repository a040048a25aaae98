"""Wrong rules from right ones: each differs in one place of its right side or conditions.

Arguments change places, an operator becomes a similar one, a number grows or shrinks, a
variable becomes another one, an application vanishes, a condition is forgotten. Most are
wrong; a verifier that proves one of those is unsound.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from rulesets.condition import parse_condition
from rulesets.errors import RulesetsError
from rulesets.expression import Call, Each, Expression, Number, Sequenced
from rulesets.rule import Rule
from rulesets.term import Apply, Literal, Spread, Term, Variable
from rulesets.validate import check_rule, tensor_variables

SIMILAR = {
    "Add": ("Sub", "Mul"),
    "Sub": ("Add",),
    "Mul": ("Add", "Div"),
    "Div": ("Mul",),
    "Max": ("Min",),
    "Min": ("Max",),
    "Relu": ("Abs", "Identity"),
    "Sqrt": ("Abs",),
    "Neg": ("Identity", "Abs"),
    "Sigmoid": ("Tanh",),
    "Tanh": ("Sigmoid",),
    "Exp": ("Sigmoid",),
    "Reciprocal": ("Neg",),
    "ReduceSum": ("ReduceMean", "ReduceMax"),
    "ReduceMean": ("ReduceSum", "ReduceMax"),
    "ReduceMax": ("ReduceMin", "ReduceMean"),
    "ReduceMin": ("ReduceMax",),
    "GlobalAveragePool": ("GlobalMaxPool",),
    "GlobalMaxPool": ("GlobalAveragePool",),
    "Softmax": ("LogSoftmax",),
    "Sum": ("Max",),
}


def perturbed(rule: Rule) -> Iterator[Rule]:
    """Yield rules that differ from this one in one place."""
    variables = sorted(tensor_variables(rule.lhs))
    for position, side in enumerate(rule.rhs):
        for changed in _terms(side, variables):
            rhs = (*rule.rhs[:position], changed, *rule.rhs[position + 1 :])
            yield from _checked(replace(rule, rhs=rhs))
    for position, condition in enumerate(rule.where):
        if condition.word not in ("const", "varying"):
            where = rule.where[:position] + rule.where[position + 1 :]
            yield from _checked(replace(rule, where=where))
        if condition.word in ("<=", "<"):
            other = {"<=": ">=", "<": ">="}[condition.word]
            text = condition.text.replace(f" {condition.word} ", f" {other} ", 1)
            changed_condition = parse_condition(text)
            rest = rule.where[:position] + rule.where[position + 1 :]
            yield from _checked(replace(rule, where=(*rest, changed_condition)))


def _checked(rule: Rule) -> Iterator[Rule]:
    try:
        check_rule(rule.lhs, rule.rhs, rule.where)
    except RulesetsError:
        return
    yield rule


def _terms(term: Term, variables: list[str]) -> Iterator[Term]:
    match term:
        case Variable(name=name):
            yield from (Variable(other) for other in variables if other != name)
        case Literal(value=value):
            yield Literal(value + 1)
            yield Literal(-value)
        case Spread(body=body):
            for changed in _terms(body, variables):
                if isinstance(changed, Apply):
                    yield Spread(changed)
        case Apply():
            yield from _applications(term, variables)


def _applications(term: Apply, variables: list[str]) -> Iterator[Term]:
    arguments = term.arguments
    if len(arguments) >= 2:
        yield replace(term, arguments=(arguments[1], arguments[0], *arguments[2:]))
    if arguments and not isinstance(arguments[0], Spread):
        yield arguments[0]
    for op in SIMILAR.get(term.op, ()):
        yield replace(term, op=op)
    for position, argument in enumerate(arguments):
        for changed in _terms(argument, variables):
            new = (*arguments[:position], changed, *arguments[position + 1 :])
            yield replace(term, arguments=new)
    for position, (name, expression) in enumerate(term.attributes):
        for other in _expressions(expression):
            pair = (name, other)
            attributes = (
                *term.attributes[:position],
                pair,
                *term.attributes[position + 1 :],
            )
            yield replace(term, attributes=attributes)


def _expressions(expression: Expression) -> Iterator[Expression]:
    match expression:
        case Number(value=value):
            yield Number(value + 1)
            yield Number(value - 1)
        case Sequenced(items=items):
            if len(items) > 1:
                yield Sequenced((*items[1:], items[0]))
            yield from _inside(items, lambda new: Sequenced(new))
        case Call(function=function, arguments=arguments):
            if len(arguments) == 2 and function not in ("dim", "shape", "rank"):
                yield Call(function, (arguments[1], arguments[0]))
            if function == "dim":
                (tensor, axis) = arguments
                yield from (Call("dim", (tensor, other)) for other in _expressions(axis))
            elif function in ("+", "-", "*"):
                for other in {"+": ("-",), "-": ("+",), "*": ("+",)}[function]:
                    yield Call(other, arguments)
                yield from _inside(arguments, lambda new: Call(function, new))


def _inside(
    items: tuple[Expression | Each, ...], make: Callable[..., Expression]
) -> Iterator[Expression]:
    for position, item in enumerate(items):
        if isinstance(item, Each):
            continue
        for changed in _expressions(item):
            yield make((*items[:position], changed, *items[position + 1 :]))

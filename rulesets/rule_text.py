"""Terms and tables of rules as text, in the syntax of rule files."""

import re
from collections.abc import Iterator

from rulesets.expression import Call, Each, Expression, Number, Parameter, Sequenced, Text
from rulesets.match import Value
from rulesets.term import Apply, Literal, Term, Variable


def term_text(term: Term) -> str:
    """Return a term in the syntax that `rulesets.term` reads."""
    match term:
        case Variable(name=name):
            return f"?{name}"
        case Literal(value=value):
            return f"{value:g}" if float(f"{value:g}") == value else repr(value)
        case Apply():
            inner = [term_text(each) for each in term.arguments]
            given = [f"{n}={expression_text(v)}" for n, v in term.attributes]
            given += [f"..{term.bundle}"] if term.bundle is not None else []
            head = f"{term.op}[{', '.join(given)}]" if given else term.op
            label = f"?{term.label}:" if term.label is not None else ""
            return f"{label}({' '.join([head, *inner])})"
    raise AssertionError(f"{term} has no text here")


def expression_text(value: Expression | Each) -> str:
    """Return an expression in the syntax that `rulesets.term` reads."""
    match value:
        case Number(value=number):
            return str(number)
        case Text(value=text):
            return f'"{text}"'
        case Parameter(name=name, each=each):
            return f"?{name}{'...' if each else ''}"
        case Sequenced(items=items):
            return f"[{', '.join(map(expression_text, items))}]"
        case Call(function=function, arguments=arguments):
            return f"({' '.join([function, *map(expression_text, arguments)])})"
    raise AssertionError(f"{value} has no text here")


def tables(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each ``[[rule]]`` table of a file."""
    for part in re.split(r"^(?=\[\[rule\]\])", text, flags=re.MULTILINE):
        name = re.search(r'^name\s*=\s*"([^"]*)"', part, re.MULTILINE)
        if name is not None:
            yield name[1], part


def reversed_text(text: str) -> str:
    """Return the table of a rule the other way round, without a proof."""
    sides = dict(re.findall(r"^(lhs|rhs) = (.*)$", text, re.MULTILINE))
    text = replaced(r"^lhs = .*$", f"lhs = {sides['rhs']}", text)
    text = replaced(r"^rhs = .*$", f"rhs = {sides['lhs']}", text)
    text = replaced(r"^proof = .*\n", "", text)
    return re.sub(r'^name = "([^"]*)"', r'name = "\1.reverse"', text, flags=re.MULTILINE)


def replaced(pattern: str, line: str, text: str) -> str:
    """Return a text with every line that matches a pattern replaced."""
    return re.sub(pattern, lambda _: line, text, flags=re.MULTILINE)


def value_text(value: Value) -> str:
    """Return an attribute's value in the syntax of instances."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(value_text, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)

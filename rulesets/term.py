"""Terms: the sides of a rule, and the parser for them.

    term := ?x | ?xs... | ?xs[expr] | 3.0 | (Op[attribute=expr, ..k] term*)
          | ?y:(Op ...) | (Op ...)...

``?x`` stands for any tensor, ``?xs...`` for the remaining arguments, ``?xs[0]`` (on the
right) for one of them, a number for a
constant with one element, ``?y:`` names what the application yields, and ``(Op ...)...``
is written out once for each element of the rest variable inside it, where ``?xs...`` is
that element and ``#`` its position. ``..k`` stands for all attributes not mentioned.
Expressions are those of `rulesets.expression`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rulesets.errors import TermError
from rulesets.expression import (
    FUNCTIONS,
    Call,
    Each,
    Expression,
    Number,
    Parameter,
    Position,
    Sequenced,
    Text,
)


@dataclass(frozen=True, slots=True)
class Variable:
    """``?x``: any tensor; the same name is the same tensor."""

    name: str


@dataclass(frozen=True, slots=True)
class Rest:
    """``?xs...``: the remaining arguments, or in a spread the current one."""

    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """``?xs[expr]``: one element of a rest variable, chosen by an attribute (right)."""

    name: str
    index: Expression


@dataclass(frozen=True, slots=True)
class Literal:
    """A number: a constant with one element of this value (left), of rank 0 (right)."""

    value: float


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator over arguments.

    Attributes:
        op: Canonical operator name.
        attributes: Mentioned attributes: name and expression, in the order written.
        bundle: The ``k`` of ``..k``, or None.
        arguments: The tensor arguments.
        label: The ``y`` of ``?y:``, or None.
    """

    op: str
    attributes: tuple[tuple[str, Expression], ...] = ()
    bundle: str | None = None
    arguments: tuple["Term", ...] = ()
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """``(Op ...)...``: the application once for each element of the rest variable."""

    body: Apply


type Term = Variable | Rest | Select | Literal | Apply | Spread


def subterms(term: Term) -> Iterator[Term]:
    """Yield a term and everything in it, outside first."""
    yield term
    if isinstance(term, Spread):
        yield from subterms(term.body)
    elif isinstance(term, Apply):
        for argument in term.arguments:
            yield from subterms(argument)


def applications(term: Term) -> Iterator[Apply]:
    """Yield the operator applications of a term, outside first."""
    return (each for each in subterms(term) if isinstance(each, Apply))


# -- the parser --------------------------------------------------------------------------

_TOKENS = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<variable>\?[A-Za-z_][A-Za-z0-9_.]*(?<!\.))
    | (?P<number>-?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|inf\b))
    | (?P<text>"[^"\n]*")
    | (?P<dots>\.\.\.?)
    | (?P<name>[A-Za-z_][A-Za-z0-9_-]*)
    | (?P<mark>//|!=|<=|>=|[-+*/%()\[\],=:<>\#])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text: its kind, its letters, and where it starts."""

    kind: str
    text: str
    offset: int


class Reader:
    """Reads terms and expressions from one text, left to right."""

    def __init__(self, text: str) -> None:
        """Split `text` into tokens.

        Raises:
            TermError: A character that begins no token.
        """
        self.text = text
        self.tokens = list(_tokens(text))
        self.position = 0

    def fail(self, reason: str) -> TermError:
        """Make the error that says `reason` at the current token."""
        return TermError(reason, self.text, self.tokens[self.position].offset)

    @property
    def token(self) -> Token:
        """The current token; its kind is ``end`` behind the last."""
        return self.tokens[self.position]

    def at(self, text: str) -> bool:
        """Say whether the current token reads `text`."""
        return self.token.text == text and self.token.kind != "text"

    def take(self, kind: str, wanted: str) -> str:
        """Read a token of this kind, called `wanted` in the error text."""
        token = self.token
        if token.kind != kind:
            raise self.fail(f"{wanted} expected, found {token.text or 'the end'!r}")
        self.position += 1
        return token.text

    def accept(self, text: str) -> bool:
        """Read the token `text` if it comes next."""
        found = self.at(text)
        self.position += found
        return found

    def expect(self, text: str) -> None:
        """Read the token `text`."""
        if not self.accept(text):
            raise self.fail(f"{text!r} expected, found {self.token.text or 'the end'!r}")

    def end(self) -> None:
        """Check that nothing is left."""
        if self.token.kind != "end":
            raise self.fail(f"the end expected, found {self.token.text!r}")

    # terms

    def term(self) -> Term:
        """Read a term."""
        kind = self.token.kind
        if kind == "number":
            return Literal(float(self.take("number", "a number")))
        if kind == "variable":
            name = self.take("variable", "a variable")[1:]
            if self.accept(":"):
                return self._spread(self._apply(name))
            if self.accept("["):
                index = self.expression()
                self.expect("]")
                return Select(name, index)
            return Rest(name) if self.accept("...") else Variable(name)
        if self.at("("):
            return self._spread(self._apply(None))
        raise self.fail(
            f"a term ('?x', a number or '(Op ...)') expected, "
            f"found {self.token.text or 'the end'!r}"
        )

    def _spread(self, body: Apply) -> Apply | Spread:
        return Spread(body) if self.accept("...") else body

    def _apply(self, label: str | None) -> Apply:
        self.expect("(")
        op = self.take("name", "an operator")
        attributes, bundle = self._attributes() if self.accept("[") else ((), None)
        arguments = []
        while not self.accept(")"):
            arguments.append(self.term())
        return Apply(op, attributes, bundle, tuple(arguments), label)

    def _attributes(self) -> tuple[tuple[tuple[str, Expression], ...], str | None]:
        attributes: list[tuple[str, Expression]] = []
        bundle = None
        while True:
            if self.accept(".."):
                bundle = self.take("name", "the name of a bundle")
            else:
                name = self.take("name", "an attribute")
                if name in dict(attributes):
                    raise self.fail(f"attribute {name!r} is given twice")
                self.expect("=")
                attributes.append((name, self.expression()))
            if self.accept("]"):
                return tuple(attributes), bundle
            self.expect(",")

    # expressions

    def expression(self) -> Expression:
        """Read an expression."""
        kind, text = self.token.kind, self.token.text
        if kind == "number":
            self.position += 1
            return Number(int(text) if re.fullmatch(r"-?\d+", text) else float(text))
        if kind == "text":
            self.position += 1
            return Text(text[1:-1])
        if kind == "variable":
            return self.parameter()
        if self.accept("#"):
            return Position()
        if self.accept("["):
            return self._list()
        if self.accept("("):
            call = self.call()
            self.expect(")")
            return call
        raise self.fail(f"an expression expected, found {text or 'the end'!r}")

    def parameter(self) -> Parameter:
        """Read ``?p`` or ``?ps...``."""
        name = self.take("variable", "a variable")[1:]
        return Parameter(name, self.accept("..."))

    def _list(self) -> Sequenced:
        items: list[Expression | Each] = []
        while not self.accept("]"):
            if items:
                self.expect(",")
            item = self.expression()
            items.append(Each(item) if self.accept("...") else item)
        return Sequenced(tuple(items))

    def at_function(self) -> bool:
        """Say whether the current token names a function."""
        return self.token.kind in ("name", "mark") and self.token.text in FUNCTIONS

    def call(self) -> Call:
        """Read a function and its arguments, without the parentheses around them."""
        if not self.at_function():
            known = " ".join(FUNCTIONS)
            raise self.fail(f"unknown function {self.token.text!r}; known: {known}")
        name = self.token.text
        self.position += 1
        function = FUNCTIONS[name]
        arguments: list[Expression] = []
        while self._at_argument():
            wants_tensor = function.on_tensor and not arguments
            arguments.append(self.parameter() if wants_tensor else self.expression())
        least, most = function.arity
        if len(arguments) < least or (most is not None and len(arguments) > most):
            wanted = f"{least}" if least == most else f"{least} or more"
            raise self.fail(f"{name!r} takes {wanted} arguments, found {len(arguments)}")
        return Call(name, tuple(arguments))

    def _at_argument(self) -> bool:
        kind, text = self.token.kind, self.token.text
        return kind in ("number", "text", "variable") or text in ("(", "[", "#")


def _tokens(text: str) -> Iterator[Token]:
    offset = 0
    while offset < len(text):
        found = _TOKENS.match(text, offset)
        if found is None:
            raise TermError(f"{text[offset]!r} begins nothing here", text, offset)
        if found.lastgroup != "space":
            yield Token(found.lastgroup or "", found.group(), offset)
        offset = found.end()
    yield Token("end", "", len(text))


def parse_term(text: str) -> Term:
    """Read one term.

    Raises:
        TermError: The text is no term; the error says where.
    """
    reader = Reader(text)
    term = reader.term()
    reader.end()
    return term

"""The text of published equations: ``left == right``, one a line, ``#`` for comments.

Terms are ``operator(argument,...)`` with whole numbers and terms as arguments. Numbers come
first, except that some files have an activation or a rank among them that says nothing new.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rulesets.errors import RuleFileError

_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z_0-9]*|\d+|[(),])")


@dataclass(frozen=True, slots=True, eq=False)
class Raw:
    """A term as published: two are equal only if they are the same object.

    Attributes:
        name: Operator, constant or variable; a variable is one object in its equation.
        numbers: The whole numbers among the arguments.
        tensors: The terms among the arguments.
    """

    name: str
    numbers: tuple[int, ...] = ()
    tensors: tuple["Raw", ...] = ()

    @property
    def variable(self) -> bool:
        """Whether it is a variable."""
        return self.name.startswith("input")


@dataclass(frozen=True, slots=True)
class Published:
    """An equation of a file.

    Attributes:
        line: Its line, from 1.
        text: As published.
        sides: Left and right.
    """

    line: int
    text: str
    sides: tuple[Raw, Raw]


def read(text: str, file: str) -> tuple[Published, ...]:
    """Read the equations of a file.

    Raises:
        RuleFileError: A line is no equation.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split("==")
        if len(parts) != 2:
            raise RuleFileError(f"{file}, line {number}: 'left == right' expected")
        variables: dict[str, Raw] = {}
        try:
            lhs, rhs = _side(parts[0], variables), _side(parts[1], variables)
        except (ValueError, StopIteration) as error:
            reason = str(error) or "the line ends too early"
            raise RuleFileError(f"{file}, line {number}: {reason}") from error
        found.append(Published(number, line.strip(), (lhs, rhs)))
    return tuple(found)


def _side(text: str, variables: dict[str, Raw]) -> Raw:
    tokens = _tokens(text)
    term = _term(next(tokens), tokens, variables)
    rest = next(tokens, None)
    if rest is not None and rest[0]:
        raise ValueError(f"{rest[0]!r} is left over")
    return term


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield each token with the one behind it."""
    found = _TOKEN.findall(text)
    if "".join(found) != re.sub(r"\s", "", text):
        raise ValueError(f"{text.strip()!r} has characters that mean nothing here")
    return zip(found, [*found[1:], ""], strict=True)


def _term(
    token: tuple[str, str], tokens: Iterator[tuple[str, str]], variables: dict[str, Raw]
) -> Raw:
    name, following = token
    if following != "(":
        raw = Raw(name)
        return variables.setdefault(name, raw) if raw.variable else raw
    next(tokens)
    numbers: list[int] = []
    tensors: list[Raw] = []
    while True:
        argument = next(tokens)
        if argument[0].isdigit():
            numbers.append(int(argument[0]))
        else:
            tensors.append(_term(argument, tokens, variables))
        if next(tokens)[0] == ")":
            return Raw(name, tuple(numbers), tuple(tensors))

"""A law: an equation as rules in the text of our rule files.

Each direction is a rule of its own: attributes with sizes become variables with a condition
on the left and computed expressions on the right. Ranks are always stated, and so is every
equality of sizes that the left side does not force by itself.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rulesets.equation import Equation
from rulesets.errors import RuleError
from rulesets.freedom import Freed, free
from rulesets.ground import Ground, Leaf, Node, leaves, numbers, subterms
from rulesets.rule import Rule
from rulesets.size import Poly, Size, evaluate, symbols
from rulesets.store import parse_file

BATCH_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Law:
    """An equation with the rules that say it.

    Attributes:
        name: Unique in its file; the reverse rule is called NAME.reverse.
        equation: As found.
        texts: The table of each rule, in the format of rule files.
        rules: The rules, read back from the texts.
    """

    name: str
    equation: Equation
    texts: tuple[str, ...]
    rules: tuple[Rule, ...]


class _UnwritableError(Exception):
    """This direction cannot be a rule: something on the right is not bound on the left."""


def law(
    equation: Equation, name: str, env: Mapping[str, int], tag: str = "reassociates"
) -> Law | None:
    """Write an equation as rules, in every direction that can be one.

    Args:
        equation: The equation.
        name: The name of the forward rule.
        env: Values for the symbols, for the instance.
        tag: What rounding does.
    """
    freed = free(equation)
    values = _block_values(freed, env)
    texts: list[str] = []
    rules: list[Rule] = []
    sides = (freed.equation.lhs, freed.equation.rhs)
    for lhs, rhs, suffix in ((*sides, ""), (*sides[::-1], ".reverse")):
        try:
            text = _Writer(freed, values).rule(lhs, rhs, name + suffix, tag, bool(suffix))
            rules += parse_file(text, "generated.toml")
        except (_UnwritableError, RuleError):
            continue
        texts.append(text)
    return Law(name, equation, tuple(texts), tuple(rules)) if texts else None


def name_of(equation: Equation, taken: Iterable[str]) -> str:
    """Return a name that tells the operators of both sides and is not taken."""
    sides = [_operators(side) for side in (equation.lhs, equation.rhs)]
    base = "-is-".join("-".join(side) or "same" for side in sides)[:60].strip("-")
    known, number, name = set(taken), 1, base
    while name in known:
        number += 1
        name = f"{base}-{number}"
    return name


def _operators(term: Ground) -> list[str]:
    if isinstance(term, Leaf):
        return []
    inner = [name for argument in term.arguments for name in _operators(argument)]
    own = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", term.op).lower().replace("mat-mul", "matmul")
    return inner if term.op == "Output" else [own, *inner]


def _block_values(freed: Freed, env: Mapping[str, int]) -> dict[str, int]:
    """Different values for the blocks, near those of the old symbols."""
    values: dict[str, int] = {}
    for block in freed.places:
        base = env[block.rstrip("'0123456789")]
        values[block] = base if block in env else base + 1 + len(values) % 3
    return values


@dataclass(slots=True)
class _Writer:
    """Writes one direction."""

    freed: Freed
    values: Mapping[str, int]
    names: dict[str, str] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    where: list[str] = field(default_factory=list)
    instance: dict[str, str] = field(default_factory=dict)
    parameters: int = 0

    def rule(self, lhs: Ground, rhs: Ground, name: str, tag: str, back: bool) -> str:
        """Return the table of the rule."""
        if isinstance(lhs, Leaf) or not lhs.arguments or lhs in set(subterms(rhs)):
            raise _UnwritableError  # no operator to match, or a rule that never ends
        own = leaves(lhs)
        if not set(leaves(rhs)) <= set(own):
            raise _UnwritableError
        for leaf, letter in zip(own, BATCH_LETTERS, strict=False):
            self.names[leaf.name] = letter
            self.instance[letter] = ",".join(map(str, numbers(leaf.shape, self.values)))
        self._sizes(own, back)
        left = self._left(lhs)
        right = self._right(rhs)
        lines = [
            "[[rule]]",
            f'name = "{name}"',
            f"lhs = '{left}'",
            f"rhs = '{right}'",
            f"where = [{', '.join(f'"{each}"' for each in dict.fromkeys(self.where))}]",
            f'float = {{ tag = "{tag}" }}',
            f"instances = [{{ {', '.join(self._given())} }}]",
        ]
        return "\n".join(lines) + "\n"

    def _given(self) -> list[str]:
        return [
            f'{name} = "{value}"' if name in self.names.values() else f"{name} = {value}"
            for name, value in self.instance.items()
        ]

    def _sizes(self, own: tuple[Leaf, ...], back: bool) -> None:
        """State ranks and equal sizes, and learn how to write each block."""
        for leaf in own:
            letter = self.names[leaf.name]
            self.where.append(f"rank ?{letter} = {len(leaf.shape)}")
            for axis, size in enumerate(leaf.shape):
                here = f"(dim ?{letter} {axis})"
                if isinstance(size, int):
                    self.where.append(f"dim ?{letter} {axis} = {size}")
                    continue
                (block,) = symbols(size)
                if block not in self.known:
                    self.known[block] = here
                elif back or not self._is_forced(block, leaf, axis):
                    self.where.append(f"dim ?{letter} {axis} = {self.known[block]}")

    def _is_forced(self, block: str, leaf: Leaf, axis: int) -> bool:
        """Whether the left side makes this axis equal to the block's first one."""
        members = [place for place in self.freed.places[block] if not place.startswith("@")]
        first = next(p for p in members if self._text(p) == self.known[block])
        this = next(p for p in members if p.startswith(f"{leaf.name}.{axis}."))
        return frozenset((first, this)) in self.freed.forced

    def _text(self, place: str) -> str:
        name, axis, _ = place.split(".", 2)
        return f"(dim ?{self.names.get(name, '-')} {axis})"

    # ------------------------------------------------------------------ terms
    def _left(self, term: Ground) -> str:
        if isinstance(term, Leaf):
            return f"?{self.names[term.name]}"
        inner = [self._left(argument) for argument in term.arguments]
        return _written(term, [(n, self._bound(v)) for n, v in term.attributes], inner)

    def _right(self, term: Ground) -> str:
        if isinstance(term, Leaf):
            return f"?{self.names[term.name]}"
        inner = [self._right(argument) for argument in term.arguments]
        return _written(term, [(n, self._computed(v)) for n, v in term.attributes], inner)

    def _bound(self, value: object) -> str:
        """An attribute on the left: sizes become variables with a condition."""
        if isinstance(value, tuple):
            if any(isinstance(one, Poly) for one in value):
                return f"[{', '.join(self._variable(one) for one in value)}]"
            return f"[{', '.join(map(str, value))}]"
        return self._variable(value) if isinstance(value, Poly) else _literal(value)

    def _variable(self, size: Size) -> str:
        letter = f"p{self.parameters}"
        self.parameters += 1
        self.instance[letter] = str(evaluate(size, self.values))
        unknown = [one for one in symbols(size) if one not in self.known]
        if not unknown:
            self.where.append(f"?{letter} = {self._size(size)}")
        elif isinstance(size, Poly) and size == _only(unknown):
            self.known[unknown[0]] = f"?{letter}"
        else:
            raise _UnwritableError
        return f"?{letter}"

    def _computed(self, value: object) -> str:
        if isinstance(value, tuple):
            return f"[{', '.join(self._computed(one) for one in value)}]"
        return self._size(value) if isinstance(value, Poly) else _literal(value)

    def _size(self, size: Size) -> str:
        """A size as an expression over what the left side binds."""
        if isinstance(size, int):
            return str(size)
        terms = []
        for monomial, number in size.terms:
            factors = [] if number == 1 and monomial else [str(number)]
            for atom, power in monomial:
                if not isinstance(atom, str) or atom not in self.known:
                    raise _UnwritableError
                factors += [self.known[atom]] * power
            terms.append(factors[0] if len(factors) == 1 else f"(* {' '.join(factors)})")
        return terms[0] if len(terms) == 1 else f"(+ {' '.join(terms)})"


def _only(names: list[str]) -> Poly:
    return Poly((((((names[0], 1),)), 1),))


def _literal(value: object) -> str:
    return f'\\"{value}\\"' if isinstance(value, str) else str(value)


def _written(term: Node, attributes: list[tuple[str, str]], inner: list[str]) -> str:
    shown = [f"{name}={value}" for name, value in attributes if name != "dtype"]
    head = f"{term.op}[{', '.join(shown)}]" if shown else term.op
    return f"({' '.join([head, *inner])})"

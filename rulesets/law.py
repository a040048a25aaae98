"""A law: an equation as rules in the text of our rule files.

Each direction is a rule of its own: attributes with sizes become variables with a condition
on the left and computed expressions on the right. Ranks are always stated, and so is every
equality of sizes that the left side does not force by itself.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from rulesets.equation import Equation
from rulesets.errors import RuleError, ShapeError
from rulesets.freedom import Freed, free
from rulesets.ground import Ground, Leaf, Node, leaves, numbers, rename, subterms
from rulesets.rule import Rule
from rulesets.size import Poly, Size, evaluate, symbol, symbols
from rulesets.store import parse_file

LETTERS = "abcdefghijklmnoqrsuvwxyz"
"""Names of tensors; ``t`` is an element type and ``p0`` a size."""


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
    texts: list[str] = []
    rules: list[Rule] = []
    back = Equation(equation.rhs, equation.lhs)
    for one, suffix in ((equation, ""), (back, ".reverse")):
        try:
            text = _text((one,), name + suffix, env, tag)
            rules += parse_file(text, "generated.toml")
        except (_UnwritableError, RuleError, ShapeError):
            continue
        texts.append(text)
    return Law(name, equation, tuple(texts), tuple(rules)) if texts else None


def merging(
    pair: tuple[Equation, Equation], name: str, env: Mapping[str, int], tag: str = "exact"
) -> Law | None:
    """Write two equations as one rule with two roots, from their right sides to their left.

    Args:
        pair: Left sides are the two outputs of one Split, right sides what they equal.
        name: The name of the rule.
        env: Values for the symbols, for the instance.
        tag: What rounding does.
    """
    turned = tuple(Equation(one.rhs, one.lhs) for one in pair)
    try:
        text = _text(turned, name, env, tag)
        rules = parse_file(text, "generated.toml")
    except (_UnwritableError, RuleError, ShapeError):
        return None
    return Law(name, pair[0], (text,), rules)


def _text(
    equations: tuple[Equation, ...], name: str, env: Mapping[str, int], tag: str
) -> str:
    """Write one rule: from the left sides to the right sides."""
    for one in equations:
        made = set(subterms(one.rhs))
        if isinstance(one.lhs, Leaf) or not one.lhs.arguments or one.lhs in made:
            raise _UnwritableError  # no operator to match, or a rule that never ends
    changed, env = _plain(equations, env)
    freed = free(*changed)
    return _Writer(freed, _block_values(freed, env)).rule(name, tag)


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


def _plain(
    equations: tuple[Equation, ...], env: Mapping[str, int]
) -> tuple[tuple[Equation, ...], Mapping[str, int]]:
    """Give axes of composite size (of leaves that stand for subterms) a symbol each."""
    values = dict(env)
    names: dict[Size, Size] = {}

    def plain(size: Size) -> Size:
        if isinstance(size, int) or size == _only(list(symbols(size))):
            return size
        if size not in names:
            name = f"{'z' * (len(names) + 1)}"
            names[size] = symbol(name)
            values[name] = evaluate(size, env)
        return names[size]

    found = {
        leaf for one in equations for side in (one.lhs, one.rhs) for leaf in leaves(side)
    }
    shapes: dict[Leaf, Ground] = {
        leaf: replace(leaf, shape=tuple(map(plain, leaf.shape))) for leaf in found
    }
    if not names:
        return equations, env

    def change(term: Ground) -> Ground:
        return _renamed_sizes(rename(term, shapes), names)

    return tuple(Equation(change(one.lhs), change(one.rhs)) for one in equations), values


def _renamed_sizes(term: Ground, names: Mapping[Size, Size]) -> Ground:
    """Write attributes with the symbols that stand for composite sizes."""
    if isinstance(term, Leaf):
        return term

    def value(one: object) -> object:
        if isinstance(one, tuple):
            return tuple(map(value, one))
        return names.get(one, one) if isinstance(one, Poly) else one

    attributes = tuple((name, value(given)) for name, given in term.attributes)
    arguments = tuple(_renamed_sizes(each, names) for each in term.arguments)
    return Node(term.op, attributes, arguments)  # type: ignore[arg-type]


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

    def rule(self, name: str, tag: str) -> str:
        """Return the table of the rule."""
        lhs = [one.lhs for one in self.freed.equations]
        rhs = [one.rhs for one in self.freed.equations]
        own = tuple(dict.fromkeys(leaf for side in lhs for leaf in leaves(side)))
        if not {leaf for side in rhs for leaf in leaves(side)} <= set(own):
            raise _UnwritableError
        for leaf, letter in zip(own, LETTERS, strict=False):
            self.names[leaf.name] = letter
            self.instance[letter] = ",".join(map(str, numbers(leaf.shape, self.values)))
        self._sizes(own)
        left = [self._left(side) for side in lhs]
        right = [self._right(side) for side in rhs]
        lines = [
            "[[rule]]",
            f'name = "{name}"',
            f"lhs = {_listed(left)}",
            f"rhs = {_listed(right)}",
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

    def _sizes(self, own: tuple[Leaf, ...]) -> None:
        """State ranks and equal sizes, and learn how to write each block."""
        for leaf in own:
            letter = self.names[leaf.name]
            self.where.append(f"rank ?{letter} = {len(leaf.shape)}")
            for axis, size in enumerate(leaf.shape):
                here = f"(dim ?{letter} {axis})"
                if isinstance(size, int):
                    self.where.append(f"dim ?{letter} {axis} = {size}")
                    continue
                if size != _only(list(symbols(size))[:1]):
                    raise _UnwritableError
                (block,) = symbols(size)
                if block not in self.known:
                    self.known[block] = here
                elif not self._is_forced(block, leaf, axis):
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
        if dict(term.attributes).get("dtype") is not None:
            self.instance["t"] = '"float64"'
        given = [(n, "?t" if n == "dtype" else self._bound(v)) for n, v in term.attributes]
        return _written(term, given, inner)

    def _right(self, term: Ground) -> str:
        if isinstance(term, Leaf):
            return f"?{self.names[term.name]}"
        inner = [self._right(argument) for argument in term.arguments]
        dtype = f"(dtype ?{next(iter(self.names.values()))})" if self.names else "?t"
        given = [
            (n, dtype if n == "dtype" else self._computed(v)) for n, v in term.attributes
        ]
        return _written(term, given, inner)

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


def _listed(texts: list[str]) -> str:
    if len(texts) == 1:
        return f"'{texts[0]}'"
    return "[\n" + "".join(f"  '{text}',\n" for text in texts) + "]"


def _only(names: list[str]) -> Size:
    return symbol(names[0])


def _literal(value: object) -> str:
    return f'\\"{value}\\"' if isinstance(value, str) else str(value)


def _written(term: Node, attributes: list[tuple[str, str]], inner: list[str]) -> str:
    shown = [f"{name}={value}" for name, value in attributes]
    head = f"{term.op}[{', '.join(shown)}]" if shown else term.op
    return f"({' '.join([head, *inner])})"

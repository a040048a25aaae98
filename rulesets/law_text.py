"""The text of a rule: one direction of an equation, in one of several forms.

The *plain* form is about the ranks and axes at which the equation was found. The *axis*
form is about any rank: all operators act on single elements, or join and cut along one axis
that becomes a variable. The *window* form leaves strides, pads and dilations open: they are
a bundle, equal wherever the operator stands; *grouped* is the same without groups.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rulesets.freedom import Freed
from rulesets.ground import Ground, Leaf, Node, leaves, numbers, subterms
from rulesets.ops import OPERATORS
from rulesets.size import Poly, Size, evaluate, symbol, symbols

LETTERS = "abcdefghjklmnoqrsuvwxyz"
"""Names of tensors; ``t`` is an element type, ``i`` an axis and ``p0`` a size."""

TYPES = frozenset({"dtype", "to"})
"""Attributes that are element types."""

MOVES = frozenset({"Concat", "Split", "Output"})
WINDOWED = frozenset({"Conv", "ConvTranspose", "MaxPool", "AveragePool"})


class Form(StrEnum):
    """How general a rule is."""

    AXIS = "axis"
    WINDOW = "window"
    GROUPED = "grouped"
    PLAIN = "plain"


class UnwritableError(Exception):
    """This direction cannot be a rule of this form; no fault, there are other forms."""


def only(size: Size) -> str | None:
    """Return the symbol that a size is, None if it is something else."""
    found = symbols(size)
    return next(iter(found)) if len(found) == 1 and size == symbol(*found) else None


@dataclass(slots=True)
class Writer:
    """Writes one direction.

    Attributes:
        freed: The equations, from what is matched to what is built.
        values: A number for each symbol, for the instance.
        form: How general.
    """

    freed: Freed
    values: Mapping[str, int]
    form: Form = Form.PLAIN
    names: dict[str, str] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    where: list[str] = field(default_factory=list)
    instance: dict[str, str] = field(default_factory=dict)
    products: list[tuple[str, Size]] = field(default_factory=list)
    parameters: int = 0

    def rule(self, name: str, tag: str) -> str:
        """Return the table of the rule."""
        lhs = [one.lhs for one in self.freed.equations]
        rhs = [one.rhs for one in self.freed.equations]
        own = tuple(dict.fromkeys(leaf for side in lhs for leaf in leaves(side)))
        if not {leaf for side in rhs for leaf in leaves(side)} <= set(own):
            raise UnwritableError
        for leaf, letter in zip(own, LETTERS, strict=False):
            self.names[leaf.name] = letter
            sizes = ",".join(map(str, numbers(leaf.shape, self.values)))
            self.instance[letter] = sizes
            if leaf.sign == "positive":
                self.where += [f"const ?{letter}", f"positive ?{letter}"]
                self.instance[letter] = f"const positive {sizes}".rstrip()
            elif leaf.sign == "drawn":
                self.instance[letter] = f"positive {sizes}".rstrip()
        if self.form is Form.AXIS:
            self._axis(own)
        else:
            self._sizes(own)
        left = [self._left(side) for side in lhs]
        for axis, size in self.products:
            self._product(axis, size)
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
        """State ranks and equal sizes, and learn how to write each block.

        Axes that are products come last: their factors are learnt from all the others.
        """
        for leaf in own:
            letter = self.names[leaf.name]
            self.where.append(f"rank ?{letter} = {len(leaf.shape)}")
            for axis, size in enumerate(leaf.shape):
                here = f"(dim ?{letter} {axis})"
                if isinstance(size, int):
                    self.where.append(f"dim ?{letter} {axis} = {size}")
                    continue
                block = only(size)
                if block is None:
                    self.products.append((f"dim ?{letter} {axis}", size))
                elif block not in self.known:
                    self.known[block] = here
                elif self.form is not Form.PLAIN or not self._is_forced(block, leaf, axis):
                    self.where.append(f"dim ?{letter} {axis} = {self.known[block]}")

    def _axis(self, own: tuple[Leaf, ...]) -> None:
        """State what is equal without naming ranks: whole shapes, or nothing."""
        axis = axis_of(self.freed)
        if axis is None:
            raise UnwritableError
        if axis >= 0:
            self.instance["i"] = str(axis)
        seen: dict[tuple[Size, ...], str] = {}
        first: dict[str, tuple[Leaf, int]] = {}
        for leaf in own:
            letter = self.names[leaf.name]
            if not leaf.shape:
                self.where.append(f"rank ?{letter} = 0")
            elif leaf.shape in seen:
                self.where.append(f"shape ?{letter} = (shape ?{seen[leaf.shape]})")
            else:
                seen[leaf.shape] = letter
                self._axis_of(leaf, axis, first)

    def _axis_of(self, leaf: Leaf, axis: int, first: dict[str, tuple[Leaf, int]]) -> None:
        """Learn the sizes of a leaf, and state what it shares off the axis."""
        for at, size in enumerate(leaf.shape):
            block = only(size)
            if block is None:
                raise UnwritableError
            other, place = first.setdefault(block, (leaf, at))
            if other is leaf and place == at:
                if at == axis:
                    self.known[block] = f"(dim ?{self.names[leaf.name]} ?i)"
                continue
            if not place == at != axis:
                raise UnwritableError
            if not self._places_forced(block, leaf, other, at):
                one, two = (self.names[each.name] for each in (leaf, other))
                self.where.append(f"set (shape ?{one}) ?i 0 = (set (shape ?{two}) ?i 0)")

    def _places_forced(self, block: str, one: Leaf, other: Leaf, axis: int) -> bool:
        places = [
            next(p for p in self.freed.places[block] if p.startswith(f"{x.name}.{axis}."))
            for x in (one, other)
        ]
        return frozenset(places) in self.freed.forced

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
        if is_number(term):
            return _literal(dict(term.attributes)["value"])
        inner = [self._left(argument) for argument in term.arguments]
        names = {name for name, _ in term.attributes}
        if names & TYPES:
            self.instance["t"] = '"float64"'
        if "to" in names:  # the generator's tensors have one type
            self.where.append(f"dtype ?{next(iter(self.names.values()))} = ?t")
        given = [
            (name, "?t" if name in TYPES else self._bound(value))
            for name, value in self._shown(term)
        ]
        return self._written(term, given, inner)

    def _shown(self, term: Node) -> list[tuple[str, object]]:
        """The attributes that the form writes out."""
        if self.form is Form.AXIS and term.op in ("Concat", "Split"):
            return [(n, "?i" if n == "axis" else v) for n, v in term.attributes]
        if self.form in (Form.WINDOW, Form.GROUPED) and term.op in WINDOWED:
            group = self.form is Form.GROUPED
            return [(n, v) for n, v in term.attributes if n == "group" and group]
        return list(term.attributes)

    def _written(
        self, term: Node, attributes: list[tuple[str, str]], inner: list[str]
    ) -> str:
        shown = [f"{name}={value}" for name, value in attributes]
        if self.form in (Form.WINDOW, Form.GROUPED) and term.op in WINDOWED:
            defaults = OPERATORS[term.op].defaults
            named = {name for name, _ in attributes}
            kept = [
                f"{name} = {list(value) if isinstance(value, tuple) else value}"
                for name, value in term.attributes
                if name not in named and defaults.get(name) != value
            ]
            bundle = f"k{term.op.lower()}" if term.op != "Conv" else "k"
            self.instance[bundle] = f"{{ {', '.join(kept)} }}"
            shown.append(f"..{bundle}")
        head = f"{term.op}[{', '.join(shown)}]" if shown else term.op
        return f"({' '.join([head, *inner])})"

    def _right(self, term: Ground) -> str:
        if isinstance(term, Leaf):
            return f"?{self.names[term.name]}"
        if is_number(term):
            return _literal(dict(term.attributes)["value"])
        inner = [self._right(argument) for argument in term.arguments]
        dtype = f"(dtype ?{next(iter(self.names.values()))})" if self.names else "?t"
        given = [
            (name, dtype if name in TYPES else self._computed(value))
            for name, value in self._shown(term)
        ]
        return self._written(term, given, inner)

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
        elif only(size) is not None:
            self.known[unknown[0]] = f"?{letter}"
        else:
            self._factor(f"?{letter}", size, unknown)
        return f"?{letter}"

    def _product(self, axis: str, size: Size) -> None:
        """State that an axis is a product, or learn what is not known of it."""
        unknown = [one for one in symbols(size) if one not in self.known]
        if unknown:
            self._factor(f"({axis})", size, unknown)
        else:
            self.where.append(f"{axis} = {self._size(size)}")

    def _factor(self, letter: str, size: Size, unknown: list[str]) -> None:
        """Learn a symbol from a multiple of it."""
        if isinstance(size, int) or len(size.terms) > 1 or len(unknown) > 1:
            raise UnwritableError
        ((monomial, number),) = size.terms
        if (unknown[0], 1) not in monomial:
            raise UnwritableError
        others = tuple(each for each in monomial if each != (unknown[0], 1))
        factor = self._size(Poly(((others, number),)))
        self.known[unknown[0]] = f"(// {letter} {factor})"
        self.where.append(f"{letter} = (* {factor} {self.known[unknown[0]]})")

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
                    raise UnwritableError
                factors += [self.known[atom]] * power
            terms.append(factors[0] if len(factors) == 1 else f"(* {' '.join(factors)})")
        return terms[0] if len(terms) == 1 else f"(+ {' '.join(terms)})"


def _listed(texts: list[str]) -> str:
    if len(texts) == 1:
        return f"'{texts[0]}'"
    return "[\n" + "".join(f"  '{text}',\n" for text in texts) + "]"


def _literal(value: object) -> str:
    if value == "?i":
        return "?i"
    return f'"{value}"' if isinstance(value, str) else str(value)


def is_number(term: Node) -> bool:
    """Say whether a term is a constant of rank 0, which rules write as a number."""
    return term.op == "Fill" and dict(term.attributes)["shape"] == ()


def axis_of(freed: Freed) -> int | None:
    """Return the axis along which all operators join and cut, -1 if none does.

    None if some operator does anything else than that and elementwise work.
    """
    axes: set[object] = set()
    for one in freed.equations:
        for term in (*subterms(one.lhs), *subterms(one.rhs)):
            if isinstance(term, Leaf):
                continue
            if term.op not in MOVES and not OPERATORS[term.op].elementwise:
                return None
            axes |= {value for name, value in term.attributes if name == "axis"}
    if len(axes) > 1:
        return None
    axis = axes.pop() if axes else -1
    assert isinstance(axis, int)
    return axis

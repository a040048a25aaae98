"""A law: an equation as rules in the text of our rule files.

Each direction is a rule of its own: attributes with sizes become variables with a condition
on the left and computed expressions on the right. Every equality of sizes is stated that
the left side does not force by itself. A direction can be written in several forms, the
most general first; the verifier decides which of them is true.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from rulesets.equation import Equation
from rulesets.errors import RuleError, ShapeError
from rulesets.freedom import Freed, free
from rulesets.ground import Ground, Leaf, Node, leaves, rename, subterms
from rulesets.law_text import WINDOWED, Form, UnwritableError, Writer, is_number, only
from rulesets.ops import OPERATORS
from rulesets.rule import Rule
from rulesets.size import Poly, Size, evaluate, symbol
from rulesets.store import parse_file

NEVER_ROUND = frozenset({"Output", "Relu", "Neg", "Abs", "Max", "Min", "Clip", "Pad"})
"""Operators that compute without rounding."""


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


def forms(
    equation: Equation, name: str, env: Mapping[str, int]
) -> list[list[tuple[str, Rule]]]:
    """Return for each direction the rules that say it, the most general form first.

    Args:
        equation: The equation.
        name: The name of the forward rule.
        env: Values for the symbols, for the instance.
    """
    back = Equation(equation.rhs, equation.lhs)
    tag = float_tag(equation)
    found = []
    for one, suffix in ((equation, ""), (back, ".reverse")):
        written = [_written((one,), name + suffix, env, tag, form) for form in Form]
        found.append(list(dict(each for each in written if each is not None).items()))
    if len(found) == 2 and _said(found[0]) == _said(found[1]):
        found.pop()  # a symmetric law is one rule
    return [each for each in found if each]


def _said(alternatives: list[tuple[str, Rule]]) -> list[object]:
    return [(rule.lhs, rule.rhs, rule.where) for _, rule in alternatives]


def law(equation: Equation, name: str, env: Mapping[str, int]) -> Law | None:
    """Write an equation as rules in their plainest form, unproved."""
    found = [alternatives[-1] for alternatives in forms(equation, name, env)]
    if not found:
        return None
    texts, rules = zip(*found, strict=True)
    return Law(name, equation, texts, rules)


def float_tag(equation: Equation) -> str:
    """Say what rounding does: ``exact`` if each element sees one and the same operation."""
    one, other = (_paths(side) for side in (equation.lhs, equation.rhs))
    return "exact" if max(map(len, one | other)) <= 1 and one == other else "reassociates"


def _paths(term: Ground) -> set[tuple[str, ...]]:
    """The operators that round, on each way from a leaf to the root."""
    if isinstance(term, Leaf) or not term.arguments:
        return {()}
    below = set().union(*map(_paths, term.arguments))
    rounds = term.op not in NEVER_ROUND and not OPERATORS[term.op].data_movement
    return {(term.op, *path) for path in below} if rounds else below


def _written(
    equations: tuple[Equation, ...], name: str, env: Mapping[str, int], tag: str, form: Form
) -> tuple[str, Rule] | None:
    try:
        text = _text(equations, name, env, tag, form)
        (rule,) = parse_file(text, "generated.toml")
    except (UnwritableError, RuleError, ShapeError):
        return None
    return text, rule


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
    for form in Form:
        found = _written(turned, name, env, tag, form)
        if found is not None:
            return Law(name, pair[0], (found[0],), (found[1],))
    return None


def _text(
    equations: tuple[Equation, ...], name: str, env: Mapping[str, int], tag: str, form: Form
) -> str:
    """Write one rule: from the left sides to the right sides."""
    for one in equations:
        made = set(subterms(one.rhs))
        if isinstance(one.lhs, Leaf) or not one.lhs.arguments or one.lhs in made:
            raise UnwritableError  # no operator to match, or a rule that never ends
        if _constants(one.rhs) and not _constants(one.lhs):
            raise UnwritableError  # it would bring in identity matrices everywhere
    if form in (Form.WINDOW, Form.GROUPED):
        equations, env = _any_window(equations, env)
    changed, sized = _plain(equations, env)
    try:
        freed, env = free(*changed), sized
    except ShapeError:  # a composite size that an operator looks into, as groups do
        freed = free(*equations)
    return Writer(freed, _block_values(freed, env), form).rule(name, tag)


def _constants(term: Ground) -> bool:
    """Whether it has a constant that is more than a number."""
    return any(
        isinstance(each, Node) and not each.arguments and not is_number(each)
        for each in subterms(term)
    )


def _any_window(
    equations: tuple[Equation, ...], env: Mapping[str, int]
) -> tuple[tuple[Equation, ...], Mapping[str, int]]:
    """Give kernels any size, if each windowed operator has one set of attributes.

    Raises:
        UnwritableError: There is no windowed operator, or one with different attributes.
    """
    terms = [t for one in equations for side in (one.lhs, one.rhs) for t in subterms(side)]
    found = {
        (t.op, t.attributes) for t in terms if isinstance(t, Node) and t.op in WINDOWED
    }
    if not found or len({op for op, _ in found}) < len(found):
        raise UnwritableError
    kernel = {axis: symbol(name) for axis, name in ((2, "q"), (3, "r"))}
    values = dict(env)
    shapes: dict[Leaf, Ground] = {}
    for leaf in dict.fromkeys(t for t in terms if isinstance(t, Leaf)):
        sizes = list(leaf.shape)
        for axis, name in ((2, "q"), (3, "r")):
            if len(sizes) == 4 and isinstance(sizes[axis], int):
                values[name] = evaluate(sizes[axis], env)
                sizes[axis] = kernel[axis]
        shapes[leaf] = replace(leaf, shape=tuple(sizes))
    return tuple(
        Equation(rename(one.lhs, shapes), rename(one.rhs, shapes)) for one in equations
    ), values


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
        if isinstance(size, int) or only(size) is not None:
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

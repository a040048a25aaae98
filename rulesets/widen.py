"""Making a proved rule as wide as it can be, by trying: fewer conditions, open attributes.

The generator finds an equation at the shapes and attributes of its family. Much of that is
accident: that a sum may be regrouped has nothing to do with matrices, and that a relu
passes a transpose nothing with the permutation. So each proved rule is tried again without
its conditions, and with a variable in place of each attribute that is written out on the
left, one after the other; what the verifier proves is kept. A rule applies only where its
right side has the type and shape of its left, so one without conditions is often true.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from rulesets.errors import OperatorError, RuleError
from rulesets.expression import Parameter
from rulesets.ground import Ground, Node, subterms
from rulesets.instantiate import instantiate
from rulesets.match import Value
from rulesets.opened import opened
from rulesets.rule import Rule
from rulesets.rule_text import replaced, term_text, value_text
from rulesets.shift import Spot, choices, placed, spots, summed
from rulesets.store import parse_file
from rulesets.term import Apply, Term
from rulesets.verify import Verdict

type Prove = Callable[[Rule], Verdict]
type Place = tuple[str, str, Value]
"""Operator (empty for any), name of an attribute, and its value at the instance."""

CLOSED = frozenset({"Output", "Split"})
"""Operators whose attributes tell which part is meant."""

SIGNED = ("const", "positive")
FIXED_SIZE = r"^dim \?\w+ \d+ = \d+$"
EQUAL_AXES = r"^dim \?(\w+) \d+ = \(dim \?(\w+) \d+\)$"


@dataclass(frozen=True, slots=True)
class Wide:
    """A rule and the text that says it.

    Attributes:
        text: Its table, in the format of rule files.
        rule: The rule read back from the text.
        verdict: What the verifier says of it.
    """

    text: str
    rule: Rule
    verdict: Verdict


def widen(found: Wide, prove: Prove) -> Wide:
    """Return the widest rule found, at worst the one given.

    Args:
        found: A proved rule with one left side.
        prove: The verifier.
    """
    if len(found.rule.lhs) > 1 or found.rule.variadic:
        return found
    stated = _stated(found)
    found = unconditional(found, prove)
    found = _bundled(found, stated, prove) or found
    found = _lettered(found, stated, prove) or found
    found = _of_equal_shape(_opened(found, prove), prove)
    return _shifted(unconditional(found, prove), prove)


def _of_equal_shape(found: Wide, prove: Prove) -> Wide:
    """With whole shapes compared where every axis of two tensors is: any rank, perhaps."""
    conditions = _conditions(found.text)
    for letter, other in dict.fromkeys(
        pair for each in conditions for pair in re.findall(EQUAL_AXES, each)
    ):
        stated = [
            each for each in conditions if re.match(rf"(dim|rank) \?{letter}\b", each)
        ]
        if any(f"(dim ?{other} " not in each for each in stated if each[0] == "d"):
            continue
        text = _without(found.text, stated)
        text = _with_condition(text, f"shape ?{letter} = (shape ?{other})")
        found = _tried(text, found, prove) or found
    return found


def unconditional(found: Wide, prove: Prove) -> Wide:
    """Without any condition if that is true, else without each that is not needed."""
    kept = _conditions(found.text)
    if not kept:
        return found
    signs = [each for each in kept if each.startswith(SIGNED)]
    shapes = [each for each in kept if each not in signs]
    for several in dict.fromkeys(map(tuple, (kept, shapes, signs))):
        bare = _tried(_without(found.text, several), found, prove) if several else None
        if bare is not None:
            return bare if several == tuple(kept) else unconditional(bare, prove)
    for condition in kept:
        found = _tried(_without(found.text, [condition]), found, prove) or found
    return found


def _conditions(text: str) -> list[str]:
    line = re.search(r"^where = \[(.*)\]$", text, re.MULTILINE)
    return re.findall(r'"([^"]*)"', line[1]) if line else []


def written_out(text: str) -> bool:
    """Say whether a rule speaks of sizes that are written out as numbers."""
    return any(re.match(FIXED_SIZE, each) for each in _conditions(text))


def _without(text: str, conditions: Sequence[str]) -> str:
    kept = [each for each in _conditions(text) if each not in conditions]
    where = ", ".join(f'"{each}"' for each in kept)
    text = replaced(r"^where = \[.*\]$", f"where = [{where}]", text)
    for condition in conditions:
        if condition.startswith("const"):
            letter = condition.split("?")[1]
            text = text.replace(f'{letter} = "const ', f'{letter} = "')
    return text


def _stated(found: Wide) -> list[str]:
    """What a rule says of ranks and sizes, but for numbers; and which shapes are equal."""
    tensors = found.rule.instances[0].tensors
    equal = [
        f"shape ?{other} = (shape ?{one})"
        for one, other in combinations(tensors, 2)
        if tensors[one].shape == tensors[other].shape != ()
    ]
    kept = _conditions(found.text)
    return [*equal, *(each for each in kept if not re.match(FIXED_SIZE, each))]


def _with_stated(found: Wide, stated: Sequence[str]) -> Wide:
    """With the conditions a rule was found with: with variables, more are needed."""
    own = _conditions(found.text)
    fixed = [each for each in own if re.match(FIXED_SIZE, each)]
    missing = [each for each in stated if each not in own]
    return replace(found, text=_with_condition(_without(found.text, fixed), *missing))


def _bundled(found: Wide, stated: Sequence[str], prove: Prove) -> Wide | None:
    """With a bundle for all attributes of an operator, where they are equal everywhere."""
    found = _with_stated(found, stated)
    known = _values(found.rule)
    if known is None:
        return None
    (lhs,), (rhs,) = found.rule.lhs, found.rule.rhs
    nodes = [*_pairs(lhs, known[0]), *_pairs(rhs, known[1])]
    best = None
    for op in dict.fromkeys(one.op for one, _ in _pairs(lhs, known[0])):
        mine = [(one, node) for one, node in nodes if one.op == op]
        given = {node.attributes for _, node in mine}
        if op in CLOSED or len(given) > 1 or len(mine[0][0].attributes) < 2:
            continue
        name = next(f"s{k}" for k in range(9) if f"..s{k}" not in found.text)
        rule = replace(
            found.rule, lhs=(_bundle(lhs, op, name),), rhs=(_bundle(rhs, op, name),)
        )
        text = _restated(found.text, rule, name, "")
        shown = ", ".join(f"{one} = {value_text(value)}" for one, value in given.pop())
        text = text.replace(f'{name} = ""', f"{name} = {{ {shown} }}")
        wider = _tried(text, best or found, prove)
        if wider is not None:
            best = unconditional(wider, prove)
            (lhs,), (rhs,) = best.rule.lhs, best.rule.rhs
    return best


def _bundle(term: Term, op: str, name: str) -> Term:
    if not isinstance(term, Apply):
        return term
    inner = tuple(_bundle(one, op, name) for one in term.arguments)
    if term.op != op or term.bundle is not None:
        return replace(term, arguments=inner)
    return replace(term, attributes=(), bundle=name, arguments=inner)


def _lettered(found: Wide, stated: Sequence[str], prove: Prove) -> Wide | None:
    """With a variable for every axis, offset and list at once, see `rulesets.opened`.

    Args:
        found: A proved rule.
        stated: Conditions of the rule as it was found.
        prove: The verifier.
    """
    found = _with_stated(found, stated)
    for one in opened(found.rule):
        rule = replace(found.rule, lhs=(one.lhs,), rhs=(one.rhs,))
        text = found.text
        for name, value in one.values.items():
            if name not in found.rule.instances[0].attributes:
                text = _restated(text, rule, name, value)
        text = _with_condition(text, *one.conditions)
        wider = _tried(text, found, prove)
        if wider is not None:
            return _apart(unconditional(wider, prove), prove)
    return None


def _apart(found: Wide, prove: Prove) -> Wide:
    """With axes that must differ where it was said which comes first."""
    for each in _conditions(found.text):
        if re.match(r"^\?\w+ < \?\w+$", each):
            text = _with_condition(_without(found.text, [each]), each.replace("<", "!="))
            found = _tried(text, found, prove) or found
    return found


def _opened(found: Wide, prove: Prove) -> Wide:
    """With a variable for each attribute of the left side that may be anything."""
    for place in _places(found.rule):
        name = _fresh(found.text)
        (lhs,), (rhs,) = found.rule.lhs, found.rule.rhs
        known = _values(found.rule)
        if known is None:
            return found
        opened = replace(
            found.rule,
            lhs=(_put(lhs, known[0], place, name),),
            rhs=(_put(rhs, known[1], place, name),),
        )
        if opened.lhs != found.rule.lhs:
            text = _restated(found.text, opened, name, place[2])
            wider = _tried(text, found, prove) or _of_shape(text, name, place, found, prove)
            found = wider or found
    return found


def _of_shape(text: str, name: str, place: Place, found: Wide, prove: Prove) -> Wide | None:
    """With the variable equal to the shape of a tensor, where it is one at the instance."""
    for letter, sample in found.rule.instances[0].tensors.items():
        if place[1] == "shape" and sample.shape == place[2]:
            return _tried(_with_condition(text, f"shape ?{letter} = ?{name}"), found, prove)
    return None


def _places(rule: Rule) -> list[Place]:
    """What might be opened: for each operator by itself, then for all of them at once."""
    known = _values(rule)
    if known is None:
        return []
    found = [
        (node.op, name, node.attributes[at][1])
        for each, node in _pairs(rule.lhs[0], known[0])
        if each.op not in CLOSED
        for name, value in each.attributes
        if not isinstance(value, Parameter) and each.op != "Slice"
        for at, (other, _) in enumerate(node.attributes)
        if other == name
    ]
    together = [("", name, value) for _, name, value in found]
    shared = [each for each in dict.fromkeys(together) if together.count(each) > 1]
    return [*dict.fromkeys(found), *shared]


def _values(rule: Rule) -> tuple[Ground, Ground] | None:
    """The sides at the rule's first instance, where every attribute has a value."""
    try:
        (equation,) = instantiate(rule).equations
    except (RuleError, OperatorError):
        return None
    return equation.lhs, equation.rhs


def _pairs(term: Term, ground: Ground) -> Iterator[tuple[Apply, Node]]:
    """Applications of a term beside the nodes they are at an instance."""
    if isinstance(term, Apply) and isinstance(ground, Node):
        yield term, ground
        for one, other in zip(term.arguments, ground.arguments, strict=True):
            yield from _pairs(one, other)


def _put(term: Term, ground: Ground, place: Place, name: str) -> Term:
    """Put a variable where an operator's attribute has the place's value."""
    if not isinstance(term, Apply) or not isinstance(ground, Node):
        return term
    op, attribute, value = place
    given = dict(ground.attributes)
    attributes = tuple(
        (one, Parameter(name) if one == attribute and given[one] == value else expression)
        for one, expression in term.attributes
    )
    inner = zip(term.arguments, ground.arguments, strict=True)
    return replace(
        term,
        attributes=attributes if op in ("", term.op) else term.attributes,
        arguments=tuple(_put(one, other, place, name) for one, other in inner),
    )


def _shifted(found: Wide, prove: Prove) -> Wide:
    """With variables for numbers that add up, see `rulesets.shift`."""
    found = _summed(found, prove)
    at = 0
    while at < len(left := spots(found.rule.lhs[0])):
        wider = _with_variable(found, left, at, prove)
        at, found = (at + 1, found) if wider is None else (at, wider)
    return found


def _summed(found: Wide, prove: Prove) -> Wide:
    known = _values(found.rule)
    names = ("pads", "more")
    sides = summed(found.rule.lhs[0], found.rule.rhs[0], names)
    if known is None or sides is None:
        return found
    rule = replace(found.rule, lhs=sides[:1], rhs=sides[1:])
    lists = [
        dict(each.attributes)["pads"]
        for each in subterms(known[0])
        if isinstance(each, Node) and "pads" in dict(each.attributes)
    ]
    text = _restated(found.text, rule, names[1], lists[1])
    text = text.replace(" }]", f", {names[0]} = {value_text(lists[0])} }}]")
    bounds = [f"?{name} >= 0" for name in names]
    return _tried(_with_condition(text, *bounds), found, prove) or found


def _with_variable(found: Wide, left: list[Spot], at: int, prove: Prove) -> Wide | None:
    name, (lhs,), (rhs,) = _fresh(found.text), found.rule.lhs, found.rule.rhs
    opened = placed(lhs, {at: Parameter(name)})
    for choice in choices(left, at, spots(rhs), name):
        rule = replace(found.rule, lhs=(opened,), rhs=(placed(rhs, choice),))
        text = _restated(found.text, rule, name, left[at].value)
        wider = _tried(_with_condition(text, f"?{name} >= 0"), found, prove, needs=True)
        if wider is not None:
            return wider
    return None


def _fresh(text: str) -> str:
    return next(f"q{k}" for k in range(100) if f"?q{k}" not in text)


def _restated(text: str, rule: Rule, name: str, value: Value) -> str:
    """The table with other sides, and a value for the new variable in its instance.

    Conditions on variables that are gone go with them.
    """
    sides = {"lhs": rule.lhs, "rhs": rule.rhs}
    for key, (side,) in sides.items():
        text = replaced(rf"^{key} = '.*'$", f"{key} = '{term_text(side)}'", text)
    used = set(re.findall(r"\?(\w+)", "".join(map(term_text, rule.lhs))))
    gone = [each for each in _conditions(text) if set(re.findall(r"\?(\w+)", each)) - used]
    text = _without(text, gone)
    found = re.search(r"^instances = \[\{ (.*) \}\]$", text, re.MULTILINE)
    assert found is not None, f"a generated rule has one instance: {text}"
    pairs = re.findall(r'(\w+) = ("[^"]*"|\{[^}]*\}|\[[^\]]*\]|[^,]+)', found[1])
    kept = [f"{one} = {given}" for one, given in pairs if one in used or given[0] == "{"]
    kept.append(f"{name} = {value_text(value)}")
    return text.replace(found[0], f"instances = [{{ {', '.join(kept)} }}]")


def _tried(text: str, found: Wide, prove: Prove, *, needs: bool = False) -> Wide | None:
    """The rule of a text, if it is proved at all sizes.

    A proof at the sizes of the instance says nothing of what a new variable stands for.

    Args:
        text: The table of a rule.
        found: The one before.
        prove: The verifier.
        needs: Whether conditions that the proof asks for may be added.
    """
    try:
        (rule,) = parse_file(text, f"{found.rule.family or 'wide'}.toml")
    except RuleError:
        return None
    verdict = prove(rule)
    if verdict.tier != "all-sizes":
        return None
    missing = [each for each in verdict.conditions if each not in _conditions(text)]
    if not missing:
        return Wide(text, rule, verdict)
    return _tried(_with_condition(text, *missing), found, prove) if needs else None


def _with_condition(text: str, *conditions: str) -> str:
    if not conditions:
        return text
    more = ", ".join(f'"{each}"' for each in conditions)
    return text.replace("where = [", f"where = [{more}, ").replace(", ]", "]")

"""Rules with two roots, paired from equations with one.

An equation like ``part0(matmul(x, concat(v, w))) = matmul(x, v)`` has a variable on one
side only. Two of them about both parts of one Split make a rule that merges: where both
right sides stand, one operator over a concatenation gives both.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import count

from rulesets.equation import Equation, occurrences
from rulesets.ground import Ground, Leaf, Node, leaves, size, subterms
from rulesets.law import Law, merging, name_of
from rulesets.ops import OPERATORS


def pairs(equations: Iterable[Equation]) -> list[tuple[Equation, Equation]]:
    """Return the pairs that save an operator which computes something."""
    found: dict[Ground, dict[int, Equation]] = defaultdict(dict)
    for equation in equations:
        whole = equation.lhs
        if isinstance(whole, Leaf) or whole.op != "Output" or not _computes(equation.rhs):
            continue
        index = dict(whole.attributes)["index"]
        assert isinstance(index, int)
        known = found[whole.arguments[0]].get(index)
        if known is None or size(equation.rhs) < size(known.rhs):
            found[whole.arguments[0]][index] = equation
    result = []
    for split, outputs in found.items():
        if len(outputs) < 2:
            continue
        first, second = outputs[0], outputs[1]
        used = {*leaves(first.rhs), *leaves(second.rhs)}
        merged = first.rhs != second.rhs and used == set(leaves(split))
        merged = merged and all(_plain(one.rhs) for one in (first, second))
        saved = _computes(first.rhs) + _computes(second.rhs) - _computes(split)
        if merged and saved > 0:
            result.append((first, second))
    return result


def _plain(term: Ground) -> bool:
    """Whether each leaf stands once and there is no constant."""
    found = occurrences(term)
    constants = any(isinstance(each, Node) and not leaves(each) for each in subterms(term))
    return len(found) == len(set(found)) and not constants


def _computes(term: Ground) -> int:
    """How many different operators do more than move elements."""
    found = {each for each in subterms(term) if isinstance(each, Node) and each.arguments}
    return sum(
        each.op != "Output" and not OPERATORS[each.op].data_movement for each in found
    )


def merging_laws(
    equations: Iterable[Equation], taken: Iterable[str], env: Mapping[str, int]
) -> list[Law]:
    """Return the laws with two roots that equations pair up to, unproved."""
    names, said = set(taken), set()
    result = []
    for pair in pairs(equations):
        inner = pair[0].rhs
        base = name_of(Equation(inner, inner), ()).split("-is-")[0]
        name = next(n for k in count(1) if (n := f"merge-{base}-{k}") not in names)
        made = merging(pair, name, env)
        if made is None:
            continue
        (rule,) = made.rules
        if (rule.lhs, rule.rhs, rule.where) not in said:
            said.add((rule.lhs, rule.rhs, rule.where))
            names.add(made.name)
            result.append(made)
    return result

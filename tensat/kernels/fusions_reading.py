"""What fusions share: trees in all their spellings, and how members hang together.

Vocabulary: the *root* is the member whose value the kernel gives; a member is *inside* if
another member takes its value; what no member computes is an argument of the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from rulesets.ops import OPERATORS, complete
from rulesets.ops.spec import Value
from rulesets.size import Size
from tensat.costs.source import PRICED_OPSET, Argument, Signature
from tensat.kernels.kernel import Application, Members, Tree

DOMAIN = "com.microsoft"

type Inputs = Sequence[Argument | None]


def spellings(op: str, *arguments: Sequence[Tree] | None) -> tuple[Tree, ...]:
    """Return every tree of an operator, arguments of commutative ones in both orders.

    Args:
        op: Canonical operator.
        arguments: For each argument the trees that may compute it; None for an argument of
            the kernel.
    """
    inner = [(place, options) for place, options in enumerate(arguments) if options]
    orders = [inner]
    if OPERATORS[op].commutative and len(arguments) == 2:
        orders.append([(1 - place, options) for place, options in reversed(inner)])
    found = [
        Tree(op, tuple(zip([place for place, _ in order], chosen, strict=True)))
        for order in orders
        for chosen in product(*[options for _, options in order])
    ]
    return tuple(dict.fromkeys(found))


def maker(members: Members, user: Application, place: int) -> Application | None:
    """Return the member inside that computes an argument, None if no member does."""
    wanted = user.children[place]
    return next((one for one in members[1:] if one.value == wanted), None)


def divided(
    members: Members, user: Application, *operators: str
) -> tuple[Application, int] | None:
    """Return the member that computes one of two arguments, and the place of the other.

    Args:
        members: The members.
        user: One of them with two arguments.
        operators: What the member may be; any operator if none is named.

    Returns:
        None if no such member computes an argument.
    """
    for place in (0, 1):
        found = maker(members, user, place)
        if found is not None and (not operators or found.op in operators):
            return found, 1 - place
    return None


def uses(members: Members, value: int) -> int:
    """Return how many arguments of members are a value."""
    return sum(one.children.count(value) for one in members)


def once(members: Members) -> Members | None:
    """Return members without repetitions: a value that is read twice is in the tree twice.

    Returns:
        None if two members compute one value in different ways.
    """
    found: dict[int, Application] = {}
    for one in members:
        known = found.setdefault(one.value, one)
        if (known.op, known.children) != (one.op, one.children):
            return None
    return tuple(found.values())


def chained(members: Members) -> bool:
    """Whether float32 members are each used once inside, by the member above them."""
    used = all(uses(members, one.value) == 1 for one in members[1:])
    return used and single_precision(members)


def used_once(members: Members, *twice: int) -> bool:
    """Whether values made inside are used once, but for those that are used twice."""
    return all(uses(members, one.value) == 1 + (one.value in twice) for one in members[1:])


def single_precision(members: Members) -> bool:
    """Whether all arguments and results are float32."""
    found = [one for member in members for one in (*member.inputs, *member.outputs)]
    return all(one is None or one.dtype == "float32" for one in found)


def argument(member: Application, place: int) -> Argument:
    """Return the type of an argument that is there."""
    found = member.inputs[place]
    assert found is not None
    return found


def shape(member: Application, place: int) -> tuple[Size, ...]:
    """Return the shape of an argument as the model states it, symbolic where it does.

    The runtime compares these: sizes under two names are not equal to it.
    """
    known = member.types[place] if member.types else None
    if known is None or known.shape is None:
        return argument(member, place).dims
    return known.shape


def result(member: Application) -> Argument:
    """Return the type of the only result."""
    return member.outputs[0]


def is_number(found: Argument, rank: int = 1) -> bool:
    """Whether an argument is a constant with one element and at most so many axes."""
    return found.constant and found.elements == 1 and len(found.dims) <= rank


def is_near(found: Argument, expected: float) -> bool:
    """Whether an argument is the number that the runtime looks for, as near as it asks."""
    if not is_number(found) or found.value is None:
        return False
    return math.isclose(found.value, expected, rel_tol=1e-5, abs_tol=1e-8)


def canonical(
    op: str, inputs: Inputs, outputs: Sequence[Argument], **given: Value
) -> Signature:
    """Return the signature of a canonical operator, attributes filled up with defaults."""
    attributes = complete(OPERATORS[op], given)
    pairs = tuple(sorted(attributes.items()))
    return Signature(op, pairs, tuple(inputs), tuple(outputs), PRICED_OPSET)


def contributed(
    op: str, inputs: Inputs, outputs: Sequence[Argument], **given: object
) -> Signature:
    """Return the signature of one of ONNX Runtime's own operators."""
    pairs = tuple(sorted(given.items()))
    return Signature(f"{DOMAIN}:{op}", pairs, tuple(inputs), tuple(outputs), PRICED_OPSET)

"""Fusions into activations: the forms of GELU and of x times sigmoid(a x).

What ONNX Runtime 1.32 does to float32 models on CPU at its highest level:

- x * (1 + erf(x / sqrt 2)) * 0.5, with a division and not a multiplication by 1 / sqrt 2,
  the factor 0.5 at x or behind: Gelu.
- The same with tanh(0.79788456 (x + 0.044715 x^3)), the factor 0.5 at x: FastGelu.
- A bias of one axis before either: BiasGelu, or FastGelu with two arguments. It is slower
  than Add and Gelu by themselves.
- x * sigmoid(x) and x * sigmoid(a x): QuickGelu.
"""

from __future__ import annotations

from tensat.costs.source import Argument, Signature
from tensat.kernels.fusions_reading import (
    argument,
    canonical,
    chained,
    contributed,
    divided,
    is_near,
    is_number,
    maker,
    once,
    result,
    single_precision,
    spellings,
    used_once,
)
from tensat.kernels.kernel import Application, Fusion, Members, Tree

_SQRT_TWO = 1.41421356
_TANH_FACTOR = 0.797884561
_CUBE_FACTOR = 0.044715


def _times(members: Members, product: Application, near: float) -> Application | None:
    """Return the member that a Mul or Add combines with a number."""
    found = divided(members, product)
    if found is None or not is_near(argument(product, found[1]), near):
        return None
    return found[0]


def _half_of(product: Application) -> tuple[int, Argument] | None:
    """Return the value whose half a Mul computes."""
    for place in (0, 1):
        if is_near(argument(product, 1 - place), 0.5):
            return product.children[place], argument(product, place)
    return None


def _one_plus(
    members: Members, product: Application, inside: str
) -> tuple[Application, int] | None:
    """Return the function to which 1 is added, and the place of the other factor."""
    for place in (0, 1):
        total = maker(members, product, place)
        function = None if total is None else _times(members, total, 1.0)
        if total is not None and total.op == "Add" and function is not None:
            return (function, 1 - place) if function.op == inside else None
    return None


def _error_function(members: Members) -> tuple[Application, int, Argument] | None:
    """Return the Erf of a GELU, and x: its number and its type."""
    root = members[0]
    behind = _times(members, root, 0.5)
    if behind is not None and behind.op == "Mul":
        found = _one_plus(members, behind, "Erf")
        if found is not None:
            place = found[1]
            return found[0], behind.children[place], argument(behind, place)
    found = _one_plus(members, root, "Erf")
    half = None if found is None else maker(members, root, found[1])
    x = None if half is None or half.op != "Mul" else _half_of(half)
    return None if found is None or x is None else (found[0], *x)


def _gelu_of(members: Members) -> tuple[int, Argument] | None:
    """Return x where members compute x * (1 + erf(x / sqrt 2)) * 0.5."""
    found = _error_function(members)
    if found is None:
        return None
    function, value, x = found
    quotient = maker(members, function, 0)
    if quotient is None or quotient.children[0] != value:
        return None
    return (value, x) if is_near(argument(quotient, 1), _SQRT_TWO) else None


def gelu(members: Members) -> tuple[Signature, ...] | None:
    """Return Gelu for its definition written out."""
    found = _gelu_of(members) if chained(members) else None
    if found is None:
        return None
    return (canonical("Gelu", (found[1],), members[0].outputs),)


def bias_gelu_written_out(members: Members) -> tuple[Signature, ...] | None:
    """Return BiasGelu for GELU written out of a sum with a vector."""
    distinct = once(members)
    found = None if distinct is None else _gelu_of(distinct)
    if distinct is None or found is None:
        return None
    total = next((one for one in distinct if one.value == found[0]), None)
    if total is None or not used_once(distinct, total.value):
        return None
    if not single_precision(distinct):
        return None
    return _with_bias("BiasGelu", total, distinct[0])


def fast_gelu(members: Members) -> tuple[Signature, ...] | None:
    """Return FastGelu for the approximation by tanh written out."""
    if not chained(members):
        return None
    root = members[0]
    found = _one_plus(members, root, "Tanh")
    half = None if found is None else maker(members, root, found[1])
    x = None if half is None else _half_of(half)
    scaled = None if found is None else maker(members, found[0], 0)
    total = None if scaled is None else _times(members, scaled, _TANH_FACTOR)
    if x is None or total is None:
        return None
    parts = divided(members, total, "Mul")
    cube = None if parts is None else _times(members, parts[0], _CUBE_FACTOR)
    if parts is None or cube is None or not is_near(argument(cube, 1), 3.0):
        return None
    if {cube.children[0], total.children[parts[1]]} != {x[0]}:
        return None
    return (contributed("FastGelu", (x[1],), root.outputs),)


def bias_gelu(members: Members) -> tuple[Signature, ...] | None:
    """Return BiasGelu, or FastGelu with a bias, for GELU of a sum with a vector."""
    root, total = members
    if not chained(members):
        return None
    exact = root.attributes["approximate"] == "none"
    return _with_bias("BiasGelu" if exact else "FastGelu", total, root)


def _with_bias(
    op: str, total: Application, root: Application
) -> tuple[Signature, ...] | None:
    a, b = argument(total, 0), argument(total, 1)
    x, bias = (b, a) if len(a.dims) == 1 else (a, b)
    if len(bias.dims) != 1 or x.dims[-1:] != bias.dims:
        return None
    return (contributed(op, (x, bias), root.outputs),)


def quick_gelu(members: Members) -> tuple[Signature, ...] | None:
    """Return QuickGelu for x * sigmoid(x) and x * sigmoid(a x)."""
    root = members[0]
    found = divided(members, root, "Sigmoid") if chained(members) else None
    if found is None:
        return None
    sigmoid, place = found
    x, value, alpha = argument(root, place), root.children[place], 1.0
    scaled = maker(members, sigmoid, 0)
    if scaled is None:
        same = sigmoid.children[0] == value
    else:
        same = False
        for other in (0, 1):
            number = argument(scaled, 1 - other)
            if is_number(number) and scaled.children[other] == value:
                same, alpha = True, 1.0 if number.value is None else number.value
    if not same or result(root).dims != x.dims:
        return None
    return (contributed("QuickGelu", (x,), root.outputs, alpha=alpha),)


def _one_more(function: tuple[Tree, ...]) -> tuple[Tree, ...]:
    return spellings("Add", function, None)


_HALF = (Tree("Mul"),)


def _gelus(x: tuple[Tree, ...] | None) -> tuple[Tree, ...]:
    more = _one_more(spellings("Erf", spellings("Div", x, None)))
    return (
        *spellings("Mul", spellings("Mul", more, x), None),
        *spellings("Mul", spellings("Mul", x, None), more),
    )


_CUBE = spellings("Mul", (Tree("Pow"),), None)
_TANH = spellings("Tanh", spellings("Mul", spellings("Add", _CUBE, None), None))
_FAST = spellings("Mul", _HALF, _one_more(_TANH))
_QUICK = spellings("Mul", (Tree("Sigmoid"), Tree("Sigmoid", ((0, Tree("Mul")),))), None)

FUSIONS: tuple[Fusion, ...] = (
    *[Fusion("GELU written out", tree, gelu) for tree in _gelus(None)],
    *[
        Fusion("GELU with bias written out", tree, bias_gelu_written_out, forced=True)
        for tree in _gelus((Tree("Add"),))
    ],
    *[Fusion("approximate GELU written out", tree, fast_gelu) for tree in _FAST],
    Fusion("GELU with bias", Tree("Gelu", ((0, Tree("Add")),)), bias_gelu, forced=True),
    *[Fusion("x times sigmoid", tree, quick_gelu) for tree in _QUICK],
)

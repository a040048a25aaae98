"""Fusions into normalizations.

What ONNX Runtime 1.32 does to float32 models on CPU at its highest level:

- A sum of two tensors of rank 3 and equal shape, normalized over the last axis:
  SkipLayerNormalization. That kernel is a loop over single numbers, several times slower
  than Add and LayerNormalization by themselves (Sum instead of Add escapes it).
- LayerNormalization and root-mean-square normalization written out with Pow, over the last
  of several axes, gains and biases of one axis: one kernel. With Mul for the square they
  stay apart.
- A product with 1 / y: a division by y, in normalizations too. A product with Reciprocal
  stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    shape,
    single_precision,
    spellings,
    used_once,
)
from tensat.kernels.kernel import Application, Fusion, Members, Tree


def skip_layer_norm(members: Members) -> tuple[Signature, ...] | None:
    """Return SkipLayerNormalization for a normalized sum."""
    norm, total = members
    last = len(argument(norm, 0).dims) - 1
    if not chained(members) or norm.attributes["axis"] != last:
        return None
    epsilon = norm.attributes["epsilon"]
    return _skip(total, norm.inputs[1:], norm, epsilon)


def _skip(
    total: Application,
    weights: Sequence[Argument | None],
    root: Application,
    epsilon: object,
) -> tuple[Signature, ...] | None:
    a, b = argument(total, 0), argument(total, 1)
    if len(a.dims) != 3 or shape(total, 0) != shape(total, 1):
        return None
    if any(one is not None and one.dims != a.dims[2:] for one in weights):
        return None
    inputs = (a, b, *weights)
    return (contributed("SkipLayerNormalization", inputs, root.outputs, epsilon=epsilon),)


def _over_last_axis(reduction: Application) -> bool:
    last = len(argument(reduction, 0).dims) - 1
    attributes = reduction.attributes
    return attributes["axes"] == (last,) and attributes["keepdims"] == 1 and last > 0


def _square(power: Application) -> bool:
    return is_near(argument(power, 1), 2.0)


def _epsilon(members: Members, root: Application) -> tuple[Application, float] | None:
    """Return the mean and the number that are added under a root."""
    total = maker(members, root, 0)
    found = None if total is None else divided(members, total, "ReduceMean")
    if total is None or found is None:
        return None
    mean, place = found
    number = argument(total, place)
    if not is_number(number) or number.value is None:
        return None
    return mean, number.value


@dataclass(frozen=True, slots=True)
class _Quotient:
    """A division, written as one or as a product with an inverse.

    Attributes:
        dividend: Number of the value that is divided.
        type: Its type.
        divisor: The member that computes the divisor; None if none does.
        other: The type of the divisor.
    """

    dividend: int
    type: Argument
    divisor: Application | None
    other: Argument


def _quotient(members: Members, found: Application) -> _Quotient | None:
    """Return what a Div, or a Mul by an inverse, divides."""
    place, division = 0, found
    if found.op == "Mul":
        inverse = divided(members, found, "Div")
        if inverse is None or not is_near(argument(inverse[0], 0), 1.0):
            return None
        division, place = inverse
    elif found.op != "Div":
        return None
    return _Quotient(
        found.children[place],
        argument(found, place),
        maker(members, division, 1),
        argument(division, 1),
    )


def product_with_inverse(members: Members) -> tuple[Signature, ...] | None:
    """Return the Div for a product with 1 / y."""
    found = _quotient(members, members[0]) if chained(members) else None
    if found is None:
        return None
    return (canonical("Div", (found.type, found.other), members[0].outputs),)


def _scaled_quotient(
    members: Members, scaling: Application
) -> tuple[_Quotient, Argument] | None:
    """Return the quotient and the gain that a Mul multiplies."""
    for place in (0, 1):
        inside = maker(members, scaling, place)
        quotient = None if inside is None else _quotient(members, inside)
        gain = argument(scaling, 1 - place)
        if quotient is not None and gain.dims == quotient.type.dims[-1:] != ():
            return quotient, gain
    return None


def _variance(members: Members, by: _Quotient) -> tuple[Application, float] | None:
    """Return the square under the root that divides, and what is added to its mean."""
    found = None if by.divisor is None else _epsilon(members, by.divisor)
    if found is None or not _over_last_axis(found[0]):
        return None
    square = maker(members, found[0], 0)
    if square is None or not _square(square):
        return None
    return square, found[1]


def rms_norm(members: Members) -> tuple[Signature, ...] | None:
    """Return RMSNormalization for x / sqrt(mean(x ^ 2) + epsilon) * gain."""
    scaled = _scaled_quotient(members, members[0]) if chained(members) else None
    if scaled is None:
        return None
    quotient, gain = scaled
    found = _variance(members, quotient)
    if found is None or found[0].children[0] != quotient.dividend:
        return None
    x = quotient.type
    return (
        canonical(
            "RMSNormalization", (x, gain), members[0].outputs,
            axis=len(x.dims) - 1, epsilon=found[1],
        ),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Layer:
    """What a layer norm written out normalizes, and how.

    Attributes:
        centred: The member that computes x - mean(x).
        gain: Type of the gain.
        bias: Type of the bias.
        epsilon: What is added to the variance.
    """

    centred: Application
    gain: Argument
    bias: Argument
    epsilon: float


def _layer(members: Members) -> _Layer | None:
    """Return the parts of (d / sqrt(mean(d ^ 2) + epsilon)) * gain + bias.

    There d is x - mean(x): one value with two users.
    """
    root = members[0]
    product = divided(members, root, "Mul")
    scaled = None if product is None else _scaled_quotient(members, product[0])
    if product is None or scaled is None or not single_precision(members):
        return None
    bias, (quotient, gain) = argument(root, product[1]), scaled
    found = _variance(members, quotient)
    if found is None or found[0].children[0] != quotient.dividend:
        return None
    centred = maker(members, found[0], 0)
    mean = None if centred is None else maker(members, centred, 1)
    if centred is None or mean is None or mean.children[0] != centred.children[0]:
        return None
    if not _over_last_axis(mean) or bias.dims != gain.dims:
        return None
    return _Layer(centred, gain, bias, found[1])


def layer_norm(members: Members) -> tuple[Signature, ...] | None:
    """Return LayerNormalization for its definition written out."""
    distinct = once(members)
    found = None if distinct is None else _layer(distinct)
    if distinct is None or found is None:
        return None
    if not used_once(distinct, found.centred.value):
        return None
    x = argument(found.centred, 0)
    return (
        canonical(
            "LayerNormalization", (x, found.gain, found.bias), members[0].outputs,
            axis=len(x.dims) - 1, epsilon=found.epsilon,
        ),
    )  # fmt: skip


def skip_layer_norm_written_out(members: Members) -> tuple[Signature, ...] | None:
    """Return SkipLayerNormalization for a sum that is normalized by single operators."""
    distinct = once(members)
    found = None if distinct is None else _layer(distinct)
    if distinct is None or found is None:
        return None
    total = maker(distinct, found.centred, 0)
    if total is None or not used_once(distinct, found.centred.value, total.value):
        return None
    return _skip(total, (found.gain, found.bias), members[0], found.epsilon)


def _quotients(dividend: tuple[Tree, ...] | None) -> tuple[Tree, ...]:
    mean = spellings("ReduceMean", spellings("Pow", dividend, None))
    roots = spellings("Sqrt", spellings("Add", mean, None))
    inverse = spellings("Div", None, roots)
    return (*spellings("Div", dividend, roots), *spellings("Mul", dividend, inverse))


def _layers(x: tuple[Tree, ...] | None) -> tuple[Tree, ...]:
    centred = spellings("Sub", x, spellings("ReduceMean", x))
    return spellings("Add", spellings("Mul", _quotients(centred), None), None)


_RMS = spellings("Mul", _quotients(None), None)
_PARTS: tuple[
    tuple[str, tuple[Tree, ...], Callable[[Members], tuple[Signature, ...] | None]], ...
] = (
    ("layer norm written out", _layers(None), layer_norm),
    ("root-mean-square norm written out", _RMS, rms_norm),
    ("product with an inverse", spellings("Mul", (Tree("Div"),), None),
     product_with_inverse),
)  # fmt: skip

FUSIONS: tuple[Fusion, ...] = (
    Fusion("normalized sum", Tree("LayerNormalization", ((0, Tree("Add")),)),
           skip_layer_norm, forced=True),
    *[
        Fusion("normalized sum written out", tree, skip_layer_norm_written_out,
               forced=True)
        for tree in _layers((Tree("Add"),))
    ],
    *[Fusion(name, tree, plain) for name, trees, plain in _PARTS for tree in trees],
)  # fmt: skip

"""Forms of enlarging by whole factors: what ONNX calls nearest neighbour.

`Resize` has many ways to say it. An element of the result at i reads the one whose place
is nearest to that of i; with a whole factor f all conventions below read i // f.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rulesets.ops.spec import integers
from rulesets.size import divide
from tensat.onnx_forms.call import (
    Absent,
    Arg,
    Const,
    Lowering,
    NotExpressibleError,
    OnnxCall,
    OnnxNode,
    Raised,
    Ref,
)
from tensat.onnx_forms.form import Lower, Raise, counted

_CENTRED = frozenset({"half_pixel", "pytorch_half_pixel"})
_TO_THE_NEAREST = frozenset({"round_prefer_floor", "round_prefer_ceil"})
_FROM_THE_CORNER = frozenset({"asymmetric", "tf_half_pixel_for_nn"})
_ATTRIBUTES = frozenset(
    {"mode", "coordinate_transformation_mode", "nearest_mode", "axes", "scales"}
    | {"cubic_coeff_a", "exclude_outside", "extrapolation_value", "antialias"}
)
"""Those of the second line concern other modes."""


def _factor(scale: float) -> int:
    if scale < 1 or scale != int(scale):
        raise NotExpressibleError
    return int(scale)


def _scales(call: OnnxCall, position: int) -> tuple[int, ...] | None:
    """Return the factors that an input holds, None if there is none."""
    found = call.optional(position)
    if found is None or found.tensor.shape == (0,):
        return None
    if found.array is None:
        raise NotExpressibleError
    return tuple([_factor(float(scale)) for scale in found.array.reshape(-1)])


def _from_sizes(call: OnnxCall, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the factors from the sizes of the result."""
    sizes = call.known(3)
    if sizes is None or len(sizes) != len(axes):
        raise NotExpressibleError
    factors = []
    for axis, size in zip(axes, sizes, strict=True):
        factor = divide(size, call.shape()[axis])
        if not isinstance(factor, int) or factor < 1:
            raise NotExpressibleError
        factors.append(factor)
    return tuple(factors)


def _raise_resize(call: OnnxCall) -> Raised:
    if call.text("mode", "nearest") != "nearest":
        raise NotExpressibleError
    if call.opset < 11:
        return _raised(call, tuple(range(call.rank())), _scales(call, 1))
    convention = call.text("coordinate_transformation_mode", "half_pixel")
    rounding = call.text("nearest_mode", "round_prefer_floor")
    centred = convention in _CENTRED and rounding in _TO_THE_NEAREST
    cornered = convention in _FROM_THE_CORNER and rounding == "floor"
    if not centred and not cornered:
        raise NotExpressibleError
    given = call.integers("axes")
    axes = tuple(range(call.rank())) if given is None else given
    axes = tuple([counted(axis, call.rank()) for axis in axes])
    factors = _scales(call, 2)
    return _raised(call, axes, _from_sizes(call, axes) if factors is None else factors)


def _raise_upsample(call: OnnxCall) -> Raised:
    if call.text("mode", "nearest") != "nearest":
        raise NotExpressibleError
    axes = tuple(range(call.rank()))
    if call.opset >= 9:
        return _raised(call, axes, _scales(call, 1))
    scales = call.attributes.get("scales")
    if not isinstance(scales, tuple | list):
        raise NotExpressibleError
    return _raised(call, axes, tuple([_factor(float(scale)) for scale in scales]))


def _raised(
    call: OnnxCall, axes: tuple[int, ...], factors: tuple[int, ...] | None
) -> Raised:
    if factors is None or len(factors) != len(axes):
        raise NotExpressibleError
    whole = [1] * call.rank()
    for axis, factor in zip(axes, factors, strict=True):
        whole[axis] = factor
    if all(factor == 1 for factor in whole):
        return Raised("Identity")
    return Raised("Upsample", {"factors": tuple(whole)})


def _lower_upsample(asked: Lowering) -> tuple[OnnxNode, ...]:
    factors = integers(asked.attributes, "factors")
    mode: dict[str, object] = {"mode": "nearest"}
    if asked.opset < 9:
        scales = tuple([float(factor) for factor in factors])
        return (OnnxNode("Upsample", {**mode, "scales": scales}, (Arg(0),)),)
    constant = Const(np.array(factors, np.float32))
    if asked.opset < 11:
        name = "Upsample" if asked.opset < 10 else "Resize"
        return (OnnxNode(name, mode, (Arg(0), constant)),)
    mode |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    # The region of interest could not be left out at first.
    region: Ref = Absent() if asked.opset >= 13 else Const(np.array([], np.float32))
    return (OnnxNode("Resize", mode, (Arg(0), region, constant)),)


RAISING: Mapping[str, Raise] = {
    "Resize": Raise(_ATTRIBUTES, _raise_resize),
    "Upsample": Raise(_ATTRIBUTES, _raise_upsample),
}
LOWERING: Mapping[str, Lower] = {"Upsample": _lower_upsample}

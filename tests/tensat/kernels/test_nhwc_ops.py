"""Operators on channels-last tensors against themselves on plain ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from rulesets.ops import END
from rulesets.tensor import Tensor
from tensat.costs.source import Signature
from tensat.kernels.kernel import Application, BlockedForm, Fusion, Layout, Members
from tensat.kernels.nhwc_conv import CONV_ON_CUDA, NHWC_CONV
from tensat.kernels.nhwc_elementwise import (
    ONE_OPERAND,
    REDUCTIONS,
    SEVERAL_OPERANDS,
    SOFTMAXES,
)
from tensat.kernels.nhwc_moves import to_first, to_last
from tensat.kernels.nhwc_ops import LAST_SINGLE
from tensat.kernels.nhwc_steps import TO_FIRST, TO_LAST, last_type
from tests.tensat.cuda.nhwc_reference import NhwcConv
from tests.tensat.kernels.blocked_lab import Lab, run

SEED = 4
X = (2, 6, 5, 7)

type Case = Callable[[Lab], Application]


def _one(op: str, *dims: int, **given: object) -> Case:
    return lambda lab: lab.apply(op, lab.value(*(dims or X), low=0.25), **given)


def _with(op: str, *dims: int, constant: bool = False, first: bool = False) -> Case:
    def make(lab: Lab) -> Application:
        x, other = lab.value(*X, low=0.5), lab.value(*dims, constant=constant, low=0.5)
        return lab.apply(op, *((other, x) if first else (x, other)))

    return make


def _conv(*weights: int, bias: bool = False, **given: object) -> Case:
    def make(lab: Lab) -> Application:
        more = [lab.weight(weights[0])] if bias else []
        return lab.conv(lab.value(*X), lab.weight(*weights), *more, **given)

    return make


def _join(axis: int, *, constant: bool = False) -> Case:
    def make(lab: Lab) -> Application:
        return lab.apply(
            "Concat", lab.value(*X), lab.value(*X, constant=constant), axis=axis
        )

    return make


def _cut(axes: tuple[int, ...], *rows: tuple[int, int, int]) -> Case:
    starts, ends, steps = zip(*rows, strict=True)
    return _one("Slice", axes=axes, starts=starts, ends=ends, steps=steps)


CASES: Mapping[str, Case] = {
    **{op: _one(op) for op in sorted(ONE_OPERAND - {"Clip", "Cast"})},
    "Clip": _one("Clip", min=0.3, max=0.6),
    "Cast": _one("Cast", to="float16"),
    **{f"{op} of images": _with(op, *X) for op in sorted(SEVERAL_OPERANDS)},
    "Mul by a gate": _with("Mul", 2, 6, 1, 1),
    "Add of a row": _with("Add", 1, 1, 1, 7),
    "Sub from constant channels": _with("Sub", 6, 1, 1, constant=True, first=True),
    "Mul by a constant row": _with("Mul", 7, constant=True),
    "Mul by a constant image": _with("Mul", *X, constant=True),
    "Div by a number": _with("Div", 1, constant=True),
    "Div by a computed number": _with("Div", 1),
    **{
        f"{op} {axis}": _one(op, axis=axis) for op in sorted(SOFTMAXES) for axis in range(4)
    },
    **{f"{op} kept": _one(op, axes=(1, 3), keepdims=1) for op in sorted(REDUCTIONS)},
    "ReduceMean of pixels": _one("ReduceMean", axes=(2, 3), keepdims=0),
    "ReduceSum of channels": _one("ReduceSum", axes=(1,), keepdims=0),
    "ReduceMax of channels and rows": _one("ReduceMax", axes=(1, 2), keepdims=0),
    "GlobalAveragePool": _one("GlobalAveragePool"),
    "GlobalMaxPool": _one("GlobalMaxPool"),
    "Flatten": _one("Flatten", 2, 6, 1, 1, axis=1),
    "Reshape": _one("Reshape", 2, 6, 1, 1, shape=(3, 4)),
    "Squeeze": _one("Squeeze", 2, 6, 1, 1, axes=(2, 3)),
    "Transpose to last": _one("Transpose", perm=TO_LAST),
    "Transpose to first": _one("Transpose", perm=TO_FIRST),
    "Transpose": _one("Transpose", perm=(3, 0, 1, 2)),
    **{f"Concat {axis}": _join(axis) for axis in range(4)},
    "Concat of a constant": _join(1, constant=True),
    "Slice": _cut((1, 3), (1, 6, 2), (0, END, 3)),
    "Slice of pixels": _cut((2,), (1, 4, 1)),
    "Pad": _one("Pad", pads=(0, 1, 2, 0, 1, 0, 0, 3), value=0.5),
    "Upsample": _one("Upsample", factors=(1, 1, 2, 3)),
    "Conv": _conv(8, 6, 3, 3, pads=(1, 1, 1, 1)),
    "Conv with bias": _conv(8, 6, 3, 2, bias=True),
    "Conv with strides": _conv(5, 6, 2, 3, strides=(2, 1), dilations=(1, 2)),
    "Conv asymmetric": _conv(4, 6, 3, 3, pads=(0, 1, 2, 0), bias=True),
    "Conv depthwise": _conv(6, 1, 3, 3, group=6),
    "Conv grouped": _conv(8, 3, 1, 1, group=2),
}


def _forms(members: Members) -> tuple[BlockedForm, ...]:
    return LAST_SINGLE[members[0].op](members, 1)


def _value(lab: Lab, members: Members, form: BlockedForm) -> np.ndarray:
    evaluator = ReferenceEvaluator(lab.written(members, form), new_ops=[NhwcConv])
    (found,) = evaluator.run(None, lab.feeds(members))
    return np.asarray(found)


@pytest.mark.parametrize("make", CASES.values(), ids=list(CASES))
def test_a_kernel_computes_the_same_channels_last(make: Case) -> None:
    """In every way in which it can be run, with the types that it says."""
    lab = Lab(np.random.default_rng(SEED))
    member = make(lab)
    forms = _forms((member,))
    want = run(lab.standard((member,)), lab.feeds((member,)))
    assert forms
    for form in forms:
        assert not form.by_runtime
        assert Layout.CHANNELS_LAST in (*form.layouts, form.result)
        found = _value(lab, (member,), form)
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


REFUSED: Mapping[str, Case] = {
    "an image of three axes": _one("Relu", 2, 6, 5),
    "a computed operand of fewer axes": _with("Add", 5, 7),
    "a result of more axes": _with("Add", 3, 2, 6, 5, 7, constant=True),
    "axes that change places": _one("ReduceMean", axes=(2,), keepdims=0),
    "pixels under another shape": _one("Reshape", shape=(2, 210)),
    "weights that are computed": lambda lab: lab.conv(lab.value(*X), lab.value(8, 6, 1, 1)),
    "a constant": lambda lab: lab.apply("Relu", lab.weight(*X)),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=list(REFUSED))
def test_what_has_no_channels_last_form(make: Case) -> None:
    """It stays plain."""
    assert _forms((make(Lab(np.random.default_rng(SEED))),)) == ()


def test_a_transposition_of_the_model_may_be_nothing() -> None:
    """From and to channels-last no step is left."""
    lab = Lab(np.random.default_rng(SEED))
    (there,) = _forms((_one("Transpose", perm=TO_LAST)(lab),))
    assert (there.steps, there.layouts) == ((), (Layout.CHANNELS_LAST,))
    assert there.result is Layout.PLAIN
    first, back = _forms((_one("Transpose", perm=TO_FIRST)(lab),))
    assert (back.steps, back.layouts) == ((), (Layout.PLAIN,))
    assert back.result is Layout.CHANNELS_LAST
    assert len(first.steps) == 1


def test_one_pixel_is_the_same_in_both_layouts() -> None:
    """The way there and back is a view, which has no kernel."""
    pixel = Tensor("float32", (2, 6, 1, 1))
    for way in (to_last, to_first):
        form = way(pixel, 1)
        assert form is not None
        assert [step.op for step in form.steps] == ["Reshape"]
    assert to_last(Tensor("int64", (2, 6, 5, 7)), 1) is None
    assert to_first(Tensor("float32", (2, 6)), 1) is None


def test_weights_are_stored_as_the_operator_wants_them() -> None:
    """The permutation is a constant step, [m, kh, kw, c / group], the window is written."""
    lab = Lab(np.random.default_rng(SEED))
    (form,) = _forms((_conv(8, 3, 2, 5, group=2, bias=True)(lab),))
    packed, conv = form.steps
    assert (packed.op, packed.constant) == ("Transpose", True)
    assert packed.output.shape == (8, 2, 5, 3)
    assert conv.op == NHWC_CONV
    assert dict(conv.attributes) == {
        "strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1), "group": 2,
        "kernel_shape": (2, 5),
    }  # fmt: skip


# ------------------------------------------------------------ with other operators
def _normalized(lab: Lab, conv: Application) -> Application:
    given = [lab.weight(6), lab.weight(6), lab.weight(6), lab.weight(6, low=0.25)]
    return lab.apply("BatchNormalization", conv.value, *given)


def _scaled(lab: Lab, conv: Application) -> Application:
    return lab.apply("Mul", conv.value, lab.weight(6, 1, 1))


def _shifted(lab: Lab, conv: Application) -> Application:
    return lab.apply("Add", conv.value, lab.weight(1, 6, 1, 1))


FOLDED = {"norm": _normalized, "factor": _scaled, "summand": _shifted}


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("make", FOLDED.values(), ids=list(FOLDED))
def test_constants_per_channel_go_into_the_weights(
    make: Callable[[Lab, Application], Application], bias: bool
) -> None:
    """The channels-last convolution is one node, as the plain one is."""
    lab = Lab(np.random.default_rng(SEED))
    conv = _conv(6, 6, 3, 3, bias=bias)(lab)
    members = (make(lab, conv), conv)
    forms = [form for f in _matching(members) for form in (f.blocked or _none)(members, 1)]
    want = run(lab.standard(members), lab.feeds(members))
    assert forms
    for form in forms:
        assert [s.op for s in form.steps if not s.constant] == [NHWC_CONV]
        found = _value(lab, members, form)
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)
    assert {s.op for s in _plain(members)} == {"Conv"}


def _none(*_: object) -> tuple[BlockedForm, ...]:
    return ()


def _matching(members: Members) -> list[Fusion]:
    name = "+".join(["Conv", *[one.op for one in members[-2::-1]]])
    return [fusion for fusion in CONV_ON_CUDA if fusion.name == name]


def _plain(members: Members) -> list[Signature]:
    return [s for f in _matching(members) for s in f.plain(members) or ()]


@pytest.mark.parametrize("op", ["Relu", "Sigmoid", "Clip"])
@pytest.mark.parametrize("added", [False, True], ids=["", "sum"])
def test_the_runtime_fuses_relu_only(op: str, added: bool) -> None:
    """On plain tensors, with a sum before or not; channels-last there is no such node."""
    lab = Lab(np.random.default_rng(SEED))
    conv = _conv(6, 6, 1, 1)(lab)
    members: Members = (conv,)
    if added:
        members = (lab.apply("Add", conv.value, lab.value(*X)), *members)
    given = {"min": 0.0, "max": 6.0} if op == "Clip" else {}
    members = (lab.apply(op, members[0].value, **given), *members)
    found = _plain(members)
    fused = {"com.microsoft:FusedConv"} if op == "Relu" else set()
    assert {one.op for one in found} == fused
    for one in found:
        assert dict(one.attributes)["activation"] == "Relu"
        absent = [argument is None for argument in one.inputs]
        assert absent == ([False] * 2 + [True, False] * added)
    assert not any((f.blocked or _none)(members, 1) for f in _matching(members))


def test_symbolic_sizes_stay_symbols() -> None:
    """Numbers of images and sizes of images need not be known."""
    lab = Lab(np.random.default_rng(SEED), symbolic=True)
    member = _conv(8, 6, 3, 3)(lab)
    (form,) = _forms((member,))
    assert form.steps[-1].output == last_type(member.results[0])
    assert not all(isinstance(size, int) for size in form.steps[-1].output.shape or ())

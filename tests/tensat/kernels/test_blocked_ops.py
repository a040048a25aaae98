"""Operators by themselves on blocked tensors against the runtime's own and plain ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import onnx
import pytest

from rulesets.size import symbol
from rulesets.tensor import Tensor
from tensat.kernels.blocked_elementwise import COMBINING, FINITE, PARTIAL
from tensat.kernels.blocked_ops import BLOCKED_SINGLE
from tensat.kernels.kernel import Application, BlockedForm, Members
from tests.tensat.kernels.blocked_lab import (
    BLOCK,
    Lab,
    described,
    optimized,
    run,
)

SEED = 20262
CHANNELS = [32, 24, 20, 30, 7, 1]

FILLED = ("Pad", "[]", [True, True], [(8,)])
"""What fills channels up for a reorder, where they are no multiple of 4."""

type Case = Callable[[Lab, int], tuple[Application, Members]]
"""Of a number of channels: an operator, and what makes its images."""


def _on(*images: tuple[int, Members]) -> tuple[list[int], Members]:
    """Return the values of images, and all that makes them."""
    return [value for value, _ in images], tuple(m for _, made in images for m in made)


def _one(op: str, size: tuple[int, int] = (6, 5), /, **given: object) -> Case:
    def make(lab: Lab, c: int) -> tuple[Application, Members]:
        values, made = _on(lab.image(2, c, *size))
        return lab.apply(op, *values, **given), made

    return make


def _two(op: str) -> Case:
    def make(lab: Lab, c: int) -> tuple[Application, Members]:
        values, made = _on(lab.image(2, c, 6, 5), lab.image(2, c, 6, 5))
        return lab.apply(op, *values), made

    return make


def _with(op: str, other: Callable[[Lab, int], int], *, first: bool = False) -> Case:
    def make(lab: Lab, c: int) -> tuple[Application, Members]:
        (x,), made = _on(lab.image(2, c, 6, 5))
        pair = (other(lab, c), x) if first else (x, other(lab, c))
        return lab.apply(op, *pair), made

    return make


def _number(value: float) -> Callable[[Lab, int], int]:
    return lambda lab, c: lab.scalar(value)


def _per_channel(rank: int) -> Callable[[Lab, int], int]:
    return lambda lab, c: lab.weight(*[1] * (rank - 3), c, 1, 1)


def _norm(lab: Lab, c: int) -> tuple[Application, Members]:
    (x,), made = _on(lab.image(2, c, 6, 5))
    given = [lab.weight(c), lab.weight(c), lab.weight(c), lab.weight(c, low=0.25)]
    return lab.apply("BatchNormalization", x, *given), made


def _gate(n: int, *, first: bool, op: str = "Mul") -> Case:
    def make(lab: Lab, c: int) -> tuple[Application, Members]:
        values, made = _on(lab.image(n, c, 6, 5), lab.image(n, c, 1, 1))
        return lab.apply(op, *(values[::-1] if first else values)), made

    return make


def _join(axis: int, *parts: int) -> Case:
    """Channels are given in eighths of the usual number, or of a block."""

    def make(lab: Lab, c: int) -> tuple[Application, Members]:
        sizes = [c if part == 0 else part for part in parts]
        values, made = _on(*[lab.image(2, size, 6, 5) for size in sizes])
        return lab.apply("Concat", *values, axis=axis), made

    return make


def _cut(axes: tuple[int, ...], *ranges: tuple[int, int, int], c: int = 0) -> Case:
    starts, ends, steps = zip(*ranges, strict=True)

    def make(lab: Lab, usual: int) -> tuple[Application, Members]:
        (x,), made = _on(lab.image(2, c or usual, 6, 5))
        given = {"axes": axes, "starts": starts, "ends": ends, "steps": steps}
        return lab.apply("Slice", x, **given), made

    return make


_MAX: Mapping[str, object] = {
    "kernel": (3, 2),
    "strides": (2, 1),
    "pads": (1, 0, 1, 1),
    "dilations": (1, 1),
}
CASES: Mapping[str, Case] = {
    **{f"{op}": _one(op) for op in sorted(FINITE | PARTIAL) if op != "Clip"},
    "Clip": _one("Clip", min=-0.25, max=0.5),
    **{f"{op} of images": _two(op) for op in sorted(COMBINING - {"Pow"})},
    **{f"{op} of a number": _with(op, _number(1.5)) for op in sorted(COMBINING)},
    "Pow 2": _with("Pow", _number(2.0)),
    "Div of a number by": _with("Div", _number(1.5), first=True),
    "Sub of a number": _with("Sub", _number(1.5), first=True),
    **{f"{op} per channel": _with(op, _per_channel(4)) for op in ("Add", "Mul")},
    **{f"{op} per channel of rank 3": _with(op, _per_channel(3)) for op in ("Add", "Mul")},
    "per channel Mul": _with("Mul", _per_channel(4), first=True),
    "per channel Add": _with("Add", _per_channel(4), first=True),
    "BatchNormalization": _norm,
    "gate": _gate(1, first=False),
    "Mul of another batch": _with("Mul", lambda lab, c: lab.value(1, c, 6, 5)),
    "Sub of a row": _with("Sub", lambda lab, c: lab.value(2, c, 1, 5)),
    "Add of a pixel": _gate(2, first=False, op="Add"),
    "Sum of a pixel": _gate(2, first=True, op="Sum"),
    "gate of 3": _gate(3, first=True),
    "MaxPool": _one("MaxPool", **_MAX),
    "MaxPool dilated": _one("MaxPool", **{**_MAX, "dilations": (2, 1)}),
    "MaxPool ceil": _one("MaxPool", **{**_MAX, "ceil_mode": 1}),
    "AveragePool": _one("AveragePool", **_MAX),
    "AveragePool counted": _one("AveragePool", **{**_MAX, "count_include_pad": 1}),
    "AveragePool ceil": _one("AveragePool", **{**_MAX, "ceil_mode": 1}),
    "GlobalAveragePool": _one("GlobalAveragePool"),
    "GlobalAveragePool large": _one("GlobalAveragePool", (24, 20)),
    "GlobalMaxPool": _one("GlobalMaxPool", (24, 20)),
    "ReduceMean": _one("ReduceMean", (24, 20), axes=(2, 3), keepdims=1),
    "ReduceMax": _one("ReduceMax", axes=(2, 3), keepdims=1),
    "Concat channels": _join(1, 0, 0),
    "Concat last partial": _join(1, 16, 32, 0),
    "Concat batch": _join(0, 0, 0),
    "Concat rows": _join(2, 0, 0),
    "Concat columns": _join(3, 0, 0, 0),
    "Slice blocks": _cut((1,), (16, 32, 1), c=48),
    "Slice to the end": _cut((1,), (16, 40, 1), c=40),
    "Slice batch and blocks": _cut((0, 1), (1, 2, 1), (0, 16, 1), c=40),
    "Slice image": _cut((2, 3), (1, 6, 2), (0, 3, 1)),
    "Upsample": _one("Upsample", factors=(1, 1, 2, 3)),
    "Pad": _one("Pad", pads=(0, 0, 1, 0, 0, 0, 2, 1), value=0.5),
}
REFUSED: Mapping[str, Case] = {
    "AveragePool dilated": _one("AveragePool", **{**_MAX, "dilations": (2, 1)}),
    "reduction over channels": _one("ReduceMean", axes=(1,), keepdims=1),
    "reduction that drops axes": _one("ReduceMean", axes=(2, 3), keepdims=0),
    "Slice within a block": _cut((1,), (8, 24, 1)),
    "Slice ends within a block": _cut((1,), (0, 8, 1), c=24),
    "Slice of every other channel": _cut((1,), (0, 32, 2), c=32),
    "Slice of blocks and image": _cut((1, 2), (0, 16, 1), (0, 3, 1), c=32),
    "Concat of parts": _join(1, 24, 32),
    "Pad of channels": _one("Pad", pads=(0, 1, 0, 0, 0, 0, 0, 0)),
    "Upsample of channels": _one("Upsample", factors=(1, 2, 1, 1)),
    "gate of another batch": _with("Mul", lambda lab, c: lab.value(1, c, 1, 1)),
    "factor per pixel": _with("Mul", lambda lab, c: lab.value(1, 1, 6, 5)),
    "factor per column": _with("Mul", lambda lab, c: lab.weight(5)),
}


def _forms(members: Members) -> tuple[BlockedForm, ...]:
    return BLOCKED_SINGLE[members[0].op](members, BLOCK)


def _is_partial(name: str, c: int) -> bool:
    """Whether an operator may leave infinities behind the channels of an image."""
    unsafe = {*PARTIAL, "Div of images", "Div of a number by", "Pow of a number"}
    return name in unsafe and c % BLOCK != 0


def _kernels(model: onnx.ModelProto) -> list[object]:
    """Return the nodes that are not there to make images or to change layouts.

    The runtime's weights of a factor per channel are 1 behind the last channel, ours 0, so
    weights are left to the comparison of results.
    """
    return [
        described(model, node)[:4]
        for node in model.graph.node
        if not node.op_type.startswith(("Reorder", "Flatten"))
        and b"Tanh" not in {one.s for one in node.attribute}
    ]


def _on_blocks(model: onnx.ModelProto) -> bool:
    """Whether the last operator before `Flatten` is computed on blocks, from images on."""
    names = [node.op_type for node in model.graph.node]
    return "ReorderInput" not in names and names.index("ReorderOutput") == len(names) - 2


@pytest.mark.parametrize("c", CHANNELS)
@pytest.mark.parametrize("name", CASES)
def test_forms_are_the_runtimes_own_or_equal(name: str, c: int) -> None:
    """Results are those of the plain operator; what the runtime makes too is the same."""
    lab = Lab(np.random.default_rng(SEED))
    member, made = CASES[name](lab, c)
    after = lab.apply("Flatten", member.value, axis=1)
    whole = (after, member, *made)
    own = optimized(lab.standard(whole))
    by_itself = run(lab.standard(whole), lab.feeds(whole))
    wanted = run(lab.standard((member,)), lab.feeds((member,)))
    forms = _forms((member,))
    assert any(form.by_runtime for form in forms) == _on_blocks(own)
    for form in forms:
        written = lab.written((member,), form)
        got = run(written, lab.feeds((member,)), "NONE")
        if form.by_runtime:
            assert [one for one in _kernels(written) if one != FILLED] == _kernels(own)
            assert np.array_equal(got, by_itself.reshape(got.shape))
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("c", [32, 24])
@pytest.mark.parametrize(
    "name",
    [name for name in CASES if name not in {"Slice batch and blocks", "Slice image"}],
)
def test_sizes_of_images_may_be_symbols(name: str, c: int) -> None:
    """The same forms, at all sizes: they name no size but that of channels."""
    numbers, _ = CASES[name](Lab(np.random.default_rng(SEED)), c)
    lab = Lab(np.random.default_rng(SEED), symbolic=True)
    member, _ = CASES[name](lab, c)
    forms = _forms((member,))
    assert bool(forms) == bool(_forms((numbers,)))
    for form in forms:
        got = run(lab.written((member,), form), lab.feeds((member,)), "NONE")
        wanted = run(lab.standard((member,)), lab.feeds((member,)))
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("c", CHANNELS)
@pytest.mark.parametrize("name", CASES)
def test_what_fills_the_last_block_stays_finite(name: str, c: int) -> None:
    """Numbers behind the channels are never made infinite: the next kernel reads them."""
    lab = Lab(np.random.default_rng(SEED))
    member, _ = CASES[name](lab, c)
    forms = _forms((member,))
    if _is_partial(name, c):
        assert forms == ()
    for form in forms:
        if name not in {*PARTIAL, "Pow of a number"}:  # as those of the model itself
            assert np.isfinite(lab.lanes((member,), form)).all()


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_wrong_is_refused(name: str) -> None:
    """Operators that do not see channels in the order in which they lie."""
    member, _ = REFUSED[name](Lab(np.random.default_rng(SEED)), 32)
    assert _forms((member,)) == ()


def test_a_size_that_happens_to_be_one_is_no_number() -> None:
    """A row of any number of pixels is not a single number, though it is one here."""
    lab = Lab(np.random.default_rng(SEED))
    (x,), _ = _on(lab.image(2, 24, 6, 1))
    member = lab.apply("Add", x, lab.value(1, 1, 1, 1))
    assert len(_forms((member,))) == 1
    n, w = symbol("n"), symbol("w")
    types = (Tensor("float32", (n, 24, 6, w)), Tensor("float32", (1, 1, 1, w)))
    assert _forms((replace(member, types=types, results=types[:1]),)) == ()


@pytest.mark.parametrize(
    "op", ["Softmax", "LogSoftmax", "Reshape", "Flatten", "Transpose", "LRN", "Where"]
)
def test_operators_without_a_blocked_form(op: str) -> None:
    """What mixes channels or reads the buffer under another shape never runs on blocks."""
    assert op not in BLOCKED_SINGLE


def test_rows_are_averaged_first() -> None:
    """A large image keeps its digits; the runtime's own pool adds pixel after pixel."""
    lab = Lab(np.random.default_rng(SEED))
    x = lab.value(1, 24, 160, 160, low=0.0)
    members = (lab.apply("GlobalAveragePool", x),)
    (form,) = _forms(members)
    exact = lab.arrays[x].astype(np.float64).mean(axis=(2, 3), keepdims=True)
    got = run(lab.written(members, form), lab.feeds(members), "NONE")
    assert np.abs(got / exact - 1).max() < 1e-6

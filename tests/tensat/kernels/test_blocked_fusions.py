"""Factors per channel with what follows, activations of two names, and reorders."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from rulesets.size import symbol
from rulesets.tensor import Tensor
from tensat.costs.source import PRICED_OPSET, Signature
from tensat.kernels.blocked_channelwise import BLOCKED_CHANNELWISE
from tensat.kernels.blocked_elementwise import on_blocks
from tensat.kernels.blocked_reorder import to_blocked, to_plain
from tensat.kernels.kernel import Application, Fusion, Members, Tree
from tests.tensat.kernels.blocked_lab import (
    BLOCK,
    Lab,
    blocked_nodes,
    optimized,
    run,
)

SEED = 20263
CHANNELS = 24
FIRST = ("norm", "mul", "add")
SECOND = ("", "norm", "mul", "add")
LAST = {
    "": {},
    "Relu": {},
    "LeakyRelu": {"alpha": 0.125},
    "Tanh": {},
    "Sigmoid": {},
    "Clip": {"min": -0.5, "max": 0.5},
    "HardSigmoid": {"alpha": 0.25, "beta": 0.375},
    "HardSwish": {},
}
LINES = [
    (first, second, last)
    for first, second, last in product(FIRST, SECOND, LAST)
    if first != second and (second or last)
]


def _channelwise(lab: Lab, kind: str, below: int) -> Application:
    c = CHANNELS
    if kind == "norm":
        given = [lab.weight(c), lab.weight(c), lab.weight(c), lab.weight(c, low=0.25)]
        return lab.apply("BatchNormalization", below, *given)
    return lab.apply("Add" if kind == "add" else "Mul", below, lab.weight(1, c, 1, 1))


@pytest.mark.parametrize(("first", "second", "last"), LINES, ids=map("-".join, LINES))
def test_factors_per_channel_take_in_what_follows(
    first: str, second: str, last: str
) -> None:
    """One convolution of one pixel; the runtime makes it of one factor and few others."""
    lab = Lab(np.random.default_rng(SEED))
    x, made = lab.image(2, CHANNELS, 6, 5)
    line = [_channelwise(lab, first, x)]
    if second:
        line.append(_channelwise(lab, second, line[-1].value))
    if last:
        line.append(lab.apply(last, line[-1].value, **LAST[last]))
    members = tuple(reversed(line))
    tree = Tree(line[0].op)
    for member in line[1:]:
        tree = Tree(member.op, ((0, tree),))
    (fusion,) = [one for one in BLOCKED_CHANNELWISE if one.tree == tree]
    assert fusion.blocked is not None
    (form,) = fusion.blocked(members, BLOCK)
    after = lab.apply("Flatten", members[0].value, axis=1)
    model = optimized(lab.standard((after, *members, *made)))
    own = [node[:4] for node in blocked_nodes(model)]
    whole = model.graph.node[-2].op_type == "ReorderOutput"
    written = lab.written(members, form)
    (node,) = [one[:4] for one in blocked_nodes(written)]
    assert form.by_runtime == (whole and own[1:] == [node])
    got = run(written, lab.feeds(members), "NONE")
    wanted = run(lab.standard(members), lab.feeds(members))
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("op", ["Gelu", "QuickGelu"])
def test_activations_of_several_operators_run_on_the_buffer(op: str) -> None:
    """What the runtime computes as one function of a number it computes on blocks."""
    lab = Lab(np.random.default_rng(SEED))
    x, made = lab.image(2, CHANNELS, 6, 5)
    sigmoid = lab.apply("Sigmoid", x)
    members = (lab.apply("Mul", x, sigmoid.value), sigmoid)
    inputs, outputs = members[1].inputs, members[0].outputs

    def plain(members: Members) -> tuple[Signature, ...]:
        attributes = (("alpha", 1.0),) if op == "QuickGelu" else ()
        return (
            Signature(f"com.microsoft:{op}", attributes, inputs, outputs, PRICED_OPSET),
        )

    tree = Tree("Mul", ((1, Tree("Sigmoid")),))
    fusion = on_blocks(Fusion(op, tree, plain))
    assert fusion.blocked is not None
    (form,) = fusion.blocked(members, BLOCK)
    assert form.by_runtime
    assert [step.op for step in form.steps] == [f"com.microsoft:{op}"]
    if op == "QuickGelu":
        after = lab.apply("Flatten", members[0].value, axis=1)
        own = optimized(lab.standard((after, *members, *made)))
        assert "QuickGelu" in [node.op_type for node in own.graph.node]
        assert own.graph.node[-2].op_type == "ReorderOutput"
        got = run(lab.written(members, form), lab.feeds(members), "NONE")
        wanted = run(lab.standard(members), lab.feeds(members))
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6)


def test_other_fusions_stay_as_they_are() -> None:
    """A fusion into another kernel gets no blocked form."""
    lab = Lab(np.random.default_rng(SEED))
    x = lab.value(2, CHANNELS, 6, 5)
    members = (lab.apply("Relu", x),)

    def plain(members: Members) -> tuple[Signature, ...]:
        return (Signature("Relu", (), members[0].inputs, members[0].outputs, PRICED_OPSET),)

    fusion = on_blocks(Fusion("relu", Tree("Relu"), plain))
    assert fusion.blocked is not None
    assert fusion.blocked(members, BLOCK) == ()
    assert on_blocks(fusion) is fusion


# ------------------------------------------------------------------------- reorders
@pytest.mark.parametrize("targeted", [False, True])
@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("c", [16, 24, 20, 30, 3, 1, 32])
def test_a_tensor_comes_back(c: int, size: int, targeted: bool) -> None:
    """There and back is the tensor; whole blocks of one pixel need nothing at all."""
    tensor = Tensor("float32", (2, c, size, size))
    there = to_blocked(tensor, BLOCK, targeted=targeted)
    back = to_plain(tensor, BLOCK, targeted=targeted)
    assert back is not None
    if there is None:
        assert not targeted
        assert c % 4 != 0
        return
    assert there.by_runtime == (c % 4 == 0)
    view = targeted and size == 1 and c % BLOCK == 0
    assert (not there.steps, not back.steps) == (view, view)
    lab = Lab(np.random.default_rng(SEED))
    members = (lab.apply("Neg", lab.value(2, c, size, size)),)
    written = lab.reordered(members, there, back)
    got = run(written, lab.feeds(members), "NONE")
    assert np.array_equal(got, lab.arrays[0])


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor("float64", (1, 16, 4, 4)),
        Tensor("float32", (1, 16, 4)),
        Tensor("float32", (1, symbol("c"), 4, 4)),
        Tensor("float32", None),
    ],
    ids=str,
)
def test_what_is_no_image_is_not_blocked(tensor: Tensor) -> None:
    """Only float32 tensors of four axes with a known number of channels."""
    assert to_blocked(tensor, BLOCK) is None
    assert to_plain(tensor, BLOCK) is None


def test_sizes_may_be_symbolic() -> None:
    """Batch and image may have any size; only channels are numbers."""
    tensor = Tensor("float32", (symbol("n"), 30, symbol("h"), symbol("w")))
    there = to_blocked(tensor, BLOCK)
    assert there is not None
    assert [step.op for step in there.steps] == ["Pad", "com.microsoft.nchwc:ReorderInput"]
    assert there.steps[-1].output.shape == (symbol("n"), 32, symbol("h"), symbol("w"))

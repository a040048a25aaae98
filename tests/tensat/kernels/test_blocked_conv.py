"""Convolutions on blocked tensors against the runtime's own, and against plain ones."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from tensat.costs.source import PRICED_OPSET, Signature
from tensat.kernels.blocked_conv import BLOCKED_CONV, conv_alone, packings
from tensat.kernels.kernel import (
    Application,
    BlockedForm,
    Fusion,
    Layout,
    Members,
    Tree,
)
from tests.tensat.kernels.blocked_lab import BLOCK, Lab, blocked_nodes, optimized, run

SEED = 20261
GEOMETRIES = [
    # group, input channels of each, output channels, kernel
    *[
        (1, i, o, k)
        for i, o, k in ((3, 32, 3), (3, 5, 7), (1, 1, 1), (8, 16, 1), (15, 9, 3))
    ],
    *[(1, i, o, k) for i, o, k in ((16, 16, 1), (24, 36, 1), (20, 10, 3), (24, 1, 1))],
    *[(1, i, o, k) for i, o, k in ((30, 16, 1), (18, 24, 3), (32, 2, 1))],
    *[(c, 1, c, 3) for c in (24, 32, 30, 4, 18, 2)],
    *[(g, i, o, 3) for g, i, o in ((4, 16, 64), (2, 16, 64), (2, 32, 32), (3, 16, 96))],
    *[(g, i, o, 3) for g, i, o in ((8, 8, 64), (32, 4, 128), (2, 24, 64), (4, 4, 32))],
    *[(g, i, o, 1) for g, i, o in ((2, 8, 24), (24, 1, 48), (5, 4, 20), (4, 16, 48))],
]
IDS = [f"{g}x{i}-{o}-k{k}" for g, i, o, k in GEOMETRIES]


def _conv(lab: Lab, g: int, i: int, o: int, k: int, *, biased: bool) -> Application:
    """Return a convolution with random strides, pads and dilations."""
    x, w = lab.value(2, g * i, 9, 8), lab.weight(o, i, k, k)
    bias = (lab.weight(o),) if biased else ()
    rng = lab.rng
    strides, pads = rng.integers(1, 3, 2).tolist(), rng.integers(0, 2, 4).tolist()
    dilations = (1, 1) if k > 3 else tuple(rng.integers(1, 3, 2).tolist())
    given = {"strides": strides, "pads": pads, "dilations": dilations, "group": g}
    return lab.conv(x, w, *bias, **given)


@pytest.mark.parametrize("biased", [False, True], ids=["bare", "bias"])
@pytest.mark.parametrize(("g", "i", "o", "k"), GEOMETRIES, ids=IDS)
def test_forms_are_the_runtimes_own_or_equal(
    g: int, i: int, o: int, k: int, biased: bool
) -> None:
    """What is said to be the runtime's own has its nodes, weights and bits."""
    lab = Lab(np.random.default_rng(SEED))
    members = (_conv(lab, g, i, o, k, biased=biased),)
    standard, feeds = lab.standard(members), lab.feeds(members)
    wanted, own = run(standard, feeds), blocked_nodes(optimized(standard))
    forms = conv_alone(members, BLOCK)
    assert len([form for form in forms if form.by_runtime]) == len(own)
    for form in forms:
        written = lab.written(members, form)
        got = run(written, feeds, "NONE")
        assert (blocked_nodes(written) == own) == form.by_runtime
        if form.by_runtime:
            assert np.array_equal(got, wanted)
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=2e-5)


def test_every_packing_is_tried() -> None:
    """The convolutions above need every kind of packing, for both kinds of models."""
    found = {
        (one.image, one.pairs, one.merged > 1, one.group > 1, one.by_runtime)
        for g, i, o, _ in GEOMETRIES
        for one in packings(i, o, g, BLOCK)
    }
    blocked, plain = Layout.BLOCKED, Layout.PLAIN
    assert found == {
        (plain, False, False, False, True),
        (blocked, True, False, False, True),
        (blocked, True, False, False, False),
        (blocked, False, False, True, True),
        (blocked, False, False, True, False),
        (blocked, True, False, True, True),
        (blocked, True, True, True, False),
        (blocked, True, True, False, False),
    }


# ------------------------------------------------------------- what is computed with it
ACTIVATIONS = {
    "none": (),
    "relu": (("Relu", {}),),
    "leaky": (("LeakyRelu", {"alpha": 0.125}),),
    "tanh": (("Tanh", {}),),
    "sigmoid": (("Sigmoid", {}),),
    "clip": (("Clip", {"min": -0.5, "max": 2.0}),),
    "relu6": (("Clip", {"min": 0.0}),),
    "hard-sigmoid": (("HardSigmoid", {"alpha": 0.25, "beta": 0.375}),),
    "hard-swish": (("HardSwish", {}),),
}
CHANNELWISE = {
    "none": (),
    "norm": ("norm",),
    "add": ("add",),
    "mul": ("mul",),
    "norm-add": ("norm", "add"),
    "mul-add": ("mul", "add"),
    "add-mul": ("add", "mul"),
    "add-norm": ("add", "norm"),
}


def _channelwise(lab: Lab, kind: str, below: int, o: int, turned: bool) -> Application:
    if kind == "norm":
        given = [lab.weight(o), lab.weight(o), lab.weight(o), lab.weight(o, low=0.25)]
        return lab.apply("BatchNormalization", below, *given, epsilon=1e-3)
    other = lab.weight(*((1, o, 1, 1) if turned else (o, 1, 1)))
    pair = (other, below) if turned else (below, other)
    return lab.apply("Add" if kind == "add" else "Mul", *pair)


def _line(
    lab: Lab, below: tuple[str, ...], summand: str, last: str, *, biased: bool
) -> tuple[Members, Members]:
    """Return a kernel and the operators that make its summand."""
    conv = _conv(lab, 1, 24, 20, 3, biased=biased)
    members = [conv]
    for kind in below:
        turned = summand == "right" and last in {"relu", "tanh"}
        members.append(_channelwise(lab, kind, members[-1].value, 20, turned))
    made: Members = ()
    if summand != "none":
        assert conv.inputs[1] is not None
        again = lab.conv(
            conv.children[0], lab.weight(*conv.inputs[1].dims), **conv.attributes
        )
        relu = lab.apply("Relu", again.value)
        made = (relu, again)
        pair = (members[-1].value, relu.value)
        members.append(lab.apply("Add", *(pair if summand == "left" else pair[::-1])))
    for op, given in ACTIVATIONS[last]:
        members.append(lab.apply(op, members[-1].value, **given))
    return tuple(reversed(members)), made


def _tree(members: Members) -> Tree:
    """Return the pattern of operators that follow each other."""
    tree = Tree(members[-1].op)
    for above, below in zip(members[-2::-1], members[:0:-1], strict=True):
        tree = Tree(above.op, ((above.children.index(below.value), tree),))
    return tree


def _fusion(tree: Tree) -> Fusion:
    (fusion,) = [one for one in BLOCKED_CONV if one.tree == tree]
    return fusion


def _forms(members: Members, tree: Tree | None = None) -> tuple[BlockedForm, ...]:
    blocked = _fusion(_tree(members) if tree is None else tree).blocked
    assert blocked is not None
    return blocked(members, BLOCK)


LINES = list(product(CHANNELWISE, ["none", "left", "right"], ACTIVATIONS))[1:]


@pytest.mark.parametrize(("below", "summand", "last"), LINES, ids=map("-".join, LINES))
def test_fusions_are_the_runtimes_own_or_equal(below: str, summand: str, last: str) -> None:
    """The nodes on blocks are the runtime's, where it is said that it makes them."""
    lab = Lab(np.random.default_rng(SEED))
    biased = summand != "left"
    members, made = _line(lab, CHANNELWISE[below], summand, last, biased=biased)
    if made:
        lab.arrays[made[0].value] = run(lab.standard(made), lab.feeds(made))
    # The runtime looks for hard swishes among values that are used inside the model.
    after = lab.apply("Flatten", members[0].value, axis=1)
    whole = (after, *members, *made)
    standard = lab.standard(whole)
    own = blocked_nodes(optimized(standard))
    wanted = run(standard, lab.feeds(whole)).reshape(members[0].outputs[0].dims)
    (form,) = _forms(members)
    written = lab.written(members, form)
    (node,) = blocked_nodes(written)
    assert form.by_runtime == (node in own)
    got = run(written, lab.feeds(members), "NONE")
    if form.by_runtime:
        assert np.array_equal(got, wanted)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("first", [True, False], ids=["y*g", "g*y"])
@pytest.mark.parametrize("alpha", [np.float32(1 / 6), np.float32(0.2)], ids=["1/6", "1/5"])
def test_a_hard_swish_may_be_a_product(alpha: np.float32, first: bool) -> None:
    """A value times its HardSigmoid is the activation if the numbers are right."""
    lab = Lab(np.random.default_rng(SEED))
    conv = _conv(lab, 1, 24, 20, 3, biased=True)
    gate = lab.apply("HardSigmoid", conv.value, alpha=float(alpha), beta=0.5)
    pair = (conv.value, gate.value) if first else (gate.value, conv.value)
    product_ = lab.apply("Mul", *pair)
    members = (product_, *((conv, gate, conv) if first else (gate, conv, conv)))
    inner = Tree("HardSigmoid", ((0, Tree("Conv")),))
    both = (Tree("Conv"), inner) if first else (inner, Tree("Conv"))
    forms = _forms(members, Tree("Mul", tuple(enumerate(both))))
    if alpha != np.float32(1 / 6):
        assert forms == ()
        return
    (form,) = forms
    after = lab.apply("Flatten", product_.value, axis=1)
    standard = lab.standard((after, product_, gate, conv))
    written = lab.written(members, form)
    assert blocked_nodes(written) == blocked_nodes(optimized(standard))
    wanted = run(standard, lab.feeds(members)).reshape(product_.outputs[0].dims)
    assert np.array_equal(run(written, lab.feeds(members), "NONE"), wanted)


@pytest.mark.parametrize("position", [0, 1], ids=["left", "right"])
@pytest.mark.parametrize("rank", [0, 1, 3, 4])
@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_a_number_is_folded_in(op: str, rank: int, position: int) -> None:
    """A constant of one element is one per channel; the runtime folds few of them."""
    lab = Lab(np.random.default_rng(SEED))
    conv = _conv(lab, 1, 24, 20, 3, biased=op == "Mul")
    number = lab.weight(*[1] * rank)
    pair = (conv.value, number) if position == 0 else (number, conv.value)
    members = (lab.apply(op, *pair), conv)
    standard = lab.standard(members)
    (form,) = _forms(members)
    written = lab.written(members, form)
    assert form.by_runtime == (blocked_nodes(written) == blocked_nodes(optimized(standard)))
    got, wanted = (
        run(written, lab.feeds(members), "NONE"),
        run(standard, lab.feeds(members)),
    )
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=2e-5)


# --------------------------------------------------------------------- what is refused
def _weights_that_move(lab: Lab) -> Members:
    conv = lab.conv(lab.value(1, 16, 5, 5), lab.value(16, 16, 1, 1))
    return lab.apply("Relu", conv.value), conv


def _summand_that_broadcasts(lab: Lab) -> Members:
    conv = lab.conv(lab.value(1, 16, 5, 5), lab.weight(16, 16, 1, 1))
    return lab.apply("Add", conv.value, lab.value(1, 16, 1, 1)), conv


def _constant_summand(lab: Lab) -> Members:
    conv = lab.conv(lab.value(1, 16, 5, 5), lab.weight(16, 16, 1, 1))
    return lab.apply("Add", conv.value, lab.weight(1, 16, 5, 5)), conv


def _constant_by_pixel(lab: Lab) -> Members:
    conv = lab.conv(lab.value(1, 16, 16, 16), lab.weight(16, 16, 1, 1))
    return lab.apply("Mul", conv.value, lab.weight(16)), conv


def _other_swish(lab: Lab) -> Members:
    conv = lab.conv(lab.value(1, 16, 5, 5), lab.weight(16, 16, 1, 1))
    return lab.apply("Mul", conv.value, lab.value(1, 16, 5, 5)), conv


@pytest.mark.parametrize(
    "make",
    [
        _weights_that_move,
        _summand_that_broadcasts,
        _constant_summand,
        _constant_by_pixel,
        _other_swish,
    ],
)
def test_what_no_kernel_computes_is_refused(make: Callable[[Lab], Members]) -> None:
    """Weights and operands that are not what the kernel takes."""
    members = make(Lab(np.random.default_rng(SEED)))
    assert _forms(members) == ()


def test_one_argument_does_not_lie_in_two_ways() -> None:
    """An image that is read plain cannot be the blocked summand as well."""
    lab = Lab(np.random.default_rng(SEED))
    x = lab.value(1, 8, 5, 5)
    conv = lab.conv(x, lab.weight(8, 8, 1, 1))
    members = (lab.apply("Add", conv.value, x), conv)
    (form,) = _forms(members)
    assert form.layouts[0] is Layout.BLOCKED
    got = run(lab.written(members, form), lab.feeds(members), "NONE")
    wanted = run(lab.standard(members), lab.feeds(members))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=2e-5)


# --------------------------------------------------------------- what runs on plain ones
def _plain_nodes(lab: Lab, members: Members) -> list[tuple[str, int]]:
    """Return the runtime's own nodes without blocks: type, number of inputs."""
    model = optimized(lab.standard(members), without=("NchwcTransformer",))
    return [(node.op_type, len(node.input)) for node in model.graph.node]


@pytest.mark.parametrize("biased", [False, True], ids=["bare", "bias"])
@pytest.mark.parametrize(("below", "summand", "last"), LINES, ids=map("-".join, LINES))
def test_plain_kernels_are_the_runtimes(
    below: str, summand: str, last: str, biased: bool
) -> None:
    """What is priced is what the runtime makes where nothing is blocked."""
    lab = Lab(np.random.default_rng(SEED))
    members, made = _line(lab, CHANNELWISE[below], summand, last, biased=biased)
    own = _plain_nodes(lab, (*members, *made))
    if made:
        own.remove(("FusedConv", 2))
    signatures = _fusion(_tree(members)).plain(members)
    if signatures is None:
        assert len(own) > 1
        return
    (one,) = signatures
    assert own == [(one.op.removeprefix("com.microsoft:"), len(one.inputs))]


@pytest.mark.parametrize("symbolic", [False, True])
def test_a_plain_sum_wants_sizes_that_are_numbers(symbolic: bool) -> None:
    """The runtime does not add within a convolution of images of any size."""
    lab = Lab(np.random.default_rng(SEED), symbolic=symbolic)
    members, _ = _line(lab, (), "left", "relu", biased=True)
    assert (_fusion(_tree(members)).plain(members) is None) == symbolic
    assert len(_forms(members)) == 1


def test_an_activation_is_an_attribute_of_the_runtimes_node() -> None:
    """The signature holds the node's attributes and its numbers."""
    lab = Lab(np.random.default_rng(SEED))
    conv = lab.conv(lab.value(1, 30, 5, 5), lab.weight(16, 30, 3, 3), pads=(1, 1, 1, 1))
    members = (lab.apply("Clip", conv.value, min=0.0, max=6.0), conv)
    attributes = (
        ("activation", "Clip"),
        ("activation_params", (0.0, 6.0)),
        ("dilations", (1, 1)),
        ("group", 1),
        ("kernel_shape", (3, 3)),
        ("pads", (1, 1, 1, 1)),
        ("strides", (1, 1)),
    )
    assert _fusion(_tree(members)).plain(members) == (
        Signature(
            "com.microsoft:FusedConv",
            attributes,
            conv.inputs,
            members[0].outputs,
            PRICED_OPSET,
        ),
    )

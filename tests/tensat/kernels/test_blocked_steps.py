"""Packed weights hold the weights, for blocks of any size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rulesets.size import symbol
from rulesets.tensor import Tensor
from tensat.kernels.blocked_steps import (
    Steps,
    fill_up,
    lying,
    merge_groups,
    pack_outputs,
    pack_pairs,
    standing,
    up,
)
from tensat.kernels.kernel import StepRef
from tensat.onnx_forms import Arg
from tests.tensat.kernels.blocked_lab import Array, computed

SEED = 20266


def _made(array: Array, add: Callable[[Steps, StepRef], StepRef]) -> Array:
    """Return what steps make of a constant."""
    steps = Steps({0: (0, Tensor("float32", array.shape), True)})
    add(steps, Arg(0))
    assert all(step.constant for step in steps.done)
    return computed(steps.done, array)


def _weights(*shape: int) -> Array:
    return np.random.default_rng(SEED).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("block", [4, 8, 16])
@pytest.mark.parametrize(("o", "i", "k"), [(16, 32, 3), (20, 9, 1), (1, 1, 2)])
def test_pairs_of_blocks_hold_the_weights(o: int, i: int, k: int, block: int) -> None:
    """Outputs by inputs by window, the channels of a block last; zeros fill it up."""
    w = _weights(o, i, k, k)
    packed = _made(w, lambda steps, ref: pack_pairs(steps, ref, block))
    assert packed.shape == (up(o, block), up(i, block), k, k)
    blocks = packed.reshape(
        up(o, block) // block, up(i, block) // block, k, k, block, block
    )
    dense = np.zeros((up(o, block), up(i, block), k, k), np.float32)
    dense[:o, :i] = w
    for a in range(dense.shape[0]):
        for c in range(dense.shape[1]):
            found = blocks[a // block, c // block, :, :, c % block, a % block]
            assert np.array_equal(found, dense[a, c])


@pytest.mark.parametrize("block", [4, 8, 16])
@pytest.mark.parametrize(("o", "i", "k"), [(16, 3, 3), (20, 1, 5), (3, 7, 1)])
def test_blocks_of_outputs_hold_the_weights(o: int, i: int, k: int, block: int) -> None:
    """Outputs by inputs by window, the outputs of a block last."""
    w = _weights(o, i, k, k)
    packed = _made(w, lambda steps, ref: pack_outputs(steps, ref, block))
    assert packed.shape == (up(o, block), i, k, k)
    blocks = packed.reshape(up(o, block) // block, i, k, k, block)
    for a in range(up(o, block)):
        wanted = w[a] if a < o else np.zeros((i, k, k), np.float32)
        assert np.array_equal(blocks[a // block, ..., a % block], wanted)


@pytest.mark.parametrize(("group", "merged"), [(4, 2), (8, 4), (6, 3)])
def test_merged_groups_see_their_own_channels(group: int, merged: int) -> None:
    """An output has its weights where its old group's channels are, and zeros elsewhere."""
    each, i = 2, 3
    w = _weights(group * each, i, 1, 2)
    found = _made(w, lambda steps, ref: merge_groups(steps, ref, group, merged))
    assert found.shape == (group * each, merged * i, 1, 2)
    for a in range(group * each):
        place = a // each % merged * i
        wanted = np.zeros((merged * i, 1, 2), np.float32)
        wanted[place : place + i] = w[a]
        assert np.array_equal(found[a], wanted)


def test_nothing_is_filled_up_in_vain() -> None:
    """A tensor of the right sizes stays as it is, symbolic sizes included."""
    shape = (symbol("n"), 30, symbol("h"))
    steps = Steps({0: (0, Tensor("float32", shape), False)})
    assert fill_up(steps, Arg(0), shape) == Arg(0)
    filled = fill_up(steps, Arg(0), (symbol("n"), 32, symbol("h")))
    assert [step.op for step in steps.done] == ["Pad"]
    assert steps.shape(filled) == (symbol("n"), 32, symbol("h"))


def test_views_lead_there_and_back() -> None:
    """A blocked tensor as it lies in memory, and as the runtime wants it."""
    n, h, w = symbol("n"), symbol("h"), symbol("w")
    steps = Steps({0: (0, Tensor("float32", (n, 48, h, w)), False)})
    view = lying(steps, Arg(0), 16)
    assert steps.shape(view) == (n, 3, h, w, 16)
    assert steps.shape(standing(steps, view)) == (n, 48, h, w)
    assert not any(step.constant for step in steps.done)

"""Estimates put different ways to compute the same thing into the measured order."""

from __future__ import annotations

import pytest

from tensat.costs import Argument, CostSource, Roofline, Signature

F = "float32"
IMAGE = (1, 96, 80, 80)


def _signature(
    op: str, *inputs: Argument | None, out: tuple[int, ...], **attributes: object
) -> Signature:
    pairs = tuple(sorted(attributes.items()))
    return Signature(op, pairs, inputs, (Argument(F, out),), 17)


def _x(*dims: int, constant: bool = False, value: float | None = None) -> Argument:
    return Argument(F, dims, constant, value)


def _pow(value: float | None) -> Signature:
    return _signature("Pow", _x(*IMAGE), _x(constant=True, value=value), out=IMAGE)


def _conv(channels: int, group: int) -> Signature:
    weight = _x(channels, channels // group, 3, 3, constant=True)
    shape = (1, channels, 28, 28)
    return _signature("Conv", _x(*shape), weight, out=shape, group=group)


def _dense(rows: int, inner: int, columns: int) -> Signature:
    weight = _x(inner, columns, constant=True)
    return _signature("MatMul", _x(rows, inner), weight, out=(rows, columns))


SQUARE = _signature("Mul", _x(*IMAGE), _x(*IMAGE), out=IMAGE)
LRN = _signature("LRN", _x(*IMAGE), out=IMAGE, size=5)


@pytest.mark.parametrize(
    ("cheap", "dear"),
    [
        pytest.param(SQUARE, _pow(2.0), id="square by Mul"),
        pytest.param(_pow(2.0), _pow(0.75), id="whole power"),
        pytest.param(_pow(2.0), _pow(None), id="known power"),
        pytest.param(_pow(0.75), LRN, id="Pow in LRN"),
        pytest.param(_conv(128, 1), _conv(256, 1), id="channels"),
        pytest.param(_dense(1, 512, 512), _dense(64, 512, 512), id="rows"),
        pytest.param(
            _signature("Reshape", _x(*IMAGE), out=(1, 614400), shape=(1, 614400)),
            _signature("Transpose", _x(*IMAGE), out=IMAGE, perm=(0, 1, 3, 2)),
            id="views move nothing",
        ),
        pytest.param(
            _signature("Gather", _x(50000, 512), _x(4), out=(4, 512), axis=0),
            _signature("Neg", _x(50000, 512), out=(50000, 512)),
            id="Gather reads what it returns",
        ),
    ],
)
def test_order(cheap: Signature, dear: Signature) -> None:
    """The first is estimated cheaper than the second."""
    first, second = Roofline().seconds([cheap, dear])
    assert 0 < first < second


def test_weights_of_one_row_come_from_memory() -> None:
    """A product of one row takes as long as its weights take to arrive: 1 MB at 20 GB/s."""
    assert Roofline().estimate(_dense(1, 512, 512)) == pytest.approx(54e-6, rel=0.1)


def test_few_channels_per_group_are_not_cheaper() -> None:
    """4, 8 and 16 channels per group take the same time, as their block is filled up."""
    costs = Roofline().seconds([_conv(128, group) for group in (32, 16, 8)])
    assert costs == pytest.approx([costs[0]] * 3, rel=0.2)


@pytest.mark.parametrize("op", ["Input", "Constant", "Output"])
def test_what_exists_is_free(op: str) -> None:
    """Inputs, constants and outputs of nodes cost nothing."""
    assert Roofline().estimate(_signature(op, out=IMAGE)) == 0.0


def test_an_unknown_operator_has_a_finite_cost() -> None:
    """Opaque nodes are estimated by their bytes, whatever types they have."""
    odd = Argument("float8e4m3fn", (3, 5))
    signature = Signature("Opaque", (), (odd, None, Argument("string", (2,))), (odd,), 17)
    assert 0 < Roofline().estimate(signature) < 1e-4


def test_it_is_a_cost_source() -> None:
    """The protocol is met, and progress is told."""
    source: CostSource = Roofline()
    told: list[tuple[int, int]] = []
    source.seconds([SQUARE, LRN], None, lambda done, total: told.append((done, total)))
    assert told == [(2, 2)]


def test_texts_tell_signatures_apart() -> None:
    """Everything that a cost depends on is in the key; seeds follow from it."""
    texts = {
        s.text() for s in (SQUARE, LRN, _pow(2.0), _pow(0.75), _pow(None), _conv(128, 2))
    }
    assert len(texts) == 6
    assert SQUARE.seed() != LRN.seed()

"""A recorded table answers for any device, and says how much of an answer is estimated."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tensat.costs.exchange import to_text
from tensat.costs.representative import representative
from tensat.costs.roofline import Roofline
from tensat.costs.source import Argument, Signature
from tensat.costs.store import CostStore, Record, Setting
from tensat.costs.table import TableCosts, choose
from tensat.errors import UsageError

F = "float32"
FAR = Setting("another device", "runtime 1", 1)


def relu(size: int, op: str = "Relu") -> Signature:
    """An elementwise operator."""
    return Signature(op, (), (Argument(F, (size,)),), (Argument(F, (size,)),), 17)


def key(signature: Signature) -> str:
    """The text under which its cost is stored."""
    return representative(signature).text()


def estimate(signature: Signature) -> float:
    """What the roofline says."""
    return Roofline().estimate(representative(signature))


def test_what_the_table_holds_is_the_answer() -> None:
    """Exactly, in order; infinity where the device has no kernel."""
    records = {key(relu(3)): Record(5e-6), key(relu(4)): Record(math.inf, note="none")}
    source = TableCosts(FAR, records)
    assert source.seconds([relu(4), relu(3), relu(3)]) == [math.inf, 5e-6, 5e-6]
    assert source.counts == {"known": 1, "refused": 1, "scaled": 0, "estimated": 0}
    assert not source.unknown


def test_equal_kernels_share_a_row() -> None:
    """A constant of another value is the same kernel, as it is where costs are measured."""
    x = Argument(F, (4, 8))
    scales = [
        Signature("Mul", (), (x, Argument(F, (), True, v)), (x,), 17) for v in (0.1, 7.0)
    ]
    source = TableCosts(FAR, {key(scales[0]): Record(3e-6)})
    assert source.seconds(scales) == [3e-6, 3e-6]


def test_a_signature_itself_comes_before_the_one_timed_for_it() -> None:
    """Sources that time each signature as it is store it under its own text."""
    x = Argument(F, (4, 8))
    mul = Signature("Mul", (), (x, Argument(F, (), True, 0.5)), (x,), 17)
    assert key(mul) != mul.text()
    records = {key(mul): Record(3e-6), mul.text(): Record(4e-6)}
    assert TableCosts(FAR, records).seconds([mul]) == [4e-6]


def test_an_unknown_form_is_scaled_as_what_is_timed_for_it() -> None:
    """A Gemm without bias by constants as a MatMul, if the table has only those."""
    x, w, y = Argument(F, (4, 8)), Argument(F, (8, 16), True), Argument(F, (4, 16))
    gemm = Signature("Gemm", (), (x, w), (y,), 17)
    timed = representative(gemm)
    assert timed.op == "MatMul"
    other = Signature("MatMul", (), (y, Argument(F, (16, 4), True)), (x,), 17)
    records = {
        other.text(): Record(7 * Roofline().estimate(other)),
        key(relu(9)): Record(estimate(relu(9))),
    }
    seconds = TableCosts(FAR, records).seconds([gemm])
    assert seconds == pytest.approx([7 * Roofline().estimate(timed)])


def test_the_rest_is_scaled_by_the_tables_own_costs() -> None:
    """Per operator, by rows that were not asked for; other operators by all rows."""
    known = [relu(1000), relu(100_000), relu(10_000_000), relu(5000, "Tanh")]
    factors = [0.2, 0.3, 0.4, 6.0]
    records = {
        key(signature): Record(factor * estimate(signature))
        for signature, factor in zip(known, factors, strict=True)
    }
    source = TableCosts(FAR, records)
    asked = [relu(77), relu(78, "Tanh"), relu(79, "Exp")]
    wanted = [f * estimate(s) for f, s in zip([0.3, 6.0, 0.35], asked, strict=True)]
    assert source.seconds(asked) == pytest.approx(wanted)
    assert source.seconds([*asked, *asked]) == pytest.approx([*wanted, *wanted])
    assert source.counts["scaled"] == 3
    assert source.unknown == {"Relu": 1, "Tanh": 1, "Exp": 1}


def test_rows_that_cannot_be_estimated_do_not_scale() -> None:
    """Texts that are no signatures, or signatures without the inputs they need."""
    records = {
        "nonsense": Record(1.0),
        "MatMul@17[]()->(float32[4])": Record(1.0),
        "Conv@17[](float32[4],float32[4])->(float32[4])": Record(1.0),
        key(relu(1000)): Record(3 * estimate(relu(1000))),
    }
    source = TableCosts(FAR, records)
    assert source.seconds([relu(5)]) == pytest.approx([3 * estimate(relu(5))])


def test_what_is_never_measured_is_not_missing() -> None:
    """Inputs and constants are free; nodes kept as they are get a scaled estimate."""
    out = (Argument(F, (4,)),)
    free, opaque = Signature("Constant", (), (), out, 17), relu(64, "Opaque")
    source = TableCosts(FAR, {key(relu(9)): Record(2 * estimate(relu(9)))})
    assert source.seconds([free, opaque]) == pytest.approx([0.0, 2 * estimate(opaque)])
    assert source.counts["estimated"] == 2
    assert not source.unknown


def test_domains_that_the_table_does_not_know_are_refused() -> None:
    """A layout of one device is not estimated for another; known domains are."""
    blocked, fused = relu(64, "com.microsoft.nchwc:Conv"), relu(64, "com.microsoft:Gelu")
    records = {key(relu(9)): Record(2 * estimate(relu(9)))}
    source = TableCosts(FAR, records)
    assert source.seconds([blocked, fused]) == [math.inf, math.inf]
    assert source.counts["refused"] == 2
    records[key(relu(7, "com.microsoft:QuickGelu"))] = Record(1e-6)
    records[key(relu(7, "com.microsoft.nchwc:Conv"))] = Record(math.inf)
    refused, known = TableCosts(FAR, records).seconds([blocked, fused])
    assert math.isinf(refused)
    assert 0 < known < math.inf


def test_an_empty_part_of_a_table_is_the_roofline() -> None:
    """Without any cost there is nothing to scale by."""
    signatures = [relu(5), relu(6, "Tanh")]
    assert TableCosts(FAR, {}).seconds(signatures) == Roofline().seconds(signatures)


@pytest.mark.parametrize("kind", ["database", "export"])
def test_a_table_is_read_from_either_kind_of_file(tmp_path: Path, kind: str) -> None:
    """And knows where it was measured."""
    records = {key(relu(3)): Record(5e-6)}
    path = tmp_path / "file"
    if kind == "export":
        path.write_text(to_text({FAR: records}))
    else:
        with CostStore.open(path) as store:
            store.save(FAR, records)
    source = TableCosts.read(path, threads=4)
    assert source.setting == FAR
    assert source.seconds([relu(3)]) == [5e-6]


SETTINGS = [
    Setting(device, "runtime 1", threads)
    for device, threads in [("a", 1), ("a", 2), ("b", 2), ("b", 3)]
]


def test_threads_choose_among_settings() -> None:
    """Where one setting alone has that number; a single setting needs no choice."""
    costs = {setting: {"s": Record(1.0)} for setting in SETTINGS}
    assert choose(costs, 1, "f") == SETTINGS[0]
    assert choose(costs, 3, "f") == SETTINGS[3]
    assert choose({SETTINGS[3]: {}}, 1, "f") == SETTINGS[3]


@pytest.mark.parametrize(
    ("settings", "threads", "text"),
    [
        pytest.param([], 1, "'f' holds no costs", id="none"),
        pytest.param(SETTINGS, 2, r"has 2 settings for 2 threads; it holds 'a /", id="two"),
        pytest.param(SETTINGS, 9, r"has 0 settings for 9 threads", id="no such"),
    ],
)
def test_an_open_choice_is_an_error(
    settings: list[Setting], threads: int, text: str
) -> None:
    """It names all settings that there are."""
    with pytest.raises(UsageError, match=text) as caught:
        choose({setting: {} for setting in settings}, threads, "f")
    assert all(f"'{setting}'" in str(caught.value) for setting in settings)

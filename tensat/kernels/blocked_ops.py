"""How operators by themselves run on blocked tensors.

What is not here never does: reductions and softmax over channels, products of many rows,
views of other shapes, normalizations whose numbers are computed. On the blocked buffer
they would run and give wrong numbers without an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tensat.kernels.blocked_channelwise import BLOCKED_CHANNELWISE, alone, gate
from tensat.kernels.blocked_conv import BLOCKED_CONV, conv_alone
from tensat.kernels.blocked_elementwise import COMBINING, FINITE, PARTIAL, combined, unary
from tensat.kernels.blocked_matmul import BLOCKED_MATMUL, few_rows
from tensat.kernels.blocked_moves import enlarged, joined, padded, sliced
from tensat.kernels.blocked_pools import global_pool, reduction, window_pool
from tensat.kernels.kernel import Blocked, BlockedForm, Fusion, Members


def _entries() -> Iterator[tuple[str, Blocked]]:
    """Yield ways for operators; several for one operator are tried in this order."""
    yield "Conv", conv_alone
    for op in sorted(FINITE | PARTIAL):
        yield op, unary
    for op in sorted(COMBINING):
        yield op, combined
    for op in ("BatchNormalization", "Add", "Mul"):
        yield op, alone
    yield "Mul", gate
    for op in ("MaxPool", "AveragePool"):
        yield op, window_pool
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        yield op, global_pool
    for op in ("ReduceMean", "ReduceMax"):
        yield op, reduction
    yield "MatMul", few_rows
    yield "Gemm", few_rows
    yield "Concat", joined
    yield "Slice", sliced
    yield "Pad", padded
    yield "Upsample", enlarged


def _all_of(ways: tuple[Blocked, ...]) -> Blocked:
    def blocked(members: Members, block: int) -> tuple[BlockedForm, ...]:
        return tuple(form for way in ways for form in way(members, block))

    return blocked


def _single() -> Mapping[str, Blocked]:
    found: dict[str, tuple[Blocked, ...]] = {}
    for op, way in _entries():
        found[op] = (*found.get(op, ()), way)
    return {op: _all_of(ways) for op, ways in found.items()}


BLOCKED_SINGLE: Mapping[str, Blocked] = _single()
"""By canonical operator: the ways in which it runs on blocked tensors."""

BLOCKED_FUSIONS: tuple[Fusion, ...] = (
    *BLOCKED_CONV,
    *BLOCKED_CHANNELWISE,
    *BLOCKED_MATMUL,
)
"""Everything that is computed with a convolution on blocked tensors."""
